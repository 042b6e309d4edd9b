//! Collects the rows of the store operations of one call, for resolvers that run after it.

use std::sync::Arc;

use trefoil_engine::{Operation, Outcome, OwnedRow, PreparedSelection, Row, RowSink};
use trefoil_model::error::Result;

/// The rows of each operation, by its number.
pub struct RootRowCollector {
    pub operations: Vec<OperationRows>,
}

pub struct OperationRows {
    selection: Arc<PreparedSelection>,
    /// Number of cells after the selection, from which cursors are made.
    cursor_cells: usize,
    pub rows: Vec<OwnedRow>,
    pub outcome: Option<Result<Outcome>>,
    /// It failed before the store started, so `reset` keeps its outcome.
    failed_early: bool,
}

impl RootRowCollector {
    pub fn new(operations: &[Result<Operation>]) -> RootRowCollector {
        let operations = operations.iter().map(|operation| {
            let (selection, cursor_cells) = match operation {
                Ok(Operation::List { listing, selection, .. }) => (selection.clone(), listing.cursor_cells()),
                Ok(
                    Operation::Get { selection, .. }
                    | Operation::Create { selection, .. }
                    | Operation::CreateMany { selection, .. }
                    | Operation::Upsert { selection, .. }
                    | Operation::Nested { selection, .. }
                    | Operation::Update { selection, .. }
                    | Operation::Delete { selection, .. }
                    | Operation::ReadImage { selection, .. },
                ) => (selection.clone(), 0),
                Ok(Operation::Aggregate { query, .. }) => (Arc::default(), query.cell_count()),
                Ok(
                    Operation::UpdateMany { .. }
                    | Operation::DeleteMany { .. }
                    | Operation::SeeImages { .. }
                    | Operation::PlainList(_),
                )
                | Err(_) => (Arc::default(), 0),
            };
            OperationRows { selection, cursor_cells, rows: Vec::new(), outcome: None, failed_early: false }
        });
        RootRowCollector { operations: operations.collect() }
    }
}

impl RowSink for RootRowCollector {
    fn row(&mut self, number: usize, row: &dyn Row) {
        let collected = &mut self.operations[number];
        collected.rows.push(OwnedRow::from_row(row, &collected.selection, collected.cursor_cells));
    }

    fn finish_plan(&mut self, number: usize, outcome: Result<Outcome>) {
        self.operations[number].outcome = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn checkpoint(&mut self) {
        for collected in &mut self.operations {
            collected.failed_early = collected.outcome.is_some();
        }
    }

    fn reset(&mut self) {
        for collected in self.operations.iter_mut().filter(|collected| !collected.failed_early) {
            collected.rows.clear();
            collected.outcome = None;
        }
    }
}
