//! The locks of a migration: against other migrations and against writers, each with a timeout.

use tokio_postgres::{Client, GenericClient};

use crate::migrate::MigrateError;
use crate::migrate::create_statements::quote_name;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair, delete_action};
use crate::migrate::postgres::database::PostgresMigration;
use crate::migrate::stored_model::StoredColumn;

/// Milliseconds to wait for the migration of another node: as long as one may take.
const MIGRATION_TIMEOUT_MS: i64 = 60_000;
/// Milliseconds to wait for a table, unless the session has its own `lock_timeout`.
const TABLE_TIMEOUT_MS: i64 = 10_000;

/// The number of the advisory lock, which belongs to the schema.
const LOCK_ID: &str = "hashtextextended('trefoil ' || current_schema(), 0)";

/// Locks out other migrations until the transaction ends. The row lock is for servers where advisory locks have no
/// effect; it needs an existing store.
pub async fn lock_migration(transaction: &impl GenericClient) -> Result<(), MigrateError> {
    let sql = "SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout'";
    let session_timeout: i64 = transaction.query_one(sql, &[]).await?.get(0);
    let set_timeout = |milliseconds: i64| format!("SET LOCAL lock_timeout = {milliseconds}");
    transaction.batch_execute(&set_timeout(session_timeout.max(MIGRATION_TIMEOUT_MS))).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK_ID})")).await?;
    let has_store = "SELECT to_regclass(quote_ident(current_schema()) || '.trefoil_meta') IS NOT NULL";
    if transaction.query_one(has_store, &[]).await?.get(0) {
        let lock_row = "SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'format' FOR UPDATE";
        transaction.batch_execute(lock_row).await?;
    }
    Ok(transaction
        .batch_execute(&set_timeout(if session_timeout == 0 { TABLE_TIMEOUT_MS } else { session_timeout }))
        .await?)
}

/// Locks the tables that change: against writers, and against readers too if their columns change.
pub fn lock_tables(database: &PostgresMigration, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let changed = |pair: &&TablePair<'_>| pair.old != pair.new;
    let (mut exclusive, mut writes) = (Vec::new(), Vec::new());
    for pair in pairs.tables.iter().filter(changed) {
        if is_altered(pair) { &mut exclusive } else { &mut writes }.push(quote_name(&pair.old.table));
    }
    exclusive.extend(pairs.removed_tables.iter().map(|removed| quote_name(&removed.table)));
    exclusive.extend(pairs.removed_links.iter().map(|removed| quote_name(&removed.table)));
    for (mut tables, mode) in [(exclusive, "ACCESS EXCLUSIVE"), (writes, "SHARE ROW EXCLUSIVE")] {
        tables.sort();
        if !tables.is_empty() {
            database.execute_batch(&format!("LOCK TABLE {} IN {mode} MODE", tables.join(", ")))?;
        }
    }
    Ok(())
}

fn is_altered(pair: &TablePair<'_>) -> bool {
    let same = |old: &StoredColumn, new: &StoredColumn| {
        (&old.column, old.required, &old.default, delete_action(&old.form))
            == (&new.column, new.required, &new.default, delete_action(&new.form))
            && old.form == new.form
    };
    pair.old.table != pair.new.table
        || !pair.new_columns.is_empty()
        || !pair.removed_columns.is_empty()
        || !pair.columns.iter().all(|(old, new)| same(old, new))
}

/// Describes the sessions that hold locks in this schema of this database, oldest transaction first.
pub async fn lock_holders(client: &Client) -> Vec<String> {
    let sql = "SELECT 'process ' || a.pid || ' (' || concat_ws(', ', nullif(a.application_name, ''), \
               'user ' || a.usename, a.state, 'since ' || to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS TZ')) || ')' \
               FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() \
               AND a.xact_start IS NOT NULL AND EXISTS (SELECT FROM pg_locks l \
               LEFT JOIN pg_class c ON c.oid = l.relation WHERE l.pid = a.pid AND l.granted AND (l.locktype = 'advisory' \
               OR c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))) \
               ORDER BY a.xact_start LIMIT 3";
    let found = client.query(sql, &[]).await.unwrap_or_default();
    found.iter().filter_map(|row| row.try_get(0).ok()).collect()
}
