//! A job on its way through the store: what it needs, whether it is still wanted, and where its answer goes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use trefoil_engine::{JobResult, StoreJob};
use trefoil_model::error::{Error, Result};

use crate::job_completion::{JobCompletion, panic_message};
use crate::sqlite::idempotency_keys::KeyGuard;
use crate::statements::compile::Program;

/// A job with the programs of its plans.
pub struct QueuedJob {
    pub job: StoreJob,
    pub programs: Vec<Arc<Program>>,
    /// Keeps the idempotency key taken.
    key_guard: Option<KeyGuard>,
    reply: oneshot::Sender<Result<JobResult>>,
}

impl QueuedJob {
    pub fn new(
        job: StoreJob,
        programs: Vec<Arc<Program>>,
        in_use: Option<KeyGuard>,
    ) -> (QueuedJob, oneshot::Receiver<Result<JobResult>>) {
        let (reply, answered) = oneshot::channel();
        (QueuedJob { job, programs, key_guard: in_use, reply }, answered)
    }

    pub fn writes(&self) -> bool {
        self.job.plans.iter().any(|(_, plan)| plan.is_write())
    }

    /// Whether somebody still waits for it.
    pub fn is_wanted(&self) -> bool {
        !self.job.cancel_flag.is_cancelled() && !self.reply.is_closed()
    }

    /// The same job as if it had never been run; gone when even that panics.
    pub fn reset_for_retry(mut self) -> Option<QueuedJob> {
        match catch_panic(|| self.job.sink.reset()) {
            Ok(()) => Some(self),
            Err(panic) => {
                self.send_reply(JobCompletion::Refused(panic));
                None
            }
        }
    }

    /// Tells whoever waits. The key is free again before they can know, so that they may use it at once.
    pub fn send_reply(self, completion: JobCompletion) {
        drop(self.key_guard);
        // Nobody waits any more: what was done stays done.
        let _ = self.reply.send(completion.into_result(self.job.sink));
    }
}

/// Runs what may panic because others wrote it: whoever takes the rows. The thread goes on.
pub fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| Error::internal(panic_message(panic.as_ref())))
}
