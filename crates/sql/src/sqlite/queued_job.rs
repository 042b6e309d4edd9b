//! A job on its way through the store: what it needs, whether it is still wanted, and where its answer goes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::sqlite::idempotency_keys::InUse;
use crate::statements::compile::Program;
use trefoil_engine::{Done, Job};
use trefoil_model::error::{Error, Result};

/// A job with the programs of its plans.
pub struct Ticket {
    pub job: Job,
    pub programs: Vec<Arc<Program>>,
    /// Keeps the idempotency key taken.
    in_use: Option<InUse>,
    reply: oneshot::Sender<Result<Done>>,
}

/// How a job ended, before it is told to anyone.
#[derive(Debug)]
pub enum Verdict {
    Answered,
    Replayed(Vec<u8>),
    Refused(Error),
}

impl Ticket {
    pub fn new(
        job: Job,
        programs: Vec<Arc<Program>>,
        in_use: Option<InUse>,
    ) -> (Ticket, oneshot::Receiver<Result<Done>>) {
        let (reply, answered) = oneshot::channel();
        (Ticket { job, programs, in_use, reply }, answered)
    }

    pub fn writes(&self) -> bool {
        self.job.plans.iter().any(|(_, plan)| plan.writes())
    }

    /// Whether somebody still waits for it.
    pub fn is_wanted(&self) -> bool {
        !self.job.cancel.is_cancelled() && !self.reply.is_closed()
    }

    /// The same job as if it had never been run; gone when even that panics.
    pub fn again(mut self) -> Option<Ticket> {
        match guarded(|| self.job.answer.reset()) {
            Ok(()) => Some(self),
            Err(panic) => {
                self.answer(Verdict::Refused(panic));
                None
            }
        }
    }

    /// Tells whoever waits. The key is free again before they can know, so that they may use it at once.
    pub fn answer(self, verdict: Verdict) {
        drop(self.in_use);
        let done = match verdict {
            Verdict::Answered => Ok(Done::Answered(self.job.answer)),
            Verdict::Replayed(bytes) => Ok(Done::Replayed(bytes)),
            Verdict::Refused(error) => Err(error),
        };
        // Nobody waits any more: what was done stays done.
        let _ = self.reply.send(done);
    }
}

/// Runs what may panic because others wrote it: whoever takes the rows. The thread goes on.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| Error::internal(spoken(panic.as_ref())))
}

/// What a panic said.
pub fn spoken(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a job panicked: {}", text.unwrap_or("no message"))
}
