//! Follows the log of one store for everyone in this process: one look at its end, one reading of each stretch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::changes::{ChangeBatch, ChangeLog, RecordChange, SharedWork};
use crate::schema_gate::SchemaGate;
use crate::store::{LogReadLimits, Store};
use trefoil_model::error::{Error, Result};

/// A stretch ends at a multiple of this, so that those who began at different places meet.
const BATCH_ALIGNMENT: i64 = 64;
const BATCH_LIMITS: LogReadLimits = LogReadLimits { changes: BATCH_ALIGNMENT as usize, bytes: 1 << 20 };

/// Bytes of stretches that are kept when nobody says otherwise.
const DEFAULT_CACHE_BYTES: usize = 8 << 20;

/// How many rounds without a follower the watching lasts: one who delivers is about to ask again.
const MAX_IDLE_ROUNDS: u32 = 3;

/// How long an unreachable store is left alone, from the first failure on.
const RETRY_DELAYS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// A cheap clone of one follower of the log.
#[derive(Clone)]
pub struct ChangeFeed(Arc<FeedInner>);

struct FeedInner {
    store: Arc<dyn Store>,
    batches: Arc<SharedWork<i64, ChangeBatch>>,
    /// The number of the last change that is known of.
    head: watch::Sender<i64>,
    followers: Mutex<FollowerCount>,
    log_reads: LogReads,
    /// Odd while a reload is under way, see [`Feed::hold`].
    reloads: watch::Sender<u64>,
    gate: SchemaGate,
}

#[derive(Default)]
struct FollowerCount {
    count: usize,
    is_watched: bool,
    /// Rounds of the watching since the last one was there.
    idle_rounds: u32,
}

/// Looks at the log, shared by those who ask before one begins.
struct LogReads {
    /// Those under way, by their number; nothing is kept.
    running: Arc<SharedWork<u64, ChangeLog>>,
    /// The number of the last one that has begun.
    last_started: AtomicU64,
    /// One at a time, so that many who ask while one is under way share the next.
    read_lock: tokio::sync::Mutex<()>,
    latest: RwLock<Option<Arc<ChangeLog>>>,
}

impl ChangeFeed {
    pub fn new(store: Arc<dyn Store>) -> ChangeFeed {
        ChangeFeed::with_cache_bytes(store, DEFAULT_CACHE_BYTES)
    }

