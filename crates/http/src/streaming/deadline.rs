//! A deadline that moves often and is rarely met: the timer is reset only when it must fire earlier.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::task::coop::unconstrained;
use tokio::time::{Sleep, sleep_until};

/// A timer for a deadline that moves, mostly later.
#[derive(Debug, Default)]
pub struct MovingDeadline(Option<Pin<Box<Sleep>>>);

impl MovingDeadline {
    /// Ready once `deadline` has passed; until then the task is woken at that time.
    pub fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        if sleep.deadline() > deadline.into() {
            sleep.as_mut().reset(deadline.into());
        }
        // The timer may be set for an earlier deadline that has since moved. Without tokio's cooperative budget: a busy
        // task must still notice that its time is up.
        while pin!(unconstrained(sleep.as_mut())).poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline.into());
        }
        Poll::Pending
    }
}

/// The timer of a connection for its requests, which come one after the other: setting and removing a timer for each
/// would cost more than a short text response.
#[derive(Debug, Clone, Default)]
pub struct RequestTimer(Arc<Mutex<MovingDeadline>>);

impl RequestTimer {
    /// The output of `work`, or `None` if the deadline passes first.
    pub async fn run_until<F: Future>(&self, deadline: Instant, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.0.lock().poll(deadline, cx).map(|()| None),
        })
        .await
    }

    /// Stops the timer; no further request will use it.
    pub fn stop(&self) {
        *self.0.lock() = MovingDeadline::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::time::Duration;

    #[tokio::test]
    async fn each_run_has_its_own_deadline() {
        let timer = RequestTimer::default();
        let after = |ms| Instant::now() + Duration::from_millis(ms);
        for _ in 0..2 {
            assert_eq!(timer.run_until(after(20), pending::<()>()).await, None);
            let nap = tokio::time::sleep(Duration::from_millis(40));
            assert_eq!(timer.run_until(after(5_000), nap).await, Some(()));
        }
    }
}
