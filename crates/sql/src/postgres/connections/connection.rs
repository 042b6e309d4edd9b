//! One connection to PostgreSQL: its client, the statements prepared on it, and how it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::{Client, Error, Statement};

use crate::postgres::connections::connect::RawConnection;
use crate::postgres::error::PostgresError;

/// Statements kept prepared on one connection; the one unused for longest gives way.
const MAX_STATEMENTS: usize = 512;

/// One connection. A shared one runs single statements of many callers at once, pipelined: it must never see
/// BEGIN, because what others send in between would be inside.
pub struct PgConnection {
    client: Client,
    statements: Mutex<StatementCache>,
    driver: AbortHandle,
    pid: Option<i32>,
    is_late: AtomicBool,
    paused_readers: AtomicUsize,
}

/// Somebody looks at a row and reads nothing meanwhile, for as long as this is held.
pub struct ReadPause<'l>(&'l AtomicUsize);

impl Drop for ReadPause<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct StatementCache {
    /// With the time of the last use.
    entries: HashMap<Box<str>, (Statement, u64)>,
    use_count: u64,
}

impl PgConnection {
    /// The connection, and the task that ends when it does.
    pub(crate) fn from_raw(session: RawConnection) -> (Arc<PgConnection>, JoinHandle<String>) {
        let RawConnection { client, driver, pid } = session;
        let (statements, is_late, pauses) = Default::default();
        (
            Arc::new(PgConnection {
                client,
                statements,
                driver: driver.abort_handle(),
                pid,
                is_late,
                paused_readers: pauses,
            }),
            driver,
        )
    }

    /// Ends the connection at once. Whoever waits for an answer on it gets an error.
    pub(crate) fn close(&self) {
        self.driver.abort();
    }

    /// The server's process that serves this connection.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.pid
    }

    /// The server was asked for a sign of life and has not given it yet.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    pub(crate) fn set_late(&self, is_late: bool) {
        self.is_late.store(is_late, Ordering::Relaxed);
    }

    /// What the server sends now waits on our side until the pause is over.
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

    /// The statement, prepared when it is first asked for.
    pub async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.lock_statements().get(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.lock_statements().put(sql, statement.clone());
        Ok(statement)
    }

    /// What an error on this connection means. Where tables have changed under what is prepared, or a pooler has lost
    /// it, it is forgotten, so that the next try prepares anew.
    pub(crate) fn classify_error(&self, error: Error) -> PostgresError {
        if let Some("0A000" | "26000") = error.code().map(|code| code.code()) {
            self.forget_statements();
        }
        PostgresError::from(error)
    }

    pub fn forget_statements(&self) {
        *self.lock_statements() = StatementCache::default();
    }

    fn lock_statements(&self) -> std::sync::MutexGuard<'_, StatementCache> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatementCache {
    fn get(&mut self, sql: &str) -> Option<Statement> {
        self.use_count += 1;
        let (statement, used) = self.entries.get_mut(sql)?;
        *used = self.use_count;
        Some(statement.clone())
    }

    fn put(&mut self, sql: &str, statement: Statement) {
        if self.entries.len() >= MAX_STATEMENTS {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(sql, _)| sql.clone());
            oldest.and_then(|sql| self.entries.remove(&sql));
        }
        self.entries.insert(sql.into(), (statement, self.use_count));
    }
}
