//! How a job ended, and the text of a panic in one, the same in both stores.

use std::any::Any;

use trefoil_engine::{JobResult, RowSink};
use trefoil_model::error::{Error, Result};

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

/// The message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("a job panicked: {}", text.unwrap_or("no message"))
}
