//! Several read operations in one snapshot, with the rows of each.

use std::sync::Arc;

use trefoil_engine::{
    Engine, EngineRequest, Operation, Outcome, OwnedRow, PreparedSelection, Row, RowSink, Selection,
};
use trefoil_model::error::Result;
use trefoil_model::{CellValue, StoredValue};

/// The rows and the outcome of one operation.
#[derive(Debug)]
pub struct FoundRows {
    pub rows: Vec<OwnedRow>,
    pub outcome: Outcome,
}

/// Texts are cut to this length where only their beginning is shown: more than any table shows.
pub const TEXT_PREVIEW_BYTES: usize = 2_048;

/// Runs read operations in one snapshot. Texts are cut to `max_text_bytes`.
pub async fn read_snapshot(
    engine: &Engine,
    operations: Vec<Operation>,
    max_text_bytes: usize,
) -> Result<Vec<FoundRows>> {
    read_each(engine, operations, max_text_bytes).await?.into_iter().collect()
}

/// The same, where an operation that fails leaves the others.
pub async fn read_each(
    engine: &Engine,
    operations: Vec<Operation>,
    max_text_bytes: usize,
) -> Result<Vec<Result<FoundRows>>> {
    let row_layouts = operations.iter().map(row_layout).collect();
    let rows = operations.iter().map(|_| Vec::new()).collect();
    let sink =
        SnapshotReadSink { row_layouts, max_text_bytes, rows, outcomes: Vec::new(), early_outcomes: 0 };
    let operations = operations.into_iter().map(Ok).collect();
    let finished = engine.run(operations, EngineRequest::new(Box::new(sink))).await?;
    Ok(finished.into_sink::<SnapshotReadSink>()?.finish())
}

/// The selection of an operation, and the number of cells after its columns: the version and the cells of a cursor.
fn row_layout(operation: &Operation) -> (Arc<PreparedSelection>, usize) {
    match operation {
        Operation::List { selection, listing, .. } => {
            let cursor_cells = if listing.with_cursors { listing.sort_keys.len() + 1 } else { 0 };
            (selection.clone(), cursor_cells + usize::from(selection.includes_version))
        }
        Operation::Get { selection, .. }
        | Operation::Create { selection, .. }
        | Operation::CreateMany { selection, .. }
        | Operation::Upsert { selection, .. }
        | Operation::Nested { selection, .. }
        | Operation::Update { selection, .. }
        | Operation::Delete { selection, .. }
        | Operation::ReadImage { selection, .. } => {
            (selection.clone(), usize::from(selection.includes_version))
        }
        Operation::Aggregate { query, .. } => (Arc::default(), query.cell_count()),
        // One text per row.
        Operation::PlainList(_) => (Arc::default(), 1),
        Operation::UpdateMany { .. } | Operation::DeleteMany { .. } | Operation::SeeImages { .. } => {
            (Arc::default(), 0)
        }
    }
}

struct SnapshotReadSink {
    row_layouts: Vec<(Arc<PreparedSelection>, usize)>,
    max_text_bytes: usize,
    /// By operation.
    rows: Vec<Vec<OwnedRow>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// Number of outcomes known before the store began.
    early_outcomes: usize,
}

impl SnapshotReadSink {
    fn finish(mut self) -> Vec<Result<FoundRows>> {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let outcomes = self.outcomes.into_iter().map(|(_, outcome)| outcome);
        outcomes.zip(self.rows).map(|(outcome, rows)| Ok(FoundRows { rows, outcome: outcome? })).collect()
    }
}

impl RowSink for SnapshotReadSink {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        let (selection, extra) = &self.row_layouts[plan];
        self.rows[plan].push(copy_row(row, selection, *extra, self.max_text_bytes));
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.outcomes.push((plan, outcome));
    }

    fn checkpoint(&mut self) {
        self.early_outcomes = self.outcomes.len();
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.outcomes.truncate(self.early_outcomes);
    }
}

fn copy_row(row: &dyn Row, selection: &Selection, extra: usize, max_text_bytes: usize) -> OwnedRow {
    let columns = selection.columns.len();
    let cells = (0..columns + extra).map(|i| match row.cell(i) {
        // The cells of a cursor must stay whole.
        CellValue::Text(text) if i < columns => {
            StoredValue::Text(text[..text.floor_char_boundary(max_text_bytes)].to_owned())
        }
        cell @ (CellValue::Null
        | CellValue::Int(_)
        | CellValue::Real(_)
        | CellValue::Text(_)
        | CellValue::Unreadable) => cell.to_stored(),
    });
    let children = selection.children.iter().enumerate().map(|(i, child)| {
        let mut rows = Vec::new();
        // Child records are only shown as table rows and names.
        row.each_child(i, &mut |row| {
            rows.push(copy_row(row, &child.selection, 0, max_text_bytes.min(TEXT_PREVIEW_BYTES)))
        });
        rows
    });
    OwnedRow { cells: cells.collect(), children: children.collect() }
}
