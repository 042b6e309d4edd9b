//! The state of an idempotency key, its lifetime and its stored form, the same in both stores.

use std::time::{SystemTime, UNIX_EPOCH};

use trefoil_engine::IdempotencyKey;
use trefoil_model::error::{Error, Result};

/// How long a response is stored under its key.
pub const KEY_LIFETIME_SECONDS: i64 = 24 * 60 * 60;

/// The state of a key in the store.
#[derive(Debug, PartialEq, Eq)]
pub enum IdempotencyKeyStatus {
    /// Not seen before, or expired.
    New,
    /// The same request was completed with this response.
    Answered(Vec<u8>),
    /// A different request used it.
    UsedByOther,
}

impl IdempotencyKeyStatus {
    /// The stored response to send again, if there is one.
    pub fn into_replay(self) -> Result<Option<Vec<u8>>> {
        match self {
            IdempotencyKeyStatus::New => Ok(None),
            IdempotencyKeyStatus::Answered(bytes) => Ok(Some(bytes)),
            IdempotencyKeyStatus::UsedByOther => Err(Error::KeyReused),
        }
    }
}

/// The fingerprint of the request as `trefoil_keys` stores it.
pub fn fingerprint_text(key: &IdempotencyKey) -> String {
    format!("{:032x}", key.fingerprint)
}

/// The current time as `trefoil_keys` stores it.
pub fn unix_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
