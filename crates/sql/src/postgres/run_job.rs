//! Runs a job on PostgreSQL: chooses the connection and the transaction, and retries.
//!
//! A short read or a single statement runs on a shared connection without a transaction; everything else on a pooled
//! one. When the caller goes away, a statement on a shared connection runs to its end, and a transaction is cancelled
//! and rolled back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;

use trefoil_engine::{CancelFlag, IdempotencyKey, JobResult, Outcome, Plan, Row, StoreJob};
use trefoil_model::Model;
use trefoil_model::error::{Error, Result};

use crate::audit::origin_setting::{origin_text, with_origin};
use crate::idempotency_key::IdempotencyKeyStatus;
use crate::job_completion::{JobCompletion, job_panicked};
use crate::postgres::cancellation::until_cancelled;
use crate::postgres::constraint_errors::explain_error;
use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::execute_guarded::check_repeated;
use crate::postgres::session::{CompiledPrograms, PostgresSession};
use crate::postgres::{
    PgConnection, PooledConnection, PostgresStore, atomic_batch, execute_many, execute_read, execute_write,
    idempotency_keys, shared_connection_reads,
};
use crate::statements::compile::Program;
use crate::statements::write_parts::write_parts;

/// The maximum number of attempts after transient errors and lost connections.
const MAX_ATTEMPTS: u32 = 5;

impl PostgresStore {
    pub(crate) async fn run_job(&self, mut job: StoreJob) -> Result<JobResult> {
        job.cancel_flag.check()?;
        let programs = job.plans.iter().map(|(_, plan)| self.program_for(&job.model, plan));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        // The sink may panic. The connection is then closed if it is in use.
        let result = AssertUnwindSafe(self.run_with_retries(&mut job, &programs)).catch_unwind().await;
        match result.unwrap_or_else(|panic| Err(job_panicked(panic)))? {
            JobCompletion::Completed => Ok(JobResult::Completed(job.sink)),
            JobCompletion::Replayed(bytes) => Ok(JobResult::Replayed(bytes)),
            JobCompletion::Refused(error) => Err(error),
        }
    }

