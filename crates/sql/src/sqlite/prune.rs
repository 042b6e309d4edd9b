//! Forgets what need not be kept any longer, a little at a time and after the writers were answered.

use std::time::{Duration, Instant};

use crate::sqlite::SqliteOptions;
use crate::sqlite::change_log;
use crate::sqlite::idempotency_keys;
use crate::sqlite::session::SqliteSession;

/// How many rows of each kind go in one step; more than the keys of one shared commit.
const STEP_ROWS: usize = 1_000;
/// How long nothing is looked for once nothing more was found.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct PruneSchedule {
    not_before: Option<Instant>,
}

impl PruneSchedule {
    /// Does one step when it is time. A failure is no one's but the store's and is tried again later.
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

/// A change goes when it is neither among the last so many nor younger than so long. Numbers are never given
/// twice, not even when all rows are gone: the table counts on by itself.
fn prune_changes(session: SqliteSession<'_>, options: &SqliteOptions) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM trefoil_changes WHERE number <= (SELECT max(number) FROM trefoil_changes) - ?1 \
               AND at < strftime('%Y-%m-%dT%H:%M:%S', 'now', ?2) \
               AND number IN (SELECT number FROM trefoil_changes ORDER BY number LIMIT ?3) RETURNING number";
    let keep = i64::try_from(options.keep_changes).unwrap_or(i64::MAX);
    let age = format!("-{} seconds", options.keep_changes_for.as_secs());
    let mut statement = session.prepare(sql)?;
    let gone = statement.query_map((keep, age, STEP_ROWS as i64), |row| row.get(0))?;
    let gone = gone.collect::<rusqlite::Result<Vec<i64>>>()?;
    if let Some(last) = gone.iter().max() {
        change_log::record_pruned(session, *last)?;
    }
    Ok(gone.len())
}
