//! The writer thread: runs the queued jobs in one transaction and sends their results once it is on disk.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::mpsc;

use trefoil_engine::{Outcome, StoreJob};
use trefoil_model::error::Error;

use crate::idempotency_key::IdempotencyKeyStatus;
use crate::job_completion::JobCompletion;
use crate::sqlite::connect::{ConnectionRole, connect};
use crate::sqlite::error::{SqliteError, needs_new_connection, store_error};
use crate::sqlite::execute_guarded::check_repeated;
use crate::sqlite::prune::PruneSchedule;
use crate::sqlite::queued_job::{QueuedJob, ThreadMessage, catch_panic};
use crate::sqlite::session::{SharedState, SqliteSession};
use crate::sqlite::{execute_many, execute_write, idempotency_keys, readers};
use crate::statements::compile::Program;

/// Maximum number of jobs in one transaction.
const MAX_BATCH: usize = 256;

pub struct WriterThread<'s> {
    shared: &'s SharedState,
    connection: Connection,
    /// The connection may be broken; the next job gets a new one.
    needs_renewal: bool,
    /// The last batch could not be written.
    last_write_failed: bool,
    prune_schedule: PruneSchedule,
}

/// Why a transaction was rolled back.
enum TransactionError {
    /// It could not begin.
    NotBegun(rusqlite::Error),
    Store(rusqlite::Error),
    /// The job at this index panicked.
    Panicked(usize, Error),
}

