//! Work that many may wait for at once: done one time, shared by all of them, and kept within a number of bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use tokio_util::task::AbortOnDropHandle;

use crate::changes::Shared;
use trefoil_model::error::Error;

/// What a thing costs to keep, in bytes.
pub trait Weigh {
    fn weight(&self) -> usize;
}

/// Work by key, running or done. What runs belongs to those who wait for it: when the last of them goes, it ends.
pub struct Shelf<K, T> {
    kept: Mutex<Kept<K, T>>,
    capacity: usize,
}

struct Kept<K, T> {
    entries: HashMap<K, Entry<T>>,
    /// The keys of what is done, in the order in which they are looked at when room is needed.
    order: VecDeque<K>,
    bytes: usize,
}

enum Entry<T> {
    Running(Weak<Flight<T>>),
    Done {
        flight: Arc<Flight<T>>,
        bytes: usize,
        /// Asked for since the last time that room was needed.
        used: bool,
    },
}

/// One piece of work, which goes on whether or not anybody looks at it.
pub struct Flight<T> {
    outcome: OnceLock<Shared<T>>,
    waiting: Mutex<Waiters>,
    task: OnceLock<AbortOnDropHandle<()>>,
    /// Takes it off the shelf.
    forget: Box<dyn Fn() + Send + Sync>,
}

impl<K, T> Shelf<K, T>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    T: Weigh + Send + Sync + 'static,
{
    pub fn new(capacity: usize) -> Arc<Shelf<K, T>> {
        let kept = Kept { entries: HashMap::new(), order: VecDeque::new(), bytes: 0 };
        Arc::new(Shelf { kept: Mutex::new(kept), capacity })
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work for this key, begun now when there is none. It runs in a task of its own: whoever asked may be slow.
    pub fn join<F>(self: &Arc<Self>, key: K, work: impl FnOnce() -> F) -> Arc<Flight<T>>
    where
        F: Future<Output = Shared<T>> + Send + 'static,
    {
        let mut kept = self.lock();
        if let Some(flight) = kept.find(&key) {
            return flight;
        }
        let flight = Arc::new(Flight {
            outcome: OnceLock::new(),
            waiting: Mutex::default(),
            task: OnceLock::new(),
            forget: self.forgetting(&key),
        });
        kept.entries.insert(key.clone(), Entry::Running(Arc::downgrade(&flight)));
        drop(kept);
        let (shelf, weak, work) = (self.clone(), Arc::downgrade(&flight), work());
        let task = tokio::spawn(async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("what was waited for panicked")));
            if let Some(flight) = weak.upgrade() {
                shelf.keep(&key, &flight, &outcome);
                flight.land(outcome);
            }
        });
        // Nobody else has this flight's task to set.
        let _ = flight.task.set(AbortOnDropHandle::new(task));
        flight
    }

    fn forgetting(self: &Arc<Self>, key: &K) -> Box<dyn Fn() + Send + Sync> {
        let (shelf, key) = (Arc::downgrade(self), key.clone());
        Box::new(move || {
            let Some(shelf) = shelf.upgrade() else { return };
            let mut kept = shelf.lock();
            let is_dead = |entry: &Entry<T>| match entry {
                Entry::Running(flight) => flight.strong_count() == 0,
                Entry::Done { .. } => false,
            };
            if kept.entries.get(&key).is_some_and(is_dead) {
                kept.entries.remove(&key);
            }
        })
    }

    fn keep(&self, key: &K, flight: &Arc<Flight<T>>, outcome: &Shared<T>) {
        let mut kept = self.lock();
        let is_own = |entry: &Entry<T>| match entry {
            Entry::Running(running) => Weak::ptr_eq(running, &Arc::downgrade(flight)),
            Entry::Done { .. } => false,
        };
        // It is somebody else's place when the shelf was cleared meanwhile.
        if !kept.entries.get(key).is_some_and(is_own) {
            return;
        }
        let bytes = outcome.as_ref().map_or(usize::MAX, |done| done.weight() + size_of::<Flight<T>>() + 64);
        if bytes > self.capacity {
            kept.entries.remove(key);
            return;
        }
        kept.entries.insert(key.clone(), Entry::Done { flight: flight.clone(), bytes, used: false });
        kept.order.push_back(key.clone());
        kept.bytes += bytes;
        kept.make_room(self.capacity);
    }

    /// Forgets everything; who waits for what runs still gets it, who asks from now on begins anew.
    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.order.clear();
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

impl<K: Clone + Eq + Hash, T> Kept<K, T> {
    fn find(&mut self, key: &K) -> Option<Arc<Flight<T>>> {
        match self.entries.get_mut(key)? {
            Entry::Running(flight) => flight.upgrade(),
            Entry::Done { flight, used, .. } => {
                *used = true;
                Some(flight.clone())
            }
        }
    }

    /// The oldest goes, unless it was asked for since it was last looked at.
    fn make_room(&mut self, capacity: usize) {
        while self.bytes > capacity {
            let Some(key) = self.order.pop_front() else { return };
            match self.entries.get_mut(&key) {
                Some(Entry::Done { used, .. }) if *used => {
                    *used = false;
                    self.order.push_back(key);
                }
                Some(Entry::Done { bytes, .. }) => {
                    self.bytes -= *bytes;
                    self.entries.remove(&key);
                }
                Some(Entry::Running(_)) | None => {}
            }
        }
    }
}

