//! Stops waiting for work when its job is cancelled.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, interval_at};

use trefoil_engine::CancelFlag;
use trefoil_model::error::Error;

use crate::postgres::error::PostgresError;

/// How often the flag is checked: the longest that work continues after cancellation.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for `work` until it is done or cancelled. A statement that is still running ends when its connection is
/// dropped.
pub async fn until_cancelled<T>(
    cancel: &CancelFlag,
    work: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, PostgresError> {
    let mut work = pin!(work);
    let mut checks = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    poll_fn(|context| {
        loop {
            if cancel.is_cancelled() {
                return Poll::Ready(Err(PostgresError::Store(Error::Cancelled)));
            }
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            if checks.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