    async fn run_with_retries(&self, job: &mut StoreJob, programs: &[Arc<Program>]) -> Result<JobCompletion> {
        let writes = job.plans.iter().any(|(_, plan)| plan.is_write());
        let mut attempt = 1;
        loop {
            // Boxed, like all but short reads: the future of a job is as large as its largest branch, and is moved.
            let result = match writes {
                true => Box::pin(self.run_write(job, programs)).await,
                false => self.run_read(job, programs).await,
            };
            match result {
                Ok(completion) => return Ok(completion),
                Err(PostgresError::Retryable(_) | PostgresError::ConnectionLost(_))
                    if attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error.into_error()),
            }
            job.sink.reset();
            tokio::time::sleep(retry_delay(attempt)).await;
            attempt += 1;
        }
    }

    /// The stored answer of an idempotency key, if there is one.
    pub(crate) async fn find_replay(&self, key: &IdempotencyKey) -> Result<Option<Vec<u8>>> {
        let mut attempt = 1;
        loop {
            match self.find_unlocked_key(key).await {
                Ok(status) => return status.into_replay(),
                Err(PostgresError::Retryable(_) | PostgresError::ConnectionLost(_))
                    if attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error.into_error()),
            }
            tokio::time::sleep(retry_delay(attempt)).await;
            attempt += 1;
        }
    }

    /// Tries the lock before reading: a job that held the key before has then committed what the second statement
    /// reads.
    async fn find_unlocked_key(&self, key: &IdempotencyKey) -> Result<IdempotencyKeyStatus, PostgresError> {
        let (cancel, connection) =
            (CancelFlag::default(), self.connections.shared_connection().map_err(PostgresError::Store)?);
        let session = self.session_on(&connection, &cancel);
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
        connection: &'l PgConnection,
        cancel: &'l CancelFlag,
    ) -> PostgresSession<'l> {
        let CompiledPrograms { programs, statement_count } = &self.execution;
        PostgresSession {
            connection,
            statement_count,
            checks: &programs.checks,
            cancel,
            view: None,
            asking: None,
        }
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
        if shared_connection_reads::is_short_read(job, programs) {
            let connection = self.connections.shared_connection().map_err(PostgresError::Store)?;
            return read_plans(self.session_on(&connection, &cancel), job, programs, SavepointMode::Off)
                .await;
        }
        Box::pin(self.read_on_pooled_connection(job, programs, &cancel)).await
    }

    async fn read_on_pooled_connection(
        &self,
        job: &mut StoreJob,
        programs: &[Arc<Program>],
        cancel: &CancelFlag,
    ) -> Result<JobCompletion, PostgresError> {
        let connection = self.acquire_connection(cancel).await?;
        let session = self.session_on(&connection, cancel);
        let mut result =
            until_cancelled(cancel, read_snapshot(session, job, programs, SavepointMode::Off)).await;
        if let (Err(PostgresError::Refused(_)), [_, _, ..]) = (&result, programs) {
            // Only with savepoints can the refused plan be told from the others.
            session.execute_control("ROLLBACK").await?;
            job.sink.reset();
            result =
                until_cancelled(cancel, read_snapshot(session, job, programs, SavepointMode::PerPlan)).await;
        }
        reset_connection(session, &result).await.then(|| connection.release());
        result
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
        let completion = match programs {
            [program]
                if job.idempotency_key.is_none()
                    && !job.asks_again
                    && execute_write::single_statement(program).is_some() =>
            {
                match self.write_single_statement(job, program).await {
                    // Waits for the lock on a pooled connection, where no other caller queues behind.
                    Err(PostgresError::Locked(_)) => Box::pin(self.write_in_transaction(job, programs)).await,
                    result => result,
                }
            }
            _ => Box::pin(self.write_in_transaction(job, programs)).await,
        }?;
        if let JobCompletion::Completed = completion {
            self.signal_commit();
        }
        Ok(completion)
    }

    /// Runs a program of one statement, which is its own transaction.
    async fn write_single_statement(
        &self,
        job: &mut StoreJob,
        program: &Program,
    ) -> Result<JobCompletion, PostgresError> {
        // A statement on a shared connection cannot be cancelled.
        let no_cancel = CancelFlag::default();
        let connection = self.connections.shared_connection().map_err(PostgresError::Store)?;
        let asking = job.origin.as_ref().map(origin_text);
        let session =
            PostgresSession { asking: asking.as_deref(), ..self.session_on(&connection, &no_cancel) };
        let (number, plan) = &job.plans[0];
        let statement = execute_write::single_statement(program).unwrap_or_default();
        let parameters = write_parts(&plan.action).parameter_count();
        session.prepare(&session.told(statement, parameters)).await?;
        let session = session.for_plan(plan);
        let result =
            execute_write::execute_write(session, plan, program, &mut |row| job.sink.row(*number, row)).await;
        let outcome = match result.map_err(PostgresError::outcome_unknown_if_lost) {
            Ok(outcome) => Ok(outcome),
            Err(PostgresError::Plan(error)) => Err(error),
            Err(PostgresError::Refused(error)) => {
                Err(Box::pin(explain_error(session, &job.model, write_parts(&plan.action), &error)).await?)
            }
            Err(
                error @ (PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_)),
            ) => {
                return Err(error);
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
        let connection = self.acquire_connection(&cancel).await?;
        let session = self.session_on(&connection, &cancel);
        let mut result = until_cancelled(&cancel, run_transaction(session, job, programs)).await;
        if let Ok(completion) = &result {
            let end = match completion {
                JobCompletion::Completed => {
                    session.execute_control("COMMIT").await.map_err(PostgresError::outcome_unknown_if_lost)
                }
                JobCompletion::Replayed(_) | JobCompletion::Refused(_) => {
                    session.execute_control("ROLLBACK").await
                }
            };
            result = end.and(result);
        }
        reset_connection(session, &result).await.then(|| connection.release());
        result
    }
}

