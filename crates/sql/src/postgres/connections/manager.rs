//! All connections of this process to one PostgreSQL database: a few that everyone shares, one for the change log, and
//! a pool of own ones. Each that is lost is made again by a task of its own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::watch as news;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::postgres::connections::availability::Presence;
use crate::postgres::connections::connect::{Purpose, Session, Target};
use crate::postgres::connections::connect_error::{Trouble, away};
use crate::postgres::connections::connection::Link;
use crate::postgres::connections::liveness;
use crate::postgres::connections::liveness::Inquiries;
use crate::postgres::connections::pool::{Own, Pool};
use crate::postgres::{CHANNEL, Options, SERVING};
use trefoil_model::error::Result;

/// Enough to keep a server's cores busy: each carries many statements at once.
const SHARED: usize = 4;
/// How long the first start waits for a database that is not there yet.
const STARTING: Duration = Duration::from_secs(10);
/// The longest pause between two tries; the first try comes without one.
const PAUSE: Duration = Duration::from_secs(1);
/// A connection that did not last so long does not count as a success.
const LASTING: Duration = Duration::from_secs(2);
const TIDY: Duration = Duration::from_secs(15);

/// All connections to one database. Dropping it closes them.
pub struct Links {
    inner: Arc<Inner>,
    pool: Arc<Pool>,
    _tasks: JoinSet<()>,
}

struct Inner {
    target: Arc<Target>,
    shared: [Slot; SHARED],
    log: Slot,
    presence: Presence,
    inquiries: Inquiries,
    /// Woken when something may have been logged.
    news: news::Sender<()>,
}

type Slot = ArcSwapOption<Link>;

impl Links {
    /// Connects, and waits a while for a database that is only starting. `news` is woken by other nodes.
    pub async fn open(options: &Options, news: news::Sender<()>) -> Result<Links, String> {
        let target = Arc::new(Target::new(&options.url)?);
        let first = first(&target).await?;
        let inquiries = if options.notify { Inquiries::Answered } else { Inquiries::Hidden };
        let pool = Pool::new(target.clone(), inquiries, options.connections.max(1), options.patience);
        let (shared, log, presence) = (Default::default(), Slot::empty(), Presence::default());
        let inner = Arc::new(Inner { target, shared, log, presence, inquiries, news });
        let pool = Arc::new(pool);
        let mut tasks = JoinSet::new();
        // Whoever has opened can use it: the first connection stands before this returns.
        let (link, driver) = Link::of(first);
        inner.shared[0].store(Some(link.clone()));
        let mut first = Some((link, driver));
        for number in 0..SHARED {
            tasks.spawn(keep(inner.clone(), Which::Shared(number), first.take()));
        }
        tasks.spawn(keep(inner.clone(), Which::Log, None));
        tasks.spawn(tidy(pool.clone()));
        Ok(Links { inner, pool, _tasks: tasks })
    }

    /// A connection that others use as well, for single statements; never for BEGIN. While the database is away, an
    /// error at once.
    pub fn shared(&self) -> Result<Arc<Link>> {
        let standing = self.inner.shared.iter().filter_map(Slot::load_full);
        let usable = standing.filter(|link| !link.client().is_closed());
        // Whoever has something in flight holds the connection.
        usable.min_by_key(|link| (link.is_late(), Arc::strong_count(link))).ok_or_else(away)
    }

    /// A connection of one's own, for transactions and long streams; waited for only so long.
    pub async fn own(&self) -> Result<Own> {
        self.shared()?;
        self.pool.take().await
    }

    /// The connection that numbers, reads and announces changes, so that no one else waits behind them.
    pub(crate) fn log(&self) -> Result<Arc<Link>> {
        let link = self.inner.log.load_full().filter(|link| !link.client().is_closed());
        link.map_or_else(|| self.shared(), Ok)
    }

    /// A session for a migration: outside the pool, nothing bounds what it does.
    pub(crate) async fn alone(&self) -> Result<Session, Trouble> {
        self.inner.target.connect(Purpose::Alone, |_| {}).await
    }
}

/// The place that a connection is kept for.
#[derive(Debug, Clone, Copy)]
enum Which {
    Shared(usize),
    Log,
}

impl Which {
    fn purpose(self) -> Purpose {
        match self {
            Which::Shared(_) => Purpose::Shared,
            Which::Log => Purpose::Log,
        }
    }
}