impl<'s> WriterThread<'s> {
    pub fn new(shared: &'s SharedState, connection: Connection) -> WriterThread<'s> {
        WriterThread {
            shared,
            connection,
            needs_renewal: false,
            last_write_failed: false,
            prune_schedule: PruneSchedule::default(),
        }
    }

    /// Runs messages until the queue is closed.
    pub fn run(mut self, mut queue: mpsc::Receiver<ThreadMessage>) {
        while let Some(first) = queue.blocking_recv() {
            let mut next = Some(first);
            let mut batch = Vec::new();
            while let Some(message) = next.take() {
                match message {
                    ThreadMessage::Job(queued) if queued.writes() => batch.push(*queued),
                    other @ (ThreadMessage::Job(_) | ThreadMessage::Call(_)) => {
                        self.write_batch(std::mem::take(&mut batch));
                        self.run_other(other);
                        break;
                    }
                }
                if batch.len() < MAX_BATCH {
                    next = queue.try_recv().ok();
                }
            }
            self.write_batch(batch);
        }
    }

    /// Runs a call or a read; only stores in memory send their reads here.
    fn run_other(&mut self, message: ThreadMessage) {
        self.renew_connection();
        match message {
            ThreadMessage::Job(queued) => {
                self.needs_renewal |= !readers::run_job(&mut self.connection, self.shared, *queued)
            }
            ThreadMessage::Call(call) => {
                // The caller of a call that panicked notices that its reply channel is dropped. The call may have
                // left the connection with other settings.
                self.needs_renewal |= catch_panic(|| call(&mut self.connection)).is_err();
                self.roll_back();
            }
        }
    }

    fn write_batch(&mut self, batch: Vec<QueuedJob>) {
        if batch.is_empty() {
            return;
        }
        self.last_write_failed = false;
        self.commit_batch(batch);
        if !self.last_write_failed {
            self.prune_expired();
        }
    }

    fn prune_expired(&mut self) {
        let session = self.shared.session(&self.connection);
        if let Err(error) = self.prune_schedule.prune_if_due(session, &self.shared.options) {
            tracing::warn!(%error, "cannot remove old keys and changes; trying again later");
            self.roll_back();
        }
    }

    /// Commits the jobs whose callers still wait in one transaction.
    fn commit_batch(&mut self, batch: Vec<QueuedJob>) {
        let (mut batch, cancelled): (Vec<_>, Vec<_>) = batch.into_iter().partition(QueuedJob::is_pending);
        cancelled.into_iter().for_each(|queued| queued.send_reply(JobCompletion::Refused(Error::Cancelled)));
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.shared.check_file() {
            tracing::error!(%error, jobs = batch.len(), "cannot write to the store");
            self.last_write_failed = true;
            batch.into_iter().for_each(|queued| queued.send_reply(JobCompletion::Refused(error.clone())));
            return;
        }
        self.renew_connection();
        match self.run_transaction(&mut batch) {
            Ok(completions) => {
                self.shared.commits.send_replace(());
                batch
                    .into_iter()
                    .zip(completions)
                    .for_each(|(queued, completion)| queued.send_reply(completion));
            }
            Err(error) => {
                self.roll_back();
                self.retry_batch(batch, error);
            }
        }
    }

    /// After a rollback: runs the jobs again that did not cause the failure.
    fn retry_batch(&mut self, mut batch: Vec<QueuedJob>, error: TransactionError) {
        match error {
            TransactionError::Panicked(index, error) => {
                batch.remove(index).send_reply(JobCompletion::Refused(error));
                self.commit_batch(batch.into_iter().filter_map(QueuedJob::reset_for_retry).collect());
            }
            TransactionError::Store(error) if batch.len() > 1 => {
                tracing::warn!(%error, jobs = batch.len(), "a group commit failed; retrying each job on its own");
                self.needs_renewal |= needs_new_connection(&error);
                batch
                    .into_iter()
                    .filter_map(QueuedJob::reset_for_retry)
                    .for_each(|queued| self.commit_batch(vec![queued]));
            }
            TransactionError::Store(error) | TransactionError::NotBegun(error) => {
                tracing::warn!(%error, jobs = batch.len(), "cannot write to the store");
                self.needs_renewal |= needs_new_connection(&error);
                self.last_write_failed = true;
                batch
                    .into_iter()
                    .for_each(|queued| queued.send_reply(JobCompletion::Refused(store_error(&error))));
            }
        }
    }

    fn run_transaction(&self, batch: &mut [QueuedJob]) -> Result<Vec<JobCompletion>, TransactionError> {
        let session = self.shared.session(&self.connection);
        for queued in batch.iter() {
            let prepared = self.shared.audit.prepare(&self.connection, &queued.job);
            prepared.map_err(TransactionError::NotBegun)?;
        }
        session.execute_control("BEGIN IMMEDIATE").map_err(TransactionError::NotBegun)?;
        let mut completions = Vec::with_capacity(batch.len());
        let undo = if batch.len() == 1 { PlanUndo::Transaction } else { PlanUndo::Savepoint };
        for (i, queued) in batch.iter_mut().enumerate() {
            let _audited = self.shared.audit.begin(queued.job.origin.as_ref());
            let run = catch_panic(|| run_job(session, queued, undo))
                .map_err(|panic| TransactionError::Panicked(i, panic))?;
            completions.push(run.map_err(TransactionError::Store)?);
        }
        // A plan that was alone may have rolled back. In a batch only a failure ends the transaction: the commit tells it.
        if undo == PlanUndo::Savepoint || !self.connection.is_autocommit() {
            session.execute_control("COMMIT").map_err(TransactionError::Store)?;
        }
        Ok(completions)
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() && self.connection.execute_batch("ROLLBACK").is_err() {
            self.needs_renewal = true;
        }
    }

    /// Replaces a broken connection. A store in memory lives in its connection and keeps it.
    fn renew_connection(&mut self) {
        if self.needs_renewal && self.shared.is_on_disk() {
            match connect(&self.shared.location, ConnectionRole::Writer, &self.shared.options) {
                Ok(connection) => match self.shared.audit.register(&connection) {
                    Ok(()) => (self.connection, self.needs_renewal) = (connection, false),
                    Err(error) => tracing::warn!(%error, "cannot reopen the database yet"),
                },
                Err(error) => tracing::warn!(%error, "cannot reopen the database yet"),
            }
        }
    }
}

/// What is rolled back if a plan fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanUndo {
    Savepoint,
    /// The plan is alone in it. A savepoint would copy the pages that the plan changes once more.
    Transaction,
}

