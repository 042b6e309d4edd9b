//! A changed record read from its image alone, without asking the store.

use trefoil_model::naming::names;
use trefoil_model::{CellValue, Model, RecordType, StoredValue};

use crate::changes::record_image::image_cell;
use crate::plan::{PlanAction, PlannedChild, PlannedSelection};
use crate::row::Row;

/// The row of a change if only its own columns and ids of referenced records are selected.
pub struct ImageRow<'a> {
    record: &'a RecordType,
    image: &'a [(String, StoredValue)],
    selection: &'a PlannedSelection,
}

impl<'a> ImageRow<'a> {
    pub fn from_action(model: &'a Model, action: &'a PlanAction) -> Option<ImageRow<'a>> {
        let PlanAction::ReadImage { record, image, selection } = action else { return None };
        let record = model.record(*record);
        let is_complete = selection.children.iter().all(|child| selects_only_id(model, record, child));
        is_complete.then_some(ImageRow { record, image, selection })
    }
}

/// True if only the id of a referenced record is selected.
fn selects_only_id(model: &Model, record: &RecordType, child: &PlannedChild) -> bool {
    let Some(reference) = record.field(child.field).kind.reference() else { return false };
    let id = model.record(reference.target).id_field();
    child.selection.children.is_empty() && child.selection.columns.iter().all(|column| *column == id)
}

impl Row for ImageRow<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        match self.selection.columns.get(column) {
            Some(field) => image_cell(self.image, &self.record.field(*field).column),
            None => image_cell(self.image, names::VERSION_COLUMN),
        }
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        let field = self.record.field(self.selection.children[child].field);
        let id = image_cell(self.image, &field.column);
        match id {
            CellValue::Int(_) | CellValue::Text(_) => visit(&IdRow(id)),
            CellValue::Null | CellValue::Real(_) | CellValue::Unreadable => {}
        }
    }
}

/// A record of which only the id is known.
struct IdRow<'a>(CellValue<'a>);

impl Row for IdRow<'_> {
    fn cell(&self, _column: usize) -> CellValue<'_> {
        self.0
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
