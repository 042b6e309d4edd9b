//! Work that many may wait for at once: done one time, shared by all of them, and kept within a number of bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use tokio_util::task::AbortOnDropHandle;

use crate::changes::SharedResult;
use trefoil_model::error::Error;

/// What a thing costs to keep, in bytes.
pub trait MemorySize {
    fn memory_size(&self) -> usize;
}

/// Work by key, running or done. What runs belongs to those who wait for it: when the last of them goes, it ends.
pub struct SharedWork<K, T> {
    state: Mutex<WorkEntries<K, T>>,
    capacity: usize,
}

struct WorkEntries<K, T> {
    entries: HashMap<K, WorkEntry<T>>,
    /// The keys of what is done, in the order in which they are looked at when room is needed.
    eviction_order: VecDeque<K>,
    bytes: usize,
}

enum WorkEntry<T> {
    Running(Weak<WorkItem<T>>),
    Done {
        item: Arc<WorkItem<T>>,
        bytes: usize,
        /// Asked for since the last time that room was needed.
        was_used: bool,
    },
}

/// One piece of work, which goes on whether or not anybody looks at it.
pub struct WorkItem<T> {
    outcome: OnceLock<SharedResult<T>>,
    waiters: Mutex<WaiterList>,
    task: OnceLock<AbortOnDropHandle<()>>,
    /// Takes it off the shelf.
    on_abandoned: Box<dyn Fn() + Send + Sync>,
}

impl<K, T> SharedWork<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: MemorySize + Send + Sync + 'static,
{
    pub fn new(capacity: usize) -> Arc<SharedWork<K, T>> {
        let kept = WorkEntries { entries: HashMap::new(), eviction_order: VecDeque::new(), bytes: 0 };
        Arc::new(SharedWork { state: Mutex::new(kept), capacity })
    }

