//! Forgets changes and keys that need not be kept any longer, on one node at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Error as PgError;

use crate::idempotency_key;
use crate::postgres::change_log;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::connections::manager::ConnectionManager;
use crate::postgres::error::PostgresError;
use trefoil_model::error::Result;

/// How many rows of each kind go in one step.
const STEP_ROWS: i64 = 1_000;
/// How long nothing is looked for once nothing more was found.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);

/// Nodes take turns by this row. One that finds it taken leaves the work to the other.
const INSERT_PRUNE_LOCK: &str =
    "INSERT INTO trefoil_meta (key, value) VALUES ('pruning', '') ON CONFLICT DO NOTHING";
const TAKE_PRUNE_LOCK: &str = "SELECT 1 FROM trefoil_meta WHERE key = 'pruning' FOR UPDATE SKIP LOCKED";

const DELETE_KEYS: &str = "DELETE FROM trefoil_keys WHERE key IN \
                    (SELECT key FROM trefoil_keys WHERE at <= $1 LIMIT $2)";

/// A change goes when it is neither among the last so many nor younger than so long, and everything before it goes too:
/// a late commit may have given a younger change the smaller number.
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

/// How long the log is kept at least.
#[derive(Debug, Clone, Copy)]
pub struct LogRetention {
    pub min_changes: i64,
    pub min_seconds: f64,
}

/// Forgets for as long as the store is open. A failure is the store's alone and is tried again later.
pub async fn run_pruning(links: Arc<ConnectionManager>, keep: LogRetention) {
    loop {
        // First: whoever only looks at a store opens it for less than this and must change nothing.
        tokio::time::sleep(PRUNE_INTERVAL).await;
        if let Err(why) = prune_all(&links, keep).await {
            tracing::debug!("old changes and keys are not removed: {why}");
        }
    }
}

/// Everything that need not be kept now, a step at a time. What has no number yet gets it first: while nobody follows
/// the log nobody else asks for that, and it would wait and grow for ever.
pub async fn prune_all(links: &ConnectionManager, keep: LogRetention) -> Result<()> {
    change_log::read_log(&*links.log_connection()?).await?;
    loop {
        let own = links.acquire_pooled().await?;
        let more = prune_step(&own, keep).await.map_err(|error| PostgresError::from(error).into_error())?;
        own.release();
        if !more {
            return Ok(());
        }
    }
}

/// Whether there may be more to do.
async fn prune_step(link: &PgConnection, keep: LogRetention) -> Result<bool, PgError> {
    let client = link.client();
    client.batch_execute(INSERT_PRUNE_LOCK).await?;
    client.batch_execute("BEGIN").await?;
    if client.query_opt(&link.prepare(TAKE_PRUNE_LOCK).await?, &[]).await?.is_none() {
        client.batch_execute("ROLLBACK").await?;
        return Ok(false);
    }
    let expired = idempotency_key::unix_seconds() - idempotency_key::KEY_LIFETIME_SECONDS;
    let keys = client.execute(&link.prepare(DELETE_KEYS).await?, &[&expired, &STEP_ROWS]).await?;
    let statement = link.prepare(DELETE_CHANGES).await?;
    let row = client.query_one(&statement, &[&keep.min_changes, &keep.min_seconds, &STEP_ROWS]).await?;
    let (gone, last): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    if let Some(last) = last {
        client.execute(&link.prepare(RECORD_PRUNED).await?, &[&last.to_string()]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(gone == STEP_ROWS || i64::try_from(keys) == Ok(STEP_ROWS))
}
