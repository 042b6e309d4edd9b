//! All connections of this process to one PostgreSQL database: a few that everyone shares, one for the change log, and
//! a pool of own ones. Each that is lost is made again by a task of its own.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::watch as news;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::postgres::connections::availability::DatabaseAvailability;
use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose, RawConnection};
use crate::postgres::connections::connect_error::{ConnectError, database_unreachable};
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::liveness;
use crate::postgres::connections::liveness::ActivityLookup;
use crate::postgres::connections::pool::{ConnectionPool, PooledConnection};
use crate::postgres::{NOTIFY_CHANNEL, PostgresOptions, SERVING_LOCK};
use trefoil_model::error::Result;

/// Enough to keep a server's cores busy: each carries many statements at once.
const SHARED_CONNECTIONS: usize = 4;
/// How long the first start waits for a database that is not there yet.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause between two tries; the first try comes without one.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);
/// A connection that did not last so long does not count as a success.
const MIN_STABLE_TIME: Duration = Duration::from_secs(2);
const TIDY_INTERVAL: Duration = Duration::from_secs(15);

/// All connections to one database. Dropping it closes them.
pub struct ConnectionManager {
    state: Arc<ManagerState>,
    pool: Arc<ConnectionPool>,
    _tasks: JoinSet<()>,
}

struct ManagerState {
    target: Arc<ConnectTarget>,
    shared: [SharedSlot; SHARED_CONNECTIONS],
    log: SharedSlot,
    availability: DatabaseAvailability,
    activity_lookup: ActivityLookup,
    /// Woken when something may have been logged.
    commits: news::Sender<()>,
}

type SharedSlot = ArcSwapOption<PgConnection>;

impl ConnectionManager {
    /// Connects, and waits a while for a database that is only starting. `news` is woken by other nodes.
    pub async fn open(
        options: &PostgresOptions,
        news: news::Sender<()>,
    ) -> Result<ConnectionManager, String> {
        let target = Arc::new(ConnectTarget::new(&options.url)?);
        let first = connect_first(&target).await?;
        let inquiries = if options.notify { ActivityLookup::Available } else { ActivityLookup::Hidden };
        let pool =
            ConnectionPool::new(target.clone(), inquiries, options.pool_size.max(1), options.acquire_timeout);
        let (shared, log, presence) =
            (Default::default(), SharedSlot::empty(), DatabaseAvailability::default());
        let inner = Arc::new(ManagerState {
            target,
            shared,
            log,
            availability: presence,
            activity_lookup: inquiries,
            commits: news,
        });
        let pool = Arc::new(pool);
        let mut tasks = JoinSet::new();
        // Whoever has opened can use it: the first connection stands before this returns.
        let (link, driver) = PgConnection::from_raw(first);
        inner.shared[0].store(Some(link.clone()));
        let mut first = Some((link, driver));
        for number in 0..SHARED_CONNECTIONS {
            tasks.spawn(maintain_slot(inner.clone(), SlotId::Shared(number), first.take()));
        }
        tasks.spawn(maintain_slot(inner.clone(), SlotId::ChangeLog, None));
        tasks.spawn(tidy_pool(pool.clone()));
        Ok(ConnectionManager { state: inner, pool, _tasks: tasks })
    }

    /// A connection that others use as well, for single statements; never for BEGIN. While the database is away, an
    /// error at once.
    pub fn shared_connection(&self) -> Result<Arc<PgConnection>> {
        let standing = self.state.shared.iter().filter_map(SharedSlot::load_full);
        let usable = standing.filter(|link| !link.client().is_closed());
        // Whoever has something in flight holds the connection.
        usable.min_by_key(|link| (link.is_late(), Arc::strong_count(link))).ok_or_else(database_unreachable)
    }

    /// A connection of one's own, for transactions and long streams; waited for only so long.
    pub async fn acquire_pooled(&self) -> Result<PooledConnection> {
        self.shared_connection()?;
        self.pool.acquire().await
    }

    /// The connection that numbers, reads and announces changes, so that no one else waits behind them.
    pub(crate) fn log_connection(&self) -> Result<Arc<PgConnection>> {
        let link = self.state.log.load_full().filter(|link| !link.client().is_closed());
        link.map_or_else(|| self.shared_connection(), Ok)
    }

    /// A session for a migration: outside the pool, nothing bounds what it does.
    pub(crate) async fn connect_for_maintenance(&self) -> Result<RawConnection, ConnectError> {
        self.state.target.connect(ConnectionPurpose::Maintenance, |_| {}).await
    }
}

/// The place that a connection is kept for.
#[derive(Debug, Clone, Copy)]
enum SlotId {
    Shared(usize),
    ChangeLog,
}

impl SlotId {
    fn purpose(self) -> ConnectionPurpose {
        match self {
            SlotId::Shared(_) => ConnectionPurpose::Shared,
            SlotId::ChangeLog => ConnectionPurpose::ChangeLog,
        }
    }
}

