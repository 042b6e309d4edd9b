//! Reading: inline for what one look-up answers, on threads of their own for everything that may take a while.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::mpsc;

use trefoil_engine::StoreJob;
use trefoil_model::error::Error;

use crate::job_completion::JobCompletion;
use crate::sqlite::connect::{ConnectionRole, connect};
use crate::sqlite::error::{SqliteError, needs_new_connection, store_error};
use crate::sqlite::queued_job::{QueuedJob, catch_panic};
use crate::sqlite::session::SqliteSession;
use crate::sqlite::writer::WriterMessage;
use crate::sqlite::{SharedState, execute_read};
use crate::statements::compile::Program;

/// How many steps of SQLite's machine lie between two looks at whether the job is still wanted.
const CANCEL_CHECK_STEPS: i32 = 4_000;
/// How many look-ups a job may have and still be run inline.
const MAX_INLINE_PLANS: usize = 16;

/// Connections for reading on the caller's own thread. As many as there are such threads at most, because
/// nobody waits while holding one: not for a lock either, which is an error at once (see [`is_locked`]).
///
/// [`is_locked`]: crate::sqlite::error::is_locked
#[derive(Default)]
pub struct ReaderPool(Mutex<Vec<Connection>>);

impl ReaderPool {
    fn take_connection(&self, shared: &SharedState) -> rusqlite::Result<Connection> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let options = || shared.options.without_waiting();
        idle.map_or_else(|| connect(&shared.location, ConnectionRole::Reader, &options()), Ok)
    }

    fn return_connection(&self, connection: Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Runs `read` on one of the connections; one that is no longer sound is not kept.
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

/// Whether a thread of its own would cost more than the job.
pub fn is_inline_read(programs: &[Arc<Program>]) -> bool {
    let is_look_up = |program: &Arc<Program>| match &**program {
        Program::Get(level) => level.is_flat(),
        Program::List { .. }
        | Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
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
    let one = matches!(programs, [program] if program.is_one_statement());
    // Others may share theirs.
    let own = !one && session.connection.is_autocommit();
    if own {
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
    if own && !session.connection.is_autocommit() {
        session.execute_control("ROLLBACK")?;
    }
    result
}

/// Runs a job for as long as it is wanted, and answers it. Says whether the connection is still sound.
pub fn run_job(connection: &mut Connection, shared: &SharedState, mut ticket: QueuedJob) -> bool {
    if !ticket.is_wanted() {
        ticket.send_reply(JobCompletion::Refused(Error::Cancelled));
        return true;
    }
    let cancel = ticket.job.cancel_flag.clone();
    let watched =
        connection.progress_handler(CANCEL_CHECK_STEPS, Some(move || cancel.is_cancelled())).is_ok();
    let result = catch_panic(|| run_plans(shared.session(connection), &mut ticket.job, &ticket.programs));
    let unwatched = connection.progress_handler(0, None::<fn() -> bool>).is_ok();
    let (verdict, sound) = match result {
        Ok(Ok(())) => (JobCompletion::Completed, true),
        Ok(Err(error)) => (JobCompletion::Refused(store_error(&error)), !needs_new_connection(&error)),
        Err(panic) => (JobCompletion::Refused(panic), true),
    };
    ticket.send_reply(verdict);
    let ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
    watched && unwatched && sound && ended
}

/// One reader thread: takes the next job whenever it is idle, until nobody can send any more.
pub fn run_reader(shared: &SharedState, queue: &Mutex<mpsc::Receiver<WriterMessage>>) {
    let mut idle = None;
    while let Some(message) = next_job(queue) {
        let opened = idle
            .take()
            .map_or_else(|| connect(&shared.location, ConnectionRole::Reader, &shared.options), Ok);
        match (opened, message) {
            (Ok(mut connection), message) => {
                if carry_out(&mut connection, shared, message) {
                    idle = Some(connection);
                }
            }
            (Err(error), WriterMessage::Job(ticket)) => {
                ticket.send_reply(JobCompletion::Refused(store_error(&error)))
            }
            // Whoever waits learns it by getting no answer.
            (Err(error), WriterMessage::Call(_)) => tracing::warn!(%error, "the database cannot be opened"),
        }
    }
}

/// Says whether the connection is still sound.
fn carry_out(connection: &mut Connection, shared: &SharedState, message: WriterMessage) -> bool {
    match message {
        WriterMessage::Job(ticket) => run_job(connection, shared, *ticket),
        WriterMessage::Call(call) => catch_panic(|| call(connection)).is_ok() && connection.is_autocommit(),
    }
}

fn next_job(queue: &Mutex<mpsc::Receiver<WriterMessage>>) -> Option<WriterMessage> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}
