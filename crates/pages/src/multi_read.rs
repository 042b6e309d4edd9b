//! One look at the store for all that a page shows: the rows of several operations from one snapshot.

use trefoil_engine::{
    Answer, Done, Engine, Operation, Outcome, OwnedRow, Request, Row, Selection, answer_as,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Cell, Stored};

/// What one operation found.
#[derive(Debug)]
pub struct Found {
    pub rows: Vec<OwnedRow>,
    pub outcome: Outcome,
}

/// How much of a text is kept where a part of it is shown: more than any table shows, and never a whole book.
pub const PART: usize = 2_048;

/// Runs operations that only read. Of each text no more than `texts` bytes are kept.
pub async fn look(engine: &Engine, operations: Vec<Operation>, texts: usize) -> Result<Vec<Found>> {
    let shapes = operations.iter().map(shape).collect();
    let rows = operations.iter().map(|_| Vec::new()).collect();
    let answer = Looking { shapes, texts, rows, outcomes: Vec::new(), refused: 0 };
    let operations = operations.into_iter().map(Ok).collect();
    match engine.run(operations, Request::new(Box::new(answer))).await? {
        Done::Answered(answer) => answer_as::<Looking>(answer)?.finish(),
        Done::Replayed(_) => Err(Error::internal("a look without a key was replayed")),
    }
}

/// What a row of an operation has, and how many cells behind its columns: the version and what a cursor is made of.
fn shape(operation: &Operation) -> (std::sync::Arc<Selection>, usize) {
    match operation {
        Operation::List { selection, listing, .. } => {
            let cursor = if listing.cursors { listing.order.len() + 1 } else { 0 };
            (selection.clone(), cursor + usize::from(selection.versioned))
        }
        Operation::Get { selection, .. }
        | Operation::Create { selection, .. }
        | Operation::Update { selection, .. }
        | Operation::Delete { selection, .. }
        | Operation::Changed { selection, .. } => (selection.clone(), usize::from(selection.versioned)),
        // A text and nothing else.
        Operation::Plain(_) => (std::sync::Arc::default(), 1),
    }
}

struct Looking {
    shapes: Vec<(std::sync::Arc<Selection>, usize)>,
    texts: usize,
    /// Of each operation.
    rows: Vec<Vec<OwnedRow>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// How many outcomes were told before the store began.
    refused: usize,
}

impl Looking {
    fn finish(mut self) -> Result<Vec<Found>> {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let outcomes = self.outcomes.into_iter().map(|(_, outcome)| outcome);
        outcomes.zip(self.rows).map(|(outcome, rows)| Ok(Found { rows, outcome: outcome? })).collect()
    }
}

impl Answer for Looking {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        let (selection, extra) = &self.shapes[plan];
        self.rows[plan].push(copied(row, selection, *extra, self.texts));
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.outcomes.push((plan, outcome));
    }

    fn begin(&mut self) {
        self.refused = self.outcomes.len();
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.rows.iter_mut().for_each(Vec::clear);
        self.outcomes.truncate(self.refused);
    }
}

fn copied(row: &dyn Row, selection: &Selection, extra: usize, texts: usize) -> OwnedRow {
    let columns = selection.columns.len();
    let cells = (0..columns + extra).map(|i| match row.cell(i) {
        // What a cursor is made of must stay whole.
        Cell::Text(text) if i < columns => Stored::Text(text[..text.floor_char_boundary(texts)].to_owned()),
        cell @ (Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable) => {
            cell.to_stored()
        }
    });
    let children = selection.children.iter().enumerate().map(|(i, child)| {
        let mut rows = Vec::new();
        // Other records are only ever rows and names.
        row.each_child(i, &mut |row| rows.push(copied(row, &child.selection, 0, texts.min(PART))));
        rows
    });
    OwnedRow { cells: cells.collect(), children: children.collect() }
}
