//! API keys in SQLite, looked up by their hash.

use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};

use trefoil_engine::{AccountChange, ApiKeyRecord, AuditNote, CredentialStore, IdentityChanges};
use trefoil_model::error::Result;

use crate::accounts::sqlite::run_changes;
use crate::api_keys::{
    ADD_KEY, ApiKeyRow, CREATE_ON_SQLITE, FIND_KEY, LIST_KEYS, MARK_USED, REVOKE_KEY, log_on_sqlite,
};
use crate::audit;
use crate::sqlite::SqliteStore;
use crate::sqlite::change_log;
use crate::sqlite::error::store_error;
use crate::sqlite::session::SqliteSession;

/// Whether changes of keys and sessions get into the change log: tables of older versions have no triggers.
const LOGS_KEYS: &str = "SELECT (NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'trefoil_api_keys') \
     OR 4 = (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'trefoil_api_keys' \
     AND name IN ('trefoil_api_keys.created', 'trefoil_api_keys.replaced', 'trefoil_api_keys.deleted', 'trefoil_api_keys.updated'))) \
     AND (NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'trefoil_sessions') \
     OR 2 = (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'trefoil_sessions' \
     AND name IN ('trefoil_sessions.deleted', 'trefoil_sessions.updated')))";

/// The number of changes of the schema so far, by any program.
const READ_SCHEMA_VERSION: &str = "PRAGMA schema_version";

impl CredentialStore for SqliteStore {
    fn add_api_key<'s>(
        &'s self,
        hash: &'s str,
        key: &'s ApiKeyRecord,
        note: Option<AuditNote>,
    ) -> BoxFuture<'s, Result<bool>> {
        let (hash, row) = (hash.to_owned(), ApiKeyRow::from_record(key));
        Box::pin(async move {
            let added = self.run_on_writer(move |connection| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                transaction.execute_batch(CREATE_ON_SQLITE)?;
                transaction.execute_batch(&log_on_sqlite())?;
                let ApiKeyRow { name, roles, account_type, account, expires, networks, created, used } = row;
                let values = (hash, name, roles, account_type, account, expires, networks, created, used);
                let added = transaction.execute(ADD_KEY, values)?;
                write_note(&transaction, note.filter(|_| added > 0))?;
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

    fn revoke_api_key<'s>(&'s self, name: &'s str, note: Option<AuditNote>) -> BoxFuture<'s, Result<bool>> {
        let name = name.to_owned();
        Box::pin(async move {
            let revoked = self.run_on_writer(move |connection| or_empty(revoke_key(connection, &name, note)));
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

    fn find_api_keys(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, ApiKeyRecord)>>> {
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_empty(find_keys(session, &hashes));
            let rows = self.look_up(find).await?.into_iter();
            rows.map(|(hash, row)| Ok((hash, row.into_record()?))).collect()
        })
    }

    fn identity_changes(&self, after: i64, types: &[String]) -> Option<IdentityChanges> {
        let found = self.read_now(|session| {
            // One snapshot: it is asked after every commit, and each snapshot takes and frees a lock.
            session.execute_control("BEGIN")?;
            let found = self.read_identity_changes(session, after, types)?;
            session.execute_control("ROLLBACK")?;
            Ok(found)
        });
        found.ok().flatten()
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

impl SqliteStore {
    fn read_identity_changes(
        &self,
        session: SqliteSession<'_>,
        after: i64,
        types: &[String],
    ) -> rusqlite::Result<Option<IdentityChanges>> {
        let Some(schema) = session.query_integer(READ_SCHEMA_VERSION, &[])? else { return Ok(None) };
        if self.logs_keys.load(Ordering::Relaxed) != schema {
            if session.query_integer(LOGS_KEYS, &[])? != Some(1) {
                return Ok(None);
            }
            self.logs_keys.store(schema, Ordering::Relaxed);
        }
        change_log::identity_changes(session, schema, after, types).map(Some)
    }
}

fn write_note(connection: &Connection, note: Option<AuditNote>) -> rusqlite::Result<()> {
    let changes = note.map(|note| AccountChange::Note(Box::new(note)));
    if changes.is_some() {
        connection.execute_batch(audit::CREATE_ON_SQLITE)?;
    }
    run_changes(connection, changes.into_iter().collect()).map(drop)
}

fn revoke_key(connection: &mut Connection, name: &str, note: Option<AuditNote>) -> rusqlite::Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(&log_on_sqlite())?;
    let revoked = transaction.execute(REVOKE_KEY, [name])?;
    write_note(&transaction, note.filter(|_| revoked > 0))?;
    transaction.commit()?;
    Ok(revoked)
}

fn list_keys(session: SqliteSession<'_>) -> rusqlite::Result<Vec<ApiKeyRow>> {
    session.prepare(LIST_KEYS)?.query_map([], read_row)?.collect()
}

fn find_key(session: SqliteSession<'_>, hash: &str) -> rusqlite::Result<Option<ApiKeyRow>> {
    session.prepare(FIND_KEY)?.query_row([hash], read_row).optional()
}

fn find_keys(session: SqliteSession<'_>, hashes: &[String]) -> rusqlite::Result<Vec<(String, ApiKeyRow)>> {
    let find = |hash: &String| Ok(find_key(session, hash)?.map(|row| (hash.clone(), row)));
    hashes.iter().filter_map(|hash| find(hash).transpose()).collect()
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
