//! API keys on PostgreSQL: every look-up asks the database, so a key that one node revoked is good on none.

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as DatabaseError, Row};

use trefoil_engine::{AccountChange, ApiKeyRecord, AuditNote, CredentialStore, IdentityChanges};
use trefoil_model::error::{Error, Result};

use crate::accounts::postgres::run_changes;
use crate::api_keys::{
    ADD_KEY, ApiKeyRow, CREATE_ON_POSTGRES, CREATE_PAUSE, FIND_KEY, FIND_KEYS_ON_POSTGRES, LIST_KEYS,
    MARK_USED, REVOKE_KEY, log_on_postgres,
};
use crate::audit;
use crate::postgres::PostgresStore;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::error::PostgresError;

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

impl CredentialStore for PostgresStore {
    fn add_api_key<'s>(
        &'s self,
        hash: &'s str,
        key: &'s ApiKeyRecord,
        note: Option<AuditNote>,
    ) -> BoxFuture<'s, Result<bool>> {
        let row = ApiKeyRow::from_record(key);
        Box::pin(async move {
            let connection = self.connections().acquire_pooled().await?;
            let audit = audit::CREATE_ON_POSTGRES;
            create(&connection, &format!("{CREATE_ON_POSTGRES};{audit};{}", log_on_postgres())).await?;
            let ApiKeyRow { name, roles, account_type, account, expires, networks, created, used } = row;
            let values: Parameters<'_> =
                &[&hash, &name, &roles, &account_type, &account, &expires, &networks, &created, &used];
            execute_noted(&connection, ADD_KEY, values, note).await
        })
    }

    fn list_api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRecord>>> {
        Box::pin(async { self.read_keys(LIST_KEYS, &[]).await })
    }

    fn revoke_api_key<'s>(&'s self, name: &'s str, note: Option<AuditNote>) -> BoxFuture<'s, Result<bool>> {
        Box::pin(async move {
            let connection = self.connections().acquire_pooled().await?;
            let has_table = "SELECT FROM pg_class WHERE oid = to_regclass('trefoil_api_keys')";
            if execute(&connection, has_table, &[]).await? == 0 {
                return Ok(false);
            }
            create(&connection, &format!("{};{}", audit::CREATE_ON_POSTGRES, log_on_postgres())).await?;
            execute_noted(&connection, REVOKE_KEY, &[&name], note).await
        })
    }

    fn find_api_key<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<ApiKeyRecord>>> {
        Box::pin(async move { Ok(self.read_keys(FIND_KEY, &[&hash]).await?.pop()) })
    }

    fn find_api_keys(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, ApiKeyRecord)>>> {
        Box::pin(async move {
            let rows = self.read_rows(FIND_KEYS_ON_POSTGRES, &[&hashes]).await?;
            let key = |row: &Row| Ok((row.try_get(8).map_err(Error::internal)?, into_record(row)?));
            rows.iter().map(key).collect()
        })
    }

    fn identity_changes(&self, _: i64, _: &[String]) -> Option<IdentityChanges> {
        None
    }

    fn mark_api_key_used<'s>(&'s self, hash: &'s str, day: Date) -> BoxFuture<'s, Result<()>> {
        Box::pin(async move {
            let connection = self.connections().acquire_pooled().await?;
            execute(&connection, MARK_USED, &[&day.to_string(), &hash]).await.map(drop)
        })
    }
}

impl PostgresStore {
    async fn read_keys(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<ApiKeyRecord>> {
        self.read_rows(sql, parameters).await?.iter().map(into_record).collect()
    }

    async fn read_rows(&self, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        let connection = self.connections().shared_connection()?;
        let rows = match query(&connection, sql, parameters).await {
            // A prepared statement may have been lost; reading it again does no harm.
            Err(PostgresError::Retryable(_)) => query(&connection, sql, parameters).await,
            result => result,
        };
        rows.map_err(PostgresError::into_error)
    }
}

/// Without the table there are no keys.
async fn query(
    connection: &PgConnection,
    sql: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<Row>, PostgresError> {
    let found = async {
        let statement = connection.prepare(sql).await?;
        connection.client().query(&statement, parameters).await
    };
    match found.await {
        Err(error) if is_missing_table(&error) => Ok(Vec::new()),
        found => found.map_err(|error| connection.classify_error(error)),
    }
}

async fn create(connection: &PgConnection, sql: &str) -> Result<()> {
    if connection.client().batch_execute(sql).await.is_ok() {
        return Ok(());
    }
    // Two nodes that create it at once: one of them fails, and finds it there afterwards.
    tokio::time::sleep(CREATE_PAUSE).await;
    let again = connection.client().batch_execute(sql).await;
    again.map_err(|error| connection.classify_error(error).into_error())
}

/// Runs a statement and, if it changes something, writes the note in its transaction.
async fn execute_noted(
    connection: &PgConnection,
    sql: &str,
    parameters: Parameters<'_>,
    note: Option<AuditNote>,
) -> Result<bool> {
    let client = connection.client();
    let noted = async {
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
        let is_changed = client.execute(sql, parameters).await? > 0;
        if let Some(note) = note.filter(|_| is_changed) {
            run_changes(connection, vec![AccountChange::Note(Box::new(note))]).await?;
        }
        client.batch_execute("COMMIT").await?;
        Ok(is_changed)
    };
    // The connection is closed with what it has not committed.
    noted.await.map_err(|error: DatabaseError| {
        connection.classify_error(error).outcome_unknown_if_lost().into_error()
    })
}

async fn execute(connection: &PgConnection, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
    match connection.client().execute(sql, parameters).await {
        Err(error) if is_missing_table(&error) => Ok(0),
        changed => {
            changed.map_err(|error| connection.classify_error(error).outcome_unknown_if_lost().into_error())
        }
    }
}

fn is_missing_table(error: &DatabaseError) -> bool {
    error.code() == Some(&SqlState::UNDEFINED_TABLE)
}

fn into_record(row: &Row) -> Result<ApiKeyRecord> {
    read_row(row).map_err(Error::internal).and_then(ApiKeyRow::into_record)
}

fn read_row(row: &Row) -> Result<ApiKeyRow, DatabaseError> {
    Ok(ApiKeyRow {
        name: row.try_get(0)?,
        roles: row.try_get(1)?,
        account_type: row.try_get(2)?,
        account: row.try_get(3)?,
        expires: row.try_get(4)?,
        networks: row.try_get(5)?,
        created: row.try_get(6)?,
        used: row.try_get(7)?,
    })
}
