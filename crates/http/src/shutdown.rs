//! Graceful shutdown: stages that streams and connections wait for, and the tasks to wait for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;

/// The time for requests in flight to finish; the process ends within 10 s of its signal.
const GRACE_PERIOD: Duration = Duration::from_secs(9);

/// The stages of a shutdown: leaving, draining, aborted. A cheap clone of shared state.
#[derive(Debug, Clone)]
pub struct Shutdown {
    leave: ShutdownStage,
    drain: ShutdownStage,
    abort: ShutdownStage,
    tasks: TaskTracker,
    grace: Duration,
}

/// A token with a flag, because checking a token takes a lock and every request checks. The flag is set first.
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
        let (leave, drain, abort) = Default::default();
        Shutdown { leave, drain, abort, tasks: TaskTracker::new(), grace }
    }

    /// Requests are still served, but the readiness check fails, so that load balancers go elsewhere.
    pub fn begin_leaving(&self) {
        self.leave.reach();
    }

    pub fn is_leaving(&self) -> bool {
        self.leave.is_reached() || self.is_draining()
    }

    /// Starts the shutdown: new requests are refused, streams close, running requests finish.
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

    /// A waiter for draining that a stream can poll many times.
    pub fn drain_waiter(&self) -> DrainWaiter {
        DrainWaiter { stage: self.drain.clone(), waiting: None }
    }

    /// Resolves when the grace period is over.
    pub fn wait_for_abort(&self) -> WaitForCancellationFuture<'_> {
        self.abort.token.cancelled()
    }

    pub fn is_aborted(&self) -> bool {
        self.abort.is_reached()
    }

    /// Spawns `task` so that the end of the process waits for it: a connection, a WebSocket.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Waits for the running tasks and aborts those that exceed the grace period. Call [`Shutdown::begin_draining`]
    /// first.
    pub async fn finish(&self) {
        self.tasks.close();
        if tokio::time::timeout(self.grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(remaining = self.tasks.len(), "closing connections that did not finish in time");
            self.abort.reach();
            let _ = tokio::time::timeout(Duration::from_millis(500), self.tasks.wait()).await;
        }
    }
}

/// Lets one task wait for draining through its whole life.
///
/// One event wakes thousands of streams at once, and if each polled the token they would queue for its lock. So the
/// token is polled once, to register the task, and the flag after that.
pub struct DrainWaiter {
    stage: ShutdownStage,
    waiting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl DrainWaiter {
    /// Ready once draining has begun. Must be polled by one task only.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.waiting.is_none() {
            let mut waiting = Box::pin(self.stage.token.clone().cancelled_owned());
            let _ = waiting.as_mut().poll(cx);
            self.waiting = Some(waiting);
        }
        if self.stage.is_reached() { Poll::Ready(()) } else { Poll::Pending }
    }
}
