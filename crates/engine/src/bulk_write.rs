//! Writes of any length, such as imports: batch after batch, proven like any request, and all of it or nothing.

use std::sync::Arc;

use crate::operation::{Operation, Outcome, Selection};
use crate::owned_records::OwnedRow;
use crate::plan::{Arrival, Plan};
use crate::store::{Answer, Cancel, Job, LongWrite, LooseEnd, Row};
use crate::{Engine, answer_as};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, TypeId};

/// A long write that goes on. Dropped before [`Long::commit`], nothing of it happened.
pub struct Long<'e> {
    model: Arc<Model>,
    open: Box<dyn LongWrite + 'e>,
    cancel: Cancel,
}

/// One thing done within a long write.
#[derive(Debug, Clone)]
pub enum Step {
    Bring(Arrival),
    Do(Operation),
}

impl Engine {
    pub async fn begin(&self) -> Result<Long<'_>> {
        self.check_tables()?;
        let open = self.0.store.begin(self.model()).await?;
        Ok(Long { model: self.model().clone(), open, cancel: Cancel::default() })
    }
}

impl Long<'_> {
    /// How each step ended, in their order. One that fails leaves the others standing.
    pub async fn run(&mut self, steps: Vec<Step>) -> Result<Vec<Result<Outcome>>> {
        let asked = steps.len();
        let answer = self.answered(steps, Arc::default()).await?;
        let missing = || Err(Error::internal("the store told nothing of a step"));
        let mut outcomes = answer.outcomes;
        outcomes.resize_with(asked, || None);
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect())
    }

    /// The rows of one reading, as the batches before have left them.
    pub async fn read(&mut self, operation: Operation, selection: Arc<Selection>) -> Result<Vec<OwnedRow>> {
        let mut answer = self.answered(vec![Step::Do(operation)], selection).await?;
        match answer.outcomes.pop().flatten() {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(answer.rows),
        }
    }

    /// What these records refer to and is not there, or not yet.
    pub async fn loose_ends(&mut self, record: TypeId, ids: Vec<i64>) -> Result<Vec<LooseEnd>> {
        self.open.loose_ends(record, ids).await
    }

    pub async fn commit(mut self) -> Result<()> {
        self.open.commit().await
    }

    async fn answered(&mut self, steps: Vec<Step>, selection: Arc<Selection>) -> Result<Box<Ends>> {
        let now = jiff::Timestamp::now();
        let mut ends = Ends { selection, rows: Vec::new(), outcomes: Vec::new() };
        let mut plans = Vec::with_capacity(steps.len());
        for (number, step) in steps.into_iter().enumerate() {
            let proven = match step {
                Step::Bring(arrival) => Plan::prove_arrival(&self.model, arrival, now),
                Step::Do(operation) => Plan::prove(&self.model, operation, now),
            };
            match proven {
                Ok(plan) => plans.push((number, plan)),
                Err(error) => ends.done(number, Err(error)),
            }
        }
        if plans.is_empty() {
            return Ok(Box::new(ends));
        }
        let (model, cancel) = (self.model.clone(), self.cancel.clone());
        let job = Job { model, plans, answer: Box::new(ends), key: None, atomic: false, cancel };
        answer_as(self.open.run(job).await?)
    }
}

/// How each step ended, and the rows of the one that reads.
struct Ends {
    selection: Arc<Selection>,
    rows: Vec<OwnedRow>,
    outcomes: Vec<Option<Result<Outcome>>>,
}

impl Answer for Ends {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        // Steps that write select nothing.
        if !self.selection.columns.is_empty() {
            self.rows.push(OwnedRow::copy(row, &self.selection, 0));
        }
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        if self.outcomes.len() <= plan {
            self.outcomes.resize_with(plan + 1, || None);
        }
        self.outcomes[plan] = Some(outcome);
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Never asked: what fails within a long write is not run again by the store.
    fn reset(&mut self) {
        self.rows.clear();
    }
}
