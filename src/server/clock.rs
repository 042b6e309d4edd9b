//! A deadline that is moved far more often than it is met: the timer is touched only when it must ring earlier.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

#[derive(Default)]
pub struct Clock(Option<Pin<Box<Sleep>>>);

impl Clock {
    /// Ready once `deadline` has passed; until then the task is woken when it does.
    pub fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
        if sleep.deadline() > deadline.into() {
            sleep.as_mut().reset(deadline.into());
        }
        // It may have been set for an earlier deadline, which by now was moved.
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline.into());
        }
        Poll::Pending
    }
}
