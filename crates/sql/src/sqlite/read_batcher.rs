//! Look-ups of requests that come together share one snapshot, because to take one costs more than to look up.
//!
//! Whoever has a look-up puts it down and lets the others that are ready put down theirs; the first that comes to its
//! turn again runs them all. The snapshot is taken after the last was put down, so nobody is told of an older state
//! than if it had asked alone.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{self, error::TrySendError};

use crate::sqlite::Shared;
use crate::sqlite::error::{is_locked, is_of_one_page, locked, to_error};
use crate::sqlite::queued_job::{Ticket, Verdict, guarded};
use crate::sqlite::readers;
use crate::sqlite::readers::Pool;
use crate::sqlite::session::Session;
use crate::sqlite::writer::Message;
use crate::statements::compile::Program;
use trefoil_engine::{Done, Job};
use trefoil_model::error::{Error, Result};

/// As many as share a snapshot: the thread that runs them does nothing else meanwhile.
const TOGETHER: usize = 128;

/// Threads meet only by accident: whom another thread answers must be woken across.
const SHARDS: usize = 16;

pub struct Gather(Box<[Mutex<Vec<Ticket>>]>);

impl Gather {
    pub fn new() -> Gather {
        Gather((0..SHARDS).map(|_| Mutex::default()).collect())
    }

    pub async fn run(
        &self,
        pool: &Pool,
        shared: &Shared,
        readers: &mpsc::Sender<Message>,
        job: Job,
        programs: Vec<Arc<Program>>,
    ) -> Result<Done> {
        let (ticket, answered) = Ticket::new(job, programs, None);
        let waiting = &self.0[own_shard()];
        let is_full = {
            let mut waiting = lock(waiting);
            waiting.push(ticket);
            waiting.len() >= TOGETHER
        };
        if !is_full {
            tokio::task::yield_now().await;
        }
        let together = std::mem::take(&mut *lock(waiting));
        if !together.is_empty() {
            serve(pool, shared, together).into_iter().for_each(|ticket| hand_over(readers, ticket));
        }
        answered.await.map_err(|_| Error::internal("a look-up was lost"))?
    }
}

fn lock(waiting: &Mutex<Vec<Ticket>>) -> MutexGuard<'_, Vec<Ticket>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS));
    OWN.with(Cell::get)
}

/// Gives back those that would have to wait for a lock: this thread must not.
fn serve(pool: &Pool, shared: &Shared, together: Vec<Ticket>) -> Vec<Ticket> {
    let (mut left, mut locked_out) = (together.into_iter(), Vec::new());
    while let before @ 1.. = left.len() {
        let run = pool.with(shared, |session| {
            let snapshot = before > 1;
            if snapshot {
                session.control("BEGIN")?;
            }
            for ticket in left.by_ref() {
                answer(session, ticket, &mut locked_out)?;
            }
            if snapshot { session.control("ROLLBACK") } else { Ok(()) }
        });
        match run {
            Ok(()) => {}
            Err(error) if is_locked(&error) => locked_out.extend(left.by_ref()),
            Err(error) if left.len() == before || !is_of_one_page(&error) => {
                left.by_ref().for_each(|ticket| ticket.answer(Verdict::Refused(to_error(&error))));
            }
            Err(_) => {}
        }
    }
    locked_out
}

/// To the threads that may wait. Not awaited: whoever carries the look-ups of others may be gone at any moment.
fn hand_over(readers: &mpsc::Sender<Message>, ticket: Ticket) {
    if let Err(TrySendError::Full(message) | TrySendError::Closed(message)) =
        readers.try_send(Message::Job(Box::new(ticket)))
        && let Message::Job(ticket) = message
    {
        ticket.answer(Verdict::Refused(locked()));
    }
}

/// After an error the snapshot may be gone, so whoever is left needs another.
fn answer(session: Session<'_>, mut ticket: Ticket, locked_out: &mut Vec<Ticket>) -> rusqlite::Result<()> {
    if !ticket.is_wanted() {
        ticket.answer(Verdict::Refused(Error::Cancelled));
        return Ok(());
    }
    match guarded(|| readers::run(session, &mut ticket.job, &ticket.programs)) {
        Ok(Ok(())) => ticket.answer(Verdict::Answered),
        Ok(Err(error)) if is_locked(&error) => {
            locked_out.extend(ticket.again());
            return Err(error);
        }
        Ok(Err(error)) => {
            ticket.answer(Verdict::Refused(to_error(&error)));
            return Err(error);
        }
        Err(panic) => ticket.answer(Verdict::Refused(panic)),
    }
    Ok(())
}
