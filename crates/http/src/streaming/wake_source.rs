//! Tells a woken task whether one particular source woke it, so that it polls that source only then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// Sits between a source that is rarely ready and a task that is often woken by others. Must be used by one task only.
pub struct WakeSource(Arc<WakeFlag>);

struct WakeFlag {
    is_woken: AtomicBool,
    task: OnceLock<Waker>,
}

impl Default for WakeSource {
    fn default() -> WakeSource {
        // Not polled yet.
        WakeSource(Arc::new(WakeFlag { is_woken: AtomicBool::new(true), task: OnceLock::new() }))
    }
}

impl WakeSource {
    /// Polls the source if it has woken the task since its last `Pending`.
    pub fn poll_if_woken<T>(
        &self,
        cx: &mut Context<'_>,
        poll_source: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.0.task.get_or_init(|| cx.waker().clone());
        if !self.0.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll_source(&mut Context::from_waker(&Waker::from(self.0.clone())));
        if polled.is_ready() {
            // There may be more, and no wake-up would announce it.
            self.0.is_woken.store(true, Ordering::Release);
        }
        polled
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_polled_first_and_after_its_wake() {
        let filter = WakeSource::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waker = None;
        let mut poll_count = 0;
        let mut poll = |result: Poll<()>| {
            let before = poll_count;
            let polled = filter.poll_if_woken(&mut cx, |cx| {
                poll_count += 1;
                waker = Some(cx.waker().clone());
                result
            });
            (polled.is_ready(), poll_count > before, waker.clone())
        };
        assert!(matches!(poll(Poll::Ready(())), (true, true, _)));
        let (ready, was_polled, waker) = poll(Poll::Pending);
        assert!(!ready && was_polled, "after an answer there may be another");
        assert!(matches!(poll(Poll::Ready(())), (false, false, _)), "it has not rung");
        waker.expect("it was asked").wake();
        assert!(matches!(poll(Poll::Pending), (false, true, _)));
    }
}
