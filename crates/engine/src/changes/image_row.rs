//! A changed record that its image tells whole, so that the store need not be asked.

use crate::changes::image::cell_of;
use crate::plan::{Action, Chosen, ChosenChild};
use crate::store::Row;
use trefoil_model::naming::names;
use trefoil_model::{Cell, Kind, Model, RecordType, Stored};

/// The row of a change of which only own columns and ids of referenced records are selected.
pub struct Told<'a> {
    record: &'a RecordType,
    image: &'a [(String, Stored)],
    selection: &'a Chosen,
}

impl<'a> Told<'a> {
    pub fn of(model: &'a Model, action: &'a Action) -> Option<Told<'a>> {
        let Action::Changed { record, image, selection } = action else { return None };
        let record = model.record(*record);
        let flat = selection.children.iter().all(|child| is_key(model, record, child));
        flat.then_some(Told { record, image, selection })
    }
}

/// Whether nothing but the id of a referenced record is asked.
fn is_key(model: &Model, record: &RecordType, child: &ChosenChild) -> bool {
    let Kind::Reference { target, .. } = &record.field(child.field).kind else { return false };
    let id = model.record(*target).id_field();
    child.selection.children.is_empty() && child.selection.columns.iter().all(|column| *column == id)
}

impl Row for Told<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        match self.selection.columns.get(column) {
            Some(field) => cell_of(self.image, &self.record.field(*field).column),
            None => cell_of(self.image, names::VERSION_COLUMN),
        }
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        let field = self.record.field(self.selection.children[child].field);
        let key = cell_of(self.image, &field.column);
        if matches!(key, Cell::Int(_)) {
            visit(&Key(key));
        }
    }
}

/// A record of which its id is known.
struct Key<'a>(Cell<'a>);

impl Row for Key<'_> {
    fn cell(&self, _column: usize) -> Cell<'_> {
        self.0
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
