//! Reads the audit in SQLite, and removes old entries.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params_from_iter};

use trefoil_engine::{AuditEntry, AuditFilter, AuditStore};
use trefoil_model::error::Result;

use crate::audit::{AuditRow, PRUNE_ROWS, read_statement};
use crate::sqlite::SqliteStore;
use crate::sqlite::error::store_error;
use crate::sqlite::session::SqliteSession;

impl AuditStore for SqliteStore {
    fn read_audit(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>>> {
        let (sql, values) = read_statement(filter, limit);
        Box::pin(async move {
            let read = move |session: SqliteSession<'_>| {
                if !has_table(session.connection)? {
                    return Ok(Vec::new());
                }
                let mut statement = session.prepare(&sql)?;
                let rows = statement.query_map(params_from_iter(&values), read_row)?;
                rows.collect::<rusqlite::Result<Vec<AuditEntry>>>()
            };
            self.look_up(read).await
        })
    }

    fn prune_audit(&self, before: Timestamp) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let pruned = self.run_on_writer(move |connection| {
                if !has_table(connection)? {
                    return Ok(0);
                }
                let sql = "DELETE FROM trefoil_audit WHERE (at, number) IN \
                           (SELECT at, number FROM trefoil_audit WHERE at < ?1 ORDER BY at, number LIMIT ?2)";
                connection.execute(sql, (before.as_microsecond(), PRUNE_ROWS))
            });
            let pruned = pruned.await?.map_err(|error: rusqlite::Error| store_error(&error))?;
            Ok(pruned as u64)
        })
    }
}

/// Without the table nothing was noted.
fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'trefoil_audit'")?.exists([])
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let row = AuditRow {
        at: row.get(0)?,
        number: row.get(1)?,
        actor: row.get(2)?,
        address: row.get(3)?,
        request: row.get(4)?,
        action: row.get(5)?,
        type_name: row.get(6)?,
        record: row.get(7)?,
        version: row.get(8)?,
        fields: row.get(9)?,
        name: row.get(10)?,
        count: row.get(11)?,
    };
    Ok(row.into_entry())
}
