//! One look at the store for all that a page shows: the rows of several operations from one snapshot.

use trefoil_engine::{
    Engine, EngineRequest, JobResult, Operation, Outcome, OwnedRow, Row, RowSink, Selection, downcast_sink,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, StoredValue};

/// What one operation found.
#[derive(Debug)]
pub struct FoundRows {
    pub rows: Vec<OwnedRow>,
    pub outcome: Outcome,
}

/// How much of a text is kept where a part of it is shown: more than any table shows, and never a whole book.
pub const TEXT_PREVIEW_BYTES: usize = 2_048;

/// Runs operations that only read. Of each text no more than `texts` bytes are kept.
pub async fn read_all(engine: &Engine, operations: Vec<Operation>, texts: usize) -> Result<Vec<FoundRows>> {
    let shapes = operations.iter().map(row_layout).collect();
    let rows = operations.iter().map(|_| Vec::new()).collect();
    let answer = MultiReadSink {
        row_layouts: shapes,
        max_text_bytes: texts,
        rows,
        outcomes: Vec::new(),
        early_outcomes: 0,
    };
    let operations = operations.into_iter().map(Ok).collect();
    match engine.run(operations, EngineRequest::new(Box::new(answer))).await? {
        JobResult::Completed(answer) => downcast_sink::<MultiReadSink>(answer)?.finish(),
        JobResult::Replayed(_) => Err(Error::internal("a look without a key was replayed")),
    }
}

/// What a row of an operation has, and how many cells behind its columns: the version and what a cursor is made of.
fn row_layout(operation: &Operation) -> (std::sync::Arc<Selection>, usize) {
    match operation {
        Operation::List { selection, listing, .. } => {
            let cursor = if listing.with_cursors { listing.sort_keys.len() + 1 } else { 0 };
            (selection.clone(), cursor + usize::from(selection.includes_version))
        }
        Operation::Get { selection, .. }
        | Operation::Create { selection, .. }
        | Operation::Update { selection, .. }
        | Operation::Delete { selection, .. }
        | Operation::ReadImage { selection, .. } => {
            (selection.clone(), usize::from(selection.includes_version))
        }
        // A text and nothing else.
        Operation::PlainList(_) => (std::sync::Arc::default(), 1),
    }
}

struct MultiReadSink {
    row_layouts: Vec<(std::sync::Arc<Selection>, usize)>,
    max_text_bytes: usize,
    /// Of each operation.
    rows: Vec<Vec<OwnedRow>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// How many outcomes were told before the store began.
    early_outcomes: usize,
}

impl MultiReadSink {
    fn finish(mut self) -> Result<Vec<FoundRows>> {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let outcomes = self.outcomes.into_iter().map(|(_, outcome)| outcome);
        outcomes.zip(self.rows).map(|(outcome, rows)| Ok(FoundRows { rows, outcome: outcome? })).collect()
    }
}

impl RowSink for MultiReadSink {
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

fn copy_row(row: &dyn Row, selection: &Selection, extra: usize, texts: usize) -> OwnedRow {
    let columns = selection.columns.len();
    let cells = (0..columns + extra).map(|i| match row.cell(i) {
        // What a cursor is made of must stay whole.
        CellValue::Text(text) if i < columns => {
            StoredValue::Text(text[..text.floor_char_boundary(texts)].to_owned())
        }
        cell @ (CellValue::Null
        | CellValue::Int(_)
        | CellValue::Real(_)
        | CellValue::Text(_)
        | CellValue::Unreadable) => cell.to_stored(),
    });
    let children = selection.children.iter().enumerate().map(|(i, child)| {
        let mut rows = Vec::new();
        // Other records are only ever rows and names.
        row.each_child(i, &mut |row| {
            rows.push(copy_row(row, &child.selection, 0, texts.min(TEXT_PREVIEW_BYTES)))
        });
        rows
    });
    OwnedRow { cells: cells.collect(), children: children.collect() }
}
