//! One connection to PostgreSQL: its client, the statements prepared on it, and how it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::{Client, Error, Statement};

use crate::postgres::connections::connect::Session;
use crate::postgres::error::Fault;

/// Statements kept prepared on one connection; the one unused for longest gives way.
const STATEMENTS: usize = 512;

/// One connection. A shared one runs single statements of many callers at once, pipelined: it must never see
/// BEGIN, because what others send in between would be inside.
pub struct Link {
    client: Client,
    statements: Mutex<Statements>,
    driver: AbortHandle,
    pid: Option<i32>,
    is_late: AtomicBool,
    pauses: AtomicUsize,
}

/// Somebody looks at a row and reads nothing meanwhile, for as long as this is held.
pub struct Pause<'l>(&'l AtomicUsize);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Statements {
    /// With the time of the last use.
    kept: HashMap<Box<str>, (Statement, u64)>,
    uses: u64,
}

impl Link {
    /// The connection, and the task that ends when it does.
    pub(crate) fn of(session: Session) -> (Arc<Link>, JoinHandle<String>) {
        let Session { client, driver, pid } = session;
        let (statements, is_late, pauses) = Default::default();
        (Arc::new(Link { client, statements, driver: driver.abort_handle(), pid, is_late, pauses }), driver)
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
    pub(crate) fn pause(&self) -> Pause<'_> {
        self.pauses.fetch_add(1, Ordering::Relaxed);
        Pause(&self.pauses)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Relaxed) > 0
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The statement, prepared when it is first asked for.
    pub async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements().get(sql) {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements().put(sql, statement.clone());
        Ok(statement)
    }

    /// What an error on this connection means. Where tables have changed under what is prepared, or a pooler has lost
    /// it, it is forgotten, so that the next try prepares anew.
    pub(crate) fn fault(&self, error: Error) -> Fault {
        if let Some("0A000" | "26000") = error.code().map(|code| code.code()) {
            self.forget_statements();
        }
        Fault::from(error)
    }

    pub fn forget_statements(&self) {
        *self.statements() = Statements::default();
    }

    fn statements(&self) -> std::sync::MutexGuard<'_, Statements> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Statements {
    fn get(&mut self, sql: &str) -> Option<Statement> {
        self.uses += 1;
        let (statement, used) = self.kept.get_mut(sql)?;
        *used = self.uses;
        Some(statement.clone())
    }

    fn put(&mut self, sql: &str, statement: Statement) {
        if self.kept.len() >= STATEMENTS {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(sql, _)| sql.clone());
            oldest.and_then(|sql| self.kept.remove(&sql));
        }
        self.kept.insert(sql.into(), (statement, self.uses));
    }
}
