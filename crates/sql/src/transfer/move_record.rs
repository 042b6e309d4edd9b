//! Whether a store is the live one: one that was moved away says where it went and takes no more writes, and one that is
//! still arriving is not served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::migrate::{MigrateError, StoredModel, quoted, text};
use crate::transfer::Failed;
use crate::transfer::store_handle::End;

/// The keys in `trefoil_meta`.
pub const MOVED: &str = "moved";
pub const ARRIVING: &str = "arriving";
/// The token of the move by which the store came where it is.
pub const CAME: &str = "came";

/// What both sides of a move have on record; the token tells that they belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The other side, without a password.
    pub other: String,
    pub token: String,
    pub at: String,
}

impl Passage {
    pub fn begin(other: &str) -> Passage {
        let at = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        Passage { other: other.to_owned(), token: crate::transfer::store_metadata::random(), at }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form")
    }

    pub fn read(meta: &BTreeMap<String, String>, key: &str) -> Option<Passage> {
        meta.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// A store that is not to be served. `text` gives what is on record under a key.
pub fn refuse(record: impl Fn(&str) -> Result<Option<String>, MigrateError>) -> Result<(), MigrateError> {
    let passage = |text: String| serde_json::from_str::<Passage>(&text).ok();
    if let Some(text) = record(MOVED)? {
        let (to, at) = passage(text).map_or_else(Default::default, |passage| (passage.other, passage.at));
        return Err(MigrateError::Moved { to, at });
    }
    if let Some(text) = record(ARRIVING)? {
        let from = passage(text).map(|passage| passage.other).unwrap_or_default();
        return Err(MigrateError::Arriving { from });
    }
    Ok(())
}

/// From the end of the transaction on nobody writes here any more, whatever program it is.
pub async fn close(end: &End, shape: &StoredModel, passage: &Passage) -> Result<(), Failed> {
    end.put_meta(MOVED, &passage.to_json()).await?;
    let why = text(&format!("this store was moved to {}", passage.other));
    for table in shape.table_names().chain(["trefoil_list_values"]) {
        match end {
            End::Sqlite(connection) => {
                for deed in ["INSERT", "UPDATE", "DELETE"] {
                    let name = quoted(&format!("trefoil_moved_{table}_{}", deed.to_lowercase()));
                    let table = quoted(table);
                    connection.execute_batch(&format!(
                        "CREATE TRIGGER {name} BEFORE {deed} ON {table} BEGIN SELECT RAISE(ABORT, {why}); END"
                    ))?;
                }
            }
            End::Postgres(client) => {
                let table = quoted(table);
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
pub async fn open_again(end: &End, shape: &StoredModel) -> Result<(), Failed> {
    for key in [MOVED, ARRIVING, CAME] {
        end.remove_meta(key).await?;
    }
    match end {
        End::Sqlite(connection) => {
            let sql = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'trefoil!_moved!_%' ESCAPE '!'";
            let mut statement = connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            for name in names.collect::<rusqlite::Result<Vec<_>>>()? {
                connection.execute_batch(&format!("DROP TRIGGER {}", quoted(&name)))?;
            }
        }
        End::Postgres(client) => {
            for table in shape.table_names().chain(["trefoil_list_values"]) {
                let table = quoted(table);
                client.batch_execute(&format!("DROP TRIGGER IF EXISTS \"trefoil_moved\" ON {table}")).await?;
            }
        }
    }
    Ok(())
}
