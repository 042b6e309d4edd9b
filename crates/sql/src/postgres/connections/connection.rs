//! One connection to PostgreSQL with its prepared statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::RwLock;
use quick_cache::unsync::Cache;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::{Client, Error, Statement};

use crate::postgres::connections::connect::RawConnection;
use crate::postgres::error::PostgresError;

/// The maximum number of prepared statements on one connection.
const MAX_STATEMENTS: usize = 512;

/// One connection. A shared one pipelines single statements of many callers, so it must never run BEGIN: the
/// statements of other callers would become part of the transaction.
pub struct PgConnection {
    client: Client,
    /// By SQL text.
    statements: RwLock<Cache<Box<str>, Statement>>,
    driver: AbortHandle,
    pid: Option<i32>,
    is_late: AtomicBool,
    paused_readers: AtomicUsize,
}

/// Marks that a caller processes a row and does not read from the connection while this exists.
pub struct ReadPause<'l>(&'l AtomicUsize);

impl Drop for ReadPause<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PgConnection {
    /// The connection and its driver task, which ends with it.
    pub(crate) fn from_raw(raw: RawConnection) -> (Arc<PgConnection>, JoinHandle<String>) {
        let RawConnection { client, driver, pid } = raw;
        let statements = RwLock::new(Cache::new(MAX_STATEMENTS));
        let (is_late, paused_readers) = Default::default();
        (
            Arc::new(PgConnection {
                client,
                statements,
                driver: driver.abort_handle(),
                pid,
                is_late,
                paused_readers,
            }),
            driver,
        )
    }

    /// Closes the connection at once. Pending statements fail.
    pub(crate) fn close(&self) {
        self.driver.abort();
    }

    /// The server's process id of this connection.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// True while the server has not answered a liveness probe in time.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    pub(crate) fn set_late(&self, is_late: bool) {
        self.is_late.store(is_late, Ordering::Relaxed);
    }

    /// Marks that nothing is read from the connection until the pause is dropped.
    pub(crate) fn pause_reading(&self) -> ReadPause<'_> {
        self.paused_readers.fetch_add(1, Ordering::Relaxed);
        ReadPause(&self.paused_readers)
    }

    pub(crate) fn is_reading_paused(&self) -> bool {
        self.paused_readers.load(Ordering::Relaxed) > 0
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The prepared statement, prepared at its first use.
    pub async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.read().get(sql) {
            return Ok(statement.clone());
        }
        // Boxed: it is rare, and every statement has a future of it.
        let statement = Box::pin(self.client.prepare(sql)).await?;
        self.statements.write().insert(sql.into(), statement.clone());
        Ok(statement)
    }

    /// Classifies an error on this connection. If prepared statements became invalid, because a table changed or a
    /// pooler lost them, they are forgotten so that a retry prepares them again.
    pub(crate) fn classify_error(&self, error: Error) -> PostgresError {
        if let Some("0A000" | "26000") = error.code().map(|code| code.code()) {
            self.forget_statements();
        }
        PostgresError::from(error)
    }

    pub fn forget_statements(&self) {
        self.statements.write().clear();
    }
}
