//! All connections of this process to one PostgreSQL database: a few shared ones, one for the change log, and a pool.
//! A task per shared connection reconnects it when it is lost.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::sleep;
use tokio_postgres::Notification;

use trefoil_model::error::Result;

use crate::options::PostgresOptions;
use crate::postgres::connections::availability::DatabaseAvailability;
use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose, RawConnection};
use crate::postgres::connections::connect_error::{ConnectError, database_unreachable};
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::liveness::{self, ActivityLookup};
use crate::postgres::connections::pool::{ConnectionPool, PooledConnection};

/// The channel of NOTIFY by which nodes announce changes.
pub const NOTIFY_CHANNEL: &str = "trefoil_changes";
/// The advisory lock that every serving node shares, so that the store is not moved or replaced meanwhile.
pub const SERVING_LOCK: &str = "hashtextextended('trefoil serving ' || current_schema(), 0)";
/// The number of shared connections. Each carries many statements at once, so a few keep a server's cores busy.
const SHARED_CONNECTIONS: usize = 4;
/// How long a start waits for a database that is not reachable yet.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest delay between two attempts. The first attempt has none.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(1);
/// A connection that is lost sooner does not reset the backoff.
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
    /// Signalled when changes may have been logged.
    commits: watch::Sender<()>,
}

type SharedSlot = ArcSwapOption<PgConnection>;

impl ConnectionManager {
    /// Connects, waiting a while for a database that is starting. Other nodes signal `commits`.
    pub async fn open(
        options: &PostgresOptions,
        commits: watch::Sender<()>,
    ) -> Result<ConnectionManager, String> {
        let target = Arc::new(ConnectTarget::new(&options.url)?);
        let first = connect_first(&target).await?;
        let activity_lookup = if options.notify { ActivityLookup::Available } else { ActivityLookup::Hidden };
        let pool = ConnectionPool::new(
            target.clone(),
            activity_lookup,
            options.pool_size.max(1),
            options.acquire_timeout,
        );
        let (shared, log, availability) =
            (Default::default(), SharedSlot::empty(), DatabaseAvailability::default());
        let state = Arc::new(ManagerState { target, shared, log, availability, activity_lookup, commits });
        let pool = Arc::new(pool);
        let mut tasks = JoinSet::new();
        // The first connection is open before this returns, so that the caller can use it at once.
        let (connection, driver) = PgConnection::from_raw(first);
        state.shared[0].store(Some(connection.clone()));
        let mut first = Some((connection, driver));
        for number in 0..SHARED_CONNECTIONS {
            tasks.spawn(maintain_slot(state.clone(), SlotId::Shared(number), first.take()));
        }
        tasks.spawn(maintain_slot(state.clone(), SlotId::ChangeLog, None));
        tasks.spawn(tidy_pool(pool.clone()));
        Ok(ConnectionManager { state, pool, _tasks: tasks })
    }

    /// A shared connection, for single statements and never for BEGIN. Fails at once while the database is unreachable.
    pub fn shared_connection(&self) -> Result<Arc<PgConnection>> {
        let open = self.state.shared.iter().filter_map(SharedSlot::load_full);
        let usable = open.filter(|connection| !connection.client().is_closed());
        // The reference count approximates the load: every statement in flight holds one.
        usable
            .min_by_key(|connection| (connection.is_late(), Arc::strong_count(connection)))
            .ok_or_else(database_unreachable)
    }

    /// A pooled connection, for transactions and long streams. Waits up to the acquire timeout.
    pub async fn acquire_pooled(&self) -> Result<PooledConnection> {
        self.shared_connection()?;
        self.pool.acquire().await
    }

    /// The connection for the change log, so that other statements do not queue behind it; else a shared one.
    pub(crate) fn log_connection(&self) -> Result<Arc<PgConnection>> {
        let connection = self.state.log.load_full().filter(|connection| !connection.client().is_closed());
        connection.map_or_else(|| self.shared_connection(), Ok)
    }

    /// A connection for a migration, outside the pool and without timeouts.
    pub(crate) async fn connect_for_maintenance(&self) -> Result<RawConnection, ConnectError> {
        self.state.target.connect(ConnectionPurpose::Maintenance, |_| {}).await
    }
}

/// The slot of a maintained connection.
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

/// Opens the first connection. Permanent errors are returned at once, others after [`START_TIMEOUT`].
async fn connect_first(target: &ConnectTarget) -> Result<RawConnection, String> {
    let (started, mut backoff, mut warned) = (Instant::now(), ConnectBackoff::default(), false);
    loop {
        match target.connect(ConnectionPurpose::Shared, |_| {}).await {
            Ok(session) => return Ok(session),
            Err(error) if error.is_permanent || started.elapsed() > START_TIMEOUT => {
                return Err(error.message);
            }
            Err(error) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(
                        reason = error.message,
                        "the database is not available yet; retrying for {START_TIMEOUT:?}"
                    );
                }
                sleep(backoff.next_delay()).await;
            }
        }
    }
}