/// The first connection of all. What waiting cannot mend is told at once.
async fn first(target: &Target) -> Result<Session, String> {
    let (begun, mut pauses, mut told) = (Instant::now(), Pauses::default(), false);
    loop {
        match target.connect(Purpose::Shared, |_| {}).await {
            Ok(session) => return Ok(session),
            Err(trouble) if trouble.is_lasting || begun.elapsed() > STARTING => return Err(trouble.words),
            Err(trouble) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(
                        reason = trouble.words,
                        "the database is not there yet; trying for {STARTING:?}"
                    );
                }
                sleep(pauses.next()).await;
            }
        }
    }
}

/// Keeps one place filled for as long as the links exist.
async fn keep(
    inner: Arc<Inner>,
    which: Which,
    mut made: Option<(Arc<Link>, tokio::task::JoinHandle<String>)>,
) {
    let mut pauses = Pauses::default();
    loop {
        let (link, driver) = match made.take() {
            Some(made) => made,
            None => match inner.connect(which).await {
                Ok(session) => Link::of(session),
                Err(trouble) => {
                    inner.presence.failed(&trouble);
                    sleep(pauses.next()).await;
                    continue;
                }
            },
        };
        let since = Instant::now();
        let watching =
            liveness::watch(Arc::downgrade(&link), inner.target.clone(), Purpose::Shared, inner.inquiries);
        let watching = AbortOnDrop(tokio::spawn(watching).abort_handle());
        inner.put(which, Some(link));
        let reason = driver.await.unwrap_or_else(|_| "it did not answer".to_owned());
        drop(watching);
        inner.put(which, None);
        inner.lost(which, &reason);
        if since.elapsed() > LASTING {
            pauses = Pauses::default();
        }
        sleep(pauses.next()).await;
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Inner {
    async fn connect(self: &Arc<Inner>, which: Which) -> Result<Session, Trouble> {
        let listens = matches!(which, Which::Log) && self.inquiries == Inquiries::Answered;
        if !listens {
            return self.target.connect(which.purpose(), |_| {}).await;
        }
        let inner = Arc::downgrade(self);
        let heard = move |notification: tokio_postgres::Notification| {
            let Some(inner) = inner.upgrade() else { return };
            // What this process announced it knows already.
            let own = inner.log.load().as_ref().and_then(|link| link.pid());
            if own != Some(notification.process_id()) {
                inner.news.send_replace(());
            }
        };
        let session = self.target.connect(Purpose::Log, heard).await?;
        // Whoever moves or replaces the store holds it alone: this then waits its time and is tried again.
        let served = format!("LISTEN {CHANNEL}; SELECT pg_advisory_lock_shared({SERVING})");
        let listening = session.client.batch_execute(&served).await;
        listening.map_err(|error| Trouble::from(&error))?;
        Ok(session)
    }

    fn put(&self, which: Which, link: Option<Arc<Link>>) {
        let is_there = link.is_some();
        match which {
            Which::Shared(number) => {
                self.shared[number].store(link);
                if is_there {
                    self.presence.connected();
                }
            }
            Which::Log => {
                self.log.store(link);
                // What was announced while nobody listened was not heard.
                self.news.send_replace(());
            }
        }
    }

    fn lost(&self, which: Which, reason: &str) {
        match which {
            Which::Shared(_) => self.presence.lost(reason),
            Which::Log => tracing::debug!(reason, "the connection for the change log was lost"),
        }
    }
}

async fn tidy(pool: Arc<Pool>) {
    loop {
        sleep(TIDY).await;
        pool.tidy();
    }
}

/// Pauses between tries: none, then twice as long each time, with some chance so that nodes do not come all at once.
#[derive(Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        let pause = match self.0 {
            0 => {
                return {
                    self.0 = 1;
                    Duration::ZERO
                };
            }
            tries => (Duration::from_millis(25) * 2_u32.pow(tries.min(6))).min(PAUSE),
        };
        self.0 += 1;
        let chance = RandomState::new().build_hasher().finish() % 1_000;
        pause / 2 + pause * u32::try_from(chance).unwrap_or(0) / 2_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_is_at_once_and_the_later_ones_a_second_apart_at_most() {
        let mut pauses = Pauses::default();
        assert_eq!(pauses.next(), Duration::ZERO);
        let all: Vec<Duration> = (0..40).map(|_| pauses.next()).collect();
        assert!(all.iter().all(|pause| !pause.is_zero() && *pause <= PAUSE), "{all:?}");
        assert!(all[0] < Duration::from_millis(60) && all[39] >= PAUSE / 2, "{all:?}");
    }
}
