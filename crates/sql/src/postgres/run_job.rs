//! Carries out a job on PostgreSQL: on which kind of connection, in what kind of transaction, and how often.
//!
//! What one look-up or one statement does goes over a shared connection and is its own transaction; everything else
//! has a connection of its own. When the caller goes away, a statement on a shared connection comes to its end by
//! itself; a transaction is cancelled and rolled back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;

use crate::idempotency_key::KeyStatus;
use crate::job_completion::{JobCompletion, panic_message};
use crate::postgres::PostgresStore;
use crate::postgres::cancellation::until_cancelled;
use crate::postgres::constraint_errors::explain_error;
use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::session::PostgresSession;
use crate::postgres::{
    PgConnection, PooledConnection, atomic_batch, execute_read, execute_write, idempotency_keys, short_reads,
};
use crate::statements::compile::{Program, ProgramCache};
use crate::statements::dialect::Dialect;
use trefoil_engine::{CancelFlag, IdempotencyKey, JobResult, Outcome, Plan, StoreJob};
use trefoil_model::Model;
use trefoil_model::error::{Error, Result};

/// How often a job is begun that only others, or a lost connection, kept from its end.
const MAX_ATTEMPTS: u32 = 5;

/// What running plans keeps between requests: programs by shape, and how many statements there were.
pub struct ExecutionState {
    programs: ProgramCache,
    statement_count: AtomicU64,
}

impl Default for ExecutionState {
    fn default() -> Self {
        ExecutionState { programs: ProgramCache::new(Dialect::Postgres), statement_count: AtomicU64::new(0) }
    }
}

impl ExecutionState {
    pub fn statement_count(&self) -> u64 {
        self.statement_count.load(Ordering::Relaxed)
    }
}

impl PostgresStore {
    pub(crate) async fn run_job(&self, mut job: StoreJob) -> Result<JobResult> {
        job.cancel_flag.check()?;
        let programs = job.plans.iter().map(|(_, plan)| self.program_for(&job.model, plan));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        // Whoever takes the rows may panic. A connection left in the middle of something is closed.
        let run = AssertUnwindSafe(self.run_with_retries(&mut job, &programs)).catch_unwind().await;
        match run.unwrap_or_else(|panic| Err(Error::internal(panic_message(panic.as_ref()))))? {
            JobCompletion::Completed => Ok(JobResult::Completed(job.sink)),
            JobCompletion::Replayed(bytes) => Ok(JobResult::Replayed(bytes)),
            JobCompletion::Refused(error) => Err(error),
        }
    }

    async fn run_with_retries(&self, job: &mut StoreJob, programs: &[Arc<Program>]) -> Result<JobCompletion> {
        let writes = job.plans.iter().any(|(_, plan)| plan.is_write());
        let mut attempt = 1;
        loop {
            let run =
                if writes { self.run_write(job, programs).await } else { self.run_read(job, programs).await };
            match run {
                Ok(verdict) => return Ok(verdict),
                Err(PostgresError::Retryable(_) | PostgresError::ConnectionLost(_))
                    if attempt < MAX_ATTEMPTS => {}
                Err(fault) => return Err(fault.into_error()),
            }
            job.sink.reset();
            tokio::time::sleep(retry_delay(attempt)).await;
            attempt += 1;
        }
    }

    pub(crate) async fn kept_under(&self, key: &IdempotencyKey) -> Result<Option<Vec<u8>>> {
        let mut attempt = 1;
        loop {
            match self.look_under(key).await {
                Ok(known) => return known.into_replay(),
                Err(PostgresError::Retryable(_) | PostgresError::ConnectionLost(_))
                    if attempt < MAX_ATTEMPTS => {}
                Err(fault) => return Err(fault.into_error()),
            }
            tokio::time::sleep(retry_delay(attempt)).await;
            attempt += 1;
        }
    }

    /// Whether it is in use is asked first: whoever had it before that has committed what the second statement sees.
    async fn look_under(&self, key: &IdempotencyKey) -> Result<KeyStatus, PostgresError> {
        let (cancel, link) =
            (CancelFlag::default(), self.connections.shared_connection().map_err(PostgresError::Store)?);
        let session = self.session_on(&link, &cancel);
        if !idempotency_keys::try_lock_key(session, key).await? {
            return Err(PostgresError::Plan(Error::KeyInUse));
        }
        idempotency_keys::find_key(session, key).await
    }

    pub(crate) fn program_for(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        self.execution.programs.get_or_compile(model, plan)
    }

