//! The one thread that writes: it takes what waits, runs it in one transaction and answers when that is on disk.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::mpsc;

use trefoil_engine::{Outcome, StoreJob};
use trefoil_model::error::Error;

use crate::idempotency_key::KeyStatus;
use crate::job_completion::JobCompletion;
use crate::sqlite::connect::{ConnectionRole, connect};
use crate::sqlite::error::{SqliteError, needs_new_connection, store_error};
use crate::sqlite::idempotency_keys;
use crate::sqlite::prune::PruneSchedule;
use crate::sqlite::queued_job::{QueuedJob, catch_panic};
use crate::sqlite::session::SqliteSession;
use crate::sqlite::{SharedState, execute_write, readers};
use crate::statements::compile::Program;

/// How many jobs share one transaction.
const MAX_BATCH: usize = 256;

/// What the thread is asked to do.
pub enum WriterMessage {
    Job(Box<QueuedJob>),
    /// Anything else that needs the connection: migration, backup, a look whether it is there.
    Call(Box<dyn FnOnce(&mut Connection) + Send>),
}

pub struct WriterThread<'s> {
    shared: &'s SharedState,
    connection: Connection,
    /// The connection is suspect; the next job gets a new one.
    needs_renewal: bool,
    /// The last jobs could not be written.
    last_write_failed: bool,
    prune_schedule: PruneSchedule,
}

/// Why a transaction did not come to its end. Nothing of it happened.
enum TransactionError {
    /// It could not even begin.
    NotBegun(rusqlite::Error),
    Store(rusqlite::Error),
    /// The job at this position panicked.
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

    /// Works until nobody can send any more.
    pub fn run(mut self, mut queue: mpsc::Receiver<WriterMessage>) {
        while let Some(first) = queue.blocking_recv() {
            let mut next = Some(first);
            let mut together = Vec::new();
            while let Some(message) = next.take() {
                match message {
                    WriterMessage::Job(ticket) if ticket.writes() => together.push(*ticket),
                    other @ (WriterMessage::Job(_) | WriterMessage::Call(_)) => {
                        self.write_batch(std::mem::take(&mut together));
                        self.run_other(other);
                        break;
                    }
                }
                if together.len() < MAX_BATCH {
                    next = queue.try_recv().ok();
                }
            }
            self.write_batch(together);
        }
    }

    /// What is no write: only stores in memory send their reads here.
    fn run_other(&mut self, message: WriterMessage) {
        self.renew_connection();
        match message {
            WriterMessage::Job(ticket) => {
                self.needs_renewal |= !readers::run_job(&mut self.connection, self.shared, *ticket)
            }
            WriterMessage::Call(call) => {
                // Whoever waits for a call that panicked learns it by getting no answer. It may have left the
                // connection with other settings.
                self.needs_renewal |= catch_panic(|| call(&mut self.connection)).is_err();
                self.roll_back();
            }
        }
    }

    fn write_batch(&mut self, tickets: Vec<QueuedJob>) {
        if tickets.is_empty() {
            return;
        }
        self.last_write_failed = false;
        self.commit_batch(tickets);
        if !self.last_write_failed {
            self.prune_expired();
        }
    }

    fn prune_expired(&mut self) {
        let session = self.shared.session(&self.connection);
        if let Err(error) = self.prune_schedule.prune_if_due(session, &self.shared.options) {
            tracing::warn!(%error, "old keys and changes were not removed; trying again later");
            self.roll_back();
        }
    }

    /// Commits the jobs together that somebody still waits for.
    fn commit_batch(&mut self, tickets: Vec<QueuedJob>) {
        let (mut tickets, unwanted): (Vec<_>, Vec<_>) = tickets.into_iter().partition(QueuedJob::is_wanted);
        unwanted.into_iter().for_each(|ticket| ticket.send_reply(JobCompletion::Refused(Error::Cancelled)));
        if tickets.is_empty() {
            return;
        }
        self.renew_connection();
        match self.run_transaction(&mut tickets) {
            Ok(verdicts) => {
                self.shared.commits.send_replace(());
                tickets.into_iter().zip(verdicts).for_each(|(ticket, verdict)| ticket.send_reply(verdict));
            }
            Err(broken) => {
                self.roll_back();
                self.retry_batch(tickets, broken);
            }
        }
    }

