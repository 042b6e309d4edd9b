//! Follows the log of a store for the whole process: each part is read once for all subscribers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::sleep;

use trefoil_model::error::{Error, Result};

use crate::changes::retry_backoff::RetryBackoff;
use crate::changes::{ChangeBatch, ChangeLog, RecordChange, SingleFlightCache};
use crate::schema_swap_gate::SchemaGate;
use crate::store::{LogReadLimits, Store};

/// A batch ends at a multiple of this, so that followers that began at different numbers share later batches.
const BATCH_ALIGNMENT: i64 = 64;
const BATCH_LIMITS: LogReadLimits = LogReadLimits { changes: BATCH_ALIGNMENT as usize, bytes: 1 << 20 };

/// Default size of the batch cache.
const DEFAULT_CACHE_BYTES: usize = 8 << 20;

/// Rounds without a follower after which watching stops: a follower that is delivering asks again soon.
const MAX_IDLE_ROUNDS: u32 = 3;

/// The change feed of a store; cheap to clone.
#[derive(Clone)]
pub struct ChangeFeed(Arc<FeedInner>);

struct FeedInner {
    store: Arc<dyn Store>,
    batches: Arc<SingleFlightCache<i64, ChangeBatch>>,
    /// The last known change number.
    head: watch::Sender<i64>,
    followers: Mutex<FollowerCount>,
    log_reads: LogReads,
    /// Odd while a reload is in progress, see [`ChangeFeed::begin_reload`].
    reloads: watch::Sender<u64>,
    gate: SchemaGate,
}

#[derive(Default)]
struct FollowerCount {
    count: usize,
    is_watched: bool,
    /// Rounds of watching since the last follower.
    idle_rounds: u32,
}

/// Reads of the log's state. Callers that ask before a read begins share it.
struct LogReads {
    /// Running reads by number; results are not cached.
    running: Arc<SingleFlightCache<u64, ChangeLog>>,
    /// The number of the last read that has begun.
    last_started: AtomicU64,
    /// Allows one read at a time, so that all who ask during a read share the next one.
    read_lock: tokio::sync::Mutex<()>,
    latest: RwLock<Option<Arc<ChangeLog>>>,
}

impl ChangeFeed {
    pub fn new(store: Arc<dyn Store>) -> ChangeFeed {
        ChangeFeed::with_cache_bytes(store, DEFAULT_CACHE_BYTES)
    }

    /// A feed that caches up to `bytes` of batches for later followers.
    pub fn with_cache_bytes(store: Arc<dyn Store>, bytes: usize) -> ChangeFeed {
        ChangeFeed(Arc::new(FeedInner {
            store,
            batches: SingleFlightCache::new(bytes),
            head: watch::Sender::new(-1),
            followers: Mutex::default(),
            log_reads: LogReads {
                running: SingleFlightCache::new(0),
                last_started: AtomicU64::new(0),
                read_lock: tokio::sync::Mutex::default(),
                latest: RwLock::default(),
            },
            reloads: watch::Sender::new(0),
            gate: SchemaGate::default(),
        }))
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// The gate that requests pass. A reload closes it before [`ChangeFeed::begin_reload`], because running
    /// requests may wait for the feed.
    pub fn gate(&self) -> &SchemaGate {
        &self.0.gate
    }

    /// The number of the last change committed before this call, where a new subscriber starts.
    pub async fn last_change_number(&self) -> Result<i64> {
        Ok(self.0.read_log().await?.last_number)
    }

    /// The last known change number, without asking the store.
    pub fn known_head(&self) -> i64 {
        *self.0.head.borrow()
    }

    /// The opaque event id of a change number.
    pub async fn event_id(&self, number: i64) -> Result<String> {
        let latest = self.0.log_reads.latest.read().clone();
        match latest {
            Some(log) => log.event_id(number),
            None => self.0.read_log().await?.event_id(number),
        }
    }

    /// The change number of an event id, if the changes after it are still kept.
    pub async fn number_of_event(&self, id: &str) -> Result<i64> {
        self.0.read_log().await?.number_of_event(id)
    }

    /// Waits for changes after this number and returns some of them, the same batch to all callers with that
    /// number. Waits while the store is unreachable; fails if the changes are no longer kept.
    pub async fn changes_after(&self, number: i64) -> Result<Arc<ChangeBatch>> {
        self.0.batches.join(number, || self.0.clone().read_batch(number)).wait().await
    }

    /// The same batch, if it has been read and is still cached.
    pub(crate) fn known_batch(&self, number: i64) -> Option<Arc<ChangeBatch>> {
        self.0.batches.find_done(&number)
    }

    /// Bytes of cached batches.
    pub fn cached_bytes(&self) -> usize {
        self.0.batches.bytes()
    }

    /// True while a task watches the log.
    pub fn is_watching(&self) -> bool {
        self.0.followers.lock().is_watched
    }

    /// Announces that tables and images are about to change. Batches read before are dropped with the guard; see
    /// [`ChangeFeed::settled_generation`].
    pub fn begin_reload(&self) -> ReloadGuard {
        self.0.reloads.send_modify(|reloads| *reloads += 1);
        ReloadGuard(self.clone())
    }

    /// Waits until no reload is in progress. Events made in this generation are valid while
    /// [`ChangeFeed::is_current`].
    pub async fn settled_generation(&self) -> FeedGeneration {
        let mut reloads = self.0.reloads.subscribe();
        // The sender is in `self`, so there is always a next value.
        let generation = reloads.wait_for(|reloads| reloads.is_multiple_of(2)).await;
        FeedGeneration(generation.map_or(0, |reloads| *reloads))
    }

    pub fn is_current(&self, generation: &FeedGeneration) -> bool {
        *self.0.reloads.borrow() == generation.0
    }
}

/// A reload in progress, until dropped.
pub struct ReloadGuard(ChangeFeed);

impl Drop for ReloadGuard {
    fn drop(&mut self) {
        self.0.0.batches.clear();
        self.0.0.reloads.send_modify(|reloads| *reloads += 1);
    }
}

/// The time between two reloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedGeneration(u64);

impl FeedInner {
    /// The state of the log, read after this call began.
    async fn read_log(self: &Arc<Self>) -> Result<Arc<ChangeLog>> {
        let number = self.log_reads.last_started.load(Ordering::SeqCst) + 1;
        self.log_reads.running.join(number, || self.clone().read_log_now(number)).wait().await
    }

