//! Separates requests from schema reloads: open while one schema is served, closed while a reload changes the tables.
//!
//! Each request holds a [`SchemaLease`] until its response is made. A reload closes the gate, waits for all leases,
//! changes the tables, replaces the served application and opens the gate again. To every request the change is
//! atomic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use trefoil_model::error::{Error, Result};

#[derive(Clone, Default)]
pub struct SchemaGate(Arc<GateState>);

#[derive(Default)]
struct GateState {
    /// Number of requests in progress.
    leases: AtomicUsize,
    is_closed: AtomicBool,
    /// The same for waiting tasks. Set a little earlier and cleared a little later.
    closed: watch::Sender<bool>,
    /// Notified by the last request that ends while the gate is closed.
    drained: Notify,
    /// Generation of the tables; plans made for another one do not fit.
    generation: AtomicU64,
}

/// A request in progress.
pub struct SchemaLease<'g>(&'g GateState);

/// Keeps new requests waiting until dropped.
pub struct ClosedGate(SchemaGate);

impl SchemaGate {
    /// Waits while a reload is in progress. Must not be nested: the second call would wait for the first lease.
    pub async fn enter(&self) -> SchemaLease<'_> {
        loop {
            if let Some(lease) = self.try_enter() {
                return lease;
            }
            // The sender is in `self`, so there is always a next value.
            let _ = self.0.closed.subscribe().wait_for(|closed| !closed).await;
        }
    }

    fn try_enter(&self) -> Option<SchemaLease<'_>> {
        // Counted before checking: either this sees the closed gate, or the closing side sees the lease.
        self.0.leases.fetch_add(1, Ordering::SeqCst);
        let lease = SchemaLease(&self.0);
        if self.is_open() { Some(lease) } else { None }
    }

    /// True if the gate is open, so that requests need not wait.
    pub fn is_open(&self) -> bool {
        !self.0.is_closed.load(Ordering::SeqCst)
    }

    /// Keeps new requests waiting, and waits up to `timeout` for those in progress.
    pub async fn close(&self, timeout: Duration) -> ClosedGate {
        self.0.closed.send_replace(true);
        self.0.is_closed.store(true, Ordering::SeqCst);
        let closed = ClosedGate(self.clone());
        let drained = async {
            while self.0.leases.load(Ordering::SeqCst) > 0 {
                self.0.drained.notified().await;
            }
        };
        // Requests that take longer are refused by `check`.
        let _ = tokio::time::timeout(timeout, drained).await;
        closed
    }

    /// The generation of the tables that plans made now are for.
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Refuses plans of another generation.
    pub fn check(&self, generation: u64) -> Result<()> {
        if self.generation() == generation { Ok(()) } else { Err(outdated_plan_error()) }
    }
}

/// The error for a plan of an outdated generation.
pub fn outdated_plan_error() -> Error {
    Error::Unavailable {
        reason: "the schema was changed during the request; try again".to_owned(),
        retry_after: Duration::from_secs(1),
    }
}

impl Drop for SchemaLease<'_> {
    fn drop(&mut self) {
        let is_last = self.0.leases.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.0.is_closed.load(Ordering::SeqCst) {
            self.0.drained.notify_one();
        }
    }
}

impl ClosedGate {
    /// Refuses plans made for the old tables from now on.
    pub fn retire_plans(&self) {
        self.0.0.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Accepts the old plans again, because the tables were not changed.
    pub fn restore_plans(&self) {
        self.0.0.generation.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for ClosedGate {
    fn drop(&mut self) {
        let state = &self.0.0;
        state.is_closed.store(false, Ordering::SeqCst);
        state.closed.send_replace(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn close_waits_for_running_requests() {
        let gate = SchemaGate::default();
        let first = gate.enter().await;
        let closing = tokio::spawn({
            let gate = gate.clone();
            async move { gate.close(LONG).await }
        });
        while gate.is_open() {
            tokio::task::yield_now().await;
        }
        assert!(tokio::time::timeout(SOON, gate.enter()).await.is_err(), "nobody enters a closed gate");
        assert!(!closing.is_finished(), "one is still under way");
        drop(first);
        let closed = closing.await.expect("no panic");
        assert!(tokio::time::timeout(SOON, gate.enter()).await.is_err(), "closed until it is dropped");
        drop(closed);
        tokio::time::timeout(LONG, gate.enter()).await.expect("open again");
    }

    #[tokio::test]
    async fn slow_requests_are_refused_after_a_reload() {
        let gate = SchemaGate::default();
        let (slow, generation) = (gate.enter().await, gate.generation());
        let closed = gate.close(SOON).await;
        closed.retire_plans();
        assert!(matches!(gate.check(generation), Err(Error::Unavailable { .. })));
        closed.restore_plans();
        assert!(gate.check(generation).is_ok(), "nothing was changed after all");
        drop((closed, slow));
        assert_eq!(gate.0.leases.load(Ordering::SeqCst), 0);
    }
}
