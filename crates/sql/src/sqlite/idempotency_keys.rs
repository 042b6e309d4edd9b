//! Idempotency keys: which are being worked on, and what was answered under those of the last day.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::OptionalExtension;

use crate::sqlite::session::Session;
use trefoil_engine::Key;
use trefoil_model::error::{Error, Result};

/// How long an answer is kept under its key, in seconds.
pub const KEPT_FOR: i64 = 24 * 60 * 60;

/// The keys whose requests are running in this process.
#[derive(Debug, Clone, Default)]
pub struct Running(Arc<Mutex<HashSet<String>>>);

/// A key that is being worked on, until this is dropped.
#[derive(Debug)]
pub struct InUse {
    running: Running,
    key: String,
}

impl Running {
    pub fn enter(&self, key: &str) -> Result<InUse> {
        let entered = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned());
        if entered { Ok(InUse { running: self.clone(), key: key.to_owned() }) } else { Err(Error::KeyInUse) }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Known {
    /// The first request that carries it.
    New,
    /// The same request was answered like this.
    Answered(Vec<u8>),
    /// Another request has it.
    Taken,
}

impl Known {
    /// What is to be given again, if anything.
    pub fn into_replay(self) -> Result<Option<Vec<u8>>> {
        match self {
            Known::New => Ok(None),
            Known::Answered(bytes) => Ok(Some(bytes)),
            Known::Taken => Err(Error::KeyReused),
        }
    }
}

pub fn look_up(session: &Session<'_>, key: &Key) -> rusqlite::Result<Known> {
    let sql = "SELECT fingerprint, answer FROM trefoil_keys WHERE key = ?1 AND at > ?2";
    let mut statement = session.prepare(sql)?;
    let found = statement
        .query_row((&key.key, now() - KEPT_FOR), |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .optional()?;
    Ok(match found {
        None => Known::New,
        Some((fingerprint, answer)) if fingerprint == spell(key) => Known::Answered(answer),
        Some(_) => Known::Taken,
    })
}

/// An expired answer under the same key gives way.
pub fn keep(session: &Session<'_>, key: &Key, answer: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO trefoil_keys (key, fingerprint, answer, at) VALUES (?1, ?2, ?3, ?4)";
    session.prepare(sql)?.execute((&key.key, spell(key), answer, now()))?;
    Ok(())
}

/// Forgets expired keys, at most so many; says how many they were.
pub fn prune(session: &Session<'_>, at_most: usize) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM trefoil_keys WHERE key IN (SELECT key FROM trefoil_keys WHERE at <= ?1 LIMIT ?2)";
    session.prepare(sql)?.execute((now() - KEPT_FOR, at_most as i64))
}

pub fn spell(key: &Key) -> String {
    format!("{:032x}", key.fingerprint)
}

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
