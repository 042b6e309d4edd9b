//! Deletes expired changes and idempotency keys, on one node at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Error as PgError;

use trefoil_model::error::Result;

use crate::idempotency_key;
use crate::postgres::change_log;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::manager::ConnectionManager;
use crate::postgres::error::PostgresError;

/// The maximum number of rows of each table deleted in one step.
const STEP_ROWS: i64 = 1_000;
/// The pause between two runs.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);

/// The row that nodes lock to prune. A node that finds it locked leaves the work to the other.
const INSERT_PRUNE_LOCK: &str =
    "INSERT INTO trefoil_meta (key, value) VALUES ('pruning', '') ON CONFLICT DO NOTHING";
const TAKE_PRUNE_LOCK: &str = "SELECT 1 FROM trefoil_meta WHERE key = 'pruning' FOR UPDATE SKIP LOCKED";

const DELETE_KEYS: &str = "DELETE FROM trefoil_keys WHERE key IN \
                    (SELECT key FROM trefoil_keys WHERE at <= $1 LIMIT $2)";

/// Deletes the changes that are neither among the last $1 nor younger than $2 seconds, up to the first change to keep:
/// after a late commit a younger change may have a smaller number.
const DELETE_CHANGES: &str = "WITH first AS ( \
                         SELECT number, at FROM trefoil_changes \
                         WHERE number <= (SELECT max(number) FROM trefoil_changes) - $1 \
                         ORDER BY number LIMIT $3), \
                       bound AS ( \
                         SELECT coalesce(min(number) FILTER (WHERE at >= now() - make_interval(secs => $2)) - 1, \
                         max(number)) AS number FROM first), \
                       gone AS ( \
                         DELETE FROM trefoil_changes WHERE number <= (SELECT number FROM bound) RETURNING number) \
                       SELECT count(*), max(number) FROM gone";

const RECORD_PRUNED: &str = "INSERT INTO trefoil_meta (key, value) VALUES ('forgotten', $1::text) ON CONFLICT (key) \
                      DO UPDATE SET value = greatest(trefoil_meta.value::bigint, excluded.value::bigint)::text";

/// How much of the change log is kept at least.
#[derive(Debug, Clone, Copy)]
pub struct LogRetention {
    pub min_changes: i64,
    pub min_seconds: f64,
}

/// Prunes at intervals for as long as the store is open. A failure is logged and retried at the next run.
pub async fn run_pruning(connections: Arc<ConnectionManager>, retention: LogRetention) {
    loop {
        // Sleeps first: commands that only read a store open it for less than this and must not change it.
        tokio::time::sleep(PRUNE_INTERVAL).await;
        if let Err(error) = prune_all(&connections, retention).await {
            tracing::debug!("cannot remove old changes and keys: {error}");
        }
    }
}

/// Deletes everything that has expired, a step at a time. Numbers new changes first: without followers nothing else
/// does, and the unnumbered changes would grow without bound.
pub async fn prune_all(connections: &ConnectionManager, retention: LogRetention) -> Result<()> {
    change_log::read_log(&*connections.log_connection()?).await?;
    loop {
        let connection = connections.acquire_pooled().await?;
        let more = prune_step(&connection, retention)
            .await
            .map_err(|error| PostgresError::from(error).into_error())?;
        connection.release();
        if !more {
            return Ok(());
        }
    }
}

/// Runs one step; true if there may be more to delete.
async fn prune_step(connection: &PgConnection, retention: LogRetention) -> Result<bool, PgError> {
    let client = connection.client();
    client.batch_execute(INSERT_PRUNE_LOCK).await?;
    client.batch_execute("BEGIN").await?;
    if client.query_opt(&connection.prepare(TAKE_PRUNE_LOCK).await?, &[]).await?.is_none() {
        client.batch_execute("ROLLBACK").await?;
        return Ok(false);
    }
    let expired = idempotency_key::unix_seconds() - idempotency_key::KEY_LIFETIME_SECONDS;
    let keys = client.execute(&connection.prepare(DELETE_KEYS).await?, &[&expired, &STEP_ROWS]).await?;
    let statement = connection.prepare(DELETE_CHANGES).await?;
    let row =
        client.query_one(&statement, &[&retention.min_changes, &retention.min_seconds, &STEP_ROWS]).await?;
    let (deleted, last): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    if let Some(last) = last {
        client.execute(&connection.prepare(RECORD_PRUNED).await?, &[&last.to_string()]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(deleted == STEP_ROWS || i64::try_from(keys) == Ok(STEP_ROWS))
}
