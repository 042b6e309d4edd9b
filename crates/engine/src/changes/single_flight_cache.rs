//! Computations done once for many waiting tasks, with a cache of results limited in bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use trefoil_model::error::{Error, Result};

/// The result of work that several tasks wait for.
pub type SharedResult<T> = Result<Arc<T>>;

/// The memory that a value takes, in bytes.
pub trait MemorySize {
    fn memory_size(&self) -> usize;
}

/// Work by key, running or done. Running work is cancelled when the last task that waits for it is gone.
pub struct SingleFlightCache<K, T> {
    state: Mutex<ComputationMap<K, T>>,
    capacity: usize,
}

struct ComputationMap<K, T> {
    entries: HashMap<K, ComputationEntry<T>>,
    /// Keys of finished work, in the order in which they are considered for eviction. By age and not by use, as a
    /// general cache would: results are read by all near the end of the log, and then by nobody.
    eviction_order: VecDeque<K>,
    bytes: usize,
}

enum ComputationEntry<T> {
    Running(Weak<ComputationItem<T>>),
    Done {
        item: Arc<ComputationItem<T>>,
        bytes: usize,
        /// Used since it was last considered for eviction.
        was_used: bool,
    },
}

/// One piece of work, which runs in its own task.
pub struct ComputationItem<T> {
    outcome: OnceLock<SharedResult<T>>,
    waiters: Mutex<WaiterList>,
    task: OnceLock<AbortOnDropHandle<()>>,
    /// Removes the entry of abandoned work.
    on_abandoned: Box<dyn Fn() + Send + Sync>,
}

impl<K, T> SingleFlightCache<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: MemorySize + Send + Sync + 'static,
{
    pub fn new(capacity: usize) -> Arc<SingleFlightCache<K, T>> {
        let state = ComputationMap { entries: HashMap::new(), eviction_order: VecDeque::new(), bytes: 0 };
        Arc::new(SingleFlightCache { state: Mutex::new(state), capacity })
    }