    async fn read_log_now(self: Arc<Self>, number: u64) -> Result<Arc<ChangeLog>> {
        let _guard = self.log_reads.read_lock.lock().await;
        self.log_reads.last_started.fetch_max(number, Ordering::SeqCst);
        let log = Arc::new(self.store.change_log().await?);
        *self.log_reads.latest.write() = Some(log.clone());
        self.head.send_if_modified(|head| {
            let has_grown = log.last_number > *head;
            *head = log.last_number.max(*head);
            has_grown
        });
        Ok(log)
    }

    /// One batch after this number, as soon as there is one.
    async fn read_batch(self: Arc<Self>, number: i64) -> Result<Arc<ChangeBatch>> {
        let head = self.wait_for_head_beyond(number).await;
        let until = head.min((number.div_euclid(BATCH_ALIGNMENT) + 1) * BATCH_ALIGNMENT);
        let mut backoff = RetryBackoff::new("the change log");
        loop {
            match self.fetch_batch(number, until).await {
                Ok(batch) => return Ok(Arc::new(batch)),
                Err(error @ Error::EventId { .. }) => return Err(error),
                Err(error) => backoff.wait(&error).await,
            }
        }
    }

    async fn fetch_batch(self: &Arc<Self>, number: i64, until: i64) -> Result<ChangeBatch> {
        let changes = self.store.read_changes(number, until, BATCH_LIMITS).await?;
        if has_gap(number, &changes) {
            // Checked after reading: what is kept now was kept during the read.
            let log = self.read_log().await?;
            if number < log.pruned_until {
                return Err(log.expired_error(&log.event_id(number)?));
            }
        }
        // A read cut by its limits ends at its last change; there may be more.
        let until = changes.last().map_or(until, |last| last.number);
        Ok(ChangeBatch { changes, until })
    }

    /// Waits until the log has grown beyond this number and returns its end.
    async fn wait_for_head_beyond(self: &Arc<Self>, number: i64) -> i64 {
        let mut head = self.head.subscribe();
        let _follower = self.register_follower();
        loop {
            let known = *head.borrow_and_update();
            if known > number {
                return known;
            }
            // The sender is in `self`, so this always waits for a next value.
            let _ = head.changed().await;
        }
    }

    /// Makes sure that a task watches the log while the guard lives.
    fn register_follower(self: &Arc<Self>) -> FollowerGuard {
        let mut followers = self.followers.lock();
        followers.count += 1;
        followers.idle_rounds = 0;
        if !std::mem::replace(&mut followers.is_watched, true) {
            let guard = WatchGuard { feed: Arc::downgrade(self), is_finished: false };
            tokio::spawn(watch_log(guard, self.store.commits(), self.store.poll_interval()));
        }
        drop(followers);
        FollowerGuard(self.clone())
    }

    /// Stops watching if there has been no follower for a while; true if it stopped.
    fn stop_if_idle(&self) -> bool {
        let mut followers = self.followers.lock();
        followers.idle_rounds = if followers.count == 0 { followers.idle_rounds + 1 } else { 0 };
        if followers.idle_rounds >= MAX_IDLE_ROUNDS {
            followers.is_watched = false;
        }
        !followers.is_watched
    }
}

/// True if a number between this one and the last change is missing, because it was pruned.
fn has_gap(number: i64, changes: &[RecordChange]) -> bool {
    let numbers = changes.iter().map(|change| change.number);
    changes.is_empty() || numbers.zip(number + 1..).any(|(found, expected)| found != expected)
}

/// Counts a task that waits for changes.
struct FollowerGuard(Arc<FeedInner>);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        self.0.followers.lock().count -= 1;
    }
}

/// State of the watching task. Holds the store weakly, and lets another task start if this one is cancelled.
struct WatchGuard {
    feed: Weak<FeedInner>,
    /// It ended normally; another task may have started already.
    is_finished: bool,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if let (false, Some(feed)) = (self.is_finished, self.feed.upgrade()) {
            feed.followers.lock().is_watched = false;
        }
    }
}

async fn watch_log(mut guard: WatchGuard, mut commits: watch::Receiver<()>, interval: Duration) {
    let mut backoff = RetryBackoff::new("the change log");
    loop {
        let Some(feed) = guard.feed.upgrade() else { return };
        match feed.read_log().await {
            Ok(_) => backoff.recovered(),
            Err(error) => backoff.wait(&error).await,
        }
        let is_idle = feed.stop_if_idle();
        drop(feed);
        if is_idle {
            guard.is_finished = true;
            return;
        }
        tokio::select! {
            changed = commits.changed() => {
                if changed.is_err() {
                    sleep(interval).await;
                }
            }
            () = sleep(interval) => {}
        }
    }
}
