//! [`UnreadableRow`]: a record that its actor wrote and may not read.

use trefoil_engine::Row;
use trefoil_model::{CellValue, RecordId};

use crate::statements::select::SelectLevel;

/// Shows the id of a record, and nothing else.
pub struct UnreadableRow<'a> {
    pub id: &'a RecordId,
    pub level: &'a SelectLevel,
}

impl Row for UnreadableRow<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        match self.level.column_names.get(column) {
            Some(name) if name == "id" => self.id.as_cell(),
            Some(_) | None => CellValue::Null,
        }
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}

    fn unreadable_id(&self) -> Option<&RecordId> {
        Some(self.id)
    }
}
