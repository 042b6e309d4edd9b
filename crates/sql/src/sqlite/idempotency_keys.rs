//! Idempotency keys in SQLite: those of running requests in memory, stored responses in `trefoil_keys`.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::OptionalExtension;

use trefoil_engine::IdempotencyKey;
use trefoil_model::error::{Error, Result};

use crate::idempotency_key::{IdempotencyKeyStatus, KEY_LIFETIME_SECONDS, fingerprint_text, unix_seconds};
use crate::sqlite::session::SqliteSession;

/// The keys of requests that are running in this process.
#[derive(Debug, Clone, Default)]
pub struct RunningKeys(Arc<Mutex<HashSet<String>>>);

/// Holds a key as running until dropped.
#[derive(Debug)]
pub struct KeyGuard {
    running: RunningKeys,
    key: String,
}

impl RunningKeys {
    /// Fails if a request with this key is running.
    pub fn try_enter(&self, key: &str) -> Result<KeyGuard> {
        let is_new = self.0.lock().insert(key.to_owned());
        if is_new {
            Ok(KeyGuard { running: self.clone(), key: key.to_owned() })
        } else {
            Err(Error::KeyInUse)
        }
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.key);
    }
}

pub fn find_key(session: &SqliteSession<'_>, key: &IdempotencyKey) -> rusqlite::Result<IdempotencyKeyStatus> {
    let sql = "SELECT fingerprint, answer FROM trefoil_keys WHERE key = ?1 AND at > ?2";
    let mut statement = session.prepare(sql)?;
    let found = statement
        .query_row((&key.key, unix_seconds() - KEY_LIFETIME_SECONDS), |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(match found {
        None => IdempotencyKeyStatus::New,
        Some((fingerprint, answer)) if fingerprint == fingerprint_text(key) => {
            IdempotencyKeyStatus::Answered(answer)
        }
        Some(_) => IdempotencyKeyStatus::UsedByOther,
    })
}

/// Replaces an expired response under the same key.
pub fn store_answer(
    session: &SqliteSession<'_>,
    key: &IdempotencyKey,
    answer: &[u8],
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO trefoil_keys (key, fingerprint, answer, at) VALUES (?1, ?2, ?3, ?4)";
    session.prepare(sql)?.execute((&key.key, fingerprint_text(key), answer, unix_seconds()))?;
    Ok(())
}

/// Deletes up to `limit` expired keys and returns their number.
pub fn prune_keys(session: &SqliteSession<'_>, limit: usize) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM trefoil_keys WHERE key IN (SELECT key FROM trefoil_keys WHERE at <= ?1 LIMIT ?2)";
    session.prepare(sql)?.execute((unix_seconds() - KEY_LIFETIME_SECONDS, limit as i64))
}