impl<T> Flight<T> {
    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn land(&self, outcome: Shared<T>) {
        // A flight lands once. Whoever takes a place after this sees the outcome first.
        let _ = self.outcome.set(outcome);
        let wakers = std::mem::take(&mut *self.waiters()).wakers;
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn is_done(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Waits for the end.
    pub fn done(self: &Arc<Self>) -> Waiting<T> {
        Waiting { flight: self.clone(), place: None }
    }
}

/// Those who wait for a flight, by their places, which are given again when they are free.
#[derive(Default)]
struct Waiters {
    wakers: Vec<Waker>,
    free: Vec<usize>,
}

impl Waiters {
    fn enter(&mut self, waker: Waker) -> usize {
        if let Some(place) = self.free.pop() {
            self.wakers[place] = waker;
            return place;
        }
        self.wakers.push(waker);
        self.wakers.len() - 1
    }

    /// All have left when it has landed.
    fn leave(&mut self, place: usize) -> Option<Waker> {
        let waker = self.wakers.get_mut(place)?;
        self.free.push(place);
        Some(std::mem::replace(waker, Waker::noop().clone()))
    }
}

/// One who waits for the end of a flight. It borrows nothing, so that thousands can be kept without a future for each.
pub struct Waiting<T> {
    flight: Arc<Flight<T>>,
    place: Option<usize>,
}

impl<T> Future for Waiting<T> {
    type Output = Shared<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Shared<T>> {
        let Waiting { flight, place } = &mut *self;
        let mut waiters = flight.waiters();
        if let Some(outcome) = flight.outcome.get() {
            return Poll::Ready(outcome.clone());
        }
        match *place {
            Some(place) => waiters.wakers[place].clone_from(cx.waker()),
            None => *place = Some(waiters.enter(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        // Its task may go with the waker, so that goes when the lock is free.
        let left = self.place.and_then(|place| self.flight.waiters().leave(place));
        drop(left);
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        if self.outcome.get().is_none() {
            (self.forget)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    impl Weigh for usize {
        fn weight(&self) -> usize {
            *self
        }
    }

    #[tokio::test]
    async fn work_is_done_once_for_all_who_wait() {
        let (shelf, count) = (Shelf::<i64, usize>::new(10_000), Arc::new(AtomicUsize::new(0)));
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
            assert_eq!(flight.done().await.ok().as_deref(), Some(&0));
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends_and_leaves_nothing() {
        let shelf = Shelf::<i64, usize>::new(10_000);
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
        let shelf = Shelf::<i64, usize>::new(10_000);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let flight = shelf.join(1, || async move {
            let _ = gone.await;
            Ok(Arc::new(1))
        });
        let mut stays = flight.done();
        assert!((&mut stays).now_or_never().is_none());
        for _ in 0..100 {
            let mut leaves = flight.done();
            assert!((&mut leaves).now_or_never().is_none() && (&mut leaves).now_or_never().is_none());
        }
        assert_eq!(flight.waiters().wakers.len(), 2);
        go.send(()).expect("it waits");
        assert_eq!(stays.await.ok().as_deref(), Some(&1));
        assert!(flight.waiters().wakers.is_empty());
    }

    #[tokio::test]
    async fn it_never_outgrows_its_bytes_and_failures_are_not_kept() {
        let shelf = Shelf::<usize, usize>::new(20_000);
        for key in 0..1_000 {
            let flight = shelf.join(key, move || async move { Ok(Arc::new(100 + key % 7)) });
            assert!(flight.done().await.is_ok());
            let hot = shelf.join(0, || async { Ok(Arc::new(1)) });
            assert!(hot.done().await.is_ok());
            assert!(shelf.bytes() <= 20_000, "{} bytes", shelf.bytes());
        }
        assert!(shelf.len() > 10 && shelf.bytes() > 10_000);
        let huge = shelf.join(5_000, || async { Ok(Arc::new(1 << 30)) });
        assert!(huge.done().await.is_ok());
        let failed = shelf.join(5_001, || async { Err(Error::Cancelled) });
        assert!(failed.done().await.is_err());
        let panics = shelf.join(5_002, || async { panic!("a bug") });
        assert!(panics.done().await.is_err());
        let before = shelf.len();
        drop((huge, failed, panics));
        assert_eq!(shelf.len(), before, "none of the three was kept");
    }

    #[tokio::test]
    async fn what_was_begun_before_a_clearing_is_not_kept_after_it() {
        let shelf = Shelf::<i64, usize>::new(10_000);
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let old = shelf.join(1, || async move {
            let _ = gone.await;
            Ok(Arc::new(1))
        });
        shelf.clear();
        let new = shelf.join(1, || async { Ok(Arc::new(2)) });
        assert_eq!(new.done().await.ok().as_deref(), Some(&2));
        go.send(()).expect("it waits");
        assert_eq!(old.done().await.ok().as_deref(), Some(&1));
        drop(old);
        assert_eq!(shelf.join(1, || async { Ok(Arc::new(3)) }).done().await.ok().as_deref(), Some(&2));
    }
}
