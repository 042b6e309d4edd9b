//! Notifies other nodes of logged changes, after the commit and at a limited rate.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::postgres::connections::manager::{ConnectionManager, NOTIFY_CHANNEL};

/// The pause between notifications. NOTIFY takes a server-wide lock at its commit, so a burst of changes is announced
/// once.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);

/// A task that tells other nodes about changes, by NOTIFY of PostgreSQL, until this is dropped.
pub struct NodeNotifier {
    pending: Arc<Notify>,
    task: AbortHandle,
}

impl NodeNotifier {
    pub fn start(connections: Arc<ConnectionManager>) -> NodeNotifier {
        let pending = Arc::new(Notify::new());
        let task = tokio::spawn(run_notifier(connections, pending.clone())).abort_handle();
        NodeNotifier { pending, task }
    }

    pub fn notify(&self) {
        self.pending.notify_one();
    }
}

impl Drop for NodeNotifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run_notifier(connections: Arc<ConnectionManager>, pending: Arc<Notify>) {
    // The changes are committed already, so the notification need not wait for the disk.
    let sql = format!("SET LOCAL synchronous_commit TO off; NOTIFY {NOTIFY_CHANNEL}");
    loop {
        pending.notified().await;
        // A lost notification only costs time: every node polls each second.
        if let Ok(connection) = connections.log_connection()
            && let Err(error) = connection.client().batch_execute(&sql).await
        {
            tracing::debug!("cannot notify other nodes of a change: {error}");
        }
        tokio::time::sleep(NOTIFY_INTERVAL).await;
    }
}
