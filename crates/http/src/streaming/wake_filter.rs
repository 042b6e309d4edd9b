//! Tells a task that was woken whether one certain source has woken it, so that it asks that source only then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// Between a source that hardly ever has anything and a task that others wake all the time. Only ever for one task.
pub struct WakeFilter(Arc<WakeFlag>);

struct WakeFlag {
    is_woken: AtomicBool,
    task: OnceLock<Waker>,
}

impl Default for WakeFilter {
    fn default() -> WakeFilter {
        // Nobody has asked yet.
        WakeFilter(Arc::new(WakeFlag { is_woken: AtomicBool::new(true), task: OnceLock::new() }))
    }
}

impl WakeFilter {
    /// Asks the source if it has rung since it was last asked in vain.
    pub fn poll_if_woken<T>(
        &self,
        cx: &mut Context<'_>,
        ask: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.0.task.get_or_init(|| cx.waker().clone());
        if !self.0.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let answer = ask(&mut Context::from_waker(&Waker::from(self.0.clone())));
        if answer.is_ready() {
            // There may be more, and nobody would ring for it.
            self.0.is_woken.store(true, Ordering::Release);
        }
        answer
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
    fn the_source_is_asked_at_first_and_when_it_rang() {
        let bell = WakeFilter::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut kept = None;
        let mut asked = 0;
        let mut ask = |answer: Poll<()>| {
            let before = asked;
            let polled = bell.poll_if_woken(&mut cx, |cx| {
                asked += 1;
                kept = Some(cx.waker().clone());
                answer
            });
            (polled.is_ready(), asked > before, kept.clone())
        };
        assert!(matches!(ask(Poll::Ready(())), (true, true, _)));
        let (ready, was_asked, waker) = ask(Poll::Pending);
        assert!(!ready && was_asked, "after an answer there may be another");
        assert!(matches!(ask(Poll::Ready(())), (false, false, _)), "it has not rung");
        waker.expect("it was asked").wake();
        assert!(matches!(ask(Poll::Pending), (false, true, _)));
    }
}
