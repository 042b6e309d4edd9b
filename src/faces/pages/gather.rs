//! Several readings in one: the rows of each operation, kept until the page is made.

use std::sync::Arc;

use crate::engine::{Answer, Done, Engine, Operation, Outcome, OwnedRow, Request, Row, Selection, answer_as};
use crate::error::{Error, Result};

/// Reads all of it in one snapshot. The version of a record, where it is selected, follows its columns.
pub async fn gather(engine: &Engine, operations: Vec<Operation>) -> Result<Vec<Vec<OwnedRow>>> {
    let selections = operations.iter().map(selection).collect::<Result<Vec<_>>>()?;
    let gathering = selections.into_iter().map(|selection| (selection, Vec::new(), None)).collect();
    let request = Request::new(Box::new(Gathering(gathering)));
    match engine.run(operations.into_iter().map(Ok).collect(), request).await? {
        Done::Answered(answer) => {
            let parts = answer_as::<Gathering>(answer)?.0.into_iter();
            parts.map(|(_, rows, outcome)| outcome.unwrap_or_else(unfinished).map(|_| rows)).collect()
        }
        Done::Replayed(_) => Err(Error::internal("a reading without a key was replayed")),
    }
}

fn unfinished() -> Result<Outcome> {
    Err(Error::internal("a reading had no end"))
}

fn selection(operation: &Operation) -> Result<Arc<Selection>> {
    match operation {
        Operation::Get { selection, .. } | Operation::List { selection, .. } => Ok(selection.clone()),
        Operation::Create { .. }
        | Operation::Update { .. }
        | Operation::Delete { .. }
        | Operation::Changed { .. }
        | Operation::Plain(_) => Err(Error::internal("only records are gathered")),
    }
}

/// By operation: what is selected, its rows, how it ended.
struct Gathering(Vec<(Arc<Selection>, Vec<OwnedRow>, Option<Result<Outcome>>)>);

impl Answer for Gathering {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        let (selection, rows, _) = &mut self.0[plan];
        rows.push(OwnedRow::copy(row, selection, usize::from(selection.versioned)));
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.0[plan].2 = Some(outcome);
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        for (_, rows, outcome) in &mut self.0 {
            rows.clear();
            *outcome = None;
        }
    }
}
