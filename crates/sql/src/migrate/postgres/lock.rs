//! One migration at a time, and nobody writes where one works; nothing waits for ever for an open transaction.

use tokio_postgres::{Client, GenericClient};

use crate::migrate::MigrateError;
use crate::migrate::ddl::quoted;
use crate::migrate::migration_database::Host;
use crate::migrate::model_pairs::{Pairs, TablePair, on_delete};
use crate::migrate::postgres::Postgres;
use crate::migrate::stored_model::Column;

/// How long another node's migration is waited for, in milliseconds: as long as it may well take.
const TURN: i64 = 60_000;
/// How long a table that others use is waited for. The session's own `lock_timeout` counts instead where it has one.
const TABLES: i64 = 10_000;

/// The lock's number: of this schema of this database.
const NUMBER: &str = "hashtextextended('trefoil ' || current_schema(), 0)";

/// Until the transaction ends. Where advisory locks lock nothing, the row does, once there is one.
pub async fn take_turn(transaction: &impl GenericClient) -> Result<(), MigrateError> {
    let own = "SELECT setting::bigint FROM pg_settings WHERE name = 'lock_timeout'";
    let own: i64 = transaction.query_one(own, &[]).await?.get(0);
    let wait = |time: i64| format!("SET LOCAL lock_timeout = {time}");
    transaction.batch_execute(&wait(own.max(TURN))).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({NUMBER})")).await?;
    let there = "SELECT to_regclass(quote_ident(current_schema()) || '.trefoil_meta') IS NOT NULL";
    if transaction.query_one(there, &[]).await?.get(0) {
        let row = "SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'format' FOR UPDATE";
        transaction.batch_execute(row).await?;
    }
    Ok(transaction.batch_execute(&wait(if own == 0 { TABLES } else { own })).await?)
}

/// Locks the tables that change, readers out only where their columns do.
pub fn hold(host: &Postgres, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
    let changed = |pair: &&TablePair<'_>| pair.old != pair.new;
    let (mut whole, mut writes) = (Vec::new(), Vec::new());
    for pair in pairs.tables.iter().filter(changed) {
        if is_altered(pair) { &mut whole } else { &mut writes }.push(quoted(&pair.old.table));
    }
    whole.extend(pairs.gone_tables.iter().map(|gone| quoted(&gone.table)));
    whole.extend(pairs.gone_links.iter().map(|gone| quoted(&gone.table)));
    for (mut tables, mode) in [(whole, "ACCESS EXCLUSIVE"), (writes, "SHARE ROW EXCLUSIVE")] {
        tables.sort();
        if !tables.is_empty() {
            host.batch(&format!("LOCK TABLE {} IN {mode} MODE", tables.join(", ")))?;
        }
    }
    Ok(())
}

fn is_altered(pair: &TablePair<'_>) -> bool {
    let same = |old: &Column, new: &Column| {
        (&old.column, old.required, &old.default, on_delete(&old.form))
            == (&new.column, new.required, &new.default, on_delete(&new.form))
            && old.form == new.form
    };
    pair.old.table != pair.new.table
        || !pair.new_columns.is_empty()
        || !pair.gone_columns.is_empty()
        || !pair.columns.iter().all(|(old, new)| same(old, new))
}

/// Who may be in the way, oldest transaction first: whoever holds a lock on anything in this schema.
pub async fn holders(client: &Client) -> Vec<String> {
    let sql = "SELECT 'process ' || a.pid || ' (' || concat_ws(', ', nullif(a.application_name, ''), \
               'user ' || a.usename, a.state, 'since ' || to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS TZ')) || ')' \
               FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL AND EXISTS (SELECT FROM pg_locks l \
               LEFT JOIN pg_class c ON c.oid = l.relation WHERE l.pid = a.pid AND l.granted AND (l.locktype = 'advisory' \
               OR c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))) \
               ORDER BY a.xact_start LIMIT 3";
    let found = client.query(sql, &[]).await.unwrap_or_default();
    found.iter().filter_map(|row| row.try_get(0).ok()).collect()
}
