//! The change log in PostgreSQL: numbering what is committed, where it ends, and a part of it.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::change_log::{parse_change_kind, parse_epochs};
use crate::migrate::postgres::NUMBERING_STEP;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::error::PostgresError;
use trefoil_engine::changes::parse_image;
use trefoil_engine::{ChangeLog, LogReadLimits, RecordChange};
use trefoil_model::error::{Error, Result};

/// Numbers what waits for it and waits for another node that is at it: that one may have begun too early to see
/// everything that this call must see. Last what the last number was before.
const READ_LOG: &str = "SELECT trefoil_number_changes(true), \
                   (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten')::bigint, \
                   (SELECT value FROM trefoil_meta WHERE key = 'numbering')::bigint";

/// The sum is of what comes before a change, so the one that goes beyond the limit is still there.
const READ_CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM ( \
                       SELECT number, resource, deed, record, version, image::text AS image, \
                       sum(octet_length(image::text)) OVER (ORDER BY number) - octet_length(image::text) AS before \
                       FROM trefoil_changes WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3 \
                       ) AS part WHERE before < $4 ORDER BY number";

pub async fn read_log(link: &PgConnection) -> Result<ChangeLog> {
    loop {
        let rows = query_with_retry(link, READ_LOG, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::internal("the log says nothing"))?;
        let (last, before): (i64, i64) = (column_value(row, 0)?, column_value(row, 3)?);
        // What others numbered meanwhile is in it too: then this only asks once more than it had to.
        if last - before < NUMBERING_STEP {
            let (tags, forgotten): (Option<String>, Option<i64>) =
                (column_value(row, 1)?, column_value(row, 2)?);
            return Ok(ChangeLog {
                epochs: parse_epochs(tags.as_deref())?,
                pruned_until: forgotten.unwrap_or(0),
                last_number: last,
            });
        }
    }
}

pub async fn read_changes(
    link: &PgConnection,
    after: i64,
    until: i64,
    limits: LogReadLimits,
) -> Result<Vec<RecordChange>> {
    let clamp = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (count, bytes) = (clamp(limits.changes), clamp(limits.bytes));
    query_with_retry(link, READ_CHANGES, &[&after, &until, &count, &bytes])
        .await?
        .iter()
        .map(read_change)
        .collect()
}

/// Once more where only the moment was bad, such as when the server no longer knows what was prepared.
async fn query_with_retry(link: &PgConnection, sql: &str, bound: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let once = async || -> Result<Vec<Row>, PostgresError> {
        let statement = link.prepare(sql).await.map_err(|error| link.classify_error(error))?;
        link.client().query(&statement, bound).await.map_err(|error| link.classify_error(error))
    };
    match once().await {
        Err(PostgresError::Retryable(_)) => once().await,
        run => run,
    }
    .map_err(PostgresError::into_error)
}

fn read_change(row: &Row) -> Result<RecordChange> {
    let text: &str = row.try_get(5).map_err(Error::internal)?;
    Ok(RecordChange {
        number: column_value(row, 0)?,
        type_name: column_value(row, 1)?,
        kind: parse_change_kind(row.try_get(2).map_err(Error::internal)?),
        record_id: column_value(row, 3)?,
        version: column_value(row, 4)?,
        image: parse_image(text),
    })
}

fn column_value<T: tokio_postgres::types::FromSqlOwned>(row: &Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(Error::internal)
}
