//! Keeps the rows of several operations of one call to the store, for fields that are resolved after it.

use std::sync::Arc;

use trefoil_engine::{Answer, Operation, Outcome, OwnedRow, Row, Selection};
use trefoil_model::error::Result;

/// One entry for each operation, by number.
pub struct Gather {
    pub operations: Vec<Collected>,
}

pub struct Collected {
    selection: Arc<Selection>,
    /// Cells beyond the selection: what cursors are made of.
    extra: usize,
    pub rows: Vec<OwnedRow>,
    pub outcome: Option<Result<Outcome>>,
    /// Refused before the store began; that is not told again.
    refused: bool,
}

impl Gather {
    pub fn new(operations: &[Result<Operation>]) -> Gather {
        let operations = operations.iter().map(|operation| {
            let (selection, extra) = match operation {
                Ok(Operation::List { listing, selection, .. }) => {
                    (selection.clone(), if listing.cursors { listing.order.len() + 1 } else { 0 })
                }
                Ok(
                    Operation::Get { selection, .. }
                    | Operation::Create { selection, .. }
                    | Operation::Update { selection, .. }
                    | Operation::Delete { selection, .. }
                    | Operation::Changed { selection, .. },
                ) => (selection.clone(), 0),
                Ok(Operation::Plain(_)) | Err(_) => (Arc::default(), 0),
            };
            Collected { selection, extra, rows: Vec::new(), outcome: None, refused: false }
        });
        Gather { operations: operations.collect() }
    }
}

impl Answer for Gather {
    fn row(&mut self, number: usize, row: &dyn Row) {
        let collected = &mut self.operations[number];
        collected.rows.push(OwnedRow::copy(row, &collected.selection, collected.extra));
    }

    fn done(&mut self, number: usize, outcome: Result<Outcome>) {
        self.operations[number].outcome = Some(outcome);
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn begin(&mut self) {
        for collected in &mut self.operations {
            collected.refused = collected.outcome.is_some();
        }
    }

    fn reset(&mut self) {
        for collected in self.operations.iter_mut().filter(|collected| !collected.refused) {
            collected.rows.clear();
            collected.outcome = None;
        }
    }
}
