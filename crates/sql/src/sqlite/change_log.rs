//! The change log in SQLite: where it ends, what of it is gone, and a part of it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::change_log::{deed, epochs};
use crate::sqlite::session::Session;
use trefoil_engine::changes::image;
use trefoil_engine::{Change, Image, Log, ReadLimits};
use trefoil_model::Stored;
use trefoil_model::error::Result;

/// One statement, and so one snapshot. The sequence counts on when all rows are gone.
const LOG: &str = "SELECT (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten'), \
                   (SELECT seq FROM sqlite_sequence WHERE name = 'trefoil_changes')";

const CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM trefoil_changes \
                       WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3";

/// The outer failure is the store's, the inner one that what it holds makes no sense.
pub fn read(session: Session<'_>) -> rusqlite::Result<Result<Log>> {
    let row = session.prepare(LOG)?.query_row((), |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?))
    });
    let (tags, forgotten, last): (_, _, Option<i64>) = row?;
    Ok(epochs(tags.as_deref()).map(|epochs| Log {
        epochs,
        forgotten: forgotten.and_then(|text| text.parse().ok()).unwrap_or(0),
        last: last.unwrap_or(0),
    }))
}

pub fn changes(
    session: Session<'_>,
    after: i64,
    until: i64,
    limits: ReadLimits,
) -> rusqlite::Result<Vec<Change>> {
    let mut statement = session.prepare(CHANGES)?;
    let mut rows = statement.query((after, until, i64::try_from(limits.changes).unwrap_or(i64::MAX)))?;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()?
        && bytes < limits.bytes
    {
        let written = row.get_ref(5)?.as_bytes_or_null()?.unwrap_or_default();
        bytes += written.len();
        changes.push(Change {
            number: row.get(0)?,
            resource: row.get(1)?,
            deed: deed(row.get_ref(2)?.as_str()?),
            record: row.get(3)?,
            version: row.get(4)?,
            image: image_of(written),
        });
    }
    Ok(changes)
}

/// SQLite takes any bytes for text, and so another program's mistake ends up in the log. It must not hold up everyone who
/// follows: what cannot be read is null, as a blob is to the trigger that writes the image.
fn image_of(written: &[u8]) -> Image {
    let text = String::from_utf8_lossy(written);
    let image = image(&text);
    let is_spoiled = |value: &Stored| matches!(value, Stored::Text(text) if text.contains('\u{fffd}'));
    match text {
        Cow::Borrowed(_) => image,
        Cow::Owned(_) => {
            let sound = image.iter().filter(|(_, value)| !is_spoiled(value));
            Arc::new(sound.cloned().collect())
        }
    }
}

/// Notes, in the transaction that removed them, up to which number changes are gone.
pub fn forget(session: Session<'_>, number: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO trefoil_meta (key, value) VALUES ('forgotten', ?1) \
               ON CONFLICT (key) DO UPDATE SET value = max(CAST(value AS INTEGER), ?1)";
    session.prepare(sql)?.execute([number]).map(drop)
}