    /// The work for this key, started if there is none. It runs in its own task, because the caller may be slow.
    pub fn join<F>(self: &Arc<Self>, key: K, work: impl FnOnce() -> F) -> Arc<ComputationItem<T>>
    where
        F: Future<Output = SharedResult<T>> + Send + 'static,
    {
        let mut state = self.state.lock();
        if let Some(item) = state.find(&key) {
            return item;
        }
        let item = Arc::new(ComputationItem {
            outcome: OnceLock::new(),
            waiters: Mutex::default(),
            task: OnceLock::new(),
            on_abandoned: self.forget_callback(&key),
        });
        state.entries.insert(key.clone(), ComputationEntry::Running(Arc::downgrade(&item)));
        drop(state);
        let (shared, weak, work) = (self.clone(), Arc::downgrade(&item), work());
        let task = tokio::spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("what was waited for panicked")));
            if let Some(item) = weak.upgrade() {
                shared.cache_result(&key, &item, &outcome);
                item.complete(outcome);
            }
        });
        // The task of this item is set only here.
        let _ = item.task.set(AbortOnDropHandle::new(task));
        item
    }

    /// The result for this key, if it is there.
    pub fn find_done(&self, key: &K) -> Option<Arc<T>> {
        let item = self.state.lock().find(key)?;
        item.outcome.get()?.as_ref().ok().cloned()
    }

    fn forget_callback(self: &Arc<Self>, key: &K) -> Box<dyn Fn() + Send + Sync> {
        let (shared, key) = (Arc::downgrade(self), key.clone());
        Box::new(move || {
            let Some(shared) = shared.upgrade() else { return };
            let mut state = shared.state.lock();
            let is_dead = |entry: &ComputationEntry<T>| match entry {
                ComputationEntry::Running(item) => item.strong_count() == 0,
                ComputationEntry::Done { .. } => false,
            };
            if state.entries.get(&key).is_some_and(is_dead) {
                state.entries.remove(&key);
            }
        })
    }

    fn cache_result(&self, key: &K, item: &Arc<ComputationItem<T>>, outcome: &SharedResult<T>) {
        let mut state = self.state.lock();
        let is_own = |entry: &ComputationEntry<T>| match entry {
            ComputationEntry::Running(running) => Weak::ptr_eq(running, &Arc::downgrade(item)),
            ComputationEntry::Done { .. } => false,
        };
        // If the cache was cleared meanwhile, the entry belongs to other work.
        if !state.entries.get(key).is_some_and(is_own) {
            return;
        }
        let bytes = outcome
            .as_ref()
            .map_or(usize::MAX, |done| done.memory_size() + size_of::<ComputationItem<T>>() + 64);
        if bytes > self.capacity {
            state.entries.remove(key);
            return;
        }
        state
            .entries
            .insert(key.clone(), ComputationEntry::Done { item: item.clone(), bytes, was_used: false });
        state.eviction_order.push_back(key.clone());
        state.bytes += bytes;
        state.evict(self.capacity);
    }

    /// Drops all entries. Running work still completes for waiting tasks; later callers start anew.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        state.eviction_order.clear();
        state.bytes = 0;
        // Dropped without the lock, which their `Drop` takes.
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        drop(entries);
    }

    /// Bytes of cached results.
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Keys in use, running or done.
    pub fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Clone + Eq + Hash, T> ComputationMap<K, T> {
    fn find(&mut self, key: &K) -> Option<Arc<ComputationItem<T>>> {
        match self.entries.get_mut(key)? {
            ComputationEntry::Running(item) => item.upgrade(),
            ComputationEntry::Done { item, was_used, .. } => {
                *was_used = true;
                Some(item.clone())
            }
        }
    }

    /// Evicts the oldest results, except those used since they were last considered.
    fn evict(&mut self, capacity: usize) {
        while self.bytes > capacity {
            let Some(key) = self.eviction_order.pop_front() else { return };
            match self.entries.get_mut(&key) {
                Some(ComputationEntry::Done { was_used, .. }) if *was_used => {
                    *was_used = false;
                    self.eviction_order.push_back(key);
                }
                Some(ComputationEntry::Done { bytes, .. }) => {
                    self.bytes -= *bytes;
                    self.entries.remove(&key);
                }
                Some(ComputationEntry::Running(_)) | None => {}
            }
        }
    }
}

