//! Follows the log of one store for everyone in this process: one look at its end, one reading of each stretch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::changes::{Change, Log, Shelf, Stretch};
use crate::schema_gate::SchemaGate;
use crate::store::{ReadLimits, Store};
use trefoil_model::error::{Error, Result};

/// A stretch ends at a multiple of this, so that those who began at different places meet.
const STRIDE: i64 = 64;
const LIMITS: ReadLimits = ReadLimits { changes: STRIDE as usize, bytes: 1 << 20 };

/// Bytes of stretches that are kept when nobody says otherwise.
const KEPT: usize = 8 << 20;

/// How many rounds without a follower the watching lasts: one who delivers is about to ask again.
const LINGER: u32 = 3;

/// How long an unreachable store is left alone, from the first failure on.
const PAUSES: [u64; 5] = [50, 100, 200, 400, 800];

/// A cheap clone of one follower of the log.
#[derive(Clone)]
pub struct Feed(Arc<Following>);

struct Following {
    store: Arc<dyn Store>,
    shelf: Arc<Shelf<i64, Stretch>>,
    /// The number of the last change that is known of.
    head: watch::Sender<i64>,
    followers: Mutex<Followers>,
    looks: Looks,
    /// Odd while a reload is under way, see [`Feed::hold`].
    reloads: watch::Sender<u64>,
    gate: SchemaGate,
}

#[derive(Default)]
struct Followers {
    count: usize,
    is_watched: bool,
    /// Rounds of the watching since the last one was there.
    idle: u32,
}

/// Looks at the log, shared by those who ask before one begins.
struct Looks {
    /// Those under way, by their number; nothing is kept.
    shelf: Arc<Shelf<u64, Log>>,
    /// The number of the last one that has begun.
    begun: AtomicU64,
    /// One at a time, so that many who ask while one is under way share the next.
    turn: tokio::sync::Mutex<()>,
    known: RwLock<Option<Arc<Log>>>,
}

impl Feed {
    pub fn new(store: Arc<dyn Store>) -> Feed {
        Feed::keeping(store, KEPT)
    }

