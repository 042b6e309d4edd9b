//! Takes the store out of a database, and keeps a note in one about work that goes over many commits.

use super::end::End;
use super::facts::{FAKES, Facts};
use super::restore::make_room;
use super::{Failed, Place, sqlite};

/// Nothing of the store is left in the database; a start makes a new one. Files are replaced instead.
pub async fn empty(url: &crate::config::PostgresUrl) -> Result<(), Failed> {
    let client = crate::sql::postgres::alone(url).await.map_err(Failed)?;
    make_room(client, |_| Ok(())).await?.run("COMMIT").await
}

/// The last id of each table of records, and what is noted about made-up ones that are being written.
pub async fn noted(place: &Place) -> Result<(Vec<(String, i64)>, Option<String>), Failed> {
    let end = open(place).await?;
    let facts = Facts::of(&end).await?;
    let facts = facts.ok_or_else(|| Failed(format!("{place}: there is no store yet")))?;
    let note = facts.meta.get(FAKES).cloned();
    Ok((facts.counters, note))
}

/// How many records of a table have ids behind `after` and up to `until`.
pub async fn present(place: &Place, table: &str, after: i64, until: i64) -> Result<i64, Failed> {
    let table = crate::sql::migrate::quoted(table);
    let sql = format!("SELECT count(*) FROM {table} WHERE \"id\" > {after} AND \"id\" <= {until}");
    Ok(match open(place).await? {
        End::Sqlite(connection) => connection.query_row(&sql, [], |row| row.get(0))?,
        End::Postgres(client) => client.query_one(&sql, &[]).await?.try_get(0)?,
    })
}

/// Replaces the note, or takes it away.
pub async fn note(place: &Place, text: Option<&str>) -> Result<(), Failed> {
    let end = open(place).await?;
    match text {
        Some(text) => end.put_meta(FAKES, text).await,
        None => end.remove_meta(FAKES).await,
    }
}

async fn open(place: &Place) -> Result<End, Failed> {
    Ok(match place {
        Place::File(path) => End::Sqlite(sqlite::open(path)?),
        Place::Postgres(url) => End::Postgres(crate::sql::postgres::alone(url).await.map_err(Failed)?),
    })
}
