//! Plain lists in SQLite: their tables and triggers, and how the value at an index is found in a long list.
//!
//! Every value has a position that is never used twice; its index is the number of values before it. Counts are stored
//! on three levels: values per block of 64 positions, per 64 blocks, and per 64 of those. An index is found by adding up
//! at most 64 counts per level, and a write changes one count per level. Triggers maintain the counts and the version,
//! so that values written by other programs are counted too.

use rusqlite::Connection;

use trefoil_engine::plain_list::ExpectedVersions;
use trefoil_engine::{Outcome, PlainListAction, PlainListOperation, PlainListPosition, Row};
use trefoil_model::CellValue;
use trefoil_model::error::Result;

use crate::plain_list::{ListHead, ListValueRow, index_not_found, list_not_found, value_bytes};
use crate::sqlite::session::{SqliteSession, bind_parameters, read_cell};
use crate::statements::sql_parameter::SqlParameter;

/// Number of positions in a block, and of blocks in a block of the next level.
const FAN_OUT: i64 = 64;
/// The level whose blocks are all scanned: each covers 64 × 64 × 64 positions.
const TOP_LEVEL: i64 = 3;

/// A version starts at the time at which its list is created, so that a new store never repeats an old ETag.
const TABLES: &str = r#"
CREATE TABLE IF NOT EXISTS "trefoil_lists" (
  "id" INTEGER PRIMARY KEY,
  "name" TEXT NOT NULL UNIQUE,
  "version" INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000),
  "length" INTEGER NOT NULL DEFAULT 0,
  "next" INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS "trefoil_list_values" (
  "list" INTEGER NOT NULL REFERENCES "trefoil_lists"("id"),
  "position" INTEGER NOT NULL CHECK (abs("position") < 1 << 60),
  "value" TEXT NOT NULL,
  PRIMARY KEY ("list", "position")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "trefoil_list_counts" (
  "list" INTEGER NOT NULL,
  "level" INTEGER NOT NULL,
  "block" INTEGER NOT NULL,
  "count" INTEGER NOT NULL,
  PRIMARY KEY ("list", "level", "block")
) WITHOUT ROWID;
"#;

/// Maintain counts and versions.
const TRIGGERS: &str = r#"
CREATE TRIGGER IF NOT EXISTS "trefoil_list_place" BEFORE INSERT ON "trefoil_list_values"
WHEN EXISTS (SELECT 1 FROM "trefoil_list_values" WHERE "list" = NEW."list" AND "position" = NEW."position")
BEGIN SELECT RAISE(ABORT, 'this position of the list is taken'); END;
CREATE TRIGGER IF NOT EXISTS "trefoil_list_moved" BEFORE UPDATE OF "list", "position" ON "trefoil_list_values"
WHEN NEW."list" IS NOT OLD."list" OR NEW."position" IS NOT OLD."position"
BEGIN SELECT RAISE(ABORT, 'a value of a list never changes its position'); END;
CREATE TRIGGER IF NOT EXISTS "trefoil_list_added" AFTER INSERT ON "trefoil_list_values" BEGIN
  INSERT INTO "trefoil_list_counts" ("list", "level", "block", "count") VALUES
    (NEW."list", 1, NEW."position" >> 6, 1),
    (NEW."list", 2, NEW."position" >> 12, 1),
    (NEW."list", 3, NEW."position" >> 18, 1)
    ON CONFLICT DO UPDATE SET "count" = "count" + 1;
  UPDATE "trefoil_lists" SET "version" = "version" + 1, "length" = "length" + 1,
    "next" = max("next", NEW."position" + 1) WHERE "id" = NEW."list";
END;
CREATE TRIGGER IF NOT EXISTS "trefoil_list_changed" AFTER UPDATE OF "value" ON "trefoil_list_values" BEGIN
  UPDATE "trefoil_lists" SET "version" = "version" + 1 WHERE "id" = NEW."list";
END;
CREATE TRIGGER IF NOT EXISTS "trefoil_list_removed" AFTER DELETE ON "trefoil_list_values" BEGIN
  UPDATE "trefoil_list_counts" SET "count" = "count" - 1
    WHERE "list" = OLD."list" AND "level" = 1 AND "block" = OLD."position" >> 6;
  UPDATE "trefoil_list_counts" SET "count" = "count" - 1
    WHERE "list" = OLD."list" AND "level" = 2 AND "block" = OLD."position" >> 12;
  UPDATE "trefoil_list_counts" SET "count" = "count" - 1
    WHERE "list" = OLD."list" AND "level" = 3 AND "block" = OLD."position" >> 18;
  UPDATE "trefoil_lists" SET "version" = "version" + 1, "length" = "length" - 1 WHERE "id" = OLD."list";
END;
CREATE TRIGGER IF NOT EXISTS "trefoil_list_emptied" AFTER UPDATE OF "count" ON "trefoil_list_counts"
WHEN NEW."count" = 0 BEGIN
  DELETE FROM "trefoil_list_counts"
    WHERE "list" = NEW."list" AND "level" = NEW."level" AND "block" = NEW."block";
END;
"#;

/// Creates the tables without triggers, for values that are copied together with their counts.
pub fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)
}

