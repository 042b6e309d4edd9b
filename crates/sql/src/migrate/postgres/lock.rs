//! One migration at a time, and nobody writes where one works; nothing waits for ever for an open transaction.

use tokio_postgres::{Client, GenericClient};

use crate::migrate::MigrateError;
use crate::migrate::ddl::quote_name;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair, delete_action};
use crate::migrate::postgres::PostgresMigration;
use crate::migrate::stored_model::StoredColumn;

/// How long another node's migration is waited for, in milliseconds: as long as it may well take.
const MIGRATION_TIMEOUT_MS: i64 = 60_000;
/// How long a table that others use is waited for. The session's own `lock_timeout` counts instead where it has one.
const TABLE_TIMEOUT_MS: i64 = 10_000;

/// The lock's number: of this schema of this database.
const LOCK_ID: &str = "hashtextextended('trefoil ' || current_schema(), 0)";

/// Until the transaction ends. Where advisory locks lock nothing, the row does, once there is one.
pub async fn lock_migration(transaction: &impl GenericClient) -> Result<(), MigrateError> {
    let own = "SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout'";
    let own: i64 = transaction.query_one(own, &[]).await?.get(0);
    let wait = |time: i64| format!("SET LOCAL lock_timeout = {time}");
    transaction.batch_execute(&wait(own.max(MIGRATION_TIMEOUT_MS))).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK_ID})")).await?;
    let there = "SELECT to_regclass(quote_ident(current_schema()) || '.trefoil_meta') IS NOT NULL";
    if transaction.query_one(there, &[]).await?.get(0) {
        let row = "SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'format' FOR UPDATE";
        transaction.batch_execute(row).await?;
    }
    Ok(transaction.batch_execute(&wait(if own == 0 { TABLE_TIMEOUT_MS } else { own })).await?)
}

/// Locks the tables that change, readers out only where their columns do.
pub fn lock_tables(host: &PostgresMigration, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let changed = |pair: &&TablePair<'_>| pair.old != pair.new;
    let (mut whole, mut writes) = (Vec::new(), Vec::new());
    for pair in pairs.tables.iter().filter(changed) {
        if is_altered(pair) { &mut whole } else { &mut writes }.push(quote_name(&pair.old.table));
    }
    whole.extend(pairs.removed_tables.iter().map(|gone| quote_name(&gone.table)));
    whole.extend(pairs.removed_links.iter().map(|gone| quote_name(&gone.table)));
    for (mut tables, mode) in [(whole, "ACCESS EXCLUSIVE"), (writes, "SHARE ROW EXCLUSIVE")] {
        tables.sort();
        if !tables.is_empty() {
            host.execute_batch(&format!("LOCK TABLE {} IN {mode} MODE", tables.join(", ")))?;
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

/// Who may be in the way, oldest transaction first: whoever holds a lock on anything in this schema.
pub async fn lock_holders(client: &Client) -> Vec<String> {
    let sql = "SELECT 'process ' || a.pid || ' (' || concat_ws(', ', nullif(a.application_name, ''), \
               'user ' || a.usename, a.state, 'since ' || to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS TZ')) || ')' \
               FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL AND EXISTS (SELECT FROM pg_locks l \
               LEFT JOIN pg_class c ON c.oid = l.relation WHERE l.pid = a.pid AND l.granted AND (l.locktype = 'advisory' \
               OR c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))) \
               ORDER BY a.xact_start LIMIT 3";
    let found = client.query(sql, &[]).await.unwrap_or_default();
    found.iter().filter_map(|row| row.try_get(0).ok()).collect()
}
