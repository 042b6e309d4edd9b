//! A connection as programs see it: cached statements, bound parameters, rows as cells.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Statement};

use crate::statements::row_batch::visit_key;
use crate::statements::select::{Branch, Level, Parameter};
use trefoil_engine::Row;
use trefoil_model::{Cell, Stored};

/// A borrowed connection that counts what it runs.
#[derive(Clone, Copy)]
pub struct Session<'c> {
    pub connection: &'c Connection,
    pub statements: &'c AtomicU64,
}

impl<'c> Session<'c> {
    pub fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.connection.prepare_cached(sql)
    }

    /// Runs a statement that gives no rows: `BEGIN`, `COMMIT`, `SAVEPOINT` …
    pub fn control(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.raw_execute().map(drop)
    }

    pub fn execute(&self, sql: &str, parameters: &[Parameter<'_>]) -> rusqlite::Result<usize> {
        let mut statement = self.prepare(sql)?;
        bind(&mut statement, parameters)?;
        statement.raw_execute()
    }

    /// The first column of the first row, where it is an integer.
    pub fn number(&self, sql: &str, parameters: &[Parameter<'_>]) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.prepare(sql)?;
        bind(&mut statement, parameters)?;
        let mut rows = statement.raw_query();
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(cell(row, 0).to_i64())
    }

    /// The integers of the first column.
    pub fn numbers(&self, sql: &str, parameters: &[Parameter<'_>]) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.prepare(sql)?;
        bind(&mut statement, parameters)?;
        let mut rows = statement.raw_query();
        let mut numbers = Vec::new();
        while let Some(row) = rows.next()? {
            numbers.extend(cell(row, 0).to_i64());
        }
        Ok(numbers)
    }
}

pub fn bind(statement: &mut Statement<'_>, parameters: &[Parameter<'_>]) -> rusqlite::Result<()> {
    for (i, parameter) in parameters.iter().enumerate() {
        statement.raw_bind_parameter(i + 1, Bound(parameter))?;
    }
    Ok(())
}

struct Bound<'a>(&'a Parameter<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = match self.0 {
            Parameter::Cell(Cell::Null | Cell::Unreadable) => ValueRef::Null,
            Parameter::Cell(Cell::Int(number)) => ValueRef::Integer(*number),
            Parameter::Cell(Cell::Real(number)) => ValueRef::Real(*number),
            Parameter::Cell(Cell::Text(text)) => ValueRef::Text(text.as_bytes()),
            Parameter::List(values) => return Ok(json(values.iter().map(item))),
            Parameter::Integers(numbers) => return Ok(json(numbers.iter().map(|number| (*number).into()))),
        };
        Ok(ToSqlOutput::Borrowed(borrowed))
    }
}

fn json(items: impl Iterator<Item = serde_json::Value>) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(Value::Text(serde_json::Value::from_iter(items).to_string()))
}

/// Reals are texts in it, because they must survive to the last bit.
fn item(value: &Stored) -> serde_json::Value {
    match value {
        Stored::Null => serde_json::Value::Null,
        Stored::Int(number) => (*number).into(),
        Stored::Real(number) => number.to_string().into(),
        Stored::Text(text) => text.as_str().into(),
    }
}

pub fn cell<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> Cell<'r> {
    match row.get_ref(column) {
        Ok(ValueRef::Null) => Cell::Null,
        Ok(ValueRef::Integer(number)) => Cell::Int(number),
        Ok(ValueRef::Real(number)) => Cell::Real(number),
        Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).map_or(Cell::Unreadable, Cell::Text),
        Ok(ValueRef::Blob(_)) | Err(_) => Cell::Unreadable,
    }
}

/// A row while the statement stands on it. Only for flat levels.
pub struct Streamed<'r> {
    pub row: &'r rusqlite::Row<'r>,
    pub level: &'r Level,
}

impl Row for Streamed<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        cell(self.row, column)
    }

    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row)) {
        match &self.level.branches[child] {
            Branch::Key { column } => visit_key(cell(self.row, *column), visit),
            Branch::Rows { .. } => {}
        }
    }
}