/// Creates missing tables, triggers and lists. Existing lists stay, declared or not.
pub fn create_lists(connection: &Connection, names: &[String]) -> rusqlite::Result<()> {
    create_tables(connection)?;
    connection.execute_batch(TRIGGERS)?;
    let sql = "INSERT INTO trefoil_lists (name) VALUES (?1) ON CONFLICT DO NOTHING";
    names.iter().try_for_each(|name| connection.execute(sql, [name]).map(drop))
}

/// True if no list ever had a value.
pub fn are_unused(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM trefoil_lists WHERE next <> 0 OR length <> 0)";
    connection.query_row(sql, [], |row| row.get(0))
}

/// The outer error is the store's, the inner one the plan's.
pub fn run_list_action(
    session: SqliteSession<'_>,
    operation: &PlainListOperation,
    visit: &mut dyn FnMut(&dyn Row),
) -> rusqlite::Result<Result<Outcome>> {
    let Some(head) = read_head(session, &operation.list)? else {
        return Ok(Err(list_not_found(&operation.list)));
    };
    let list = SqliteList { session, name: &operation.list, head };
    let outcome = match &operation.action {
        PlainListAction::ReadVersion => Ok(None),
        PlainListAction::Read { from, max_bytes } => Ok(list.read(*from, *max_bytes, visit)?),
        PlainListAction::Slice { index, count } => Ok(list.slice(*index, *count, visit).map(|()| None)?),
        PlainListAction::Append { value, expected } => list.append(value, expected)?.map(|()| None),
        PlainListAction::Replace { index, value, expected } => {
            list.replace(*index, value, expected)?.map(|()| None)
        }
        PlainListAction::Remove { index, expected } => list.remove(*index, expected, visit)?.map(|()| None),
    };
    match outcome {
        Err(error) => Ok(Err(error)),
        Ok(remaining) if operation.action.is_write() => {
            Ok(Ok(read_head(session, &operation.list)?.unwrap_or(list.head).outcome(remaining)))
        }
        Ok(remaining) => Ok(Ok(list.head.outcome(remaining))),
    }
}

fn read_head(session: SqliteSession<'_>, name: &str) -> rusqlite::Result<Option<ListHead>> {
    let mut statement =
        session.prepare("SELECT id, version, length, next FROM trefoil_lists WHERE name = ?1")?;
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(ListHead {
        id: row.get(0)?,
        version: row.get(1)?,
        length: row.get(2)?,
        next_position: row.get(3)?,
    }))
}

struct SqliteList<'s> {
    session: SqliteSession<'s>,
    name: &'s str,
    head: ListHead,
}

