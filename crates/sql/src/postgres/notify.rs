//! Tells other nodes that something was logged: after the commit, outside of it, and not more often than they can use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::postgres::NOTIFY_CHANNEL;
use crate::postgres::connections::manager::ConnectionManager;

/// NOTIFY takes one lock of the whole server at its commit, so a burst of changes is announced once.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);

/// Announces for as long as it exists.
pub struct ChangeNotifier {
    pending: Arc<Notify>,
    task: AbortHandle,
}

impl ChangeNotifier {
    pub fn start(links: Arc<ConnectionManager>) -> ChangeNotifier {
        let due = Arc::new(Notify::new());
        let task = tokio::spawn(run_notifier(links, due.clone())).abort_handle();
        ChangeNotifier { pending: due, task }
    }

    pub fn notify(&self) {
        self.pending.notify_one();
    }
}

impl Drop for ChangeNotifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run_notifier(links: Arc<ConnectionManager>, due: Arc<Notify>) {
    // It tells of what is committed already and must not wait for a sync of its own.
    let sql = format!("SET LOCAL synchronous_commit TO off; NOTIFY {NOTIFY_CHANNEL}");
    loop {
        due.notified().await;
        // One that is lost only costs time: everybody looks for himself every second.
        if let Ok(link) = links.log_connection()
            && let Err(error) = link.client().batch_execute(&sql).await
        {
            tracing::debug!("other nodes are not told of a change: {error}");
        }
        tokio::time::sleep(NOTIFY_INTERVAL).await;
    }
}