/// Keeps one slot connected until the task is aborted.
async fn maintain_slot(
    state: Arc<ManagerState>,
    slot: SlotId,
    mut existing: Option<(Arc<PgConnection>, JoinHandle<String>)>,
) {
    let mut backoff = ConnectBackoff::default();
    loop {
        let (connection, driver) = match existing.take() {
            Some(existing) => existing,
            None => match state.connect(slot).await {
                Ok(session) => PgConnection::from_raw(session),
                Err(error) => {
                    state.availability.connect_failed(&error);
                    sleep(backoff.next_delay()).await;
                    continue;
                }
            },
        };
        let connected_at = Instant::now();
        let watcher = liveness::watch_connection(
            Arc::downgrade(&connection),
            state.target.clone(),
            ConnectionPurpose::Shared,
            state.activity_lookup,
        );
        let watcher = AbortOnDrop(tokio::spawn(watcher).abort_handle());
        state.set_slot(slot, Some(connection));
        let reason = driver.await.unwrap_or_else(|_| "it did not respond".to_owned());
        drop(watcher);
        state.set_slot(slot, None);
        state.connection_lost(slot, &reason);
        if connected_at.elapsed() > MIN_STABLE_TIME {
            backoff = ConnectBackoff::default();
        }
        sleep(backoff.next_delay()).await;
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ManagerState {
    async fn connect(self: &Arc<ManagerState>, slot: SlotId) -> Result<RawConnection, ConnectError> {
        let listens = matches!(slot, SlotId::ChangeLog) && self.activity_lookup == ActivityLookup::Available;
        if !listens {
            return self.target.connect(slot.purpose(), |_| {}).await;
        }
        let state = Arc::downgrade(self);
        let on_notification = move |notification: Notification| {
            let Some(state) = state.upgrade() else { return };
            // Ignores notifications of this process.
            let own_pid = state.log.load().as_ref().and_then(|connection| connection.pid());
            if own_pid != Some(notification.process_id()) {
                state.commits.send_replace(());
            }
        };
        let session = self.target.connect(ConnectionPurpose::ChangeLog, on_notification).await?;
        // A command that moves or replaces the store holds this lock exclusively; connecting then times out and is
        // retried.
        let sql = format!("LISTEN {NOTIFY_CHANNEL}; SELECT pg_advisory_lock_shared({SERVING_LOCK})");
        let result = session.client.batch_execute(&sql).await;
        result.map_err(|error| ConnectError::from(&error))?;
        Ok(session)
    }

    fn set_slot(&self, slot: SlotId, connection: Option<Arc<PgConnection>>) {
        let is_connected = connection.is_some();
        match slot {
            SlotId::Shared(number) => {
                self.shared[number].store(connection);
                if is_connected {
                    self.availability.connection_opened();
                }
            }
            SlotId::ChangeLog => {
                self.log.store(connection);
                // Notifications may have been missed while the connection was lost.
                self.commits.send_replace(());
            }
        }
    }

    fn connection_lost(&self, slot: SlotId, reason: &str) {
        match slot {
            SlotId::Shared(_) => self.availability.connection_lost(reason),
            SlotId::ChangeLog => tracing::debug!(reason, "lost the connection for the change log"),
        }
    }
}

async fn tidy_pool(pool: Arc<ConnectionPool>) {
    loop {
        sleep(TIDY_INTERVAL).await;
        pool.remove_stale();
    }
}

/// The delays between attempts: none, then doubling, with jitter so that nodes do not reconnect all at once.
#[derive(Default)]
struct ConnectBackoff(u32);

impl ConnectBackoff {
    fn next_delay(&mut self) -> Duration {
        let delay = match self.0 {
            0 => {
                self.0 = 1;
                return Duration::ZERO;
            }
            attempts => (Duration::from_millis(25) * 2_u32.pow(attempts.min(6))).min(MAX_RETRY_DELAY),
        };
        self.0 += 1;
        let jitter = RandomState::new().build_hasher().finish() % 1_000;
        delay / 2 + delay * u32::try_from(jitter).unwrap_or(0) / 2_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_starts_at_zero_and_stays_under_a_second() {
        let mut backoff = ConnectBackoff::default();
        assert_eq!(backoff.next_delay(), Duration::ZERO);
        let delays: Vec<Duration> = (0..40).map(|_| backoff.next_delay()).collect();
        assert!(delays.iter().all(|delay| !delay.is_zero() && *delay <= MAX_RETRY_DELAY), "{delays:?}");
        assert!(delays[0] < Duration::from_millis(60) && delays[39] >= MAX_RETRY_DELAY / 2, "{delays:?}");
    }
}
