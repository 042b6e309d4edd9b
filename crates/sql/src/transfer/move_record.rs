//! The record of a move in both of its stores, by which only the one that is live takes writes and is served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::{MigrateError, StoredModel, quote_name, quote_text};
use crate::transfer::TransferError;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::random_tag;

/// Key in `trefoil_meta` of a store that was moved away.
pub const MOVED_KEY: &str = "moved";
/// Key in `trefoil_meta` of a store that a move is still writing.
pub const ARRIVING_KEY: &str = "arriving";
/// Key in `trefoil_meta` with the token of the finished move that made the store.
pub const MOVE_TOKEN_KEY: &str = "came";

/// Stored in both stores of a move, with the same token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRecord {
    /// Location of the other store, without a password.
    pub other: String,
    pub token: String,
    pub at: String,
}

impl MoveRecord {
    pub fn begin(other: &str) -> MoveRecord {
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        MoveRecord { other: other.to_owned(), token: random_tag(), at }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    pub fn read(meta: &BTreeMap<String, String>, key: &str) -> Option<MoveRecord> {
        meta.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// Fails if the store must not be served. `read_meta` returns the value of a key in `trefoil_meta`.
pub fn refuse_moved_store(
    read_meta: impl Fn(&str) -> Result<Option<String>, MigrateError>,
) -> Result<(), MigrateError> {
    let parse = |text: String| serde_json::from_str::<MoveRecord>(&text).ok();
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

/// Adds triggers that, once committed, refuse every write to the store, also of other programs.
pub async fn close_store(
    store: &StoreHandle,
    stored_model: &StoredModel,
    record: &MoveRecord,
) -> Result<(), TransferError> {
    store.put_meta(MOVED_KEY, &record.to_json()).await?;
    let message = quote_text(&format!("this store was moved to {}", record.other));
    for table in stored_model.table_names().chain(["trefoil_list_values"]) {
        match store {
            StoreHandle::Sqlite(connection) => {
                for event in ["INSERT", "UPDATE", "DELETE"] {
                    let name = quote_name(&format!("trefoil_moved_{table}_{}", event.to_lowercase()));
                    let table = quote_name(table);
                    connection.execute_batch(&format!(
                        "CREATE TRIGGER {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, {message}); END"
                    ))?;
                }
            }
            StoreHandle::Postgres(client) => {
                let table = quote_name(table);
                client
                    .batch_execute(&format!(
                        "CREATE TRIGGER \"trefoil_moved\" BEFORE INSERT OR UPDATE OR DELETE ON {table} \
                         FOR EACH STATEMENT EXECUTE FUNCTION \"trefoil_refuse\"({message})"
                    ))
                    .await?;
            }
        }
    }
    Ok(())
}

/// Undoes [`close_store`] and removes all records of moves.
pub async fn reopen_store(store: &StoreHandle, stored_model: &StoredModel) -> Result<(), TransferError> {
    for key in [MOVED_KEY, ARRIVING_KEY, MOVE_TOKEN_KEY] {
        store.remove_meta(key).await?;
    }
    match store {
        StoreHandle::Sqlite(connection) => {
            let sql = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'trefoil!_moved!_%' ESCAPE '!'";
            let mut statement = connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            for name in names.collect::<rusqlite::Result<Vec<_>>>()? {
                connection.execute_batch(&format!("DROP TRIGGER {}", quote_name(&name)))?;
            }
        }
        StoreHandle::Postgres(client) => {
            for table in stored_model.table_names().chain(["trefoil_list_values"]) {
                let table = quote_name(table);
                client.batch_execute(&format!("DROP TRIGGER IF EXISTS \"trefoil_moved\" ON {table}")).await?;
            }
        }
    }
    Ok(())
}
