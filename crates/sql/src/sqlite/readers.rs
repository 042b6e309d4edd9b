//! Runs reads: look-ups on the caller's thread, everything that may take longer on reader threads.

use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::mpsc;

use trefoil_engine::StoreJob;
use trefoil_model::error::Error;

use crate::job_completion::JobCompletion;
use crate::sqlite::connect::{ConnectionRole, connect};
use crate::sqlite::error::{SqliteError, needs_new_connection, store_error};
use crate::sqlite::execute_read;
use crate::sqlite::queued_job::{QueuedJob, ThreadMessage, catch_panic};
use crate::sqlite::session::{SharedState, SqliteSession};
use crate::statements::compile::Program;

/// Steps of SQLite's virtual machine between two checks of the cancel flag.
const CANCEL_CHECK_STEPS: i32 = 4_000;
/// Maximum number of look-ups in a job that runs on the caller's thread.
const MAX_INLINE_PLANS: usize = 16;

/// Connections for reading on the caller's thread. There are at most as many as such threads, because no task waits
/// while it holds one: a lock is an error at once (see [`is_locked`]).
///
/// [`is_locked`]: crate::sqlite::error::is_locked
#[derive(Default)]
pub struct ReaderPool(Mutex<Vec<Connection>>);

impl ReaderPool {
    fn take_connection(&self, shared: &SharedState) -> rusqlite::Result<Connection> {
        let idle = self.0.lock().pop();
        let options = || shared.options.without_waiting();
        idle.map_or_else(|| connect(&shared.location, ConnectionRole::Reader, &options()), Ok)
    }

    fn return_connection(&self, connection: Connection) {
        self.0.lock().push(connection);
    }

    /// Runs `read` on one of the connections, which is returned to the pool unless it is broken.
    pub fn with_connection<T>(
        &self,
        shared: &SharedState,
        read: impl FnOnce(SqliteSession<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let connection = self.take_connection(shared)?;
        let result = read(shared.session(&connection));
        if connection.is_autocommit() && !result.as_ref().err().is_some_and(needs_new_connection) {
            self.return_connection(connection);
        }
        result
    }
}

/// True if handing the job to a reader thread would cost more than running it.
pub fn is_inline_read(programs: &[Arc<Program>]) -> bool {
    let is_look_up = |program: &Arc<Program>| match &**program {
        Program::Get(level) => level.is_flat(),
        Program::List { .. }
        | Program::Create { .. }
        | Program::Update(_)
        | Program::Delete { .. }
        | Program::CreateMany(_)
        | Program::UpdateMany { .. }
        | Program::UpdateManyLinks { .. }
        | Program::DeleteMany { .. }
        | Program::DeleteFound { .. }
        | Program::Upsert { .. }
        | Program::Nested { .. }
        | Program::Aggregate(_)
        | Program::PlainList => false,
    };
    programs.len() <= MAX_INLINE_PLANS && programs.iter().all(is_look_up)
}

/// Runs the plans of a job in one snapshot.
pub fn run_plans(
    session: SqliteSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> rusqlite::Result<()> {
    let is_one_statement = matches!(programs, [program] if program.is_one_statement());
    // A batch of look-ups already has a transaction.
    let own_snapshot = !is_one_statement && session.connection.is_autocommit();
    if own_snapshot {
        session.execute_control("BEGIN")?;
    }
    let mut result = Ok(());
    for ((number, plan), program) in job.plans.iter().zip(programs) {
        match execute_read::execute_read(session, plan, program, &mut |row| job.sink.row(*number, row)) {
            Ok(outcome) => job.sink.finish_plan(*number, Ok(outcome)),
            Err(SqliteError::Plan(error)) => job.sink.finish_plan(*number, Err(error)),
            Err(SqliteError::Store(error)) => {
                result = Err(error);
                break;
            }
        }
    }
    if own_snapshot && !session.connection.is_autocommit() {
        session.execute_control("ROLLBACK")?;
    }
    result
}

/// Runs a job until it is cancelled and sends its result. Returns whether the connection is still usable.
pub fn run_job(connection: &mut Connection, shared: &SharedState, mut queued: QueuedJob) -> bool {
    if !queued.is_pending() {
        queued.send_reply(JobCompletion::Refused(Error::Cancelled));
        return true;
    }
    let cancel = queued.job.cancel_flag.clone();
    let is_watched =
        connection.progress_handler(CANCEL_CHECK_STEPS, Some(move || cancel.is_cancelled())).is_ok();
    let result = catch_panic(|| run_plans(shared.session(connection), &mut queued.job, &queued.programs));
    let is_unwatched = connection.progress_handler(0, None::<fn() -> bool>).is_ok();
    let (completion, is_usable) = match result {
        Ok(Ok(())) => (JobCompletion::Completed, true),
        Ok(Err(error)) => (JobCompletion::Refused(store_error(&error)), !needs_new_connection(&error)),
        Err(panic) => (JobCompletion::Refused(panic), true),
    };
    queued.send_reply(completion);
    let has_ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
    is_watched && is_unwatched && is_usable && has_ended
}

/// A reader thread: runs messages from the queue until it is closed.
pub fn run_reader(shared: &SharedState, queue: &Mutex<mpsc::Receiver<ThreadMessage>>) {
    let mut idle = None;
    while let Some(message) = next_message(queue) {
        let connection = idle
            .take()
            .map_or_else(|| connect(&shared.location, ConnectionRole::Reader, &shared.options), Ok);
        match (connection, message) {
            (Ok(mut connection), message) => {
                if run_message(&mut connection, shared, message) {
                    idle = Some(connection);
                }
            }
            (Err(error), ThreadMessage::Job(queued)) => {
                queued.send_reply(JobCompletion::Refused(store_error(&error)))
            }
            // The caller notices that its reply channel is dropped.
            (Err(error), ThreadMessage::Call(_)) => tracing::warn!(%error, "cannot open the database"),
        }
    }
}

/// Returns whether the connection is still usable.
fn run_message(connection: &mut Connection, shared: &SharedState, message: ThreadMessage) -> bool {
    match message {
        ThreadMessage::Job(queued) => run_job(connection, shared, *queued),
        ThreadMessage::Call(call) => catch_panic(|| call(connection)).is_ok() && connection.is_autocommit(),
    }
}

fn next_message(queue: &Mutex<mpsc::Receiver<ThreadMessage>>) -> Option<ThreadMessage> {
    queue.lock().blocking_recv()
}
