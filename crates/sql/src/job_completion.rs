//! How a job ended, even by a panic, the same in both stores.

use std::any::Any;

use trefoil_engine::{JobResult, RowSink};
use trefoil_model::error::{Error, Result, panic_text};

/// How a job ended, before its caller gets the result.
#[derive(Debug)]
pub enum JobCompletion {
    Completed,
    /// Not run again: the response stored under its idempotency key.
    Replayed(Vec<u8>),
    Refused(Error),
}

impl JobCompletion {
    /// The result for the caller; `sink` is the job's own.
    pub fn into_result(self, sink: Box<dyn RowSink>) -> Result<JobResult> {
        match self {
            JobCompletion::Completed => Ok(JobResult::Completed(sink)),
            JobCompletion::Replayed(bytes) => Ok(JobResult::Replayed(bytes)),
            JobCompletion::Refused(error) => Err(error),
        }
    }
}

/// The error of a job that panicked.
pub fn job_panicked(panic: Box<dyn Any + Send>) -> Error {
    Error::internal(format!("a job panicked: {}", panic_text(&panic)))
}
