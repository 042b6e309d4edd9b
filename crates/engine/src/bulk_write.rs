//! Writes of any length, such as imports: run in batches, validated like any request, and committed as a whole.

use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordId, RecordTypeId};

use crate::access::AuditOrigin;
use crate::engine::Engine;
use crate::operation::{Operation, Outcome};
use crate::owned_records::OwnedRow;
use crate::plan::{ImportedRecord, Plan, PlanLimits, PreparedSelection, RequestTime, TouchedAccounts};
use crate::row::{Row, RowSink};
use crate::store::{BulkTransaction, CancelFlag, DanglingReference, StoreJob, downcast_sink};

/// A bulk write in progress. If dropped before [`BulkWrite::commit`], nothing of it is kept.
pub struct BulkWrite<'e> {
    model: Arc<Model>,
    transaction: Box<dyn BulkTransaction + 'e>,
    /// The usual ones, in the time zone of the application.
    limits: PlanLimits,
    cancel_flag: CancelFlag,
    origin: Option<AuditOrigin>,
    engine: Engine,
    touched: TouchedAccounts,
}

/// One step of a bulk write.
#[derive(Debug, Clone)]
pub enum BulkStep {
    Import(ImportedRecord),
    Run(Operation),
}

impl Engine {
    /// For the operator alone: no rules apply to what is written.
    pub async fn begin_bulk_write(&self) -> Result<BulkWrite<'_>> {
        if let Some(view) = self.access_view() {
            return Err(view.refusal(None));
        }
        self.require_writing()?;
        self.confirm_actor().await?;
        self.check_tables()?;
        let transaction = self.store().begin_bulk_write(self.model(), self.audited_origin()).await?;
        let limits = PlanLimits { time_zone: self.limits().time_zone.clone(), ..PlanLimits::default() };
        let (model, cancel_flag) = (self.model().clone(), CancelFlag::default());
        let (origin, engine, touched) = (self.audited_origin(), self.clone(), TouchedAccounts::Nobody);
        Ok(BulkWrite { model, transaction, limits, cancel_flag, origin, engine, touched })
    }
}

impl BulkWrite<'_> {
    /// Runs the steps and returns their outcomes in order. A failed step does not undo the others.
    pub async fn run(&mut self, steps: Vec<BulkStep>) -> Result<Vec<Result<Outcome>>> {
        let count = steps.len();
        let results = self.run_steps(steps, Arc::default()).await?;
        let missing = || Err(Error::internal("the store returned no outcome for a step"));
        let mut outcomes = results.outcomes;
        outcomes.resize_with(count, || None);
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect())
    }

    /// Reads rows, including what earlier batches wrote.
    pub async fn read(
        &mut self,
        operation: Operation,
        selection: Arc<PreparedSelection>,
    ) -> Result<Vec<OwnedRow>> {
        let mut results = self.run_steps(vec![BulkStep::Run(operation)], selection).await?;
        match results.outcomes.pop().flatten() {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(results.rows),
        }
    }

    /// References of these records to records that do not exist, or not yet.
    pub async fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<RecordId>,
    ) -> Result<Vec<DanglingReference>> {
        self.transaction.dangling_references(record, ids).await
    }

    pub async fn commit(mut self) -> Result<()> {
        self.transaction.commit().await?;
        self.engine.end_unusable(self.touched).await;
        Ok(())
    }

    async fn run_steps(
        &mut self,
        steps: Vec<BulkStep>,
        selection: Arc<PreparedSelection>,
    ) -> Result<Box<BulkResults>> {
        let time = RequestTime::default();
        let mut results = BulkResults { selection, rows: Vec::new(), outcomes: Vec::new() };
        let mut plans = Vec::with_capacity(steps.len());
        for (position, step) in steps.into_iter().enumerate() {
            let planned = match step {
                BulkStep::Import(import) => Plan::prove_import(&self.model, &self.limits, import, &time),
                BulkStep::Run(operation) => Plan::prove_bulk(&self.model, &self.limits, operation, &time),
            };
            match planned {
                Ok(plan) => plans.push((position, plan)),
                Err(error) => results.finish_plan(position, Err(error)),
            }
        }
        if plans.is_empty() {
            return Ok(Box::new(results));
        }
        self.touched.add(self.engine.touched_accounts(&plans));
        let (model, cancel_flag) = (self.model.clone(), self.cancel_flag.clone());
        let job = StoreJob {
            model,
            plans,
            sink: Box::new(results),
            idempotency_key: None,
            atomic: false,
            asks_again: false,
            cancel_flag,
            origin: self.origin.clone(),
        };
        downcast_sink(self.transaction.run(job).await?)
    }
}

/// The outcome of each step, and the rows of a read.
struct BulkResults {
    selection: Arc<PreparedSelection>,
    rows: Vec<OwnedRow>,
    outcomes: Vec<Option<Result<Outcome>>>,
}

impl RowSink for BulkResults {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        // Writing steps have an empty selection.
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

    /// Never called: the store does not retry within a bulk write.
    fn reset(&mut self) {
        self.rows.clear();
    }
}
