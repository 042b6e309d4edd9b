//! Writes of any length, such as imports: batch after batch, proven like any request, and all of it or nothing.

use std::sync::Arc;

use crate::operation::{Operation, Outcome, Selection};
use crate::owned_records::OwnedRow;
use crate::plan::{ImportRecord, Plan};
use crate::store::{BulkTransaction, CancelFlag, DanglingReference, Row, RowSink, StoreJob};
use crate::{Engine, downcast_sink};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordTypeId};

/// A long write that goes on. Dropped before [`Long::commit`], nothing of it happened.
pub struct BulkWrite<'e> {
    model: Arc<Model>,
    transaction: Box<dyn BulkTransaction + 'e>,
    cancel_flag: CancelFlag,
}

/// One thing done within a long write.
#[derive(Debug, Clone)]
pub enum BulkStep {
    Import(ImportRecord),
    Run(Operation),
}

impl Engine {
    pub async fn begin_bulk_write(&self) -> Result<BulkWrite<'_>> {
        self.check_tables()?;
        let open = self.0.store.begin_bulk_write(self.model()).await?;
        Ok(BulkWrite { model: self.model().clone(), transaction: open, cancel_flag: CancelFlag::default() })
    }
}

impl BulkWrite<'_> {
    /// How each step ended, in their order. One that fails leaves the others standing.
    pub async fn run(&mut self, steps: Vec<BulkStep>) -> Result<Vec<Result<Outcome>>> {
        let asked = steps.len();
        let answer = self.run_steps(steps, Arc::default()).await?;
        let missing = || Err(Error::internal("the store told nothing of a step"));
        let mut outcomes = answer.outcomes;
        outcomes.resize_with(asked, || None);
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect())
    }

    /// The rows of one reading, as the batches before have left them.
    pub async fn read(&mut self, operation: Operation, selection: Arc<Selection>) -> Result<Vec<OwnedRow>> {
        let mut answer = self.run_steps(vec![BulkStep::Run(operation)], selection).await?;
        match answer.outcomes.pop().flatten() {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(answer.rows),
        }
    }

    /// What these records refer to and is not there, or not yet.
    pub async fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<i64>,
    ) -> Result<Vec<DanglingReference>> {
        self.transaction.dangling_references(record, ids).await
    }

    pub async fn commit(mut self) -> Result<()> {
        self.transaction.commit().await
    }

    async fn run_steps(
        &mut self,
        steps: Vec<BulkStep>,
        selection: Arc<Selection>,
    ) -> Result<Box<BulkResults>> {
        let now = jiff::Timestamp::now();
        let mut ends = BulkResults { selection, rows: Vec::new(), outcomes: Vec::new() };
        let mut plans = Vec::with_capacity(steps.len());
        for (number, step) in steps.into_iter().enumerate() {
            let proven = match step {
                BulkStep::Import(arrival) => Plan::prove_import(&self.model, arrival, now),
                BulkStep::Run(operation) => Plan::prove(&self.model, operation, now),
            };
            match proven {
                Ok(plan) => plans.push((number, plan)),
                Err(error) => ends.finish_plan(number, Err(error)),
            }
        }
        if plans.is_empty() {
            return Ok(Box::new(ends));
        }
        let (model, cancel) = (self.model.clone(), self.cancel_flag.clone());
        let job = StoreJob {
            model,
            plans,
            sink: Box::new(ends),
            idempotency_key: None,
            atomic: false,
            cancel_flag: cancel,
        };
        downcast_sink(self.transaction.run(job).await?)
    }
}

/// How each step ended, and the rows of the one that reads.
struct BulkResults {
    selection: Arc<Selection>,
    rows: Vec<OwnedRow>,
    outcomes: Vec<Option<Result<Outcome>>>,
}

impl RowSink for BulkResults {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        // Steps that write select nothing.
        if !self.selection.columns.is_empty() {
            self.rows.push(OwnedRow::from_row(row, &self.selection, 0));
        }
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        if self.outcomes.len() <= plan {
            self.outcomes.resize_with(plan + 1, || None);
        }
        self.outcomes[plan] = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Never asked: what fails within a long write is not run again by the store.
    fn reset(&mut self) {
        self.rows.clear();
    }
}
