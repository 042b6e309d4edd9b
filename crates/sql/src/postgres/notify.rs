//! Tells other nodes that something was logged: after the commit, outside of it, and not more often than they can use.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::postgres::CHANNEL;
use crate::postgres::connections::manager::Links;

/// NOTIFY takes one lock of the whole server at its commit, so a burst of changes is announced once.
const APART: Duration = Duration::from_millis(10);

/// Announces for as long as it exists.
pub struct Herald {
    due: Arc<Notify>,
    task: AbortHandle,
}

impl Herald {
    pub fn start(links: Arc<Links>) -> Herald {
        let due = Arc::new(Notify::new());
        let task = tokio::spawn(announce(links, due.clone())).abort_handle();
        Herald { due, task }
    }

    pub fn announce(&self) {
        self.due.notify_one();
    }
}

impl Drop for Herald {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn announce(links: Arc<Links>, due: Arc<Notify>) {
    // It tells of what is committed already and must not wait for a sync of its own.
    let sql = format!("SET LOCAL synchronous_commit TO off; NOTIFY {CHANNEL}");
    loop {
        due.notified().await;
        // One that is lost only costs time: everybody looks for himself every second.
        if let Ok(link) = links.log()
            && let Err(error) = link.client().batch_execute(&sql).await
        {
            tracing::debug!("other nodes are not told of a change: {error}");
        }
        tokio::time::sleep(APART).await;
    }
}
