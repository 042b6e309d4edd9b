//! A borrowed connection for programs, with cached statements and bound parameters, and the state that all share.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Statement};
use tokio::sync::watch;

use trefoil_engine::{AccessView, Plan, Row};
use trefoil_model::error::Result;
use trefoil_model::{CellValue, Model, StoredValue};

use crate::audit::write_audit::WriteAudit;
use crate::link_table_side::SIDE_KEY;
use crate::options::SqliteOptions;
use crate::sqlite::connect::SqliteLocation;
use crate::sqlite::connect::file_identity::FileIdentity;
use crate::statements::access::check_statement::CheckCache;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::write_rules::{WriteCheck, WriteRules};
use crate::statements::compile::ProgramCache;
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::visit_key_row;
use crate::statements::select::{ChildBranch, SelectLevel};
use crate::statements::sql_parameter::SqlParameter;

const SET_SIDE: &str = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES (?1, ?2) \
                        ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\"";
const CLEAR_SIDE: &str = "DELETE FROM \"trefoil_meta\" WHERE \"key\" = ?1";

/// State shared by all threads.
pub struct SharedState {
    pub location: SqliteLocation,
    /// `None` for a store in memory.
    pub file: Option<FileIdentity>,
    pub options: SqliteOptions,
    pub programs: ProgramCache,
    pub statement_count: AtomicU64,
    /// Notified of every commit that may have logged changes.
    pub commits: watch::Sender<()>,
    /// Notes what the writer writes.
    pub audit: WriteAudit,
}

impl SharedState {
    pub fn session<'c>(&'c self, connection: &'c Connection) -> SqliteSession<'c> {
        let (statement_count, checks) = (&self.statement_count, &self.programs.checks);
        SqliteSession { connection, statement_count, checks, view: None }
    }

    /// Fails if what is written now would go to a file that was removed or replaced.
    pub fn check_file(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), FileIdentity::check)
    }

    pub fn is_on_disk(&self) -> bool {
        match self.location {
            SqliteLocation::Memory => false,
            SqliteLocation::File(_) => true,
        }
    }
}

/// A borrowed connection that counts its statements.
#[derive(Clone, Copy)]
pub struct SqliteSession<'c> {
    pub connection: &'c Connection,
    pub statement_count: &'c AtomicU64,
    pub checks: &'c CheckCache,
    /// What the actor of the current plan sees; everything without one.
    pub view: Option<&'c AccessView>,
}

