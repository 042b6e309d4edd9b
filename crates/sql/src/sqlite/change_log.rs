//! The change log in SQLite: where it ends, what of it is gone, and a part of it.

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_engine::changes::parse_image;
use trefoil_engine::{ChangeLog, LogReadLimits, RecordChange, RecordImage};
use trefoil_model::StoredValue;
use trefoil_model::error::Result;

use crate::change_log::{parse_change_kind, parse_epochs};
use crate::sqlite::session::SqliteSession;

/// One statement, and so one snapshot. The sequence counts on when all rows are gone.
const READ_LOG: &str = "SELECT (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten'), \
                   (SELECT seq FROM sqlite_sequence WHERE name = 'trefoil_changes')";

const READ_CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM trefoil_changes \
                       WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3";

/// The outer failure is the store's, the inner one that what it holds makes no sense.
pub fn read_log(session: SqliteSession<'_>) -> rusqlite::Result<Result<ChangeLog>> {
    let row = session.prepare(READ_LOG)?.query_row((), |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?))
    });
    let (tags, forgotten, last): (_, _, Option<i64>) = row?;
    Ok(parse_epochs(tags.as_deref()).map(|epochs| ChangeLog {
        epochs,
        pruned_until: forgotten.and_then(|text| text.parse().ok()).unwrap_or(0),
        last_number: last.unwrap_or(0),
    }))
}

pub fn read_changes(
    session: SqliteSession<'_>,
    after: i64,
    until: i64,
    limits: LogReadLimits,
) -> rusqlite::Result<Vec<RecordChange>> {
    let mut statement = session.prepare(READ_CHANGES)?;
    let mut rows = statement.query((after, until, i64::try_from(limits.changes).unwrap_or(i64::MAX)))?;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()?
        && bytes < limits.bytes
    {
        let written = row.get_ref(5)?.as_bytes_or_null()?.unwrap_or_default();
        bytes += written.len();
        changes.push(RecordChange {
            number: row.get(0)?,
            type_name: row.get(1)?,
            kind: parse_change_kind(row.get_ref(2)?.as_str()?),
            record_id: row.get(3)?,
            version: row.get(4)?,
            image: parse_stored_image(written),
        });
    }
    Ok(changes)
}

/// SQLite takes any bytes for text, and so another program's mistake ends up in the log. It must not hold up everyone who
/// follows: what cannot be read is null, as a blob is to the trigger that writes the image.
fn parse_stored_image(written: &[u8]) -> RecordImage {
    let text = String::from_utf8_lossy(written);
    let image = parse_image(&text);
    let is_spoiled =
        |value: &StoredValue| matches!(value, StoredValue::Text(text) if text.contains('\u{fffd}'));
    match text {
        Cow::Borrowed(_) => image,
        Cow::Owned(_) => {
            let sound = image.iter().filter(|(_, value)| !is_spoiled(value));
            Arc::new(sound.cloned().collect())
        }
    }
}

/// Notes, in the transaction that removed them, up to which number changes are gone.
pub fn record_pruned(session: SqliteSession<'_>, number: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO trefoil_meta (key, value) VALUES ('forgotten', ?1) \
               ON CONFLICT (key) DO UPDATE SET value = max(CAST(value AS INTEGER), ?1)";
    session.prepare(sql)?.execute([number]).map(drop)
}