/// The first connection of all. What waiting cannot mend is told at once.
async fn connect_first(target: &ConnectTarget) -> Result<RawConnection, String> {
    let (begun, mut pauses, mut told) = (Instant::now(), ConnectBackoff::default(), false);
    loop {
        match target.connect(ConnectionPurpose::Shared, |_| {}).await {
            Ok(session) => return Ok(session),
            Err(trouble) if trouble.is_permanent || begun.elapsed() > START_TIMEOUT => {
                return Err(trouble.message);
            }
            Err(trouble) => {
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(
                        reason = trouble.message,
                        "the database is not there yet; trying for {START_TIMEOUT:?}"
                    );
                }
                sleep(pauses.next_delay()).await;
            }
        }
    }
}

/// Keeps one place filled for as long as the links exist.
async fn maintain_slot(
    inner: Arc<ManagerState>,
    which: SlotId,
    mut made: Option<(Arc<PgConnection>, tokio::task::JoinHandle<String>)>,
) {
    let mut pauses = ConnectBackoff::default();
    loop {
        let (link, driver) = match made.take() {
            Some(made) => made,
            None => match inner.connect(which).await {
                Ok(session) => PgConnection::from_raw(session),
                Err(trouble) => {
                    inner.availability.connect_failed(&trouble);
                    sleep(pauses.next_delay()).await;
                    continue;
                }
            },
        };
        let since = Instant::now();
        let watching = liveness::watch_connection(
            Arc::downgrade(&link),
            inner.target.clone(),
            ConnectionPurpose::Shared,
            inner.activity_lookup,
        );
        let watching = AbortOnDrop(tokio::spawn(watching).abort_handle());
        inner.set_slot(which, Some(link));
        let reason = driver.await.unwrap_or_else(|_| "it did not answer".to_owned());
        drop(watching);
        inner.set_slot(which, None);
        inner.connection_lost(which, &reason);
        if since.elapsed() > MIN_STABLE_TIME {
            pauses = ConnectBackoff::default();
        }
        sleep(pauses.next_delay()).await;
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ManagerState {
    async fn connect(self: &Arc<ManagerState>, which: SlotId) -> Result<RawConnection, ConnectError> {
        let listens = matches!(which, SlotId::ChangeLog) && self.activity_lookup == ActivityLookup::Available;
        if !listens {
            return self.target.connect(which.purpose(), |_| {}).await;
        }
        let inner = Arc::downgrade(self);
        let heard = move |notification: tokio_postgres::Notification| {
            let Some(inner) = inner.upgrade() else { return };
            // What this process announced it knows already.
            let own = inner.log.load().as_ref().and_then(|link| link.pid());
            if own != Some(notification.process_id()) {
                inner.commits.send_replace(());
            }
        };
        let session = self.target.connect(ConnectionPurpose::ChangeLog, heard).await?;
        // Whoever moves or replaces the store holds it alone: this then waits its time and is tried again.
        let served = format!("LISTEN {NOTIFY_CHANNEL}; SELECT pg_advisory_lock_shared({SERVING_LOCK})");
        let listening = session.client.batch_execute(&served).await;
        listening.map_err(|error| ConnectError::from(&error))?;
        Ok(session)
    }

    fn set_slot(&self, which: SlotId, link: Option<Arc<PgConnection>>) {
        let is_there = link.is_some();
        match which {
            SlotId::Shared(number) => {
                self.shared[number].store(link);
                if is_there {
                    self.availability.connection_opened();
                }
            }
            SlotId::ChangeLog => {
                self.log.store(link);
                // What was announced while nobody listened was not heard.
                self.commits.send_replace(());
            }
        }
    }

    fn connection_lost(&self, which: SlotId, reason: &str) {
        match which {
            SlotId::Shared(_) => self.availability.connection_lost(reason),
            SlotId::ChangeLog => tracing::debug!(reason, "the connection for the change log was lost"),
        }
    }
}

async fn tidy_pool(pool: Arc<ConnectionPool>) {
    loop {
        sleep(TIDY_INTERVAL).await;
        pool.remove_stale();
    }
}

/// Pauses between tries: none, then twice as long each time, with some chance so that nodes do not come all at once.
#[derive(Default)]
struct ConnectBackoff(u32);

impl ConnectBackoff {
    fn next_delay(&mut self) -> Duration {
        let pause = match self.0 {
            0 => {
                return {
                    self.0 = 1;
                    Duration::ZERO
                };
            }
            tries => (Duration::from_millis(25) * 2_u32.pow(tries.min(6))).min(MAX_RETRY_DELAY),
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
        let mut pauses = ConnectBackoff::default();
        assert_eq!(pauses.next_delay(), Duration::ZERO);
        let all: Vec<Duration> = (0..40).map(|_| pauses.next_delay()).collect();
        assert!(all.iter().all(|pause| !pause.is_zero() && *pause <= MAX_RETRY_DELAY), "{all:?}");
        assert!(all[0] < Duration::from_millis(60) && all[39] >= MAX_RETRY_DELAY / 2, "{all:?}");
    }
}
