//! The change log in PostgreSQL: numbering what is committed, where it ends, and a part of it.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::change_log::{deed, epochs};
use crate::migrate::postgres::NUMBERED_AT_ONCE;
use crate::postgres::connections::connection::Link;
use crate::postgres::error::Fault;
use trefoil_engine::changes::image;
use trefoil_engine::{Change, Log, ReadLimits};
use trefoil_model::error::{Error, Result};

/// Numbers what waits for it and waits for another node that is at it: that one may have begun too early to see
/// everything that this call must see. Last what the last number was before.
const LOG: &str = "SELECT trefoil_number_changes(true), \
                   (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten')::bigint, \
                   (SELECT value FROM trefoil_meta WHERE key = 'numbering')::bigint";

/// The sum is of what comes before a change, so the one that goes beyond the limit is still there.
const CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM ( \
                       SELECT number, resource, deed, record, version, image::text AS image, \
                       sum(octet_length(image::text)) OVER (ORDER BY number) - octet_length(image::text) AS before \
                       FROM trefoil_changes WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3 \
                       ) AS part WHERE before < $4 ORDER BY number";

pub async fn read(link: &Link) -> Result<Log> {
    loop {
        let rows = ask(link, LOG, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::internal("the log says nothing"))?;
        let (last, before): (i64, i64) = (cell(row, 0)?, cell(row, 3)?);
        // What others numbered meanwhile is in it too: then this only asks once more than it had to.
        if last - before < NUMBERED_AT_ONCE {
            let (tags, forgotten): (Option<String>, Option<i64>) = (cell(row, 1)?, cell(row, 2)?);
            return Ok(Log { epochs: epochs(tags.as_deref())?, forgotten: forgotten.unwrap_or(0), last });
        }
    }
}

pub async fn changes(link: &Link, after: i64, until: i64, limits: ReadLimits) -> Result<Vec<Change>> {
    let clamp = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (count, bytes) = (clamp(limits.changes), clamp(limits.bytes));
    ask(link, CHANGES, &[&after, &until, &count, &bytes]).await?.iter().map(change).collect()
}

/// Once more where only the moment was bad, such as when the server no longer knows what was prepared.
async fn ask(link: &Link, sql: &str, bound: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
    let once = async || -> Result<Vec<Row>, Fault> {
        let statement = link.prepare(sql).await.map_err(|error| link.fault(error))?;
        link.client().query(&statement, bound).await.map_err(|error| link.fault(error))
    };
    match once().await {
        Err(Fault::Again(_)) => once().await,
        run => run,
    }
    .map_err(Fault::into_error)
}

fn change(row: &Row) -> Result<Change> {
    let text: &str = row.try_get(5).map_err(Error::internal)?;
    Ok(Change {
        number: cell(row, 0)?,
        resource: cell(row, 1)?,
        deed: deed(row.try_get(2).map_err(Error::internal)?),
        record: cell(row, 3)?,
        version: cell(row, 4)?,
        image: image(text),
    })
}

fn cell<T: tokio_postgres::types::FromSqlOwned>(row: &Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(Error::internal)
}
