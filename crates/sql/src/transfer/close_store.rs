//! Closes a store that is moved, so that only the one that is live takes writes, and opens it again.

use crate::migrate::{StoredModel, quote_name, quote_text};
use crate::move_record::{ARRIVING_KEY, MOVE_TOKEN_KEY, MOVED_KEY, StoreMove};
use crate::transfer::TransferError;
use crate::transfer::store_handle::StoreHandle;

/// Adds triggers that, once committed, refuse every write to the store, also of other programs.
pub async fn close_store(
    store: &StoreHandle,
    stored_model: &StoredModel,
    record: &StoreMove,
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
