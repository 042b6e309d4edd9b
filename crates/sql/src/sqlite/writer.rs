//! The one thread that writes: it takes what waits, runs it in one transaction and answers when that is on disk.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::mpsc;

use crate::sqlite::connect::{Role, connect};
use crate::sqlite::error::{Fault, to_error, wants_new_connection};
use crate::sqlite::idempotency_keys;
use crate::sqlite::idempotency_keys::Known;
use crate::sqlite::prune::Housekeeping;
use crate::sqlite::queued_job::{Ticket, Verdict, guarded};
use crate::sqlite::session::Session;
use crate::sqlite::{Shared, execute_write, readers};
use crate::statements::compile::Program;
use trefoil_engine::{Job, Outcome};
use trefoil_model::error::Error;

/// How many jobs share one transaction.
const TOGETHER: usize = 256;

/// What the thread is asked to do.
pub enum Message {
    Job(Box<Ticket>),
    /// Anything else that needs the connection: migration, backup, a look whether it is there.
    Call(Box<dyn FnOnce(&mut Connection) + Send>),
}

pub struct Writer<'s> {
    shared: &'s Shared,
    connection: Connection,
    /// The connection is suspect; the next job gets a new one.
    worn: bool,
    /// The last jobs could not be written.
    failed: bool,
    housekeeping: Housekeeping,
}

/// Why a transaction did not come to its end. Nothing of it happened.
enum Broken {
    /// It could not even begin.
    Refused(rusqlite::Error),
    Store(rusqlite::Error),
    /// The job at this position panicked.
    Panicked(usize, Error),
}

