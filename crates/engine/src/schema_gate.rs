//! The gate that requests pass: open while one schema is served, closed while a reload changes tables and faces.
//!
//! Each request holds a [`SchemaLease`] from the moment it takes what serves it until its answer is made. A reload closes the
//! gate, waits for the leases that are out, changes the tables and exchanges what is served, and opens it again: so
//! to every request all of that happens at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use trefoil_model::error::{Error, Result};

#[derive(Clone, Default)]
pub struct SchemaGate(Arc<GateState>);

#[derive(Default)]
struct GateState {
    /// Requests under way.
    leases: AtomicUsize,
    is_closed: AtomicBool,
    /// The same, for those who wait. It says `true` a little earlier and `false` a little later.
    closed: watch::Sender<bool>,
    /// Told by the last request that leaves while the gate is closed.
    drained: Notify,
    /// Of the tables: another number is another form of them, which plans made before do not fit.
    generation: AtomicU64,
}

/// A request under way.
pub struct SchemaLease<'g>(&'g GateState);

/// Keeps new requests waiting until it is dropped.
pub struct ClosedGate(SchemaGate);

impl SchemaGate {
    /// Waits for as long as a reload is under way. Nobody enters twice: the second time would wait for the first.
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
        // Counted before it is asked: either it is seen here that the gate is closed, or the lease by who closes it.
        self.0.leases.fetch_add(1, Ordering::SeqCst);
        let lease = SchemaLease(&self.0);
        if self.is_open() { Some(lease) } else { None }
    }

    /// Whether whoever needs nothing of the store can be answered at once.
    pub fn is_open(&self) -> bool {
        !self.0.is_closed.load(Ordering::SeqCst)
    }

    /// Keeps new requests waiting, and waits for those under way; not longer than this.
    pub async fn close(&self, patience: Duration) -> ClosedGate {
        self.0.closed.send_replace(true);
        self.0.is_closed.store(true, Ordering::SeqCst);
        let closed = ClosedGate(self.clone());
        let drained = async {
            while self.0.leases.load(Ordering::SeqCst) > 0 {
                self.0.drained.notified().await;
            }
        };
        // Who is not done by then learns from `check` that it was overtaken.
        let _ = tokio::time::timeout(patience, drained).await;
        closed
    }

    /// The form of the tables that plans made now are for.
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Refuses what was planned for another form of the tables.
    pub fn check(&self, generation: u64) -> Result<()> {
        if self.generation() == generation { Ok(()) } else { Err(outdated()) }
    }
}

/// What is told of a plan that the tables do not fit any more.
pub fn outdated() -> Error {
    Error::Unavailable {
        reason: "the schema was changed while this was under way; try again".to_owned(),
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
    /// From here on plans for the tables as they were are refused.
    pub fn retire_plans(&self) {
        self.0.0.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The tables stay as they were after all, and so what was planned for them is right again.
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
    async fn closing_waits_for_those_under_way_and_they_for_nobody() {
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
    async fn who_takes_too_long_is_overtaken_and_learns_it() {
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
