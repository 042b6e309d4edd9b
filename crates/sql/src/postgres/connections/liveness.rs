//! Notices a connection that nobody answers on any more within seconds, where the network itself says nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose};
use crate::postgres::connections::connection::PgConnection;

/// How often a sign of life is asked for.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// How late it may be before somebody else is asked about it.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long that takes at most. A server that nobody can connect to in this time is gone for all of us.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);
/// Where nobody can be asked: longer than any statement on a shared connection may run.
const UNKNOWN_TIMEOUT: Duration = Duration::from_secs(35);

/// Whether the server can be asked what its process for a connection is doing. A pooler hides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityLookup {
    Available,
    Hidden,
}

/// Watches over a connection until it is closed or nobody has it any more.
pub async fn watch_connection(
    link: Weak<PgConnection>,
    target: Arc<ConnectTarget>,
    purpose: ConnectionPurpose,
    inquiries: ActivityLookup,
) {
    loop {
        sleep(PROBE_INTERVAL).await;
        let Some(link) = link.upgrade() else { return };
        if link.client().is_closed() {
            return;
        }
        if !is_alive(&link, &target, purpose, inquiries).await {
            tracing::debug!(pid = link.pid(), "a connection to the database does not answer and is closed");
            link.close();
            return;
        }
        link.set_late(false);
    }
}

/// Any answer is a sign of life, an error too. It comes after the answers to what was sent before, so a slow statement
/// delays it; whether it is that, or nobody is there, only another connection can tell. While a row is looked at on
/// our side nothing is read, so nothing is to be told from that.
async fn is_alive(
    link: &PgConnection,
    target: &ConnectTarget,
    purpose: ConnectionPurpose,
    inquiries: ActivityLookup,
) -> bool {
    let mut asked = Instant::now();
    let mut sign = std::pin::pin!(link.client().check_connection());
    while timeout(PROBE_TIMEOUT, &mut sign).await.is_err() {
        if link.is_reading_paused() {
            asked = Instant::now();
            continue;
        }
        link.set_late(true);
        let inquiry = timeout(LOOKUP_TIMEOUT, look_up_backend(link, target, purpose, inquiries));
        tokio::select! {
            _ = &mut sign => return true,
            verdict = inquiry => match verdict.unwrap_or(BackendState::Gone) {
                BackendState::Working => {}
                BackendState::Unknown if asked.elapsed() < UNKNOWN_TIMEOUT => {}
                BackendState::Unknown | BackendState::Gone => return false,
            },
        }
    }
    true
}

/// What another connection tells of a late one.
enum BackendState {
    /// The server is at work for it.
    Working,
    /// The server is not at work for it, or nobody can connect any more.
    Gone,
    /// The server is there, but does not tell.
    Unknown,
}

async fn look_up_backend(
    link: &PgConnection,
    target: &ConnectTarget,
    purpose: ConnectionPurpose,
    inquiries: ActivityLookup,
) -> BackendState {
    let session = match target.connect(ConnectionPurpose::Maintenance, |_| {}).await {
        Ok(session) => session,
        // It takes no more connections, perhaps.
        Err(trouble) if trouble.is_server_reply => return BackendState::Unknown,
        Err(_) => return BackendState::Gone,
    };
    let (ActivityLookup::Available, Some(pid)) = (inquiries, link.pid()) else {
        return BackendState::Unknown;
    };
    // A process that cannot get rid of its answer has a reader that does not read. For a stream of one's own that is
    // a slow client's right; on a shared connection it means that the answer goes nowhere.
    let sql = "SELECT state = 'active' AND ($2 OR wait_event IS DISTINCT FROM 'ClientWrite') \
               FROM pg_stat_activity WHERE pid = $1";
    let may_stall = purpose == ConnectionPurpose::Pooled;
    match session.client.query_opt(sql, &[&pid, &may_stall]).await {
        Ok(Some(row)) if row.get::<_, Option<bool>>(0) == Some(true) => BackendState::Working,
        Ok(_) => BackendState::Gone,
        Err(_) => BackendState::Unknown,
    }
}
