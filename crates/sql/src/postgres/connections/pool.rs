//! Connections of one's own: bounded in number, taken for a transaction or a stream, given back clean or not at all.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose};
use crate::postgres::connections::connect_error::{database_unreachable, unavailable};
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::liveness;
use crate::postgres::connections::liveness::ActivityLookup;
use trefoil_model::error::Result;

/// An own connection that nobody wanted for so long is closed.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);
/// How long a server is given to hear that a query is no longer wanted.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

pub struct ConnectionPool {
    target: Arc<ConnectTarget>,
    activity_lookup: ActivityLookup,
    size: usize,
    acquire_timeout: Duration,
    permits: Arc<Semaphore>,
    /// The one used last is at the end and goes first.
    idle: Mutex<Vec<(Arc<PgConnection>, Instant)>>,
}

impl ConnectionPool {
    pub fn new(
        target: Arc<ConnectTarget>,
        inquiries: ActivityLookup,
        size: usize,
        patience: Duration,
    ) -> ConnectionPool {
        let permits = Arc::new(Semaphore::new(size));
        ConnectionPool {
            target,
            activity_lookup: inquiries,
            size,
            acquire_timeout: patience,
            permits,
            idle: Mutex::default(),
        }
    }

    pub async fn acquire(self: &Arc<ConnectionPool>) -> Result<PooledConnection> {
        let permit = tokio::time::timeout(self.acquire_timeout, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| {
            let (size, patience) = (self.size, self.acquire_timeout);
            unavailable(format!(
                "all {size} connections to the database were busy for {patience:?} (database-connections)"
            ))
        })?;
        let permit = permit.map_err(|_| database_unreachable())?;
        let link = match self.pop_idle() {
            Some(link) => link,
            None => self.open_connection().await?,
        };
        Ok(PooledConnection { lease: Some(PoolLease { connection: link, permit }), pool: self.clone() })
    }

    fn pop_idle(&self) -> Option<Arc<PgConnection>> {
        let mut idle = self.lock_idle();
        std::iter::from_fn(|| idle.pop())
            .map(|(link, _)| link)
            .find(|link| !link.client().is_closed() && !link.is_late())
    }

    async fn open_connection(&self) -> Result<Arc<PgConnection>> {
        let session = self.target.connect(ConnectionPurpose::Pooled, |_| {}).await.map_err(|trouble| {
            tracing::debug!("no further connection to the database: {}", trouble.message);
            database_unreachable()
        })?;
        let (link, _) = PgConnection::from_raw(session);
        let (weak, target) = (Arc::downgrade(&link), self.target.clone());
        tokio::spawn(liveness::watch_connection(
            weak,
            target,
            ConnectionPurpose::Pooled,
            self.activity_lookup,
        ));
        Ok(link)
    }

    /// Closes what is closed already or was not wanted for long.
    pub fn remove_stale(&self) {
        self.lock_idle()
            .retain(|(link, since)| !link.client().is_closed() && since.elapsed() < MAX_IDLE_TIME);
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<PgConnection>, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of one's own. Dropped without [`Own::finished`], what runs on it is cancelled and it is closed.
pub struct PooledConnection {
    /// `None` only while it is given back.
    lease: Option<PoolLease>,
    pool: Arc<ConnectionPool>,
}

struct PoolLease {
    connection: Arc<PgConnection>,
    permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// Nothing runs and no transaction is open: the connection can serve others.
    pub fn release(mut self) {
        if let Some(PoolLease { connection: link, permit }) = self.lease.take() {
            if !link.client().is_closed() {
                self.pool.lock_idle().push((link, Instant::now()));
            }
            drop(permit);
        }
    }
}

impl Deref for PooledConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.lease.as_ref().expect("held until it is given back").connection
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(PoolLease { connection: link, permit }) = self.lease.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            link.close();
            return;
        };
        let tls = self.pool.target.tls();
        runtime.spawn(async move {
            if !link.client().is_closed() {
                // Closing alone would let the query run on until it has something to say.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, link.client().cancel_token().cancel_query(tls))
                    .await;
                link.close();
            }
            drop(permit);
        });
    }
}