    /// Keeps so many bytes of what was read for those who come later.
    pub fn with_cache_bytes(store: Arc<dyn Store>, bytes: usize) -> ChangeFeed {
        ChangeFeed(Arc::new(FeedInner {
            store,
            batches: SharedWork::new(bytes),
            head: watch::Sender::new(-1),
            followers: Mutex::default(),
            log_reads: LogReads {
                running: SharedWork::new(0),
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

    /// What requests pass. It is closed before [`Feed::hold`], because requests under way may wait for what that holds.
    pub fn gate(&self) -> &SchemaGate {
        &self.0.gate
    }

    /// The number of the last change committed before this call: where a new subscriber starts.
    pub async fn last_change_number(&self) -> Result<i64> {
        Ok(self.0.read_log().await?.last_number)
    }

    /// The number of the last change that is known of without asking.
    pub fn known_head(&self) -> i64 {
        *self.0.head.borrow()
    }

    /// The opaque name of a place.
    pub async fn event_id(&self, number: i64) -> Result<String> {
        let known = self.0.log_reads.latest.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(log) => log.event_id(number),
            None => self.0.read_log().await?.event_id(number),
        }
    }

    /// The place that an id names, if what comes after it is still kept.
    pub async fn number_of_event(&self, id: &str) -> Result<i64> {
        self.0.read_log().await?.number_of_event(id)
    }

    /// Waits until there are changes after this number and gives some of them, the same ones to everyone who asks
    /// from the same place. While the store is away it waits; what is no longer kept is an error.
    pub async fn changes_after(&self, number: i64) -> Result<Arc<ChangeBatch>> {
        let flight = self.0.batches.join(number, || self.0.clone().read_batch(number));
        flight.wait().await
    }

    /// Bytes of the stretches that are kept.
    pub fn cached_bytes(&self) -> usize {
        self.0.batches.bytes()
    }

    /// Whether the log is being looked at.
    pub fn is_watching(&self) -> bool {
        self.0.lock_followers().is_watched
    }

    /// Says that tables and images are about to change their form. What was read before counts no longer once the
    /// answer is dropped; see [`Feed::settled`].
    pub fn begin_reload(&self) -> ReloadGuard {
        self.0.reloads.send_modify(|reloads| *reloads += 1);
        ReloadGuard(self.clone())
    }

    /// Waits until no reload is under way. What was made of changes since then is right while [`Feed::is_still`].
    pub async fn settled_generation(&self) -> FeedGeneration {
        let mut reloads = self.0.reloads.subscribe();
        // The sender is in `self`, so there is always a next value.
        let settled = reloads.wait_for(|reloads| reloads.is_multiple_of(2)).await;
        FeedGeneration(settled.map_or(0, |reloads| *reloads))
    }

    pub fn is_current(&self, settled: &FeedGeneration) -> bool {
        *self.0.reloads.borrow() == settled.0
    }
}

/// A reload under way; over when dropped.
pub struct ReloadGuard(ChangeFeed);

impl Drop for ReloadGuard {
    fn drop(&mut self) {
        self.0.0.batches.clear();
        self.0.0.reloads.send_modify(|reloads| *reloads += 1);
    }
}

/// A time between two reloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedGeneration(u64);

impl FeedInner {
    fn lock_followers(&self) -> std::sync::MutexGuard<'_, FollowerCount> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log as it stands, looked at after this call began.
    async fn read_log(self: &Arc<Self>) -> Result<Arc<ChangeLog>> {
        let number = self.log_reads.last_started.load(Ordering::SeqCst) + 1;
        let flight = self.log_reads.running.join(number, || self.clone().read_log_now(number));
        flight.wait().await
    }

    async fn read_log_now(self: Arc<Self>, number: u64) -> Result<Arc<ChangeLog>> {
        let _turn = self.log_reads.read_lock.lock().await;
        self.log_reads.last_started.fetch_max(number, Ordering::SeqCst);
        let log = Arc::new(self.store.change_log().await?);
        *self.log_reads.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(log.clone());
        self.head.send_if_modified(|head| {
            let grown = log.last_number > *head;
            *head = log.last_number.max(*head);
            grown
        });
        Ok(log)
    }

    /// One stretch after this number, as soon as there is one.
    async fn read_batch(self: Arc<Self>, number: i64) -> Result<Arc<ChangeBatch>> {
        let head = self.wait_for_head_beyond(number).await;
        let until = head.min((number.div_euclid(BATCH_ALIGNMENT) + 1) * BATCH_ALIGNMENT);
        let mut pauses = RetryBackoff::default();
        loop {
            match self.fetch_batch(number, until).await {
                Ok(stretch) => return Ok(Arc::new(stretch)),
                Err(error @ Error::EventId { .. }) => return Err(error),
                Err(error) => pauses.wait(&error).await,
            }
        }
    }

    async fn fetch_batch(self: &Arc<Self>, number: i64, until: i64) -> Result<ChangeBatch> {
        let changes = self.store.read_changes(number, until, BATCH_LIMITS).await?;
        if has_gap(number, &changes) {
            // Looked at after the reading: what is kept now was kept then.
            let log = self.read_log().await?;
            if number < log.pruned_until {
                return Err(log.expired_error(&log.event_id(number)?));
            }
        }
        // Without the rest of what was asked for, it ends where it does; there may be more.
        let until = changes.last().map_or(until, |last| last.number);
        Ok(ChangeBatch { changes, until })
    }

    /// The end of the log, once it is beyond this number.
    async fn wait_for_head_beyond(self: &Arc<Self>, number: i64) -> i64 {
        let mut head = self.head.subscribe();
        let _following = self.register_follower();
        loop {
            let known = *head.borrow_and_update();
            if known > number {
                return known;
            }
            // The sender is in `self`, so this always waits for a next value.
            let _ = head.changed().await;
        }
    }

    /// Sees to it that somebody watches the end of the log for as long as the answer lives.
    fn register_follower(self: &Arc<Self>) -> FollowerGuard {
        let mut followers = self.lock_followers();
        followers.count += 1;
        followers.idle_rounds = 0;
        if !std::mem::replace(&mut followers.is_watched, true) {
            let watching = WatchGuard { feed: Arc::downgrade(self), is_finished: false };
            tokio::spawn(watch_log(watching, self.store.commits(), self.store.poll_interval()));
        }
        drop(followers);
        FollowerGuard(self.clone())
    }

    /// Whether nobody has followed for a while; then the watching is over.
    fn stop_if_idle(&self) -> bool {
        let mut followers = self.lock_followers();
        followers.idle_rounds = if followers.count == 0 { followers.idle_rounds + 1 } else { 0 };
        if followers.idle_rounds >= MAX_IDLE_ROUNDS {
            followers.is_watched = false;
        }
        !followers.is_watched
    }
}

/// Whether something between this number and the last change is not there. A change that was pruned leaves a hole.
fn has_gap(number: i64, changes: &[RecordChange]) -> bool {
    let numbers = changes.iter().map(|change| change.number);
    changes.is_empty() || numbers.zip(number + 1..).any(|(found, wanted)| found != wanted)
}

/// One who waits for changes.
struct FollowerGuard(Arc<FeedInner>);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        self.0.lock_followers().count -= 1;
    }
}

/// The watching of the log's end. It does not keep the store, and lets another begin when it is cut off.
struct WatchGuard {
    feed: Weak<FeedInner>,
    /// It ended by itself: another may have begun already.
    is_finished: bool,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if let (false, Some(feed)) = (self.is_finished, self.feed.upgrade()) {
            feed.lock_followers().is_watched = false;
        }
    }
}

async fn watch_log(mut watching: WatchGuard, mut stirred: watch::Receiver<()>, every: Duration) {
    let mut pauses = RetryBackoff::default();
    loop {
        let Some(feed) = watching.feed.upgrade() else { return };
        match feed.read_log().await {
            Ok(_) => pauses.recovered(),
            Err(error) => pauses.wait(&error).await,
        }
        let rests = feed.stop_if_idle();
        drop(feed);
        if rests {
            watching.is_finished = true;
            return;
        }
        tokio::select! {
            changed = stirred.changed() => {
                if changed.is_err() {
                    sleep(every).await;
                }
            }
            () = sleep(every) => {}
        }
    }
}

/// Leaves an unreachable store alone for a while, longer each time, and says so once.
#[derive(Default)]
struct RetryBackoff(usize);

impl RetryBackoff {
    async fn wait(&mut self, error: &Error) {
        if self.0 == 0 {
            tracing::warn!(cause = error.full_text(), "the change log cannot be read; trying again");
        }
        let pause = RETRY_DELAYS_MS[self.0.min(RETRY_DELAYS_MS.len() - 1)];
        self.0 += 1;
        sleep(Duration::from_millis(pause)).await;
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.0) > 0 {
            tracing::info!("the change log can be read again");
        }
    }
}
