//! Batches concurrent look-ups into one snapshot, because taking a snapshot costs more than a look-up.
//!
//! A task queues its look-up and yields, so that other ready tasks can queue theirs; the first task that runs again
//! executes the whole queue. The snapshot is taken after the last look-up was queued, so no result is older than it
//! would be alone.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, error::TrySendError};

use trefoil_engine::{JobResult, StoreJob};
use trefoil_model::error::{Error, Result};

use crate::job_completion::JobCompletion;
use crate::sqlite::error::{is_locked, is_single_page_error, locked, store_error};
use crate::sqlite::queued_job::{JobPrograms, QueuedJob, ThreadMessage, catch_panic};
use crate::sqlite::readers::{self, ReaderPool};
use crate::sqlite::session::{SharedState, SqliteSession};

/// Maximum number of look-ups in one snapshot: the thread that runs them does nothing else meanwhile.
const MAX_BATCH: usize = 128;

/// More queues than threads usually, so that each has its own: waking a task of another thread costs more.
const SHARDS: usize = 16;

pub struct ReadBatcher(Box<[Mutex<Vec<QueuedJob>>]>);

impl ReadBatcher {
    pub fn new() -> ReadBatcher {
        ReadBatcher((0..SHARDS).map(|_| Mutex::default()).collect())
    }

    /// Queues the job at once. If the future is dropped, the job is dropped with the next batch.
    pub fn run<'s>(
        &'s self,
        pool: &'s ReaderPool,
        shared: &'s SharedState,
        readers: &'s mpsc::Sender<ThreadMessage>,
        job: StoreJob,
        programs: JobPrograms,
    ) -> impl Future<Output = Result<JobResult>> + Send + 's {
        let (queued, result) = QueuedJob::new(job, programs, None);
        let queue = &self.0[shard_of_thread()];
        let is_full = {
            let mut jobs = queue.lock();
            jobs.push(queued);
            jobs.len() >= MAX_BATCH
        };
        async move {
            if !is_full {
                tokio::task::yield_now().await;
            }
            Self::run_queued(pool, shared, queue, readers);
            result.await.map_err(|_| Error::internal("a look-up was lost"))?
        }
    }

    /// Runs all jobs of a queue.
    fn run_queued(
        pool: &ReaderPool,
        shared: &SharedState,
        queue: &Mutex<Vec<QueuedJob>>,
        readers: &mpsc::Sender<ThreadMessage>,
    ) {
        let mut batch = std::mem::take(&mut *queue.lock());
        if !batch.is_empty() {
            run_batch(pool, shared, &mut batch).into_iter().for_each(|queued| hand_over(readers, queued));
            // The next batch needs the same memory.
            let mut jobs = queue.lock();
            if jobs.capacity() == 0 {
                *jobs = batch;
            }
        }
    }
}

fn shard_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS));
    OWN.with(Cell::get)
}

/// Runs the batch and returns the jobs that would have to wait for a lock, which this thread must not.
fn run_batch(pool: &ReaderPool, shared: &SharedState, batch: &mut Vec<QueuedJob>) -> Vec<QueuedJob> {
    let (mut left, mut blocked) = (batch.drain(..), Vec::new());
    while let before @ 1.. = left.len() {
        let run = pool.with_connection(shared, |session| {
            let is_shared = before > 1;
            if is_shared {
                session.execute_control("BEGIN")?;
            }
            for queued in left.by_ref() {
                run_job(session, queued, &mut blocked)?;
            }
            if is_shared { session.execute_control("ROLLBACK") } else { Ok(()) }
        });
        match run {
            Ok(()) => {}
            Err(error) if is_locked(&error) => blocked.extend(left.by_ref()),
            Err(error) if left.len() == before || !is_single_page_error(&error) => {
                left.by_ref()
                    .for_each(|queued| queued.send_reply(JobCompletion::Refused(store_error(&error))));
            }
            Err(_) => {}
        }
    }
    blocked
}

/// Passes a job to the reader threads, which may wait. Does not await: the task with the batch may be dropped at any time.
fn hand_over(readers: &mpsc::Sender<ThreadMessage>, queued: QueuedJob) {
    if let Err(TrySendError::Full(message) | TrySendError::Closed(message)) =
        readers.try_send(ThreadMessage::Job(Box::new(queued)))
        && let ThreadMessage::Job(queued) = message
    {
        queued.send_reply(JobCompletion::Refused(locked()));
    }
}

/// Runs one job and sends its result. After an error the snapshot may be gone, and the rest of the batch needs another.
fn run_job(
    session: SqliteSession<'_>,
    mut queued: QueuedJob,
    blocked: &mut Vec<QueuedJob>,
) -> rusqlite::Result<()> {
    if !queued.is_pending() {
        queued.send_reply(JobCompletion::Refused(Error::Cancelled));
        return Ok(());
    }
    match catch_panic(|| readers::run_plans(session, &mut queued.job, &queued.programs)) {
        Ok(Ok(())) => queued.send_reply(JobCompletion::Completed),
        Ok(Err(error)) if is_locked(&error) => {
            blocked.extend(queued.reset_for_retry());
            return Err(error);
        }
        Ok(Err(error)) => {
            queued.send_reply(JobCompletion::Refused(store_error(&error)));
            return Err(error);
        }
        Err(panic) => queued.send_reply(JobCompletion::Refused(panic)),
    }
    Ok(())
}
