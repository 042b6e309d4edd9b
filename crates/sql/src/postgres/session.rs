//! A connection as programs see it: prepared statements, parameters as text, rows as cells.

use std::error::Error as StdError;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, BytesMut};
use futures_util::StreamExt;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{RowStream, Statement};

use crate::postgres::Link;
use crate::postgres::connections::connection::Pause;
use crate::postgres::error::Fault;
use crate::statements::row_batch::visit_key;
use crate::statements::select::{Branch, Level, Parameter};
use trefoil_engine::{Cancel, Row};
use trefoil_model::error::Error;
use trefoil_model::{Cell, Stored};

/// A borrowed connection that counts what it runs, for a job that may be cancelled.
#[derive(Clone, Copy)]
pub struct Session<'l> {
    pub link: &'l Link,
    pub statements: &'l AtomicU64,
    pub cancel: &'l Cancel,
}

impl Session<'_> {
    pub async fn prepare(&self, sql: &str) -> Result<Statement, Fault> {
        self.link.prepare(sql).await.map_err(|error| self.fault(error))
    }

    pub async fn rows(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Rows<'_>, Fault> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let statement = self.prepare(sql).await?;
        let rows = self.link.client().query_raw(&statement, parameters.iter().map(Bound)).await;
        Ok(Rows { session: self, stream: Box::pin(rows.map_err(|error| self.fault(error))?), pause: None })
    }

    /// Rows of a statement that cannot be prepared beforehand, because what it gives depends on a cursor.
    pub async fn fetch(&self, sql: &str) -> Result<Rows<'_>, Fault> {
        let none = std::iter::empty::<(&(dyn ToSql + Sync), Type)>();
        let rows = self.link.client().query_typed_raw(sql, none).await;
        Ok(Rows { session: self, stream: Box::pin(rows.map_err(|error| self.fault(error))?), pause: None })
    }

    /// Runs statements that give no rows and take no parameters: `BEGIN`, `COMMIT`, `SAVEPOINT` …
    pub async fn control(&self, sql: &str) -> Result<(), Fault> {
        self.link.client().batch_execute(sql).await.map_err(|error| self.fault(error))
    }

    /// How many rows it changed.
    pub async fn execute(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<u64, Fault> {
        let mut rows = self.rows(sql, parameters).await?;
        while rows.next().await?.is_some() {}
        Ok(rows.stream.rows_affected().unwrap_or(0))
    }

    /// The integers of the first column.
    pub async fn numbers(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<i64>, Fault> {
        let mut rows = self.rows(sql, parameters).await?;
        let mut numbers = Vec::new();
        while let Some(row) = rows.next().await? {
            numbers.extend(cell(&row, 0).to_i64());
        }
        Ok(numbers)
    }

    pub async fn number(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Option<i64>, Fault> {
        Ok(self.numbers(sql, parameters).await?.first().copied())
    }

    pub fn fault(&self, error: tokio_postgres::Error) -> Fault {
        self.link.fault(error)
    }
}

/// What a statement gives, row by row, for as long as somebody wants it.
pub struct Rows<'s> {
    session: &'s Session<'s>,
    stream: Pin<Box<RowStream>>,
    /// From a row until the next is asked for.
    pause: Option<Pause<'s>>,
}

impl Rows<'_> {
    pub async fn next(&mut self) -> Result<Option<tokio_postgres::Row>, Fault> {
        self.session.cancel.check().map_err(Fault::Store)?;
        self.pause = None;
        let row = self.stream.next().await.transpose().map_err(|error| self.session.fault(error))?;
        self.pause = row.is_some().then(|| self.session.link.pause());
        Ok(row)
    }
}

/// Text in every case: the server knows of which type each parameter is and reads it so.
#[derive(Debug)]
struct Bound<'a>(&'a Parameter<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            Parameter::Cell(Cell::Null | Cell::Unreadable) => return Ok(IsNull::Yes),
            Parameter::Cell(Cell::Int(number)) => write!(out, "{number}")?,
            Parameter::Cell(Cell::Real(number)) => write!(out, "{number}")?,
            Parameter::Cell(Cell::Text(text)) => out.put_slice(text.as_bytes()),
            Parameter::List(values) => array(out, values.iter(), item)?,
            Parameter::Integers(numbers) => {
                array(out, numbers.iter(), |out, number| write!(out, "{number}"))?
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn array<T>(
    out: &mut BytesMut,
    items: impl Iterator<Item = T>,
    spell: impl Fn(&mut BytesMut, T) -> std::fmt::Result,
) -> std::fmt::Result {
    out.put_u8(b'{');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        spell(out, item)?;
    }
    out.put_u8(b'}');
    Ok(())
}

fn item(out: &mut BytesMut, value: &Stored) -> std::fmt::Result {
    match value {
        Stored::Null => out.write_str("NULL"),
        Stored::Int(number) => write!(out, "{number}"),
        Stored::Real(number) => write!(out, "{number}"),
        Stored::Text(text) => {
            out.put_u8(b'"');
            for character in text.chars() {
                if matches!(character, '"' | '\\') {
                    out.put_u8(b'\\');
                }
                out.write_char(character)?;
            }
            out.put_u8(b'"');
            Ok(())
        }
    }
}

/// What the statements ask for is of one of these types; see [`crate::statements::dialect::Dialect::read`].
struct Read<'a>(Cell<'a>);

impl<'a> FromSql<'a> for Read<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Read(match *kind {
            Type::INT8 => Cell::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Cell::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => Cell::Int(raw.first().copied().unwrap_or(0).into()),
            Type::FLOAT8 => Cell::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::TEXT | Type::VARCHAR | Type::NAME => Cell::Text(std::str::from_utf8(raw)?),
            _ => Cell::Unreadable,
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Read(Cell::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub fn cell(row: &tokio_postgres::Row, column: usize) -> Cell<'_> {
    row.try_get::<_, Read<'_>>(column).map_or(Cell::Unreadable, |read| read.0)
}

/// A row as it came. Only for flat levels.
pub struct Streamed<'r> {
    pub row: &'r tokio_postgres::Row,
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

/// An error that is the store's own and nothing of the plan's.
pub fn internal(cause: &str) -> Fault {
    Fault::Store(Error::internal(cause))
}
