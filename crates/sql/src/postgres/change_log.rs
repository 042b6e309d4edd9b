//! Numbers and reads the change log in PostgreSQL.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql};

use trefoil_engine::changes::parse_image;
use trefoil_engine::{ChangeLog, LogReadLimits, RecordChange};
use trefoil_model::error::{Error, Result};

use crate::change_log::{changed_record, parse_change_kind, parse_epochs};
use crate::migrate::postgres::NUMBERING_STEP;
use crate::postgres::connections::connection::PgConnection;
use crate::postgres::error::PostgresError;

/// Numbers committed changes and reads the state of the log. Waits for another node that is numbering, which may have
/// begun too early to see all changes that this call must see. The last column is the last number before the call.
const READ_LOG: &str = "SELECT trefoil_number_changes(true), \
                   (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten')::bigint, \
                   (SELECT value FROM trefoil_meta WHERE key = 'numbering')::bigint";

/// `before` sums the bytes of the preceding changes, so the change that exceeds the limit is included.
const READ_CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM ( \
                       SELECT number, resource, deed, record, version, image::text AS image, \
                       sum(octet_length(image::text)) OVER (ORDER BY number) - octet_length(image::text) AS before \
                       FROM trefoil_changes WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3 \
                       ) AS part WHERE before < $4 ORDER BY number";

/// Numbers all committed changes and returns the state of the log.
pub async fn read_log(connection: &PgConnection) -> Result<ChangeLog> {
    loop {
        let rows = query_with_retry(connection, READ_LOG, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::internal("the change log query returned no row"))?;
        let (last, before): (i64, i64) = (column_value(row, 0)?, column_value(row, 3)?);
        // Includes changes that other nodes numbered meanwhile, which costs one more query at worst.
        if last - before < NUMBERING_STEP {
            let (epochs, pruned_until): (Option<String>, Option<i64>) =
                (column_value(row, 1)?, column_value(row, 2)?);
            return Ok(ChangeLog {
                epochs: parse_epochs(epochs.as_deref())?,
                pruned_until: pruned_until.unwrap_or(0),
                last_number: last,
            });
        }
    }
}

pub async fn read_changes(
    connection: &PgConnection,
    after: i64,
    until: i64,
    limits: LogReadLimits,
) -> Result<Vec<RecordChange>> {
    let clamp = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (count, bytes) = (clamp(limits.changes), clamp(limits.bytes));
    query_with_retry(connection, READ_CHANGES, &[&after, &until, &count, &bytes])
        .await?
        .iter()
        .map(read_change)
        .collect()
}

/// Retries once after a transient error, such as when the server has lost a prepared statement.
async fn query_with_retry(
    connection: &PgConnection,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>> {
    let once = async || -> Result<Vec<Row>, PostgresError> {
        let statement = connection.prepare(sql).await.map_err(|error| connection.classify_error(error))?;
        connection
            .client()
            .query(&statement, parameters)
            .await
            .map_err(|error| connection.classify_error(error))
    };
    match once().await {
        Err(PostgresError::Retryable(_)) => once().await,
        result => result,
    }
    .map_err(PostgresError::into_error)
}

fn read_change(row: &Row) -> Result<RecordChange> {
    let text: &str = row.try_get(5).map_err(Error::internal)?;
    let image = parse_image(text);
    Ok(RecordChange {
        number: column_value(row, 0)?,
        type_name: column_value(row, 1)?,
        kind: parse_change_kind(row.try_get(2).map_err(Error::internal)?),
        record_id: changed_record(&image, column_value(row, 3)?),
        version: column_value(row, 4)?,
        image,
    })
}

fn column_value<T: FromSqlOwned>(row: &Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(Error::internal)
}
