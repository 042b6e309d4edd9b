//! Reads the change log in SQLite: its state, and a range of changes.

use std::borrow::Cow;
use std::sync::Arc;

use trefoil_engine::changes::parse_image;
use trefoil_engine::{ChangeLog, IdentityChanges, LogReadLimits, RecordChange, RecordImage};
use trefoil_model::StoredValue;
use trefoil_model::error::Result;

use crate::change_log::{changed_record, parse_change_kind, parse_epochs};
use crate::sqlite::session::SqliteSession;

/// One statement, hence one snapshot. The sequence survives the deletion of all rows.
const READ_LOG: &str = "SELECT (SELECT value FROM trefoil_meta WHERE key = 'epochs'), \
                   (SELECT value FROM trefoil_meta WHERE key = 'forgotten'), \
                   (SELECT seq FROM sqlite_sequence WHERE name = 'trefoil_changes')";

const READ_LOG_RANGE: &str = "SELECT \
     coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'trefoil_changes'), 0), \
     coalesce((SELECT CAST(value AS INTEGER) FROM trefoil_meta WHERE key = 'forgotten'), 0)";

/// Also true if changes after the number were pruned, which may have happened since the range was read.
const HAS_CHANGES: &str = "SELECT EXISTS (SELECT 1 FROM trefoil_changes \
     WHERE number > ?1 AND resource IN (SELECT value FROM json_each(?2))) \
     OR EXISTS (SELECT 1 FROM trefoil_meta WHERE key = 'forgotten' AND CAST(value AS INTEGER) > ?1)";

/// A log that is further ahead is not searched for changes of a type.
const MAX_BEHIND: i64 = 4_096;

const READ_CHANGES: &str = "SELECT number, resource, deed, record, version, image FROM trefoil_changes \
                       WHERE number > ?1 AND number <= ?2 ORDER BY number LIMIT ?3";

/// The outer error is SQLite's; the inner one means that the stored text is invalid.
pub fn read_log(session: SqliteSession<'_>) -> rusqlite::Result<Result<ChangeLog>> {
    let row = session.prepare(READ_LOG)?.query_row((), |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?))
    });
    let (epochs, pruned_until, last): (_, _, Option<i64>) = row?;
    Ok(parse_epochs(epochs.as_deref()).map(|epochs| ChangeLog {
        epochs,
        pruned_until: pruned_until.and_then(|text| text.parse().ok()).unwrap_or(0),
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
        let image = row.get_ref(5)?.as_bytes_or_null()?.unwrap_or_default();
        bytes += image.len();
        let image = parse_stored_image(image);
        changes.push(RecordChange {
            number: row.get(0)?,
            type_name: row.get(1)?,
            kind: parse_change_kind(row.get_ref(2)?.as_str()?),
            record_id: changed_record(&image, row.get(3)?),
            version: row.get(4)?,
            image,
        });
    }
    Ok(changes)
}

/// SQLite accepts any bytes as text, so another program can put invalid UTF-8 into the log. That must not stop the feed:
/// such values are left out, which means null, as blobs are by the trigger that writes the image.
fn parse_stored_image(stored: &[u8]) -> RecordImage {
    let text = String::from_utf8_lossy(stored);
    let image = parse_image(&text);
    let is_invalid =
        |value: &StoredValue| matches!(value, StoredValue::Text(text) if text.contains('\u{fffd}'));
    match text {
        Cow::Borrowed(_) => image,
        Cow::Owned(_) => {
            let valid = image.iter().filter(|(_, value)| !is_invalid(value));
            Arc::new(valid.cloned().collect())
        }
    }
}

/// Whether the log has changes of these types after this number. The schema is what was read of it before.
pub fn identity_changes(
    session: SqliteSession<'_>,
    schema: i64,
    after: i64,
    types: &[String],
) -> rusqlite::Result<IdentityChanges> {
    let (until, pruned_until): (i64, i64) =
        session.prepare(READ_LOG_RANGE)?.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_complete = pruned_until <= after && (0..=MAX_BEHIND).contains(&(until - after));
    // What is committed meanwhile may be among them already, and then is found again.
    let has_changes = !is_complete
        || until > after && {
            let types = serde_json::Value::from(types).to_string();
            session.prepare(HAS_CHANGES)?.query_row((after, types), |row| row.get(0))?
        };
    Ok(IdentityChanges { until, schema, has_changes })
}

/// Stores the number up to which changes are deleted, in the transaction that deleted them.
pub fn record_pruned(session: SqliteSession<'_>, number: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO trefoil_meta (key, value) VALUES ('forgotten', ?1) \
               ON CONFLICT (key) DO UPDATE SET value = max(CAST(value AS INTEGER), ?1)";
    session.prepare(sql)?.execute([number]).map(drop)
}