impl SqliteList<'_> {
    /// Visits values until they have `max_bytes`; returns where to continue.
    fn read(
        &self,
        from: Option<PlainListPosition>,
        max_bytes: usize,
        visit: &mut dyn FnMut(&dyn Row),
    ) -> rusqlite::Result<Option<PlainListPosition>> {
        let PlainListPosition { after, until } =
            from.unwrap_or(PlainListPosition { after: i64::MIN, until: self.head.next_position });
        let sql = "SELECT value, position FROM trefoil_list_values \
                   WHERE list = ?1 AND position > ?2 AND position < ?3 ORDER BY position";
        let mut statement = self.session.prepare(sql)?;
        bind_parameters(&mut statement, &[self.head.id, after, until].map(SqlParameter::integer))?;
        let mut rows = statement.raw_query();
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let value = read_cell(row, 0);
            bytes += value_bytes(value);
            visit(&ListValueRow(value));
            if bytes >= max_bytes {
                return Ok(Some(PlainListPosition { after: row.get(1)?, until }));
            }
        }
        Ok(None)
    }

    fn slice(&self, index: i64, count: i64, visit: &mut dyn FnMut(&dyn Row)) -> rusqlite::Result<()> {
        let Some(first) = self.position_at(index)? else { return Ok(()) };
        let sql = "SELECT value FROM trefoil_list_values \
                   WHERE list = ?1 AND position >= ?2 ORDER BY position LIMIT ?3";
        let mut statement = self.session.prepare(sql)?;
        bind_parameters(&mut statement, &[self.head.id, first, count].map(SqlParameter::integer))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            visit(&ListValueRow(read_cell(row, 0)));
        }
        Ok(())
    }

    fn append(&self, value: &str, expected: &ExpectedVersions) -> rusqlite::Result<Result<()>> {
        if let Err(stale) = self.head.check_version(expected) {
            return Ok(Err(stale));
        }
        let sql = "INSERT INTO trefoil_list_values (list, position, value) VALUES (?1, ?2, ?3)";
        let parameters = [
            SqlParameter::integer(self.head.id),
            SqlParameter::integer(self.head.next_position),
            SqlParameter::Cell(CellValue::Text(value)),
        ];
        self.session.execute(sql, &parameters).map(|_| Ok(()))
    }

    fn replace(&self, index: i64, value: &str, expected: &ExpectedVersions) -> rusqlite::Result<Result<()>> {
        if let Err(stale) = self.head.check_version(expected) {
            return Ok(Err(stale));
        }
        let Some(position) = self.position_at(index)? else {
            return Ok(Err(index_not_found(self.name, index)));
        };
        let sql = "UPDATE trefoil_list_values SET value = ?3 WHERE list = ?1 AND position = ?2";
        let parameters = [
            SqlParameter::integer(self.head.id),
            SqlParameter::integer(position),
            SqlParameter::Cell(CellValue::Text(value)),
        ];
        self.session.execute(sql, &parameters).map(|_| Ok(()))
    }

    fn remove(
        &self,
        index: i64,
        expected: &ExpectedVersions,
        visit: &mut dyn FnMut(&dyn Row),
    ) -> rusqlite::Result<Result<()>> {
        if let Err(stale) = self.head.check_version(expected) {
            return Ok(Err(stale));
        }
        let Some(position) = self.position_at(index)? else {
            return Ok(Err(index_not_found(self.name, index)));
        };
        let sql = "DELETE FROM trefoil_list_values WHERE list = ?1 AND position = ?2 RETURNING value";
        let mut statement = self.session.prepare(sql)?;
        bind_parameters(&mut statement, &[self.head.id, position].map(SqlParameter::integer))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            visit(&ListValueRow(read_cell(row, 0)));
        }
        Ok(Ok(()))
    }

    /// The position of the value at `index`.
    fn position_at(&self, index: i64) -> rusqlite::Result<Option<i64>> {
        if !(0..self.head.length).contains(&index) {
            return Ok(None);
        }
        let mut found = CountedBlock { first: i64::MIN, last: i64::MAX, count: self.head.length, index };
        for level in (1..=TOP_LEVEL).rev() {
            let Some(block) = self.find_block(level, &found)? else { return Ok(None) };
            found = block;
        }
        let after = found.count - 1 - found.index;
        let (order, skip) = if after < found.index { ("DESC", after) } else { ("ASC", found.index) };
        let sql = format!(
            "SELECT position FROM trefoil_list_values \
             WHERE list = ?1 AND position BETWEEN ?2 AND ?3 ORDER BY position {order} LIMIT 1 OFFSET ?4"
        );
        self.session
            .query_integer(&sql, &[self.head.id, found.first, found.last, skip].map(SqlParameter::integer))
    }

    /// The block of this level with the value, searched from the nearer end.
    fn find_block(&self, level: i64, within: &CountedBlock) -> rusqlite::Result<Option<CountedBlock>> {
        let after = within.count - 1 - within.index;
        let (order, mut skip) = if after < within.index { ("DESC", after) } else { ("ASC", within.index) };
        let sql = format!(
            "SELECT block, count FROM trefoil_list_counts \
             WHERE list = ?1 AND level = ?2 AND block BETWEEN ?3 AND ?4 ORDER BY block {order}"
        );
        let mut statement = self.session.prepare(&sql)?;
        bind_parameters(
            &mut statement,
            &[self.head.id, level, within.first, within.last].map(SqlParameter::integer),
        )?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let (block, count): (i64, i64) = (row.get(0)?, row.get(1)?);
            if skip < count {
                let index = if order == "DESC" { count - 1 - skip } else { skip };
                let first = block * FAN_OUT;
                return Ok(Some(CountedBlock { first, last: first + FAN_OUT - 1, count, index }));
            }
            skip -= count;
        }
        Ok(None)
    }
}

/// A part of a list: its first and last block one level below, its number of values, and the index to find within it.
struct CountedBlock {
    first: i64,
    last: i64,
    count: i64,
    index: i64,
}
