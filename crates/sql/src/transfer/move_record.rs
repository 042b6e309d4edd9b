//! Whether a store is the live one: one that was moved away says where it went and takes no more writes, and one that is
//! still arriving is not served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::{MigrateError, StoredModel, quote_name, quote_text};
use crate::transfer::TransferError;
use crate::transfer::store_handle::StoreHandle;

/// The keys in `trefoil_meta`.
pub const MOVED_KEY: &str = "moved";
pub const ARRIVING_KEY: &str = "arriving";
/// The token of the move by which the store came where it is.
pub const CAME_KEY: &str = "came";

/// What both sides of a move have on record; the token tells that they belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveRecord {
    /// The other side, without a password.
    pub other: String,
    pub token: String,
    pub at: String,
}

impl MoveRecord {
    pub fn begin(other: &str) -> MoveRecord {
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        MoveRecord { other: other.to_owned(), token: crate::transfer::store_metadata::random_tag(), at }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    pub fn read(meta: &BTreeMap<String, String>, key: &str) -> Option<MoveRecord> {
        meta.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// A store that is not to be served. `text` gives what is on record under a key.
pub fn refuse_moved_store(
    record: impl Fn(&str) -> Result<Option<String>, MigrateError>,
) -> Result<(), MigrateError> {
    let passage = |text: String| serde_json::from_str::<MoveRecord>(&text).ok();
    if let Some(text) = record(MOVED_KEY)? {
        let (to, at) = passage(text).map_or_else(Default::default, |passage| (passage.other, passage.at));
        return Err(MigrateError::Moved { to, at });
    }
    if let Some(text) = record(ARRIVING_KEY)? {
        let from = passage(text).map(|passage| passage.other).unwrap_or_default();
        return Err(MigrateError::IncompleteMove { from });
    }
    Ok(())
}

/// From the end of the transaction on nobody writes here any more, whatever program it is.
pub async fn close_store(
    end: &StoreHandle,
    shape: &StoredModel,
    passage: &MoveRecord,
) -> Result<(), TransferError> {
    end.put_meta(MOVED_KEY, &passage.to_json()).await?;
    let why = quote_text(&format!("this store was moved to {}", passage.other));
    for table in shape.table_names().chain(["trefoil_list_values"]) {
        match end {
            StoreHandle::Sqlite(connection) => {
                for deed in ["INSERT", "UPDATE", "DELETE"] {
                    let name = quote_name(&format!("trefoil_moved_{table}_{}", deed.to_lowercase()));
                    let table = quote_name(table);
                    connection.execute_batch(&format!(
                        "CREATE TRIGGER {name} BEFORE {deed} ON {table} BEGIN SELECT RAISE(ABORT, {why}); END"
                    ))?;
                }
            }
            StoreHandle::Postgres(client) => {
                let table = quote_name(table);
                client
                    .batch_execute(&format!(
                        "CREATE TRIGGER \"trefoil_moved\" BEFORE INSERT OR UPDATE OR DELETE ON {table} \
                         FOR EACH STATEMENT EXECUTE FUNCTION \"trefoil_refuse\"({why})"
                    ))
                    .await?;
            }
        }
    }
    Ok(())
}

/// Undoes [`close`]; nothing is on record of a move any more.
pub async fn reopen_store(end: &StoreHandle, shape: &StoredModel) -> Result<(), TransferError> {
    for key in [MOVED_KEY, ARRIVING_KEY, CAME_KEY] {
        end.remove_meta(key).await?;
    }
    match end {
        StoreHandle::Sqlite(connection) => {
            let sql = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'trefoil!_moved!_%' ESCAPE '!'";
            let mut statement = connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            for name in names.collect::<rusqlite::Result<Vec<_>>>()? {
                connection.execute_batch(&format!("DROP TRIGGER {}", quote_name(&name)))?;
            }
        }
        StoreHandle::Postgres(client) => {
            for table in shape.table_names().chain(["trefoil_list_values"]) {
                let table = quote_name(table);
                client.batch_execute(&format!("DROP TRIGGER IF EXISTS \"trefoil_moved\" ON {table}")).await?;
            }
        }
    }
    Ok(())
}
