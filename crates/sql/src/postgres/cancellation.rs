//! Work that ends as soon as nobody wants its result any more.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, interval_at};

use crate::postgres::error::PostgresError;
use trefoil_engine::CancelFlag;
use trefoil_model::error::Error;

/// How long work goes on at most after it was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Does the work until it is done or cancelled. What it leaves running is for the drop of its connection to end.
pub async fn until_cancelled<T>(
    cancel: &CancelFlag,
    work: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, PostgresError> {
    let mut work = pin!(work);
    let mut look = interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    poll_fn(|context| {
        loop {
            if cancel.is_cancelled() {
                return Poll::Ready(Err(PostgresError::Store(Error::Cancelled)));
            }
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            if look.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await
}
