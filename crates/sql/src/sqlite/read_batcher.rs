//! Look-ups of requests that come together share one snapshot, because to take one costs more than to look up.
//!
//! Whoever has a look-up puts it down and lets the others that are ready put down theirs; the first that comes to its
//! turn again runs them all. The snapshot is taken after the last was put down, so nobody is told of an older state
//! than if it had asked alone.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{self, error::TrySendError};

use trefoil_engine::{JobResult, StoreJob};
use trefoil_model::error::{Error, Result};

use crate::job_completion::JobCompletion;
use crate::sqlite::SharedState;
use crate::sqlite::error::{is_locked, is_single_page_error, locked, store_error};
use crate::sqlite::queued_job::{QueuedJob, catch_panic};
use crate::sqlite::readers;
use crate::sqlite::readers::ReaderPool;
use crate::sqlite::session::SqliteSession;
use crate::sqlite::writer::WriterMessage;
use crate::statements::compile::Program;

/// As many as share a snapshot: the thread that runs them does nothing else meanwhile.
const MAX_BATCH: usize = 128;

/// Threads meet only by accident: whom another thread answers must be woken across.
const SHARDS: usize = 16;

pub struct ReadBatcher(Box<[Mutex<Vec<QueuedJob>>]>);

impl ReadBatcher {
    pub fn new() -> ReadBatcher {
        ReadBatcher((0..SHARDS).map(|_| Mutex::default()).collect())
    }

    pub async fn run(
        &self,
        pool: &ReaderPool,
        shared: &SharedState,
        readers: &mpsc::Sender<WriterMessage>,
        job: StoreJob,
        programs: Vec<Arc<Program>>,
    ) -> Result<JobResult> {
        let (ticket, answered) = QueuedJob::new(job, programs, None);
        let waiting = &self.0[own_shard()];
        let is_full = {
            let mut waiting = lock_queue(waiting);
            waiting.push(ticket);
            waiting.len() >= MAX_BATCH
        };
        if !is_full {
            tokio::task::yield_now().await;
        }
        let together = std::mem::take(&mut *lock_queue(waiting));
        if !together.is_empty() {
            run_batch(pool, shared, together).into_iter().for_each(|ticket| hand_over(readers, ticket));
        }
        answered.await.map_err(|_| Error::internal("a look-up was lost"))?
    }
}

fn lock_queue(waiting: &Mutex<Vec<QueuedJob>>) -> MutexGuard<'_, Vec<QueuedJob>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS));
    OWN.with(Cell::get)
}

/// Gives back those that would have to wait for a lock: this thread must not.
fn run_batch(pool: &ReaderPool, shared: &SharedState, together: Vec<QueuedJob>) -> Vec<QueuedJob> {
    let (mut left, mut locked_out) = (together.into_iter(), Vec::new());
    while let before @ 1.. = left.len() {
        let run = pool.with_connection(shared, |session| {
            let snapshot = before > 1;
            if snapshot {
                session.execute_control("BEGIN")?;
            }
            for ticket in left.by_ref() {
                answer_job(session, ticket, &mut locked_out)?;
            }
            if snapshot { session.execute_control("ROLLBACK") } else { Ok(()) }
        });
        match run {
            Ok(()) => {}
            Err(error) if is_locked(&error) => locked_out.extend(left.by_ref()),
            Err(error) if left.len() == before || !is_single_page_error(&error) => {
                left.by_ref()
                    .for_each(|ticket| ticket.send_reply(JobCompletion::Refused(store_error(&error))));
            }
            Err(_) => {}
        }
    }
    locked_out
}

/// To the threads that may wait. Not awaited: whoever carries the look-ups of others may be gone at any moment.
fn hand_over(readers: &mpsc::Sender<WriterMessage>, ticket: QueuedJob) {
    if let Err(TrySendError::Full(message) | TrySendError::Closed(message)) =
        readers.try_send(WriterMessage::Job(Box::new(ticket)))
        && let WriterMessage::Job(ticket) = message
    {
        ticket.send_reply(JobCompletion::Refused(locked()));
    }
}

/// After an error the snapshot may be gone, so whoever is left needs another.
fn answer_job(
    session: SqliteSession<'_>,
    mut ticket: QueuedJob,
    locked_out: &mut Vec<QueuedJob>,
) -> rusqlite::Result<()> {
    if !ticket.is_wanted() {
        ticket.send_reply(JobCompletion::Refused(Error::Cancelled));
        return Ok(());
    }
    match catch_panic(|| readers::run_plans(session, &mut ticket.job, &ticket.programs)) {
        Ok(Ok(())) => ticket.send_reply(JobCompletion::Completed),
        Ok(Err(error)) if is_locked(&error) => {
            locked_out.extend(ticket.reset_for_retry());
            return Err(error);
        }
        Ok(Err(error)) => {
            ticket.send_reply(JobCompletion::Refused(store_error(&error)));
            return Err(error);
        }
        Err(panic) => ticket.send_reply(JobCompletion::Refused(panic)),
    }
    Ok(())
}