    fn lock(&self) -> MutexGuard<'_, WorkEntries<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work for this key, begun now when there is none. It runs in a task of its own: whoever asked may be slow.
    pub fn join<F>(self: &Arc<Self>, key: K, work: impl FnOnce() -> F) -> Arc<WorkItem<T>>
    where
        F: Future<Output = SharedResult<T>> + Send + 'static,
    {
        let mut kept = self.lock();
        if let Some(flight) = kept.find(&key) {
            return flight;
        }
        let flight = Arc::new(WorkItem {
            outcome: OnceLock::new(),
            waiters: Mutex::default(),
            task: OnceLock::new(),
            on_abandoned: self.forget_callback(&key),
        });
        kept.entries.insert(key.clone(), WorkEntry::Running(Arc::downgrade(&flight)));
        drop(kept);
        let (shelf, weak, work) = (self.clone(), Arc::downgrade(&flight), work());
        let task = tokio::spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("what was waited for panicked")));
            if let Some(flight) = weak.upgrade() {
                shelf.cache_result(&key, &flight, &outcome);
                flight.complete(outcome);
            }
        });
        // Nobody else has this flight's task to set.
        let _ = flight.task.set(AbortOnDropHandle::new(task));
        flight
    }

    fn forget_callback(self: &Arc<Self>, key: &K) -> Box<dyn Fn() + Send + Sync> {
        let (shelf, key) = (Arc::downgrade(self), key.clone());
        Box::new(move || {
            let Some(shelf) = shelf.upgrade() else { return };
            let mut kept = shelf.lock();
            let is_dead = |entry: &WorkEntry<T>| match entry {
                WorkEntry::Running(flight) => flight.strong_count() == 0,
                WorkEntry::Done { .. } => false,
            };
            if kept.entries.get(&key).is_some_and(is_dead) {
                kept.entries.remove(&key);
            }
        })
    }

    fn cache_result(&self, key: &K, flight: &Arc<WorkItem<T>>, outcome: &SharedResult<T>) {
        let mut kept = self.lock();
        let is_own = |entry: &WorkEntry<T>| match entry {
            WorkEntry::Running(running) => Weak::ptr_eq(running, &Arc::downgrade(flight)),
            WorkEntry::Done { .. } => false,
        };
        // It is somebody else's place when the shelf was cleared meanwhile.
        if !kept.entries.get(key).is_some_and(is_own) {
            return;
        }
        let bytes =
            outcome.as_ref().map_or(usize::MAX, |done| done.memory_size() + size_of::<WorkItem<T>>() + 64);
        if bytes > self.capacity {
            kept.entries.remove(key);
            return;
        }
        kept.entries.insert(key.clone(), WorkEntry::Done { item: flight.clone(), bytes, was_used: false });
        kept.eviction_order.push_back(key.clone());
        kept.bytes += bytes;
        kept.evict(self.capacity);
    }

    /// Forgets everything; who waits for what runs still gets it, who asks from now on begins anew.
    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.eviction_order.clear();
        kept.bytes = 0;
        // Dropped outside the lock, which their end may want.
        let entries = std::mem::take(&mut kept.entries);
        drop(kept);
        drop(entries);
    }

    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Keys in use, running or done.
    pub fn len(&self) -> usize {
        self.lock().entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone + Eq + Hash, T> WorkEntries<K, T> {
    fn find(&mut self, key: &K) -> Option<Arc<WorkItem<T>>> {
        match self.entries.get_mut(key)? {
            WorkEntry::Running(flight) => flight.upgrade(),
            WorkEntry::Done { item: flight, was_used: used, .. } => {
                *used = true;
                Some(flight.clone())
            }
        }
    }

    /// The oldest goes, unless it was asked for since it was last looked at.
    fn evict(&mut self, capacity: usize) {
        while self.bytes > capacity {
            let Some(key) = self.eviction_order.pop_front() else { return };
            match self.entries.get_mut(&key) {
                Some(WorkEntry::Done { was_used: used, .. }) if *used => {
                    *used = false;
                    self.eviction_order.push_back(key);
                }
                Some(WorkEntry::Done { bytes, .. }) => {
                    self.bytes -= *bytes;
                    self.entries.remove(&key);
                }
                Some(WorkEntry::Running(_)) | None => {}
            }
        }
    }
}

impl<T> WorkItem<T> {
    fn lock_waiters(&self) -> MutexGuard<'_, WaiterList> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, outcome: SharedResult<T>) {
        // A flight lands once. Whoever takes a place after this sees the outcome first.
        let _ = self.outcome.set(outcome);
        let wakers = std::mem::take(&mut *self.lock_waiters()).wakers;
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn is_done(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Waits for the end.
    pub fn wait(self: &Arc<Self>) -> WorkFuture<T> {
        WorkFuture { item: self.clone(), slot: None }
    }
}

/// Those who wait for a flight, by their places, which are given again when they are free.
#[derive(Default)]
struct WaiterList {
    wakers: Vec<Waker>,
    free_slots: Vec<usize>,
}

impl WaiterList {
    fn add(&mut self, waker: Waker) -> usize {
        if let Some(place) = self.free_slots.pop() {
            self.wakers[place] = waker;
            return place;
        }
        self.wakers.push(waker);
        self.wakers.len() - 1
    }

    /// All have left when it has landed.
    fn remove(&mut self, place: usize) -> Option<Waker> {
        let waker = self.wakers.get_mut(place)?;
        self.free_slots.push(place);
        Some(std::mem::replace(waker, Waker::noop().clone()))
    }
}

/// One who waits for the end of a flight. It borrows nothing, so that thousands can be kept without a future for each.
pub struct WorkFuture<T> {
    item: Arc<WorkItem<T>>,
    slot: Option<usize>,
}

impl<T> Future for WorkFuture<T> {
    type Output = SharedResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SharedResult<T>> {
        let WorkFuture { item: flight, slot: place } = &mut *self;
        let mut waiters = flight.lock_waiters();
        if let Some(outcome) = flight.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        match *place {
            Some(place) => waiters.wakers[place].clone_from(cx.waker()),
            None => *place = Some(waiters.add(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for WorkFuture<T> {
    fn drop(&mut self) {
        // Its task may go with the waker, so that goes when the lock is free.
        let left = self.slot.and_then(|place| self.item.lock_waiters().remove(place));
        drop(left);
    }
}

impl<T> Drop for WorkItem<T> {
    fn drop(&mut self) {
        if self.outcome.get().is_none() {
            (self.on_abandoned)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    impl MemorySize for usize {
        fn memory_size(&self) -> usize {
            *self
        }
    }

    #[tokio::test]
    async fn work_is_done_once_for_all_who_wait() {
        let (shelf, count) = (SharedWork::<i64, usize>::new(10_000), Arc::new(AtomicUsize::new(0)));
        let flights: Vec<_> = (0..100)
            .map(|_| {
                let count = count.clone();
                shelf.join(7, move || async move {
                    tokio::task::yield_now().await;
                    Ok(Arc::new(count.fetch_add(1, Ordering::SeqCst)))
                })
            })
            .collect();
        for flight in &flights {
            assert_eq!(flight.wait().await.ok().as_deref(), Some(&0));
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends_and_leaves_nothing() {
        let shelf = SharedWork::<i64, usize>::new(10_000);
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let flight = shelf.join(1, || async move {
            let _alive = alive;
            std::future::pending().await
        });
        tokio::task::yield_now().await;
        assert_eq!(shelf.len(), 1);
        drop(flight);
        assert!(ended.await.is_err(), "the work was dropped");
        assert!(shelf.is_empty());
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_a_place_for_the_next() {
        let shelf = SharedWork::<i64, usize>::new(10_000);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let flight = shelf.join(1, || async move {
            let _ = gone.await;
            Ok(Arc::new(1))
        });
        let mut stays = flight.wait();
        assert!((&mut stays).now_or_never().is_none());
        for _ in 0..100 {
            let mut leaves = flight.wait();
            assert!((&mut leaves).now_or_never().is_none() && (&mut leaves).now_or_never().is_none());
        }
        assert_eq!(flight.lock_waiters().wakers.len(), 2);
        go.send(()).expect("it waits");
        assert_eq!(stays.await.ok().as_deref(), Some(&1));
        assert!(flight.lock_waiters().wakers.is_empty());
    }

    #[tokio::test]
    async fn it_never_outgrows_its_bytes_and_failures_are_not_kept() {
        let shelf = SharedWork::<usize, usize>::new(20_000);
        for key in 0..1_000 {
            let flight = shelf.join(key, move || async move { Ok(Arc::new(100 + key % 7)) });
            assert!(flight.wait().await.is_ok());
            let hot = shelf.join(0, || async { Ok(Arc::new(1)) });
            assert!(hot.wait().await.is_ok());
            assert!(shelf.bytes() <= 20_000, "{} bytes", shelf.bytes());
        }
        assert!(shelf.len() > 10 && shelf.bytes() > 10_000);
        let huge = shelf.join(5_000, || async { Ok(Arc::new(1 << 30)) });
        assert!(huge.wait().await.is_ok());
        let failed = shelf.join(5_001, || async { Err(Error::Cancelled) });
        assert!(failed.wait().await.is_err());
        let panics = shelf.join(5_002, || async { panic!("a bug") });
        assert!(panics.wait().await.is_err());
        let before = shelf.len();
        drop((huge, failed, panics));
        assert_eq!(shelf.len(), before, "none of the three was kept");
    }

    #[tokio::test]
    async fn what_was_begun_before_a_clearing_is_not_kept_after_it() {
        let shelf = SharedWork::<i64, usize>::new(10_000);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let old = shelf.join(1, || async move {
            let _ = gone.await;
            Ok(Arc::new(1))
        });
        shelf.clear();
        let new = shelf.join(1, || async { Ok(Arc::new(2)) });
        assert_eq!(new.wait().await.ok().as_deref(), Some(&2));
        go.send(()).expect("it waits");
        assert_eq!(old.wait().await.ok().as_deref(), Some(&1));
        drop(old);
        assert_eq!(shelf.join(1, || async { Ok(Arc::new(3)) }).wait().await.ok().as_deref(), Some(&2));
    }
}
