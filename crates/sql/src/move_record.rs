//! The record of a move in `trefoil_meta` of both stores, by which only the one that is live is served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::MigrateError;

/// Key in `trefoil_meta` of a store that was moved away.
pub const MOVED_KEY: &str = "moved";
/// Key in `trefoil_meta` of a store that a move is still writing.
pub const ARRIVING_KEY: &str = "arriving";
/// Key in `trefoil_meta` with the token of the finished move that made the store.
pub const MOVE_TOKEN_KEY: &str = "came";

/// Stored in both stores of a move, with the same token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreMove {
    /// Location of the other store, without a password.
    pub other: String,
    pub token: String,
    pub at: String,
}

impl StoreMove {
    pub fn begin(other: &str) -> StoreMove {
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        StoreMove { other: other.to_owned(), token: random_tag(), at }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    pub fn read(meta: &BTreeMap<String, String>, key: &str) -> Option<StoreMove> {
        meta.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// Fails if the store must not be served. `read_meta` returns the value of a key in `trefoil_meta`.
pub fn refuse_moved_store(
    read_meta: impl Fn(&str) -> Result<Option<String>, MigrateError>,
) -> Result<(), MigrateError> {
    let parse = |text: String| serde_json::from_str::<StoreMove>(&text).ok();
    if let Some(text) = read_meta(MOVED_KEY)? {
        let (to, at) = parse(text).map_or_else(Default::default, |record| (record.other, record.at));
        return Err(MigrateError::Moved { to, at });
    }
    if let Some(text) = read_meta(ARRIVING_KEY)? {
        let from = parse(text).map(|record| record.other).unwrap_or_default();
        return Err(MigrateError::IncompleteMove { from });
    }
    Ok(())
}

/// Eight random hexadecimal digits.
pub fn random_tag() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}