impl<T> ComputationItem<T> {
    fn complete(&self, outcome: SharedResult<T>) {
        // Set only once. A task that registers after this sees the outcome first.
        let _ = self.outcome.set(outcome);
        let wakers = std::mem::take(&mut *self.waiters.lock()).wakers;
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn is_done(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// A future for the result.
    pub fn wait(self: &Arc<Self>) -> ComputationFuture<T> {
        ComputationFuture { item: self.clone(), slot: None }
    }
}

/// Wakers of waiting tasks; free slots are reused.
#[derive(Default)]
struct WaiterList {
    wakers: Vec<Waker>,
    free_slots: Vec<usize>,
}

impl WaiterList {
    fn add(&mut self, waker: Waker) -> usize {
        if let Some(slot) = self.free_slots.pop() {
            self.wakers[slot] = waker;
            return slot;
        }
        self.wakers.push(waker);
        self.wakers.len() - 1
    }

    /// The list is empty once the work is done.
    fn remove(&mut self, slot: usize) -> Option<Waker> {
        let waker = self.wakers.get_mut(slot)?;
        self.free_slots.push(slot);
        Some(std::mem::replace(waker, Waker::noop().clone()))
    }
}

/// A task waiting for a result. Borrows nothing, so that thousands can be stored without boxing a future for each.
pub struct ComputationFuture<T> {
    item: Arc<ComputationItem<T>>,
    slot: Option<usize>,
}

impl<T> Future for ComputationFuture<T> {
    type Output = SharedResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<SharedResult<T>> {
        let ComputationFuture { item, slot } = &mut *self;
        let mut waiters = item.waiters.lock();
        if let Some(outcome) = item.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        match *slot {
            Some(slot) => waiters.wakers[slot].clone_from(cx.waker()),
            None => *slot = Some(waiters.add(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for ComputationFuture<T> {
    fn drop(&mut self) {
        // Dropping the waker may drop its task, so it is dropped without the lock.
        let waker = self.slot.and_then(|slot| self.item.waiters.lock().remove(slot));
        drop(waker);
    }
}

impl<T> Drop for ComputationItem<T> {
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
    async fn work_runs_once_for_all_waiters() {
        let (shared, count) = (SingleFlightCache::<i64, usize>::new(10_000), Arc::new(AtomicUsize::new(0)));
        let items: Vec<_> = (0..100)
            .map(|_| {
                let count = count.clone();
                shared.join(7, move || async move {
                    tokio::task::yield_now().await;
                    Ok(Arc::new(count.fetch_add(1, Ordering::SeqCst)))
                })
            })
            .collect();
        for item in &items {
            assert_eq!(item.wait().await.ok().as_deref(), Some(&0));
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn abandoned_work_is_cancelled() {
        let shared = SingleFlightCache::<i64, usize>::new(10_000);
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let item = shared.join(1, || async move {
            let _alive = alive;
            std::future::pending().await
        });
        tokio::task::yield_now().await;
        assert_eq!(shared.len(), 1);
        drop(item);
        assert!(ended.await.is_err(), "the work was dropped");
        assert!(shared.is_empty());
    }

    #[tokio::test]
    async fn waiter_slots_are_reused() {
        let shared = SingleFlightCache::<i64, usize>::new(10_000);
        let (start, started) = tokio::sync::oneshot::channel::<()>();
        let item = shared.join(1, || async move {
            let _ = started.await;
            Ok(Arc::new(1))
        });
        let mut waiting = item.wait();
        assert!((&mut waiting).now_or_never().is_none());
        for _ in 0..100 {
            let mut leaving = item.wait();
            assert!((&mut leaving).now_or_never().is_none() && (&mut leaving).now_or_never().is_none());
        }
        assert_eq!(item.waiters.lock().wakers.len(), 2);
        start.send(()).expect("it waits");
        assert_eq!(waiting.await.ok().as_deref(), Some(&1));
        assert!(item.waiters.lock().wakers.is_empty());
    }

    #[tokio::test]
    async fn cache_is_bounded_and_skips_failures() {
        let shared = SingleFlightCache::<usize, usize>::new(20_000);
        for key in 0..1_000 {
            let item = shared.join(key, move || async move { Ok(Arc::new(100 + key % 7)) });
            assert!(item.wait().await.is_ok());
            let hot = shared.join(0, || async { Ok(Arc::new(1)) });
            assert!(hot.wait().await.is_ok());
            assert!(shared.bytes() <= 20_000, "{} bytes", shared.bytes());
        }
        assert!(shared.len() > 10 && shared.bytes() > 10_000);
        let huge = shared.join(5_000, || async { Ok(Arc::new(1 << 30)) });
        assert!(huge.wait().await.is_ok());
        let failed = shared.join(5_001, || async { Err(Error::Cancelled) });
        assert!(failed.wait().await.is_err());
        let panics = shared.join(5_002, || async { panic!("a bug") });
        assert!(panics.wait().await.is_err());
        let before = shared.len();
        drop((huge, failed, panics));
        assert_eq!(shared.len(), before, "none of the three was kept");
    }

    #[tokio::test]
    async fn work_started_before_clear_is_not_cached() {
        let shared = SingleFlightCache::<i64, usize>::new(10_000);
        let (start, started) = tokio::sync::oneshot::channel::<()>();
        let old = shared.join(1, || async move {
            let _ = started.await;
            Ok(Arc::new(1))
        });
        shared.clear();
        let new = shared.join(1, || async { Ok(Arc::new(2)) });
        assert_eq!(new.wait().await.ok().as_deref(), Some(&2));
        start.send(()).expect("it waits");
        assert_eq!(old.wait().await.ok().as_deref(), Some(&1));
        drop(old);
        assert_eq!(shared.join(1, || async { Ok(Arc::new(3)) }).wait().await.ok().as_deref(), Some(&2));
    }
}