    pub(crate) fn session_on<'l>(
        &'l self,
        link: &'l PgConnection,
        cancel: &'l CancelFlag,
    ) -> PostgresSession<'l> {
        PostgresSession { connection: link, statement_count: &self.execution.statement_count, cancel }
    }

    async fn run_read(
        &self,
        job: &mut StoreJob,
        programs: &[Arc<Program>],
    ) -> Result<JobCompletion, PostgresError> {
        let cancel = job.cancel_flag.clone();
        if let ([(number, plan)], [program]) = (job.plans.as_slice(), programs)
            && execute_read::read_image(plan, program, &mut |row| job.sink.row(*number, row))
        {
            job.sink.finish_plan(*number, Ok(Outcome::Found));
            return Ok(JobCompletion::Completed);
        }
        if short_reads::is_short_read(job, programs) {
            let link = self.connections.shared_connection().map_err(PostgresError::Store)?;
            return read_plans(self.session_on(&link, &cancel), job, programs, SavepointMode::Off).await;
        }
        let own = self.acquire_connection(&cancel).await?;
        let session = self.session_on(&own, &cancel);
        let mut run =
            until_cancelled(&cancel, read_snapshot(session, job, programs, SavepointMode::Off)).await;
        if let (Err(PostgresError::Refused(_)), [_, _, ..]) = (&run, programs) {
            // Which of the plans it is, and what the others give, is only known with savepoints.
            session.execute_control("ROLLBACK").await?;
            job.sink.reset();
            run =
                until_cancelled(&cancel, read_snapshot(session, job, programs, SavepointMode::PerPlan)).await;
        }
        reset_connection(session, &run).await.then(|| own.release());
        run
    }

    async fn acquire_connection(&self, cancel: &CancelFlag) -> Result<PooledConnection, PostgresError> {
        until_cancelled(cancel, async {
            self.connections.acquire_pooled().await.map_err(PostgresError::Store)
        })
        .await
    }

    async fn run_write(
        &self,
        job: &mut StoreJob,
        programs: &[Arc<Program>],
    ) -> Result<JobCompletion, PostgresError> {
        let verdict = match programs {
            [program]
                if job.idempotency_key.is_none() && execute_write::single_statement(program).is_some() =>
            {
                match self.write_single_statement(job, program).await {
                    // Whoever waits long does so where nobody waits behind.
                    Err(PostgresError::Locked(_)) => self.write_in_transaction(job, programs).await,
                    run => run,
                }
            }
            _ => self.write_in_transaction(job, programs).await,
        }?;
        if let JobCompletion::Completed = verdict {
            self.signal_commit();
        }
        Ok(verdict)
    }

    /// One statement, which is its own transaction.
    async fn write_single_statement(
        &self,
        job: &mut StoreJob,
        program: &Program,
    ) -> Result<JobCompletion, PostgresError> {
        // Once sent it cannot be taken back.
        let sent = CancelFlag::default();
        let link = self.connections.shared_connection().map_err(PostgresError::Store)?;
        let session = self.session_on(&link, &sent);
        session.prepare(execute_write::single_statement(program).unwrap_or_default()).await?;
        let (number, plan) = &job.plans[0];
        let run =
            execute_write::execute_write(session, plan, program, &mut |row| job.sink.row(*number, row)).await;
        let outcome = match run.map_err(PostgresError::outcome_unknown_if_lost) {
            Ok(outcome) => Ok(outcome),
            Err(PostgresError::Plan(error)) => Err(error),
            Err(PostgresError::Refused(error)) => {
                Err(explain_error(session, &job.model, &plan.action, &error).await?)
            }
            Err(
                fault @ (PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_)),
            ) => {
                return Err(fault);
            }
        };
        job.sink.finish_plan(*number, outcome);
        Ok(JobCompletion::Completed)
    }

    async fn write_in_transaction(
        &self,
        job: &mut StoreJob,
        programs: &[Arc<Program>],
    ) -> Result<JobCompletion, PostgresError> {
        let cancel = job.cancel_flag.clone();
        let own = self.acquire_connection(&cancel).await?;
        let session = self.session_on(&own, &cancel);
        let mut run = until_cancelled(&cancel, run_transaction(session, job, programs)).await;
        if let Ok(verdict) = &run {
            let end = match verdict {
                JobCompletion::Completed => {
                    session.execute_control("COMMIT").await.map_err(PostgresError::outcome_unknown_if_lost)
                }
                JobCompletion::Replayed(_) | JobCompletion::Refused(_) => {
                    session.execute_control("ROLLBACK").await
                }
            };
            run = end.and(run);
        }
        reset_connection(session, &run).await.then(|| own.release());
        run
    }
}

/// Whether the connection can serve others: nothing runs on it any more, and no transaction is open.
async fn reset_connection(session: PostgresSession<'_>, run: &Result<JobCompletion, PostgresError>) -> bool {
    match run {
        Ok(_) => true,
        Err(PostgresError::ConnectionLost(_) | PostgresError::Store(Error::Cancelled)) => false,
        Err(
            PostgresError::Plan(_)
            | PostgresError::Refused(_)
            | PostgresError::Retryable(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_),
        ) => session.execute_control("ROLLBACK").await.is_ok(),
    }
}

/// What a plan that the database refuses may cost the others of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SavepointMode {
    /// The transaction: everything is to be run again.
    Off,
    PerPlan,
}

/// Some milliseconds, more each time and never the same for two that met.
fn retry_delay(attempt: u32) -> Duration {
    let chance = uuid::Uuid::new_v4().as_u64_pair().0 % 1_000;
    Duration::from_micros((1_000 << attempt) * (500 + chance) / 1_000)
}

