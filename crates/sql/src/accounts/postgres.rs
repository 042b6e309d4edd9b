//! Passwords, sessions, links and identities on PostgreSQL: every look-up asks the database, so what one node ended is good on none.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as DatabaseError, Row};

use trefoil_engine::{
    AccountChange, AccountStore, KeyAccount, LinkRecord, LoginColumns, ProviderIdentity, SessionRecord,
    StoredPassword,
};
use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result};

use crate::accounts::account_statements::{AccountStatement, AccountValue, statements_of};
use crate::accounts::{
    CREATE_ON_POSTGRES, FIND_BOUNDS, FIND_IDENTITY, FIND_LINK, FIND_NEAR, FIND_PASSWORD,
    FIND_SESSIONS_ON_POSTGRES, FIND_SIGN_IN_KEY, HAS_PASSWORDS, LIST_SESSIONS, MARK_SEEN_ON_POSTGRES,
    SESSION_ACCOUNTS, SIGN_IN_KEY, SessionRow, find_logins_sql, identity_account, link_of, password_of,
    session_account, text_between, triggers_on_postgres,
};
use crate::api_keys::CREATE_PAUSE;
use crate::audit;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::error::PostgresError;
use crate::postgres::{PooledConnection, PostgresStore};
use crate::statements::dialect::Dialect;

type AccountParameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// Locks no session out: what one of them has not made is there at the next try.
const HAS_TABLES: &str = "SELECT FROM pg_trigger WHERE tgrelid = to_regclass('trefoil_sessions') AND tgname = 'trefoil_ended' \
     AND to_regclass('trefoil_used_states') IS NOT NULL";

impl AccountStore for PostgresStore {
    fn prepare_accounts(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let connection = self.connections().acquire_pooled().await?;
            let prepared = create_tables(&connection).await;
            if prepared.is_ok() {
                connection.release();
            }
            prepared
        })
    }

    fn change_accounts(&self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let connection = self.connections().acquire_pooled().await?;
            create_tables(&connection).await?;
            let changed = change_in_transaction(&connection, changes).await;
            let changed = changed
                .map_err(|error| connection.classify_error(error).outcome_unknown_if_lost().into_error())?;
            connection.release();
            self.signal_commit();
            Ok(changed)
        })
    }

    fn find_logins<'s>(
        &'s self,
        columns: &'s LoginColumns,
        login: &'s str,
    ) -> BoxFuture<'s, Result<Vec<(String, String)>>> {
        let sql = find_logins_sql(Dialect::Postgres, columns);
        Box::pin(async move {
            let rows = self.read_accounts(&sql, &[&login]).await?;
            rows.iter().map(|row| Ok((column(row, 0)?, column(row, 1)?))).collect()
        })
    }

    fn find_password<'s>(&'s self, account: &'s KeyAccount) -> BoxFuture<'s, Result<Option<StoredPassword>>> {
        Box::pin(async move {
            let rows = self.read_accounts(FIND_PASSWORD, &[&account.type_name, &account.id_text()]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            password_of(column(row, 0)?, &column::<String>(row, 1)?).map(Some)
        })
    }

    fn find_password_near<'s>(
        &'s self,
        account_type: &'s str,
        place: u64,
    ) -> BoxFuture<'s, Result<Option<String>>> {
        Box::pin(async move {
            let rows = self.read_accounts(FIND_BOUNDS, &[&account_type]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let (Some(first), Some(last)) =
                (column::<Option<String>>(row, 0)?, column::<Option<String>>(row, 1)?)
            else {
                return Ok(None);
            };
            let between = text_between(&first, &last, place);
            let rows = self.read_accounts(FIND_NEAR, &[&account_type, &between]).await?;
            rows.first().map_or(Ok(None), |row| column(row, 0))
        })
    }

    fn has_passwords(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { Ok(!self.read_accounts(HAS_PASSWORDS, &[]).await?.is_empty()) })
    }

    fn find_sessions(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, SessionRecord)>>> {
        Box::pin(async move {
            let rows = self.read_accounts(FIND_SESSIONS_ON_POSTGRES, &[&hashes]).await?;
            rows.iter().map(|row| read_session(row)?.into_record()).collect()
        })
    }

    fn list_sessions<'s>(
        &'s self,
        account: &'s KeyAccount,
    ) -> BoxFuture<'s, Result<Vec<(String, SessionRecord)>>> {
        Box::pin(async move {
            let rows = self.read_accounts(LIST_SESSIONS, &[&account.type_name, &account.id_text()]).await?;
            rows.iter().map(|row| read_session(row)?.into_record()).collect()
        })
    }

    fn session_accounts<'s>(&'s self, account_type: &'s str) -> BoxFuture<'s, Result<Vec<RecordId>>> {
        Box::pin(async move {
            let rows = self.read_accounts(SESSION_ACCOUNTS, &[&account_type]).await?;
            rows.iter().map(|row| session_account(account_type, &column::<String>(row, 0)?)).collect()
        })
    }

    fn find_link<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<LinkRecord>>> {
        Box::pin(async move {
            let rows = self.read_accounts(FIND_LINK, &[&hash]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            link_of(&column::<String>(row, 0)?, &column::<String>(row, 1)?, column(row, 2)?).map(Some)
        })
    }

    fn find_identity<'s>(
        &'s self,
        identity: &'s ProviderIdentity,
    ) -> BoxFuture<'s, Result<Option<KeyAccount>>> {
        Box::pin(async move {
            let rows = self.read_accounts(FIND_IDENTITY, &[&identity.issuer, &identity.subject]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            identity_account(&column::<String>(row, 0)?, &column::<String>(row, 1)?).map(Some)
        })
    }

    fn sign_in_key(&self) -> BoxFuture<'_, Result<Option<String>>> {
        Box::pin(async {
            let rows = self.read_accounts(FIND_SIGN_IN_KEY, &[&SIGN_IN_KEY]).await?;
            rows.first().map(|row| column(row, 0)).transpose()
        })
    }

    fn mark_sessions_seen(&self, seen: Vec<(String, Timestamp)>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let connection = self.connections().acquire_pooled().await?;
            let (hashes, times): (Vec<String>, Vec<i64>) =
                seen.into_iter().map(|(hash, time)| (hash, time.as_second())).unzip();
            let marked = run_prepared(&connection, MARK_SEEN_ON_POSTGRES, &[&hashes, &times]).await;
            marked.map_err(|error| connection.classify_error(error).into_error())?;
            connection.release();
            Ok(())
        })
    }
}

