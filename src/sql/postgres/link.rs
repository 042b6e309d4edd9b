//! One connection to PostgreSQL: its client, the statements prepared on it, and how it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::{Client, Error, Statement};

/// Statements kept prepared on one connection; the one unused for longest gives way.
const STATEMENTS: usize = 512;

/// One connection. A shared one runs single statements of many callers at once, pipelined: it must never see
/// BEGIN, because what others send in between would be inside.
pub struct Link {
    client: Client,
    statements: Mutex<Statements>,
}

#[derive(Default)]
struct Statements {
    /// With the time of the last use.
    kept: HashMap<Box<str>, (Statement, u64)>,
    uses: u64,
}

impl Link {
    pub(super) fn new(client: Client) -> Arc<Link> {
        Arc::new(Link { client, statements: Mutex::default() })
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

    /// Forgets what is prepared: tables may have changed under it (SQLSTATE 0A000, 42703 and their like).
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