/// Rolls back after an error; true if the connection can be released: nothing is running and no transaction is open.
async fn reset_connection(
    session: PostgresSession<'_>,
    result: &Result<JobCompletion, PostgresError>,
) -> bool {
    match result {
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

/// Whether each plan of a job has its own savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SavepointMode {
    /// A refused plan ends the transaction, and the job has to run again.
    Off,
    PerPlan,
}

/// Some milliseconds, doubling with each attempt, with jitter so that jobs that collided do not collide again.
fn retry_delay(attempt: u32) -> Duration {
    let jitter = uuid::Uuid::new_v4().as_u64_pair().0 % 1_000;
    Duration::from_micros((1_000 << attempt) * (500 + jitter) / 1_000)
}

/// Reads in one snapshot: a single statement, or a transaction of repeatable reads.
async fn read_snapshot(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
    savepoints: SavepointMode,
) -> Result<JobCompletion, PostgresError> {
    if let [program] = programs
        && program.is_one_statement()
    {
        return read_plans(session, job, programs, savepoints).await;
    }
    let begin = session.execute_control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    // Pipelined: the server runs BEGIN first, and if it fails, nothing is written that this could harm.
    let (begun, completion) = join(begin, read_plans(session, job, programs, savepoints)).await;
    begun?;
    let completion = completion?;
    // The answer is not needed. The next statements on the connection are sent after it.
    let _ = session.execute_control("COMMIT").now_or_never();
    Ok(completion)
}

async fn read_plans(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
    savepoints: SavepointMode,
) -> Result<JobCompletion, PostgresError> {
    for ((number, plan), program) in job.plans.iter().zip(programs) {
        if savepoints == SavepointMode::PerPlan {
            session.execute_control("SAVEPOINT plan").await?;
        }
        let result =
            execute_read::execute_read(session, plan, program, &mut |row| job.sink.row(*number, row)).await;
        let outcome = match result {
            Ok(outcome) => Ok(outcome),
            Err(PostgresError::Plan(error)) => Err(error),
            Err(PostgresError::Refused(error)) if savepoints == SavepointMode::PerPlan => {
                session.execute_control("ROLLBACK TO plan").await?;
                Err(refused_error(&error))
            }
            // The transaction has failed, but this plan is all of it.
            Err(PostgresError::Refused(error)) if programs.len() == 1 => Err(refused_error(&error)),
            Err(error) => return Err(error),
        };
        job.sink.finish_plan(*number, outcome);
    }
    Ok(JobCompletion::Completed)
}

/// Runs the job up to the commit, under its idempotency key if it has one.
async fn run_transaction(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<JobCompletion, PostgresError> {
    const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
    let begin = with_origin(BEGIN, job.origin.as_ref());
    match job.idempotency_key.clone() {
        _ if job.asks_again => {
            session.execute_control(BEGIN).await?;
            return replayed(session, &job.model, &job.plans, programs, Vec::new()).await;
        }
        None => session.execute_control(&format!("{begin}; SAVEPOINT plan")).await?,
        Some(key) => {
            session.execute_control(&begin).await?;
            if !idempotency_keys::try_lock_key(session, &key).await? {
                return Ok(JobCompletion::Refused(Error::KeyInUse));
            }
            match idempotency_keys::find_key(session, &key).await? {
                IdempotencyKeyStatus::New => {}
                IdempotencyKeyStatus::Answered(bytes) => {
                    return replayed(session, &job.model, &job.plans, programs, bytes).await;
                }
                IdempotencyKeyStatus::UsedByOther => return Ok(JobCompletion::Refused(Error::KeyReused)),
            }
            // After the lock: rolling back to the savepoint would otherwise release the key.
            session.execute_control("SAVEPOINT plan").await?;
        }
    }
    run_plans(session, job, programs).await?;
    if let Some(key) = &job.idempotency_key
        && let Some(bytes) = job.sink.bytes_to_replay()
    {
        idempotency_keys::store_answer(session, key, &bytes).await?;
    }
    Ok(JobCompletion::Completed)
}

/// The stored answer, if the actor may still do what the request asks for.
async fn replayed(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[(usize, Plan)],
    programs: &[Arc<Program>],
    answer: Vec<u8>,
) -> Result<JobCompletion, PostgresError> {
    for ((_, plan), program) in plans.iter().zip(programs) {
        match check_repeated(session, model, plan, program).await {
            Ok(()) => {}
            Err(PostgresError::Plan(error)) => return Ok(JobCompletion::Refused(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(JobCompletion::Replayed(answer))
}

/// Runs the plans of a job, each on its own or all as one. The savepoint of the first already exists.
pub(crate) async fn run_plans(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<(), PostgresError> {
    match job.atomic {
        true => run_atomic(session, job, programs).await,
        false => run_each(session, job, programs).await,
    }
}

/// Runs each plan separately: a failed plan does not affect the others. The savepoint of the first already exists.
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

/// Runs all plans or none. If the batch fails, the plans run one by one to find the one at fault, and all are reported
/// as rolled back.
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
            result @ (Ok(())
            | Err(
                PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_),
            )) => {
                return result;
            }
        }
        job.sink.reset();
    }
    for (i, program) in programs.iter().enumerate() {
        let failure = match run_plan(session, job, i, program).await? {
            Ok(outcome) => {
                let number = job.plans[i].0;
                job.sink.finish_plan(number, Ok(outcome));
                let refusal = job.sink.refusal(number);
                if refusal.is_some() {
                    session.execute_control("ROLLBACK TO plan").await?;
                }
                refusal
            }
            Err(error) => Some(error),
        };
        if let Some(error) = failure {
            job.report_rolled_back(i, error);
            return Ok(());
        }
    }
    Ok(())
}

/// Runs one plan. The outer error is the store's; the inner one is the plan's, which was rolled back to its savepoint.
pub(crate) async fn run_plan(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    i: usize,
    program: &Program,
) -> Result<Result<Outcome>, PostgresError> {
    let (number, plan) = &job.plans[i];
    let mut visit = |row: &dyn Row| job.sink.row(*number, row);
    match execute_many::execute_plan(session, &job.model, plan, program, &mut visit).await {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(PostgresError::Plan(error)) => {
            session.execute_control("ROLLBACK TO plan").await?;
            Ok(Err(error))
        }
        Err(PostgresError::Refused(error)) => {
            session.execute_control("ROLLBACK TO plan").await?;
            let session = session.for_plan(plan);
            explain_error(session, &job.model, write_parts(&plan.action), &error).await.map(Err)
        }
        Err(
            error @ (PostgresError::Retryable(_)
            | PostgresError::ConnectionLost(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_)),
        ) => Err(error),
    }
}