impl PostgresStore {
    async fn read_accounts(&self, sql: &str, parameters: AccountParameters<'_>) -> Result<Vec<Row>> {
        let connection = self.connections().shared_connection()?;
        let rows = match query(&connection, sql, parameters).await {
            // A prepared statement may have been lost; reading it again does no harm.
            Err(PostgresError::Retryable(_)) => query(&connection, sql, parameters).await,
            result => result,
        };
        rows.map_err(PostgresError::into_error)
    }
}

/// Without the tables there is nothing in them.
async fn query(
    connection: &PgConnection,
    sql: &str,
    parameters: AccountParameters<'_>,
) -> Result<Vec<Row>, PostgresError> {
    let found = async {
        let statement = connection.prepare(sql).await?;
        connection.client().query(&statement, parameters).await
    };
    match found.await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        found => found.map_err(|error| connection.classify_error(error)),
    }
}

async fn create_tables(connection: &PooledConnection) -> Result<()> {
    let client = connection.client();
    if client.query_opt(HAS_TABLES, &[]).await.is_ok_and(|found| found.is_some()) {
        return Ok(());
    }
    let (accounts, audit) = (CREATE_ON_POSTGRES, audit::CREATE_ON_POSTGRES);
    let sql = format!("{accounts};{audit};{}", triggers_on_postgres());
    if client.batch_execute(&sql).await.is_ok() {
        return Ok(());
    }
    // Two nodes that create them at once: one of them fails, and finds them there afterwards.
    tokio::time::sleep(CREATE_PAUSE).await;
    let again = client.batch_execute(&sql).await;
    again.map_err(|error| connection.classify_error(error).into_error())
}

async fn change_in_transaction(
    connection: &PooledConnection,
    changes: Vec<AccountChange>,
) -> Result<bool, DatabaseError> {
    let client = connection.client();
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
    match run_changes(connection, changes).await {
        Ok(is_done) => {
            client.batch_execute(if is_done { "COMMIT" } else { "ROLLBACK" }).await?;
            Ok(is_done)
        }
        Err(error) => {
            let _ = client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}

/// Makes the changes within an open transaction; false if one of them finds nothing that it needs.
pub async fn run_changes(
    connection: &PgConnection,
    changes: Vec<AccountChange>,
) -> Result<bool, DatabaseError> {
    for AccountStatement { sql, values, must_change } in changes.into_iter().flat_map(statements_of) {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(parameter).collect();
        let changed = run_prepared(connection, sql, &values).await?;
        if must_change && changed == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn run_prepared(
    connection: &PgConnection,
    sql: &str,
    values: AccountParameters<'_>,
) -> Result<u64, DatabaseError> {
    let statement = connection.prepare(sql).await?;
    connection.client().execute(&statement, values).await
}

pub fn parameter(value: &AccountValue) -> &(dyn ToSql + Sync) {
    match value {
        AccountValue::Text(text) => text,
        AccountValue::OptionalText(text) => text,
        AccountValue::Integer(number) => number,
        AccountValue::NoInteger => &None::<i64>,
    }
}

fn column<'r, T: tokio_postgres::types::FromSql<'r>>(row: &'r Row, position: usize) -> Result<T> {
    row.try_get(position).map_err(Error::internal)
}

fn read_session(row: &Row) -> Result<SessionRow> {
    Ok(SessionRow {
        hash: column(row, 0)?,
        account_type: column(row, 1)?,
        account: column(row, 2)?,
        roles: column(row, 3)?,
        created: column(row, 4)?,
        seen: column(row, 5)?,
        expires: column(row, 6)?,
        address: column(row, 7)?,
        browser: column(row, 8)?,
    })
}