impl<'c> SqliteSession<'c> {
    pub fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
        self.statement_count.fetch_add(1, Ordering::Relaxed);
        self.connection.prepare_cached(sql)
    }

    /// The rules for what an actor writes.
    pub fn write_rules<'a>(&self, model: &'a Model, view: &'a AccessView) -> WriteRules<'a>
    where
        'c: 'a,
    {
        WriteRules { dialect: Dialect::Sqlite, model, view, checks: self.checks }
    }

    /// The session for one plan.
    pub fn for_plan<'p>(self, plan: &'p Plan) -> SqliteSession<'p>
    where
        'c: 'p,
    {
        SqliteSession { view: plan.access_view().map(AsRef::as_ref), ..self }
    }

    /// Prepares a statement that reads, with its own parameters and those of its rules.
    pub fn prepare_read(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> rusqlite::Result<CachedStatement<'c>> {
        let mut prepared = self.prepare(&statement.sql)?;
        bind_parameters(&mut prepared, parameters)?;
        let mut of_rules = Vec::new();
        statement.add_parameters(self.view, &mut of_rules);
        bind_parameters_after(&mut prepared, parameters.len(), &of_rules)?;
        // A parameter without a value would be null, and a rule would ask something else.
        let (bound, expected) = (parameters.len() + of_rules.len(), prepared.parameter_count());
        if bound != expected {
            return Err(rusqlite::Error::InvalidParameterCount(bound, expected));
        }
        Ok(prepared)
    }

    /// Runs a statement that writes what an actor sees; the number of changed rows.
    pub fn execute_seen(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> rusqlite::Result<usize> {
        self.prepare_read(statement, parameters)?.raw_execute()
    }

    /// The values of the first column of a statement that reads.
    pub fn read_values(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> rusqlite::Result<Vec<StoredValue>> {
        let mut prepared = self.prepare_read(statement, parameters)?;
        let mut rows = prepared.raw_query();
        let mut values = Vec::new();
        while let Some(row) = rows.next()? {
            values.push(read_cell(row, 0).to_stored());
        }
        Ok(values)
    }

    /// The rows of a check of rules.
    pub fn check_rows(&self, check: &WriteCheck<'_>) -> rusqlite::Result<Vec<Vec<StoredValue>>> {
        let mut prepared = self.prepare(check.sql())?;
        bind_parameters(&mut prepared, &check.parameters)?;
        let mut rows = prepared.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((0..check.width()).map(|column| read_cell(row, column).to_stored()).collect());
        }
        Ok(found)
    }

    /// The first column of the first row of a statement that reads, if it is an integer.
    pub fn read_integer(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> rusqlite::Result<Option<i64>> {
        let mut prepared = self.prepare_read(statement, parameters)?;
        let mut rows = prepared.raw_query();
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(read_cell(row, 0).to_i64())
    }

    /// Counts a statement that runs again.
    pub fn count_repetition(&self) {
        self.statement_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a statement without rows, not counted: `BEGIN`, `COMMIT`, `SAVEPOINT` …
    pub fn execute_control(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.raw_execute().map(drop)
    }

    pub fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> rusqlite::Result<usize> {
        let mut statement = self.prepare(sql)?;
        bind_parameters(&mut statement, parameters)?;
        statement.raw_execute()
    }

    /// Runs statements on a link table for records that have their new version already. If they fail, the side goes
    /// with the savepoint or the transaction around them.
    pub fn write_links<T, E: From<rusqlite::Error>>(
        &self,
        side: &str,
        write: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.execute(SET_SIDE, &[SIDE_KEY, side].map(|text| SqlParameter::Cell(CellValue::Text(text))))?;
        let written = write()?;
        self.execute(CLEAR_SIDE, &[SqlParameter::Cell(CellValue::Text(SIDE_KEY))])?;
        Ok(written)
    }

    /// The first column of the first row, if it is an integer.
    pub fn query_integer(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.prepare(sql)?;
        bind_parameters(&mut statement, parameters)?;
        let mut rows = statement.raw_query();
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(read_cell(row, 0).to_i64())
    }

    /// The values of the first column.
    pub fn query_values(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> rusqlite::Result<Vec<StoredValue>> {
        let mut statement = self.prepare(sql)?;
        bind_parameters(&mut statement, parameters)?;
        let mut rows = statement.raw_query();
        let mut values = Vec::new();
        while let Some(row) = rows.next()? {
            values.push(read_cell(row, 0).to_stored());
        }
        Ok(values)
    }
}

pub fn bind_parameters(
    statement: &mut Statement<'_>,
    parameters: &[SqlParameter<'_>],
) -> rusqlite::Result<()> {
    bind_parameters_after(statement, 0, parameters)
}

pub fn bind_parameters_after(
    statement: &mut Statement<'_>,
    before: usize,
    parameters: &[SqlParameter<'_>],
) -> rusqlite::Result<()> {
    for (i, parameter) in parameters.iter().enumerate() {
        statement.raw_bind_parameter(before + i + 1, SqliteParameter(parameter))?;
    }
    Ok(())
}

struct SqliteParameter<'a>(&'a SqlParameter<'a>);

impl ToSql for SqliteParameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let cell = match self.0 {
            SqlParameter::Cell(cell) => *cell,
            SqlParameter::Owned(value) => value.as_cell(),
            SqlParameter::List(values) => {
                return Ok(json_array(values.iter().map(|value| json_item(value.as_cell()))));
            }
            SqlParameter::Keys(keys) => return Ok(json_array(keys.iter().map(|key| json_item(*key)))),
        };
        let borrowed = match cell {
            CellValue::Null | CellValue::Unreadable => ValueRef::Null,
            CellValue::Int(number) => ValueRef::Integer(number),
            CellValue::Real(number) => ValueRef::Real(number),
            CellValue::Text(text) => ValueRef::Text(text.as_bytes()),
        };
        Ok(ToSqlOutput::Borrowed(borrowed))
    }
}

fn json_array(items: impl Iterator<Item = serde_json::Value>) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(Value::Text(serde_json::Value::from_iter(items).to_string()))
}

/// Reals become texts, to be exact to the last bit.
fn json_item(value: CellValue<'_>) -> serde_json::Value {
    match value {
        CellValue::Null | CellValue::Unreadable => serde_json::Value::Null,
        CellValue::Int(number) => number.into(),
        CellValue::Real(number) => number.to_string().into(),
        CellValue::Text(text) => text.into(),
    }
}

pub fn read_cell<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> CellValue<'r> {
    match row.get_ref(column) {
        Ok(ValueRef::Null) => CellValue::Null,
        Ok(ValueRef::Integer(number)) => CellValue::Int(number),
        Ok(ValueRef::Real(number)) => CellValue::Real(number),
        Ok(ValueRef::Text(bytes)) => {
            std::str::from_utf8(bytes).map_or(CellValue::Unreadable, CellValue::Text)
        }
        Ok(ValueRef::Blob(_)) | Err(_) => CellValue::Unreadable,
    }
}

/// The current row of a statement. Only for flat levels.
pub struct SqliteRow<'r> {
    pub row: &'r rusqlite::Row<'r>,
    pub level: &'r SelectLevel,
}

impl Row for SqliteRow<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        read_cell(self.row, column)
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        match &self.level.branches[child] {
            ChildBranch::KeyOnly { column } => visit_key_row(read_cell(self.row, *column), visit),
            ChildBranch::Rows { .. } => {}
        }
    }
}
