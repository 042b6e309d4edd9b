//! Deletes expired idempotency keys and old changes, a step at a time and after the jobs of a batch got their results.

use std::time::{Duration, Instant};

use crate::options::SqliteOptions;
use crate::sqlite::session::SqliteSession;
use crate::sqlite::{change_log, idempotency_keys};

/// Rows of each kind deleted in one step; more than the keys of one batch of writes.
const STEP_ROWS: usize = 1_000;
/// Pause after a step that found less than that.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct PruneSchedule {
    not_before: Option<Instant>,
}

impl PruneSchedule {
    /// Runs one step if it is due. After an error it is tried again later.
    pub fn prune_if_due(
        &mut self,
        session: SqliteSession<'_>,
        options: &SqliteOptions,
    ) -> rusqlite::Result<()> {
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return Ok(());
        }
        self.not_before = Some(Instant::now() + PRUNE_INTERVAL);
        session.execute_control("BEGIN IMMEDIATE")?;
        let keys = idempotency_keys::prune_keys(&session, STEP_ROWS)?;
        let changes = prune_changes(session, options)?;
        session.execute_control("COMMIT")?;
        if keys == STEP_ROWS || changes == STEP_ROWS {
            self.not_before = None;
        }
        Ok(())
    }
}

/// Deletes changes that are neither among the last `keep_changes` nor younger than `keep_changes_for`. Numbers are never
/// reused, even if all rows are deleted: the column is AUTOINCREMENT.
fn prune_changes(session: SqliteSession<'_>, options: &SqliteOptions) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM trefoil_changes WHERE number <= (SELECT max(number) FROM trefoil_changes) - ?1 \
               AND at < strftime('%Y-%m-%dT%H:%M:%S', 'now', ?2) \
               AND number IN (SELECT number FROM trefoil_changes ORDER BY number LIMIT ?3) RETURNING number";
    let keep = i64::try_from(options.keep_changes).unwrap_or(i64::MAX);
    let age = format!("-{} seconds", options.keep_changes_for.as_secs());
    let mut statement = session.prepare(sql)?;
    let deleted = statement.query_map((keep, age, STEP_ROWS as i64), |row| row.get(0))?;
    let deleted = deleted.collect::<rusqlite::Result<Vec<i64>>>()?;
    if let Some(last) = deleted.iter().max() {
        change_log::record_pruned(session, *last)?;
    }
    Ok(deleted.len())
}