/// Reads in one snapshot, which a single statement is by itself.
async fn read_snapshot(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
    care: SavepointMode,
) -> Result<JobCompletion, PostgresError> {
    if let [program] = programs
        && program.is_one_statement()
    {
        return read_plans(session, job, programs, care).await;
    }
    let begin = session.execute_control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    // Sent together: the one is before the other on the way, and nothing is written that its failure could spoil.
    let (begun, verdict) = join(begin, read_plans(session, job, programs, care)).await;
    begun?;
    let verdict = verdict?;
    // Nobody needs its answer. Whoever has the connection next sends behind it.
    let _ = session.execute_control("COMMIT").now_or_never();
    Ok(verdict)
}

async fn read_plans(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
    care: SavepointMode,
) -> Result<JobCompletion, PostgresError> {
    for ((number, plan), program) in job.plans.iter().zip(programs) {
        if care == SavepointMode::PerPlan {
            session.execute_control("SAVEPOINT plan").await?;
        }
        let run =
            execute_read::execute_read(session, plan, program, &mut |row| job.sink.row(*number, row)).await;
        let outcome = match run {
            Ok(outcome) => Ok(outcome),
            Err(PostgresError::Plan(error)) => Err(error),
            Err(PostgresError::Refused(error)) if care == SavepointMode::PerPlan => {
                session.execute_control("ROLLBACK TO plan").await?;
                Err(refused_error(&error))
            }
            // Its transaction is over, and nothing else is in it.
            Err(PostgresError::Refused(error)) if programs.len() == 1 => Err(refused_error(&error)),
            Err(fault) => return Err(fault),
        };
        job.sink.finish_plan(*number, outcome);
    }
    Ok(JobCompletion::Completed)
}

/// Everything up to the commit, under the idempotency key where there is one.
async fn run_transaction(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<JobCompletion, PostgresError> {
    match job.idempotency_key.clone() {
        None => {
            session.execute_control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SAVEPOINT plan").await?
        }
        Some(key) => {
            session.execute_control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
            if !idempotency_keys::try_lock_key(session, &key).await? {
                return Ok(JobCompletion::Refused(Error::KeyInUse));
            }
            match idempotency_keys::find_key(session, &key).await? {
                KeyStatus::New => {}
                KeyStatus::Answered(bytes) => return Ok(JobCompletion::Replayed(bytes)),
                KeyStatus::UsedByOther => return Ok(JobCompletion::Refused(Error::KeyReused)),
            }
            // Not before: going back to it would give the key free.
            session.execute_control("SAVEPOINT plan").await?;
        }
    }
    if job.atomic {
        run_atomic(session, job, programs).await?;
    } else {
        run_each(session, job, programs).await?;
    }
    if let Some(key) = &job.idempotency_key
        && let Some(bytes) = job.sink.bytes_to_replay()
    {
        idempotency_keys::store_answer(session, key, &bytes).await?;
    }
    Ok(JobCompletion::Completed)
}

/// Each plan its own unit: one that fails leaves the others standing. The savepoint of the first is there already.
async fn run_each(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<(), PostgresError> {
    for (i, program) in programs.iter().enumerate() {
        if i > 0 {
            session.execute_control("RELEASE plan; SAVEPOINT plan").await?;
        }
        let outcome = run_plan(session, job, i, program).await?;
        job.sink.finish_plan(job.plans[i].0, outcome);
    }
    Ok(())
}

/// All plans one unit. When one fails, the answer forgets the others and is told of each; which it was is only known when
/// they run one by one.
async fn run_atomic(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<(), PostgresError> {
    if programs.len() > 1 {
        match atomic_batch::run_atomic_batch(session, job, programs).await {
            Err(PostgresError::Plan(_) | PostgresError::Refused(_)) => {
                session.execute_control("ROLLBACK TO plan").await?
            }
            end @ (Ok(())
            | Err(
                PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_),
            )) => {
                return end;
            }
        }
        job.sink.reset();
    }
    for (i, program) in programs.iter().enumerate() {
        match run_plan(session, job, i, program).await? {
            Ok(outcome) => job.sink.finish_plan(job.plans[i].0, Ok(outcome)),
            Err(error) => {
                job.report_rolled_back(i, error);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The outer failure is the store's, the inner one the plan's own: then the savepoint was gone back to.
pub(crate) async fn run_plan(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    i: usize,
    program: &Program,
) -> Result<Result<Outcome>, PostgresError> {
    let (number, plan) = &job.plans[i];
    match execute_write::execute_write(session, plan, program, &mut |row| job.sink.row(*number, row)).await {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(PostgresError::Plan(error)) => {
            session.execute_control("ROLLBACK TO plan").await?;
            Ok(Err(error))
        }
        Err(PostgresError::Refused(error)) => {
            session.execute_control("ROLLBACK TO plan").await?;
            explain_error(session, &job.model, &plan.action, &error).await.map(Err)
        }
        Err(
            fault @ (PostgresError::Retryable(_)
            | PostgresError::ConnectionLost(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_)),
        ) => Err(fault),
    }
}
