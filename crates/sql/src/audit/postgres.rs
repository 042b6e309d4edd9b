//! Reads the audit on PostgreSQL, and removes old entries.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as DatabaseError, Row};

use trefoil_engine::{AuditEntry, AuditFilter, AuditStore};
use trefoil_model::error::{Error, Result};

use crate::accounts::account_statements::AccountValue;
use crate::accounts::postgres::parameter;
use crate::audit::{AuditRow, PRUNE_ROWS, read_statement};
use crate::postgres::PostgresStore;

const HAS_TABLE: &str = "SELECT FROM pg_class WHERE oid = to_regclass('trefoil_audit')";

const PRUNE: &str = "DELETE FROM trefoil_audit WHERE (at, number) IN \
     (SELECT at, number FROM trefoil_audit WHERE at < $1 ORDER BY at, number LIMIT $2 FOR UPDATE SKIP LOCKED)";

impl AuditStore for PostgresStore {
    fn read_audit(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>>> {
        let (sql, values) = read_statement(filter, limit);
        Box::pin(async move {
            if self.audit_query(HAS_TABLE, &[]).await?.is_empty() {
                return Ok(Vec::new());
            }
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(parameter).collect();
            let rows = self.audit_query(&sql, &values).await?;
            rows.iter().map(|row| read_row(row).map_err(Error::internal)).collect()
        })
    }

    fn prune_audit(&self, before: Timestamp) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            if self.audit_query(HAS_TABLE, &[]).await?.is_empty() {
                return Ok(0);
            }
            let connection = self.connections().acquire_pooled().await?;
            let values = [AccountValue::Integer(before.as_microsecond()), AccountValue::Integer(PRUNE_ROWS)];
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(parameter).collect();
            let pruned = connection.client().execute(PRUNE, &values).await;
            let pruned = pruned.map_err(|error| connection.classify_error(error).into_error())?;
            connection.release();
            Ok(pruned)
        })
    }
}

impl PostgresStore {
    async fn audit_query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let connection = self.connections().acquire_pooled().await?;
        let rows = connection.client().query(sql, values).await;
        let rows = rows.map_err(|error| connection.classify_error(error).into_error())?;
        connection.release();
        Ok(rows)
    }
}

fn read_row(row: &Row) -> Result<AuditEntry, DatabaseError> {
    let row = AuditRow {
        at: row.try_get(0)?,
        number: row.try_get(1)?,
        actor: row.try_get(2)?,
        address: row.try_get(3)?,
        request: row.try_get(4)?,
        action: row.try_get(5)?,
        type_name: row.try_get(6)?,
        record: row.try_get(7)?,
        version: row.try_get(8)?,
        fields: row.try_get(9)?,
        name: row.try_get(10)?,
        count: row.try_get(11)?,
    };
    Ok(row.into_entry())
}