    /// Keeps so many bytes of what was read for those who come later.
    pub fn keeping(store: Arc<dyn Store>, bytes: usize) -> Feed {
        Feed(Arc::new(Following {
            store,
            shelf: Shelf::new(bytes),
            head: watch::Sender::new(-1),
            followers: Mutex::default(),
            looks: Looks {
                shelf: Shelf::new(0),
                begun: AtomicU64::new(0),
                turn: tokio::sync::Mutex::default(),
                known: RwLock::default(),
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
    pub async fn now(&self) -> Result<i64> {
        Ok(self.0.look().await?.last)
    }

    /// The number of the last change that is known of without asking.
    pub fn head(&self) -> i64 {
        *self.0.head.borrow()
    }

    /// The opaque name of a place.
    pub async fn id(&self, number: i64) -> Result<String> {
        let known = self.0.looks.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(log) => log.name(number),
            None => self.0.look().await?.name(number),
        }
    }

    /// The place that an id names, if what comes after it is still kept.
    pub async fn place(&self, id: &str) -> Result<i64> {
        self.0.look().await?.place(id)
    }

    /// Waits until there are changes after this number and gives some of them, the same ones to everyone who asks
    /// from the same place. While the store is away it waits; what is no longer kept is an error.
    pub async fn after(&self, number: i64) -> Result<Arc<Stretch>> {
        let flight = self.0.shelf.join(number, || self.0.clone().read(number));
        flight.done().await
    }

    /// Bytes of the stretches that are kept.
    pub fn bytes(&self) -> usize {
        self.0.shelf.bytes()
    }

    /// Whether the log is being looked at.
    pub fn is_watching(&self) -> bool {
        self.0.followers().is_watched
    }

    /// Says that tables and images are about to change their form. What was read before counts no longer once the
    /// answer is dropped; see [`Feed::settled`].
    pub fn hold(&self) -> Held {
        self.0.reloads.send_modify(|reloads| *reloads += 1);
        Held(self.clone())
    }

    /// Waits until no reload is under way. What was made of changes since then is right while [`Feed::is_still`].
    pub async fn settled(&self) -> Settled {
        let mut reloads = self.0.reloads.subscribe();
        // The sender is in `self`, so there is always a next value.
        let settled = reloads.wait_for(|reloads| reloads.is_multiple_of(2)).await;
        Settled(settled.map_or(0, |reloads| *reloads))
    }

    pub fn is_still(&self, settled: &Settled) -> bool {
        *self.0.reloads.borrow() == settled.0
    }
}

/// A reload under way; over when dropped.
pub struct Held(Feed);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.shelf.clear();
        self.0.0.reloads.send_modify(|reloads| *reloads += 1);
    }
}

/// A time between two reloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled(u64);

impl Following {
    fn followers(&self) -> std::sync::MutexGuard<'_, Followers> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log as it stands, looked at after this call began.
    async fn look(self: &Arc<Self>) -> Result<Arc<Log>> {
        let number = self.looks.begun.load(Ordering::SeqCst) + 1;
        let flight = self.looks.shelf.join(number, || self.clone().look_now(number));
        flight.done().await
    }

    async fn look_now(self: Arc<Self>, number: u64) -> Result<Arc<Log>> {
        let _turn = self.looks.turn.lock().await;
        self.looks.begun.fetch_max(number, Ordering::SeqCst);
        let log = Arc::new(self.store.log().await?);
        *self.looks.known.write().unwrap_or_else(PoisonError::into_inner) = Some(log.clone());
        self.head.send_if_modified(|head| {
            let grown = log.last > *head;
            *head = log.last.max(*head);
            grown
        });
        Ok(log)
    }

    /// One stretch after this number, as soon as there is one.
    async fn read(self: Arc<Self>, number: i64) -> Result<Arc<Stretch>> {
        let head = self.beyond(number).await;
        let until = head.min((number.div_euclid(STRIDE) + 1) * STRIDE);
        let mut pauses = Pauses::default();
        loop {
            match self.fetch(number, until).await {
                Ok(stretch) => return Ok(Arc::new(stretch)),
                Err(error @ Error::EventId { .. }) => return Err(error),
                Err(error) => pauses.wait(&error).await,
            }
        }
    }

    async fn fetch(self: &Arc<Self>, number: i64, until: i64) -> Result<Stretch> {
        let changes = self.store.changes(number, until, LIMITS).await?;
        if has_hole(number, &changes) {
            // Looked at after the reading: what is kept now was kept then.
            let log = self.look().await?;
            if number < log.forgotten {
                return Err(log.expired(&log.name(number)?));
            }
        }
        // Without the rest of what was asked for, it ends where it does; there may be more.
        let until = changes.last().map_or(until, |last| last.number);
        Ok(Stretch { changes, until })
    }

    /// The end of the log, once it is beyond this number.
    async fn beyond(self: &Arc<Self>, number: i64) -> i64 {
        let mut head = self.head.subscribe();
        let _following = self.follow();
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
    fn follow(self: &Arc<Self>) -> Follower {
        let mut followers = self.followers();
        followers.count += 1;
        followers.idle = 0;
        if !std::mem::replace(&mut followers.is_watched, true) {
            let watching = Watching { feed: Arc::downgrade(self), is_over: false };
            tokio::spawn(watch(watching, self.store.stirred(), self.store.look_every()));
        }
        drop(followers);
        Follower(self.clone())
    }

    /// Whether nobody has followed for a while; then the watching is over.
    fn rest(&self) -> bool {
        let mut followers = self.followers();
        followers.idle = if followers.count == 0 { followers.idle + 1 } else { 0 };
        if followers.idle >= LINGER {
            followers.is_watched = false;
        }
        !followers.is_watched
    }
}

/// Whether something between this number and the last change is not there. A change that was pruned leaves a hole.
fn has_hole(number: i64, changes: &[Change]) -> bool {
    let numbers = changes.iter().map(|change| change.number);
    changes.is_empty() || numbers.zip(number + 1..).any(|(found, wanted)| found != wanted)
}

/// One who waits for changes.
struct Follower(Arc<Following>);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.followers().count -= 1;
    }
}

/// The watching of the log's end. It does not keep the store, and lets another begin when it is cut off.
struct Watching {
    feed: Weak<Following>,
    /// It ended by itself: another may have begun already.
    is_over: bool,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let (false, Some(feed)) = (self.is_over, self.feed.upgrade()) {
            feed.followers().is_watched = false;
        }
    }
}

async fn watch(mut watching: Watching, mut stirred: watch::Receiver<()>, every: Duration) {
    let mut pauses = Pauses::default();
    loop {
        let Some(feed) = watching.feed.upgrade() else { return };
        match feed.look().await {
            Ok(_) => pauses.over(),
            Err(error) => pauses.wait(&error).await,
        }
        let rests = feed.rest();
        drop(feed);
        if rests {
            watching.is_over = true;
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
struct Pauses(usize);

impl Pauses {
    async fn wait(&mut self, error: &Error) {
        if self.0 == 0 {
            tracing::warn!(cause = error.full_text(), "the change log cannot be read; trying again");
        }
        let pause = PAUSES[self.0.min(PAUSES.len() - 1)];
        self.0 += 1;
        sleep(Duration::from_millis(pause)).await;
    }

    fn over(&mut self) {
        if std::mem::take(&mut self.0) > 0 {
            tracing::info!("the change log can be read again");
        }
    }
}
