//! Reading: inline for what one look-up answers, on threads of their own for everything that may take a while.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::sqlite::connect::{Role, connect};
use crate::sqlite::error::{Fault, to_error, wants_new_connection};
use crate::sqlite::queued_job::{Ticket, Verdict, guarded};
use crate::sqlite::session::Session;
use crate::sqlite::writer::Message;
use crate::sqlite::{Shared, execute_read};
use crate::statements::compile::Program;
use trefoil_engine::Job;
use trefoil_model::error::Error;

/// How many steps of SQLite's machine lie between two looks at whether the job is still wanted.
const STEPS: i32 = 4_000;
/// How many look-ups a job may have and still be run inline.
const INLINE: usize = 16;

/// Connections for reading on the caller's own thread. As many as there are such threads at most, because
/// nobody waits while holding one: not for a lock either, which is an error at once (see [`is_locked`]).
///
/// [`is_locked`]: crate::sqlite::error::is_locked
#[derive(Default)]
pub struct Pool(Mutex<Vec<Connection>>);

impl Pool {
    fn take(&self, shared: &Shared) -> rusqlite::Result<Connection> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let options = || shared.options.without_waiting();
        idle.map_or_else(|| connect(&shared.place, Role::Reader, &options()), Ok)
    }

    fn put(&self, connection: Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Runs `read` on one of the connections; one that is no longer sound is not kept.
    pub fn with<T>(
        &self,
        shared: &Shared,
        read: impl FnOnce(Session<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let connection = self.take(shared)?;
        let result = read(shared.session(&connection));
        if connection.is_autocommit() && !result.as_ref().err().is_some_and(wants_new_connection) {
            self.put(connection);
        }
        result
    }
}

/// Whether a thread of its own would cost more than the job.
pub fn is_quick(programs: &[Arc<Program>]) -> bool {
    let is_look_up = |program: &Arc<Program>| match &**program {
        Program::Get(level) => level.is_flat(),
        Program::List { .. }
        | Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
        | Program::Plain => false,
    };
    programs.len() <= INLINE && programs.iter().all(is_look_up)
}

/// Runs the plans of a job in one snapshot.
pub fn run(session: Session<'_>, job: &mut Job, programs: &[Arc<Program>]) -> rusqlite::Result<()> {
    let one = matches!(programs, [program] if program.is_one_statement());
    // Others may share theirs.
    let own = !one && session.connection.is_autocommit();
    if own {
        session.control("BEGIN")?;
    }
    let mut result = Ok(());
    for ((number, plan), program) in job.plans.iter().zip(programs) {
        match execute_read::run(session, plan, program, &mut |row| job.answer.row(*number, row)) {
            Ok(outcome) => job.answer.done(*number, Ok(outcome)),
            Err(Fault::Plan(error)) => job.answer.done(*number, Err(error)),
            Err(Fault::Store(error)) => {
                result = Err(error);
                break;
            }
        }
    }
    if own && !session.connection.is_autocommit() {
        session.control("ROLLBACK")?;
    }
    result
}

/// Runs a job for as long as it is wanted, and answers it. Says whether the connection is still sound.
pub fn serve(connection: &mut Connection, shared: &Shared, mut ticket: Ticket) -> bool {
    if !ticket.is_wanted() {
        ticket.answer(Verdict::Refused(Error::Cancelled));
        return true;
    }
    let cancel = ticket.job.cancel.clone();
    let watched = connection.progress_handler(STEPS, Some(move || cancel.is_cancelled())).is_ok();
    let result = guarded(|| run(shared.session(connection), &mut ticket.job, &ticket.programs));
    let unwatched = connection.progress_handler(0, None::<fn() -> bool>).is_ok();
    let (verdict, sound) = match result {
        Ok(Ok(())) => (Verdict::Answered, true),
        Ok(Err(error)) => (Verdict::Refused(to_error(&error)), !wants_new_connection(&error)),
        Err(panic) => (Verdict::Refused(panic), true),
    };
    ticket.answer(verdict);
    let ended = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
    watched && unwatched && sound && ended
}

/// One reader thread: takes the next job whenever it is idle, until nobody can send any more.
pub fn work(shared: &Shared, queue: &Mutex<mpsc::Receiver<Message>>) {
    let mut idle = None;
    while let Some(message) = next(queue) {
        let opened = idle.take().map_or_else(|| connect(&shared.place, Role::Reader, &shared.options), Ok);
        match (opened, message) {
            (Ok(mut connection), message) => {
                if carry_out(&mut connection, shared, message) {
                    idle = Some(connection);
                }
            }
            (Err(error), Message::Job(ticket)) => ticket.answer(Verdict::Refused(to_error(&error))),
            // Whoever waits learns it by getting no answer.
            (Err(error), Message::Call(_)) => tracing::warn!(%error, "the database cannot be opened"),
        }
    }
}

/// Says whether the connection is still sound.
fn carry_out(connection: &mut Connection, shared: &Shared, message: Message) -> bool {
    match message {
        Message::Job(ticket) => serve(connection, shared, *ticket),
        Message::Call(call) => guarded(|| call(connection)).is_ok() && connection.is_autocommit(),
    }
}

fn next(queue: &Mutex<mpsc::Receiver<Message>>) -> Option<Message> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}
