//! Passwords, sessions, links and identities in SQLite.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, TransactionBehavior, params_from_iter};

use trefoil_engine::{
    AccountChange, AccountStore, KeyAccount, LinkRecord, LoginColumns, ProviderIdentity, SessionRecord,
    StoredPassword,
};
use trefoil_model::RecordId;
use trefoil_model::error::Result;

use crate::accounts::account_statements::{AccountStatement, AccountValue, statements_of};
use crate::accounts::{
    CREATE_ON_SQLITE, FIND_BOUNDS, FIND_IDENTITY, FIND_LINK, FIND_NEAR, FIND_PASSWORD, FIND_SESSION,
    FIND_SIGN_IN_KEY, HAS_PASSWORDS, LIST_SESSIONS, MARK_SEEN, SESSION_ACCOUNTS, SIGN_IN_KEY, SessionRow,
    find_logins_sql, identity_account, link_of, password_of, session_account, text_between,
    triggers_on_sqlite,
};
use crate::audit;
use crate::sqlite::SqliteStore;
use crate::sqlite::error::store_error;
use crate::sqlite::session::SqliteSession;
use crate::statements::dialect::Dialect;

impl AccountStore for SqliteStore {
    fn prepare_accounts(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            let made = self.run_on_writer(|connection| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                create_tables(&transaction)?;
                transaction.commit()
            });
            made.await?.map_err(|error| store_error(&error))
        })
    }

    fn change_accounts(&self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let changed = self.run_on_writer(move |connection| {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                create_tables(&transaction)?;
                let is_done = run_changes(&transaction, changes)?;
                if is_done {
                    transaction.commit()?
                } else {
                    transaction.rollback()?
                }
                Ok(is_done)
            });
            changed.await?.map_err(|error: rusqlite::Error| store_error(&error))
        })
    }

    fn find_logins<'s>(
        &'s self,
        columns: &'s LoginColumns,
        login: &'s str,
    ) -> BoxFuture<'s, Result<Vec<(String, String)>>> {
        let (sql, login) = (find_logins_sql(Dialect::Sqlite, columns), login.to_owned());
        Box::pin(async move {
            self.look_up(move |session| {
                let mut statement = session.prepare(&sql)?;
                let rows = statement.query_map([&login], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            })
            .await
        })
    }

    fn find_password<'s>(&'s self, account: &'s KeyAccount) -> BoxFuture<'s, Result<Option<StoredPassword>>> {
        let key = [account.type_name.clone(), account.id_text()];
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_none(find_password(session, &key));
            let found: Option<(String, String)> = self.look_up(find).await?.flatten();
            found.map(|(hash, networks)| password_of(hash, &networks)).transpose()
        })
    }

    fn find_password_near<'s>(
        &'s self,
        account_type: &'s str,
        place: u64,
    ) -> BoxFuture<'s, Result<Option<String>>> {
        let account_type = account_type.to_owned();
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_none(find_near(session, &account_type, place));
            Ok(self.look_up(find).await?.flatten())
        })
    }

    fn has_passwords(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async {
            let found = self.look_up(|session| or_none(session.query_integer(HAS_PASSWORDS, &[])));
            Ok(found.await?.flatten().is_some())
        })
    }

    fn find_sessions(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, SessionRecord)>>> {
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_none(find_sessions(session, &hashes));
            let rows = self.look_up(find).await?.unwrap_or_default();
            rows.into_iter().map(SessionRow::into_record).collect()
        })
    }

    fn list_sessions<'s>(
        &'s self,
        account: &'s KeyAccount,
    ) -> BoxFuture<'s, Result<Vec<(String, SessionRecord)>>> {
        let key = [account.type_name.clone(), account.id_text()];
        Box::pin(async move {
            let list = move |session: SqliteSession<'_>| or_none(list_sessions(session, &key));
            let rows = self.look_up(list).await?.unwrap_or_default();
            rows.into_iter().map(SessionRow::into_record).collect()
        })
    }

    fn session_accounts<'s>(&'s self, account_type: &'s str) -> BoxFuture<'s, Result<Vec<RecordId>>> {
        Box::pin(async move {
            let name = account_type.to_owned();
            let list = move |session: SqliteSession<'_>| or_none(session_accounts(session, &name));
            let found = self.look_up(list).await?.unwrap_or_default();
            found.iter().map(|account| session_account(account_type, account)).collect()
        })
    }

    fn find_link<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<LinkRecord>>> {
        let hash = hash.to_owned();
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_none(find_link(session, &hash));
            let found: Option<(String, String, i64)> = self.look_up(find).await?.flatten();
            found.map(|(name, id, expires)| link_of(&name, &id, expires)).transpose()
        })
    }

    fn find_identity<'s>(
        &'s self,
        identity: &'s ProviderIdentity,
    ) -> BoxFuture<'s, Result<Option<KeyAccount>>> {
        let key = [identity.issuer.clone(), identity.subject.clone()];
        Box::pin(async move {
            let find = move |session: SqliteSession<'_>| or_none(find_identity(session, &key));
            let found: Option<(String, String)> = self.look_up(find).await?.flatten();
            found.map(|(name, id)| identity_account(&name, &id)).transpose()
        })
    }

    fn sign_in_key(&self) -> BoxFuture<'_, Result<Option<String>>> {
        Box::pin(async {
            let find = |session: SqliteSession<'_>| {
                let mut statement = session.prepare(FIND_SIGN_IN_KEY)?;
                statement.query_row([SIGN_IN_KEY], |row| row.get(0)).optional()
            };
            self.look_up(find).await
        })
    }

    fn mark_sessions_seen(&self, seen: Vec<(String, Timestamp)>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let marked = self.run_on_writer(move |connection| or_none(mark_seen(connection, &seen)));
            marked.await?.map(drop).map_err(|error| store_error(&error))
        })
    }
}

fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CREATE_ON_SQLITE)?;
    connection.execute_batch(audit::CREATE_ON_SQLITE)?;
    connection.execute_batch(&triggers_on_sqlite())
}

/// Makes the changes within an open transaction; false if one of them finds nothing that it needs.
pub fn run_changes(connection: &Connection, changes: Vec<AccountChange>) -> rusqlite::Result<bool> {
    for AccountStatement { sql, values, must_change } in changes.into_iter().flat_map(statements_of) {
        let changed = connection.execute(sql, params_from_iter(values))?;
        if must_change && changed == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

impl ToSql for AccountValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            AccountValue::Text(text) | AccountValue::OptionalText(Some(text)) => {
                ValueRef::Text(text.as_bytes())
            }
            AccountValue::OptionalText(None) | AccountValue::NoInteger => ValueRef::Null,
            AccountValue::Integer(number) => ValueRef::Integer(*number),
        }))
    }
}

fn find_password(
    session: SqliteSession<'_>,
    key: &[String; 2],
) -> rusqlite::Result<Option<(String, String)>> {
    let mut statement = session.prepare(FIND_PASSWORD)?;
    statement.query_row([&key[0], &key[1]], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn find_near(session: SqliteSession<'_>, account_type: &str, place: u64) -> rusqlite::Result<Option<String>> {
    let bounds: (Option<String>, Option<String>) =
        session.prepare(FIND_BOUNDS)?.query_row([account_type], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = bounds else { return Ok(None) };
    let between = text_between(&first, &last, place);
    session.prepare(FIND_NEAR)?.query_row([account_type, &between], |row| row.get(0))
}

fn find_sessions(session: SqliteSession<'_>, hashes: &[String]) -> rusqlite::Result<Vec<SessionRow>> {
    let find = |hash: &String| session.prepare(FIND_SESSION)?.query_row([hash], read_session).optional();
    hashes.iter().filter_map(|hash| find(hash).transpose()).collect()
}

fn list_sessions(session: SqliteSession<'_>, key: &[String; 2]) -> rusqlite::Result<Vec<SessionRow>> {
    session.prepare(LIST_SESSIONS)?.query_map([&key[0], &key[1]], read_session)?.collect()
}

fn session_accounts(session: SqliteSession<'_>, account_type: &str) -> rusqlite::Result<Vec<String>> {
    session.prepare(SESSION_ACCOUNTS)?.query_map([account_type], |row| row.get(0))?.collect()
}

fn find_link(session: SqliteSession<'_>, hash: &str) -> rusqlite::Result<Option<(String, String, i64)>> {
    let mut statement = session.prepare(FIND_LINK)?;
    statement.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
}

fn find_identity(
    session: SqliteSession<'_>,
    key: &[String; 2],
) -> rusqlite::Result<Option<(String, String)>> {
    let mut statement = session.prepare(FIND_IDENTITY)?;
    statement.query_row([&key[0], &key[1]], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn mark_seen(connection: &mut Connection, seen: &[(String, Timestamp)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (hash, time) in seen {
        transaction.prepare_cached(MARK_SEEN)?.execute((time.as_second(), hash))?;
    }
    transaction.commit()
}

fn read_session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        hash: row.get(0)?,
        account_type: row.get(1)?,
        account: row.get(2)?,
        roles: row.get(3)?,
        created: row.get(4)?,
        seen: row.get(5)?,
        expires: row.get(6)?,
        address: row.get(7)?,
        browser: row.get(8)?,
    })
}

/// Without the tables there is nothing in them. SQLite has no code for that.
fn or_none<T>(result: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match result {
        Err(error) if is_missing_table(&error.to_string()) => Ok(None),
        other => other.map(Some),
    }
}

fn is_missing_table(message: &str) -> bool {
    let missing = |table: &str| message.contains(&format!("no such table: {table}"));
    super::ACCOUNT_TABLES.into_iter().any(missing)
}