impl<'s> Writer<'s> {
    pub fn new(shared: &'s Shared, connection: Connection) -> Writer<'s> {
        Writer { shared, connection, worn: false, failed: false, housekeeping: Housekeeping::default() }
    }

    /// Works until nobody can send any more.
    pub fn work(mut self, mut queue: mpsc::Receiver<Message>) {
        while let Some(first) = queue.blocking_recv() {
            let mut next = Some(first);
            let mut together = Vec::new();
            while let Some(message) = next.take() {
                match message {
                    Message::Job(ticket) if ticket.writes() => together.push(*ticket),
                    other @ (Message::Job(_) | Message::Call(_)) => {
                        self.write(std::mem::take(&mut together));
                        self.serve(other);
                        break;
                    }
                }
                if together.len() < TOGETHER {
                    next = queue.try_recv().ok();
                }
            }
            self.write(together);
        }
    }

    /// What is no write: only stores in memory send their reads here.
    fn serve(&mut self, message: Message) {
        self.renew();
        match message {
            Message::Job(ticket) => self.worn |= !readers::serve(&mut self.connection, self.shared, *ticket),
            Message::Call(call) => {
                // Whoever waits for a call that panicked learns it by getting no answer. It may have left the
                // connection with other settings.
                self.worn |= guarded(|| call(&mut self.connection)).is_err();
                self.roll_back();
            }
        }
    }

    fn write(&mut self, tickets: Vec<Ticket>) {
        if tickets.is_empty() {
            return;
        }
        self.failed = false;
        self.settle(tickets);
        if !self.failed {
            self.keep_house();
        }
    }

    fn keep_house(&mut self) {
        let session = self.shared.session(&self.connection);
        if let Err(error) = self.housekeeping.run(session, &self.shared.options) {
            tracing::warn!(%error, "old keys and changes were not removed; trying again later");
            self.roll_back();
        }
    }

    /// Commits the jobs together that somebody still waits for.
    fn settle(&mut self, tickets: Vec<Ticket>) {
        let (mut tickets, unwanted): (Vec<_>, Vec<_>) = tickets.into_iter().partition(Ticket::is_wanted);
        unwanted.into_iter().for_each(|ticket| ticket.answer(Verdict::Refused(Error::Cancelled)));
        if tickets.is_empty() {
            return;
        }
        self.renew();
        match self.transact(&mut tickets) {
            Ok(verdicts) => {
                self.shared.stirred.send_replace(());
                tickets.into_iter().zip(verdicts).for_each(|(ticket, verdict)| ticket.answer(verdict));
            }
            Err(broken) => {
                self.roll_back();
                self.settle_again(tickets, broken);
            }
        }
    }

    /// Nothing of the jobs happened: those that others spoilt it for get another try.
    fn settle_again(&mut self, mut tickets: Vec<Ticket>, broken: Broken) {
        match broken {
            Broken::Panicked(at, error) => {
                tickets.remove(at).answer(Verdict::Refused(error));
                self.settle(tickets.into_iter().filter_map(Ticket::again).collect());
            }
            Broken::Store(error) if tickets.len() > 1 => {
                tracing::warn!(%error, jobs = tickets.len(), "a shared commit failed; trying each job alone");
                self.worn |= wants_new_connection(&error);
                tickets.into_iter().filter_map(Ticket::again).for_each(|ticket| self.settle(vec![ticket]));
            }
            Broken::Store(error) | Broken::Refused(error) => {
                tracing::warn!(%error, jobs = tickets.len(), "the store took no write");
                self.worn |= wants_new_connection(&error);
                self.failed = true;
                tickets.into_iter().for_each(|ticket| ticket.answer(Verdict::Refused(to_error(&error))));
            }
        }
    }

    fn transact(&self, tickets: &mut [Ticket]) -> Result<Vec<Verdict>, Broken> {
        let session = self.shared.session(&self.connection);
        session.control("BEGIN IMMEDIATE").map_err(Broken::Refused)?;
        let mut verdicts = Vec::with_capacity(tickets.len());
        for (i, ticket) in tickets.iter_mut().enumerate() {
            let run = guarded(|| run(session, ticket)).map_err(|panic| Broken::Panicked(i, panic))?;
            verdicts.push(run.map_err(Broken::Store)?);
        }
        session.control("COMMIT").map_err(Broken::Store)?;
        Ok(verdicts)
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() && self.connection.execute_batch("ROLLBACK").is_err() {
            self.worn = true;
        }
    }

    /// Replaces a suspect connection. A store in memory lives in its connection and has no other.
    fn renew(&mut self) {
        if self.worn && self.shared.is_on_disk() {
            match connect(&self.shared.place, Role::Writer, &self.shared.options) {
                Ok(connection) => (self.connection, self.worn) = (connection, false),
                Err(error) => tracing::warn!(%error, "the database cannot be opened again yet"),
            }
        }
    }
}

/// Runs one job within the transaction, under its idempotency key where it has one.
fn run(session: Session<'_>, ticket: &mut Ticket) -> rusqlite::Result<Verdict> {
    if let Some(key) = &ticket.job.key {
        match idempotency_keys::look_up(&session, key)? {
            Known::New => {}
            Known::Answered(bytes) => return Ok(Verdict::Replayed(bytes)),
            Known::Taken => return Ok(Verdict::Refused(Error::KeyReused)),
        }
    }
    if ticket.job.atomic {
        run_as_one(session, ticket)?
    } else {
        run_each(session, &mut ticket.job, &ticket.programs)?
    }
    if let Some(key) = &ticket.job.key
        && let Some(bytes) = ticket.job.answer.keep()
    {
        idempotency_keys::keep(&session, key, &bytes)?;
    }
    Ok(Verdict::Answered)
}

/// Each plan its own unit: one that fails leaves the others standing.
pub fn run_each(session: Session<'_>, job: &mut Job, programs: &[Arc<Program>]) -> rusqlite::Result<()> {
    for (i, program) in programs.iter().enumerate() {
        let savepoint = execute_write::needs_savepoint(program);
        if savepoint {
            session.control("SAVEPOINT plan")?;
        }
        let outcome = run_plan(session, job, i, program)?;
        if savepoint {
            end_savepoint(session, outcome.is_ok())?;
        }
        job.answer.done(job.plans[i].0, outcome);
    }
    Ok(())
}

/// All plans one unit. When one fails, the answer forgets the others and is told of each.
fn run_as_one(session: Session<'_>, ticket: &mut Ticket) -> rusqlite::Result<()> {
    session.control("SAVEPOINT plan")?;
    for i in 0..ticket.job.plans.len() {
        match run_plan(session, &mut ticket.job, i, &ticket.programs[i])? {
            Ok(outcome) => {
                let number = ticket.job.plans[i].0;
                ticket.job.answer.done(number, Ok(outcome));
            }
            Err(error) => {
                end_savepoint(session, false)?;
                ticket.job.tell_undone(i, error);
                return Ok(());
            }
        }
    }
    end_savepoint(session, true)
}

fn end_savepoint(session: Session<'_>, keep: bool) -> rusqlite::Result<()> {
    if !keep {
        session.control("ROLLBACK TO plan")?;
    }
    session.control("RELEASE plan")
}

/// The outer failure is the store's, the inner one the plan's own.
fn run_plan(
    session: Session<'_>,
    job: &mut Job,
    i: usize,
    program: &Program,
) -> rusqlite::Result<Result<Outcome, Error>> {
    let (number, plan) = &job.plans[i];
    match execute_write::run(session, &job.model, plan, program, &mut |row| job.answer.row(*number, row)) {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(Fault::Plan(error)) => Ok(Err(error)),
        Err(Fault::Store(error)) => Err(error),
    }
}
