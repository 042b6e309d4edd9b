//! What the rows of an operation hold.

use std::sync::Arc;

use trefoil_engine::{Operation, PreparedSelection};

/// The selection, and the number of cells after it.
pub(super) fn shown(operation: &Operation) -> (Arc<PreparedSelection>, usize) {
    match operation {
        Operation::List { selection, listing, .. } => {
            (selection.clone(), if listing.with_cursors { listing.sort_keys.len() + 1 } else { 0 })
        }
        Operation::Get { selection, .. }
        | Operation::Create { selection, .. }
        | Operation::CreateMany { selection, .. }
        | Operation::Upsert { selection, .. }
        | Operation::Nested { selection, .. }
        | Operation::Update { selection, .. }
        | Operation::Delete { selection, .. }
        | Operation::ReadImage { selection, .. } => (selection.clone(), 0),
        Operation::Aggregate { query, .. } => (Arc::default(), query.cell_count()),
        // A text and nothing else.
        Operation::PlainList(_) => (Arc::default(), 1),
        Operation::UpdateMany { .. } | Operation::DeleteMany { .. } | Operation::SeeImages { .. } => {
            (Arc::default(), 0)
        }
    }
}
