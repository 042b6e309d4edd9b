//! Detects within seconds a connection whose server no longer answers, even if the network reports no error.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose};
use crate::postgres::connections::connection::PgConnection;

/// The pause between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// How late an answer may be before the server is asked about it on another connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for that lookup. A server that accepts no connection within it counts as gone.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);
/// The time to wait if the lookup gives no answer: longer than any statement on a shared connection may run.
const UNKNOWN_TIMEOUT: Duration = Duration::from_secs(35);

/// Whether `pg_stat_activity` shows the state of a connection. A pooler hides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityLookup {
    Available,
    Hidden,
}

/// Probes a connection until it is closed or dropped, and closes it if it does not answer.
pub async fn watch_connection(
    connection: Weak<PgConnection>,
    target: Arc<ConnectTarget>,
    purpose: ConnectionPurpose,
    activity_lookup: ActivityLookup,
) {
    loop {
        sleep(PROBE_INTERVAL).await;
        let Some(connection) = connection.upgrade() else { return };
        if connection.client().is_closed() {
            return;
        }
        if !is_alive(&connection, &target, purpose, activity_lookup).await {
            tracing::debug!(pid = connection.pid(), "closing an unresponsive connection to the database");
            connection.close();
            return;
        }
        connection.set_late(false);
    }
}

/// Probes the connection once. Any answer counts, even an error. The answer is queued behind those of earlier
/// statements, so a slow one delays it; only another connection can tell that from a lost server. While reading is
/// paused, a missing answer means nothing.
async fn is_alive(
    connection: &PgConnection,
    target: &ConnectTarget,
    purpose: ConnectionPurpose,
    activity_lookup: ActivityLookup,
) -> bool {
    let mut waiting_since = Instant::now();
    let mut probe = std::pin::pin!(connection.client().check_connection());
    while timeout(PROBE_TIMEOUT, &mut probe).await.is_err() {
        if connection.is_reading_paused() {
            waiting_since = Instant::now();
            continue;
        }
        connection.set_late(true);
        let lookup = timeout(LOOKUP_TIMEOUT, look_up_backend(connection, target, purpose, activity_lookup));
        tokio::select! {
            _ = &mut probe => return true,
            state = lookup => match state.unwrap_or(BackendState::Gone) {
                BackendState::Working => {}
                BackendState::Unknown if waiting_since.elapsed() < UNKNOWN_TIMEOUT => {}
                BackendState::Unknown | BackendState::Gone => return false,
            },
        }
    }
    true
}

/// The state of a late connection, looked up on another one.
enum BackendState {
    /// The server is running a statement of it.
    Working,
    /// The server is not running a statement of it, or accepts no connections.
    Gone,
    /// The server is reachable but does not show the state.
    Unknown,
}

async fn look_up_backend(
    connection: &PgConnection,
    target: &ConnectTarget,
    purpose: ConnectionPurpose,
    activity_lookup: ActivityLookup,
) -> BackendState {
    let other = match target.connect(ConnectionPurpose::Maintenance, |_| {}).await {
        Ok(other) => other,
        // The server replied, for example that it has no connections left.
        Err(error) if error.is_server_reply => return BackendState::Unknown,
        Err(_) => return BackendState::Gone,
    };
    let (ActivityLookup::Available, Some(pid)) = (activity_lookup, connection.pid()) else {
        return BackendState::Unknown;
    };
    // ClientWrite: the process waits for its reader. A slow client of a pooled connection may cause that; on a shared
    // connection it means that the answer does not arrive.
    let sql = "SELECT state = 'active' AND ($2 OR wait_event IS DISTINCT FROM 'ClientWrite') \
               FROM pg_stat_activity WHERE pid = $1";
    let may_stall = purpose == ConnectionPurpose::Pooled;
    match other.client.query_opt(sql, &[&pid, &may_stall]).await {
        Ok(Some(row)) if row.get::<_, Option<bool>>(0) == Some(true) => BackendState::Working,
        Ok(_) => BackendState::Gone,
        Err(_) => BackendState::Unknown,
    }
}