    /// Nothing of the jobs happened: those that others spoilt it for get another try.
    fn retry_batch(&mut self, mut tickets: Vec<QueuedJob>, broken: TransactionError) {
        match broken {
            TransactionError::Panicked(at, error) => {
                tickets.remove(at).send_reply(JobCompletion::Refused(error));
                self.commit_batch(tickets.into_iter().filter_map(QueuedJob::reset_for_retry).collect());
            }
            TransactionError::Store(error) if tickets.len() > 1 => {
                tracing::warn!(%error, jobs = tickets.len(), "a shared commit failed; trying each job alone");
                self.needs_renewal |= needs_new_connection(&error);
                tickets
                    .into_iter()
                    .filter_map(QueuedJob::reset_for_retry)
                    .for_each(|ticket| self.commit_batch(vec![ticket]));
            }
            TransactionError::Store(error) | TransactionError::NotBegun(error) => {
                tracing::warn!(%error, jobs = tickets.len(), "the store took no write");
                self.needs_renewal |= needs_new_connection(&error);
                self.last_write_failed = true;
                tickets
                    .into_iter()
                    .for_each(|ticket| ticket.send_reply(JobCompletion::Refused(store_error(&error))));
            }
        }
    }

    fn run_transaction(&self, tickets: &mut [QueuedJob]) -> Result<Vec<JobCompletion>, TransactionError> {
        let session = self.shared.session(&self.connection);
        session.execute_control("BEGIN IMMEDIATE").map_err(TransactionError::NotBegun)?;
        let mut verdicts = Vec::with_capacity(tickets.len());
        for (i, ticket) in tickets.iter_mut().enumerate() {
            let run = catch_panic(|| run_job(session, ticket))
                .map_err(|panic| TransactionError::Panicked(i, panic))?;
            verdicts.push(run.map_err(TransactionError::Store)?);
        }
        session.execute_control("COMMIT").map_err(TransactionError::Store)?;
        Ok(verdicts)
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() && self.connection.execute_batch("ROLLBACK").is_err() {
            self.needs_renewal = true;
        }
    }

    /// Replaces a suspect connection. A store in memory lives in its connection and has no other.
    fn renew_connection(&mut self) {
        if self.needs_renewal && self.shared.is_on_disk() {
            match connect(&self.shared.location, ConnectionRole::Writer, &self.shared.options) {
                Ok(connection) => (self.connection, self.needs_renewal) = (connection, false),
                Err(error) => tracing::warn!(%error, "the database cannot be opened again yet"),
            }
        }
    }
}

/// Runs one job within the transaction, under its idempotency key where it has one.
fn run_job(session: SqliteSession<'_>, ticket: &mut QueuedJob) -> rusqlite::Result<JobCompletion> {
    if let Some(key) = &ticket.job.idempotency_key {
        match idempotency_keys::find_key(&session, key)? {
            KeyStatus::New => {}
            KeyStatus::Answered(bytes) => return Ok(JobCompletion::Replayed(bytes)),
            KeyStatus::UsedByOther => return Ok(JobCompletion::Refused(Error::KeyReused)),
        }
    }
    if ticket.job.atomic {
        run_atomic(session, ticket)?
    } else {
        run_each(session, &mut ticket.job, &ticket.programs)?
    }
    if let Some(key) = &ticket.job.idempotency_key
        && let Some(bytes) = ticket.job.sink.bytes_to_replay()
    {
        idempotency_keys::store_answer(&session, key, &bytes)?;
    }
    Ok(JobCompletion::Completed)
}

/// Each plan its own unit: one that fails leaves the others standing.
pub fn run_each(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> rusqlite::Result<()> {
    for (i, program) in programs.iter().enumerate() {
        let savepoint = execute_write::needs_savepoint(program);
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

/// All plans one unit. When one fails, the answer forgets the others and is told of each.
fn run_atomic(session: SqliteSession<'_>, ticket: &mut QueuedJob) -> rusqlite::Result<()> {
    session.execute_control("SAVEPOINT plan")?;
    for i in 0..ticket.job.plans.len() {
        match run_plan(session, &mut ticket.job, i, &ticket.programs[i])? {
            Ok(outcome) => {
                let number = ticket.job.plans[i].0;
                ticket.job.sink.finish_plan(number, Ok(outcome));
            }
            Err(error) => {
                end_savepoint(session, false)?;
                ticket.job.report_rolled_back(i, error);
                return Ok(());
            }
        }
    }
    end_savepoint(session, true)
}

fn end_savepoint(session: SqliteSession<'_>, keep: bool) -> rusqlite::Result<()> {
    if !keep {
        session.execute_control("ROLLBACK TO plan")?;
    }
    session.execute_control("RELEASE plan")
}

/// The outer failure is the store's, the inner one the plan's own.
fn run_plan(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    i: usize,
    program: &Program,
) -> rusqlite::Result<Result<Outcome, Error>> {
    let (number, plan) = &job.plans[i];
    match execute_write::execute_write(session, &job.model, plan, program, &mut |row| {
        job.sink.row(*number, row)
    }) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(SqliteError::Plan(error)) => Ok(Err(error)),
        Err(SqliteError::Store(error)) => Err(error),
    }
}
