//! A deadline that is moved far more often than it is met: the timer is touched only when it must ring earlier.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::task::coop::unconstrained;
use tokio::time::{Sleep, sleep_until};

#[derive(Debug, Default)]
pub struct MovingDeadline(Option<Pin<Box<Sleep>>>);

impl MovingDeadline {
    /// Ready once `deadline` has passed; until then the task is woken when it does.
    pub fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        if sleep.deadline() > deadline.into() {
            sleep.as_mut().reset(deadline.into());
        }
        // It may have been set for an earlier deadline, which by now was moved. What a task has done in its turn is no
        // reason to look away from the time.
        while pin!(unconstrained(sleep.as_mut())).poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline.into());
        }
        Poll::Pending
    }
}

/// The clock of a connection for its requests, which come one after the other: to set a timer for each and remove it
/// again would cost more than a text.
#[derive(Debug, Clone, Default)]
pub struct RequestTimer(Arc<Mutex<MovingDeadline>>);

impl RequestTimer {
    /// What comes of `work`, if it does before the deadline.
    pub async fn run_until<F: Future>(&self, deadline: Instant, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.lock_deadline().poll(deadline, cx).map(|()| None),
        })
        .await
    }

    /// No further request is timed.
    pub fn stop(&self) {
        *self.lock_deadline() = MovingDeadline::default();
    }

    fn lock_deadline(&self) -> MutexGuard<'_, MovingDeadline> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::time::Duration;

    #[tokio::test]
    async fn each_work_has_its_own_deadline_on_one_timer() {
        let timer = RequestTimer::default();
        let after = |ms| Instant::now() + Duration::from_millis(ms);
        for _ in 0..2 {
            assert_eq!(timer.run_until(after(20), pending::<()>()).await, None);
            let nap = tokio::time::sleep(Duration::from_millis(40));
            assert_eq!(timer.run_until(after(5_000), nap).await, Some(()));
        }
    }
}
