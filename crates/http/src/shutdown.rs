//! One token that tells every stream and connection to finish, and a count of those who have not yet.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

/// How long requests in flight may take to finish; the process ends within 10 s of its signal.
const GRACE_PERIOD: Duration = Duration::from_secs(9);

/// A cheap clone of one shared state: serving, then leaving, then draining, then cut.
#[derive(Debug, Clone)]
pub struct Shutdown {
    leave: ShutdownStage,
    drain: ShutdownStage,
    abort: ShutdownStage,
    tasks: TaskTracker,
    grace: Duration,
}

/// A token takes a lock to be asked, and every request asks: the flag beside it, set first, does not.
#[derive(Debug, Clone, Default)]
struct ShutdownStage {
    reached: Arc<AtomicBool>,
    token: CancellationToken,
}

impl ShutdownStage {
    fn reach(&self) {
        self.reached.store(true, Ordering::Release);
        self.token.cancel();
    }

    fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Acquire)
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Shutdown::with_grace(GRACE_PERIOD)
    }
}

impl Shutdown {
    pub fn new() -> Self {
        Shutdown::default()
    }

    pub fn with_grace(grace: Duration) -> Self {
        let (leave, drain, cut) = Default::default();
        Shutdown { leave, drain, abort: cut, tasks: TaskTracker::new(), grace }
    }

    /// Everything is still served, but the readiness check says no: time for a load balancer to look elsewhere.
    pub fn begin_leaving(&self) {
        self.leave.reach();
    }

    pub fn is_leaving(&self) -> bool {
        self.leave.is_reached() || self.is_draining()
    }

    /// Starts the end: nothing new is begun, streams close, what runs is finished.
    pub fn begin_draining(&self) {
        self.drain.reach();
    }

    pub fn is_draining(&self) -> bool {
        self.drain.is_reached()
    }

    /// Resolves when draining begins; every stream selects on it.
    pub fn wait_for_drain(&self) -> WaitForCancellationFuture<'_> {
        self.drain.token.cancelled()
    }

    /// Draining, for a stream that waits again and again.
    pub fn drain_waiter(&self) -> DrainWaiter {
        DrainWaiter { stage: self.drain.clone(), waiting: None }
    }

    /// Resolves when the time for finishing is over.
    pub fn wait_for_abort(&self) -> WaitForCancellationFuture<'_> {
        self.abort.token.cancelled()
    }

    pub fn is_aborted(&self) -> bool {
        self.abort.is_reached()
    }

    /// Runs `task` so that the end of the process waits for it: a connection, a WebSocket.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Waits for what runs, and cuts what does not end in time. Call it after [`Shutdown::drain`].
    pub async fn finish(&self) {
        self.tasks.close();
        if tokio::time::timeout(self.grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(remaining = self.tasks.len(), "cutting what did not finish in time");
            self.abort.reach();
            let _ = tokio::time::timeout(Duration::from_millis(500), self.tasks.wait()).await;
        }
    }
}

/// Draining as one task waits for it through its whole life.
///
/// One event wakes thousands of streams at once, and each asking the token anew would make them queue for its lock:
/// it is asked once, to wake the task, and the flag after that.
pub struct DrainWaiter {
    stage: ShutdownStage,
    waiting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl DrainWaiter {
    /// Ready once draining has begun. Only ever for the same task.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            let mut waiting = Box::pin(self.stage.token.clone().cancelled_owned());
            let _ = waiting.as_mut().poll(cx);
            self.waiting = Some(waiting);
        }
        if self.stage.is_reached() { Poll::Ready(()) } else { Poll::Pending }
    }
}
