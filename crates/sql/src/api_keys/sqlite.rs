//! API keys in SQLite, looked up by their hash.

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use trefoil_engine::{ApiKeyRecord, CredentialStore};
use trefoil_model::error::Result;

use crate::api_keys::{
    ADD_KEY, ApiKeyRow, CREATE_ON_SQLITE, FIND_KEY, LIST_KEYS, MARK_USED, REVOKE_KEY, log_on_sqlite,
};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::store_error;
use crate::sqlite::session::SqliteSession;

impl CredentialStore for SqliteStore {
    fn add_api_key<'s>(&'s self, hash: &'s str, key: &'s ApiKeyRecord) -> BoxFuture<'s, Result<bool>> {
        let (hash, row) = (hash.to_owned(), ApiKeyRow::from_record(key));
        Box::pin(async move {
            let added = self.run_on_writer(move |connection| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                transaction.execute_batch(CREATE_ON_SQLITE)?;
                transaction.execute_batch(&log_on_sqlite())?;
                let ApiKeyRow { name, roles, account_type, account, expires, networks, created, used } = row;
                let values = (hash, name, roles, account_type, account, expires, networks, created, used);
                let added = transaction.execute(ADD_KEY, values)?;
                transaction.commit()?;
                Ok(added > 0)
            });
            added.await?.map_err(|error: rusqlite::Error| store_error(&error))
        })
    }

    fn list_api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRecord>>> {
        Box::pin(async {
            let rows = self.look_up(|session| or_empty(list_keys(session))).await?;
            rows.into_iter().map(ApiKeyRow::into_record).collect()
        })
    }

    fn revoke_api_key<'s>(&'s self, name: &'s str) -> BoxFuture<'s, Result<bool>> {
        let name = name.to_owned();
        Box::pin(async move {
            let revoked = self.run_on_writer(move |connection| or_empty(revoke_key(connection, &name)));
            Ok(revoked.await?.map_err(|error| store_error(&error))? > 0)
        })
    }

    fn find_api_key<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<ApiKeyRecord>>> {
        let hash = hash.to_owned();
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_empty(find_key(session, &hash));
            self.look_up(find).await?.map(ApiKeyRow::into_record).transpose()
        })
    }

    fn mark_api_key_used<'s>(&'s self, hash: &'s str, day: Date) -> BoxFuture<'s, Result<()>> {
        let (hash, day) = (hash.to_owned(), day.to_string());
        Box::pin(async move {
            let marked =
                self.run_on_writer(move |connection| or_empty(connection.execute(MARK_USED, [day, hash])));
            marked.await?.map(drop).map_err(|error| store_error(&error))
        })
    }
}

fn revoke_key(connection: &mut Connection, name: &str) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(&log_on_sqlite())?;
    let revoked = transaction.execute(REVOKE_KEY, [name])?;
    transaction.commit()?;
    Ok(revoked)
}

fn list_keys(session: SqliteSession<'_>) -> rusqlite::Result<Vec<ApiKeyRow>> {
    session.prepare(LIST_KEYS)?.query_map([], read_row)?.collect()
}

fn find_key(session: SqliteSession<'_>, hash: &str) -> rusqlite::Result<Option<ApiKeyRow>> {
    session.prepare(FIND_KEY)?.query_row([hash], read_row).optional()
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<ApiKeyRow> {
    Ok(ApiKeyRow {
        name: row.get(0)?,
        roles: row.get(1)?,
        account_type: row.get(2)?,
        account: row.get(3)?,
        expires: row.get(4)?,
        networks: row.get(5)?,
        created: row.get(6)?,
        used: row.get(7)?,
    })
}

/// Without the table there are no keys. SQLite has no code for that.
fn or_empty<T: Default>(result: rusqlite::Result<T>) -> rusqlite::Result<T> {
    match result {
        // With the name of the database, where triggers are made.
        Err(error) if is_missing_table(&error.to_string()) => Ok(T::default()),
        other => other,
    }
}

fn is_missing_table(message: &str) -> bool {
    ["no such table: trefoil_api_keys", "no such table: main.trefoil_api_keys"]
        .iter()
        .any(|words| message.contains(words))
}