/// Runs one job within the transaction, under its idempotency key if it has one.
fn run_job(
    session: SqliteSession<'_>,
    queued: &mut QueuedJob,
    undo: PlanUndo,
) -> rusqlite::Result<JobCompletion> {
    if queued.job.asks_again {
        return replayed(session, queued, Vec::new());
    }
    if let Some(key) = &queued.job.idempotency_key {
        match idempotency_keys::find_key(&session, key)? {
            IdempotencyKeyStatus::New => {}
            IdempotencyKeyStatus::Answered(bytes) => return replayed(session, queued, bytes),
            IdempotencyKeyStatus::UsedByOther => return Ok(JobCompletion::Refused(Error::KeyReused)),
        }
    }
    match (&*queued.programs, undo) {
        ([program], PlanUndo::Transaction) if !queued.job.atomic && queued.job.idempotency_key.is_none() => {
            run_alone(session, &mut queued.job, program)?;
        }
        (programs, PlanUndo::Savepoint | PlanUndo::Transaction) => {
            run_plans(session, &mut queued.job, programs)?;
        }
    }
    if let Some(key) = &queued.job.idempotency_key
        && let Some(bytes) = queued.job.sink.bytes_to_replay()
    {
        idempotency_keys::store_answer(&session, key, &bytes)?;
    }
    Ok(JobCompletion::Completed)
}

/// The stored answer, if the actor may still do what the request asks for.
fn replayed(
    session: SqliteSession<'_>,
    queued: &QueuedJob,
    answer: Vec<u8>,
) -> rusqlite::Result<JobCompletion> {
    for ((_, plan), program) in queued.job.plans.iter().zip(queued.programs.iter()) {
        match check_repeated(session, &queued.job.model, plan, program) {
            Ok(()) => {}
            Err(SqliteError::Plan(error)) => return Ok(JobCompletion::Refused(error)),
            Err(SqliteError::Store(error)) => return Err(error),
        }
    }
    Ok(JobCompletion::Replayed(answer))
}

/// Runs the plans of a job, each on its own or all as one.
pub fn run_plans(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> rusqlite::Result<()> {
    if job.atomic { run_atomic(session, job, programs) } else { run_each(session, job, programs) }
}

/// Runs each plan on its own: one that fails does not undo the others.
pub fn run_each(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> rusqlite::Result<()> {
    for (i, program) in programs.iter().enumerate() {
        let is_guarded = job.plans[i].1.access_view().is_some();
        let savepoint = is_guarded || execute_write::needs_savepoint(program);
        if savepoint {
            session.execute_control("SAVEPOINT plan")?;
        }
        let outcome = run_plan(session, job, i, program)?;
        if savepoint {
            end_savepoint(session, outcome.is_ok())?;
        }
        job.sink.finish_plan(job.plans[i].0, outcome);
    }
    Ok(())
}

/// Runs the only plan of a transaction, which ends with it if the plan fails.
fn run_alone(session: SqliteSession<'_>, job: &mut StoreJob, program: &Program) -> rusqlite::Result<()> {
    let outcome = run_plan(session, job, 0, program)?;
    if outcome.is_err() && !session.connection.is_autocommit() {
        session.execute_control("ROLLBACK")?;
    }
    job.sink.finish_plan(job.plans[0].0, outcome);
    Ok(())
}

/// Runs all plans as one unit: if one fails, all are undone and the failure is reported for each.
fn run_atomic(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> rusqlite::Result<()> {
    session.execute_control("SAVEPOINT plan")?;
    for (i, program) in programs.iter().enumerate() {
        let failure = match run_plan(session, job, i, program)? {
            Ok(outcome) => {
                let number = job.plans[i].0;
                job.sink.finish_plan(number, Ok(outcome));
                job.sink.refusal(number)
            }
            Err(error) => Some(error),
        };
        if let Some(error) = failure {
            end_savepoint(session, false)?;
            job.report_rolled_back(i, error);
            return Ok(());
        }
    }
    end_savepoint(session, true)
}

fn end_savepoint(session: SqliteSession<'_>, succeeded: bool) -> rusqlite::Result<()> {
    if !succeeded {
        session.execute_control("ROLLBACK TO plan")?;
    }
    session.execute_control("RELEASE plan")
}

/// The outer error is the store's, the inner one the plan's.
fn run_plan(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    i: usize,
    program: &Program,
) -> rusqlite::Result<Result<Outcome, Error>> {
    let (number, plan) = &job.plans[i];
    match execute_many::execute_plan(session, &job.model, plan, program, &mut |row| {
        job.sink.row(*number, row)
    }) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(SqliteError::Plan(error)) => Ok(Err(error)),
        Err(SqliteError::Store(error)) => Err(error),
    }
}
