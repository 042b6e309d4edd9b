//! A job in a queue of the store, with its programs and the channel for its result.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use trefoil_engine::{JobResult, StoreJob};
use trefoil_model::error::Result;

use crate::job_completion::{JobCompletion, job_panicked};
use crate::sqlite::idempotency_keys::KeyGuard;
use crate::statements::compile::Program;

/// The programs of the plans of a job. Nearly all have one plan, whose program needs no list.
pub enum JobPrograms {
    One([Arc<Program>; 1]),
    Many(Vec<Arc<Program>>),
}

impl Deref for JobPrograms {
    type Target = [Arc<Program>];

    fn deref(&self) -> &[Arc<Program>] {
        match self {
            JobPrograms::One(program) => program,
            JobPrograms::Many(programs) => programs,
        }
    }
}

/// A job with the programs of its plans.
pub struct QueuedJob {
    pub job: StoreJob,
    pub programs: JobPrograms,
    /// Holds the idempotency key as running.
    key_guard: Option<KeyGuard>,
    reply: oneshot::Sender<Result<JobResult>>,
}

impl QueuedJob {
    pub fn new(
        job: StoreJob,
        programs: JobPrograms,
        key_guard: Option<KeyGuard>,
    ) -> (QueuedJob, oneshot::Receiver<Result<JobResult>>) {
        let (reply, result) = oneshot::channel();
        (QueuedJob { job, programs, key_guard, reply }, result)
    }

    pub fn writes(&self) -> bool {
        self.job.plans.iter().any(|(_, plan)| plan.is_write())
    }

    /// True unless it was cancelled or its caller is gone.
    pub fn is_pending(&self) -> bool {
        !self.job.cancel_flag.is_cancelled() && !self.reply.is_closed()
    }

    /// Resets the sink so that the job can run again; `None` if that panics, which ends the job.
    pub fn reset_for_retry(mut self) -> Option<QueuedJob> {
        match catch_panic(|| self.job.sink.reset()) {
            Ok(()) => Some(self),
            Err(panic) => {
                self.send_reply(JobCompletion::Refused(panic));
                None
            }
        }
    }

    /// Sends the result to the caller. The key is released first, so that the caller can use it again at once.
    pub fn send_reply(self, completion: JobCompletion) {
        drop(self.key_guard);
        // If the caller is gone, the work stays done.
        let _ = self.reply.send(completion.into_result(self.job.sink));
    }
}

/// A message to the writer thread or to a reader thread.
pub enum ThreadMessage {
    Job(Box<QueuedJob>),
    /// Anything else that needs the connection: migration, bulk write, a look-up that has to wait.
    Call(Box<dyn FnOnce(&mut Connection) + Send>),
}

/// Runs code that calls a sink, which may panic; the thread continues.
pub fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(job_panicked)
}
