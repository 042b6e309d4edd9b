//! A bounded pool of connections, each used by one caller for a transaction or a stream.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use trefoil_model::error::Result;

use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose};
use crate::postgres::connections::connect_error::{database_unreachable, unavailable};
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::liveness::{self, ActivityLookup};

/// A connection that is idle for this time is closed.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);
/// The time to deliver the cancellation of a query to the server.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

pub struct ConnectionPool {
    target: Arc<ConnectTarget>,
    activity_lookup: ActivityLookup,
    size: usize,
    acquire_timeout: Duration,
    permits: Arc<Semaphore>,
    /// The most recently used one is at the end and is taken first.
    idle: Mutex<Vec<(Arc<PgConnection>, Instant)>>,
}

impl ConnectionPool {
    pub fn new(
        target: Arc<ConnectTarget>,
        activity_lookup: ActivityLookup,
        size: usize,
        acquire_timeout: Duration,
    ) -> ConnectionPool {
        let permits = Arc::new(Semaphore::new(size));
        ConnectionPool { target, activity_lookup, size, acquire_timeout, permits, idle: Mutex::default() }
    }

    pub async fn acquire(self: &Arc<ConnectionPool>) -> Result<PooledConnection> {
        let permit = tokio::time::timeout(self.acquire_timeout, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| {
            let (size, acquire_timeout) = (self.size, self.acquire_timeout);
            unavailable(format!(
                "all {size} connections to the database were in use for {acquire_timeout:?} (database-connections)"
            ))
        })?;
        let permit = permit.map_err(|_| database_unreachable())?;
        let connection = match self.pop_idle() {
            Some(connection) => connection,
            None => self.open_connection().await?,
        };
        Ok(PooledConnection { lease: Some(PoolLease { connection, permit }), pool: self.clone() })
    }

    fn pop_idle(&self) -> Option<Arc<PgConnection>> {
        let mut idle = self.idle.lock();
        std::iter::from_fn(|| idle.pop())
            .map(|(connection, _)| connection)
            .find(|connection| !connection.client().is_closed() && !connection.is_late())
    }

    async fn open_connection(&self) -> Result<Arc<PgConnection>> {
        let session = self.target.connect(ConnectionPurpose::Pooled, |_| {}).await.map_err(|error| {
            tracing::debug!("cannot open another connection to the database: {}", error.message);
            database_unreachable()
        })?;
        let (connection, _) = PgConnection::from_raw(session);
        let (weak, target) = (Arc::downgrade(&connection), self.target.clone());
        tokio::spawn(liveness::watch_connection(
            weak,
            target,
            ConnectionPurpose::Pooled,
            self.activity_lookup,
        ));
        Ok(connection)
    }

    /// Removes connections that are lost or were idle for long.
    pub fn remove_stale(&self) {
        self.idle.lock().retain(|(connection, since)| {
            !connection.client().is_closed() && since.elapsed() < MAX_IDLE_TIME
        });
    }
}

/// A connection taken from the pool. Dropping it without [`Self::release`] cancels its query and closes it.
pub struct PooledConnection {
    /// `None` only after it is returned.
    lease: Option<PoolLease>,
    pool: Arc<ConnectionPool>,
}

struct PoolLease {
    connection: Arc<PgConnection>,
    permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// Returns the connection to the pool. Nothing may be running on it and no transaction may be open.
    pub fn release(mut self) {
        if let Some(PoolLease { connection, permit }) = self.lease.take() {
            if !connection.client().is_closed() {
                self.pool.idle.lock().push((connection, Instant::now()));
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
        let Some(PoolLease { connection, permit }) = self.lease.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            connection.close();
            return;
        };
        let tls = self.pool.target.tls();
        runtime.spawn(async move {
            if !connection.client().is_closed() {
                // Without the cancellation the query would run on until it sends rows.
                let _ = tokio::time::timeout(
                    CANCEL_TIMEOUT,
                    connection.client().cancel_token().cancel_query(tls),
                )
                .await;
                connection.close();
            }
            drop(permit);
        });
    }
}
