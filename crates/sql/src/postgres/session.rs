//! Runs prepared statements on a connection, with parameters as text and rows as cells; the state that all jobs share.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{BufMut, BytesMut};
use futures_util::StreamExt;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Row as PgRow, RowStream, Statement};

use trefoil_engine::{AccessView, CancelFlag, Plan, Row};
use trefoil_model::error::Error;
use trefoil_model::{CellValue, Model, StoredValue};

use crate::audit::origin_setting::told_statement;
use crate::postgres::PgConnection;
use crate::postgres::connections::connection::ReadPause;
use crate::postgres::error::PostgresError;
use crate::statements::access::check_statement::CheckCache;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::write_rules::{WriteCheck, WriteRules};
use crate::statements::compile::ProgramCache;
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::visit_key_row;
use crate::statements::select::{ChildBranch, SelectLevel};
use crate::statements::sql_parameter::SqlParameter;

/// Receives the rows of a plan.
pub type RowVisitor<'v> = &'v mut (dyn FnMut(&dyn Row) + Send);

/// The state kept between jobs: compiled programs and the statement count.
pub struct CompiledPrograms {
    pub programs: ProgramCache,
    pub statement_count: AtomicU64,
}

impl Default for CompiledPrograms {
    fn default() -> Self {
        CompiledPrograms {
            programs: ProgramCache::new(Dialect::Postgres),
            statement_count: AtomicU64::new(0),
        }
    }
}

impl CompiledPrograms {
    pub fn statement_count(&self) -> u64 {
        self.statement_count.load(Ordering::Relaxed)
    }
}

/// A borrowed connection for one job, which counts statements and checks for cancellation.
#[derive(Clone, Copy)]
pub struct PostgresSession<'l> {
    pub connection: &'l PgConnection,
    pub statement_count: &'l AtomicU64,
    pub checks: &'l CheckCache,
    pub cancel: &'l CancelFlag,
    /// What the actor of the current plan sees; everything without one.
    pub view: Option<&'l AccessView>,
    /// Whose work a statement is that is a transaction of its own, for the triggers of the audit.
    pub asking: Option<&'l str>,
}

impl<'l> PostgresSession<'l> {
    /// The rules for what an actor writes.
    pub fn write_rules<'a>(&self, model: &'a Model, view: &'a AccessView) -> WriteRules<'a>
    where
        'l: 'a,
    {
        WriteRules { dialect: Dialect::Postgres, model, view, checks: self.checks }
    }

    /// The session for one plan.
    pub fn for_plan<'p>(self, plan: &'p Plan) -> PostgresSession<'p>
    where
        'l: 'p,
    {
        PostgresSession { view: plan.access_view().map(AsRef::as_ref), ..self }
    }

    /// Runs a statement that reads, with its own parameters and those of its rules.
    pub async fn read(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<SessionRows<'_>, PostgresError> {
        self.query_with(&statement.sql, parameters, &self.rule_parameters(statement)).await
    }

    /// The first column of the first row of a statement that reads, if it is an integer.
    pub async fn read_integer(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Option<i64>, PostgresError> {
        let mut rows = self.read(statement, parameters).await?;
        let mut found = None;
        while let Some(row) = rows.next_row().await? {
            found = found.or_else(|| read_cell(&row, 0).to_i64());
        }
        Ok(found)
    }

    /// The values of the first column of a statement that reads.
    pub async fn read_values(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Vec<StoredValue>, PostgresError> {
        let mut rows = self.read(statement, parameters).await?;
        let mut values = Vec::new();
        while let Some(row) = rows.next_row().await? {
            values.push(read_cell(&row, 0).to_stored());
        }
        Ok(values)
    }

    /// Runs a statement that writes what an actor sees; the number of changed rows.
    pub async fn execute_seen(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<u64, PostgresError> {
        let mut rows = self.read(statement, parameters).await?;
        while rows.next_row().await?.is_some() {}
        Ok(rows.stream.rows_affected().unwrap_or(0))
    }

    /// The rows of a check of rules.
    pub async fn check_rows(&self, check: &WriteCheck<'_>) -> Result<Vec<Vec<StoredValue>>, PostgresError> {
        let mut rows = self.query(check.sql(), &check.parameters).await?;
        let mut found = Vec::new();
        while let Some(row) = rows.next_row().await? {
            found.push((0..check.width()).map(|column| read_cell(&row, column).to_stored()).collect());
        }
        Ok(found)
    }

    /// Declares a cursor for a statement that reads.
    pub async fn declare(
        &self,
        cursor: &str,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<(), PostgresError> {
        let sql = format!("DECLARE {cursor} NO SCROLL CURSOR FOR {}", statement.sql);
        let mut rows = self.query_with(&sql, parameters, &self.rule_parameters(statement)).await?;
        while rows.next_row().await?.is_some() {}
        Ok(())
    }

    fn rule_parameters(&self, statement: &ReadStatement) -> Vec<SqlParameter<'l>> {
        let mut parameters = Vec::new();
        statement.add_parameters(self.view, &mut parameters);
        parameters
    }

    pub async fn prepare(&self, sql: &str) -> Result<Statement, PostgresError> {
        self.connection.prepare(sql).await.map_err(|error| self.classify_error(error))
    }

    pub async fn query(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<SessionRows<'_>, PostgresError> {
        self.query_with(sql, parameters, &[]).await
    }

    /// Runs a statement that ends with `RETURNING`, and tells the triggers of the audit whose work it is.
    pub async fn query_told(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<SessionRows<'_>, PostgresError> {
        match self.asking {
            None => self.query(sql, parameters).await,
            Some(asking) => {
                let asking = [SqlParameter::Cell(CellValue::Text(asking))];
                self.query_with(&self.told(sql, parameters.len()), parameters, &asking).await
            }
        }
    }

    /// The statement that [`Self::query_told`] runs in the place of one with so many parameters.
    pub fn told<'s>(&self, sql: &'s str, parameters: usize) -> Cow<'s, str> {
        match self.asking {
            None => Cow::Borrowed(sql),
            Some(_) => Cow::Owned(told_statement(sql, parameters + 1)),
        }
    }

    async fn query_with(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
        others: &[SqlParameter<'_>],
    ) -> Result<SessionRows<'_>, PostgresError> {
        self.statement_count.fetch_add(1, Ordering::Relaxed);
        let statement = self.prepare(sql).await?;
        let parameters = AllParameters { first: parameters, rest: others };
        let rows = self.connection.client().query_raw(&statement, parameters.iter()).await;
        Ok(SessionRows {
            session: self,
            stream: Box::pin(rows.map_err(|error| self.classify_error(error))?),
            pause: None,
        })
    }

    /// The rows of a FETCH, which cannot be prepared because its columns depend on the cursor.
    pub async fn fetch(&self, sql: &str) -> Result<SessionRows<'_>, PostgresError> {
        let no_parameters = std::iter::empty::<(&(dyn ToSql + Sync), Type)>();
        let rows = self.connection.client().query_typed_raw(sql, no_parameters).await;
        Ok(SessionRows {
            session: self,
            stream: Box::pin(rows.map_err(|error| self.classify_error(error))?),
            pause: None,
        })
    }

    /// Runs statements without rows and parameters: `BEGIN`, `COMMIT`, `SAVEPOINT` …
    pub async fn execute_control(&self, sql: &str) -> Result<(), PostgresError> {
        self.connection.client().batch_execute(sql).await.map_err(|error| self.classify_error(error))
    }

    /// Runs a statement and returns the number of rows it changed.
    pub async fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<u64, PostgresError> {
        let mut rows = self.query(sql, parameters).await?;
        while rows.next_row().await?.is_some() {}
        Ok(rows.stream.rows_affected().unwrap_or(0))
    }

    /// The values of the first column.
    pub async fn query_values(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Vec<StoredValue>, PostgresError> {
        let mut rows = self.query(sql, parameters).await?;
        let mut values = Vec::new();
        while let Some(row) = rows.next_row().await? {
            values.push(read_cell(&row, 0).to_stored());
        }
        Ok(values)
    }

    pub async fn query_integer(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Option<i64>, PostgresError> {
        let values = self.query_values(sql, parameters).await?;
        Ok(values.iter().find_map(|value| value.as_cell().to_i64()))
    }

    pub fn classify_error(&self, error: tokio_postgres::Error) -> PostgresError {
        self.connection.classify_error(error)
    }
}

/// The rows of a statement, until the job is cancelled.
pub struct SessionRows<'s> {
    session: &'s PostgresSession<'s>,
    stream: Pin<Box<RowStream>>,
    /// Held from a row until the next one is requested.
    pause: Option<ReadPause<'s>>,
}

impl SessionRows<'_> {
    pub async fn next_row(&mut self) -> Result<Option<PgRow>, PostgresError> {
        self.session.cancel.check().map_err(PostgresError::Store)?;
        self.pause = None;
        let row = self.stream.next().await.transpose().map_err(|error| self.session.classify_error(error))?;
        self.pause = row.is_some().then(|| self.session.connection.pause_reading());
        Ok(row)
    }
}

/// The parameters of a statement in two parts.
struct AllParameters<'p> {
    first: &'p [SqlParameter<'p>],
    rest: &'p [SqlParameter<'p>],
}

impl<'p> AllParameters<'p> {
    fn iter(&self) -> impl ExactSizeIterator<Item = PostgresParameter<'p>> + use<'p> {
        let (first, rest) = (self.first, self.rest);
        let at = move |i: usize| if i < first.len() { &first[i] } else { &rest[i - first.len()] };
        (0..first.len() + rest.len()).map(move |i| PostgresParameter(at(i)))
    }
}

/// A parameter, always sent as text: the server knows its type and parses it.
#[derive(Debug)]
struct PostgresParameter<'a>(&'a SqlParameter<'a>);

impl ToSql for PostgresParameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let cell = match self.0 {
            SqlParameter::Cell(cell) => *cell,
            SqlParameter::Owned(value) => value.as_cell(),
            SqlParameter::List(values) => {
                write_array(out, values.iter().map(StoredValue::as_cell), write_array_item)?;
                return Ok(IsNull::No);
            }
            SqlParameter::Keys(keys) => {
                write_array(out, keys.iter().copied(), write_array_item)?;
                return Ok(IsNull::No);
            }
        };
        match cell {
            CellValue::Null | CellValue::Unreadable => return Ok(IsNull::Yes),
            CellValue::Int(number) => write!(out, "{number}")?,
            CellValue::Real(number) => write!(out, "{number}")?,
            CellValue::Text(text) => out.put_slice(text.as_bytes()),
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

fn write_array<T>(
    out: &mut BytesMut,
    items: impl Iterator<Item = T>,
    write_item: impl Fn(&mut BytesMut, T) -> std::fmt::Result,
) -> std::fmt::Result {
    out.put_u8(b'{');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        write_item(out, item)?;
    }
    out.put_u8(b'}');
    Ok(())
}

fn write_array_item(out: &mut BytesMut, value: CellValue<'_>) -> std::fmt::Result {
    match value {
        CellValue::Null | CellValue::Unreadable => out.write_str("NULL"),
        CellValue::Int(number) => write!(out, "{number}"),
        CellValue::Real(number) => write!(out, "{number}"),
        CellValue::Text(text) => {
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

/// A decoded cell. Statements select only these types, see
/// [`Dialect::read_column`](crate::statements::dialect::Dialect::read_column).
struct DecodedCell<'a>(CellValue<'a>);

impl<'a> FromSql<'a> for DecodedCell<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(DecodedCell(match *kind {
            Type::INT8 => CellValue::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => CellValue::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => CellValue::Int(raw.first().copied().unwrap_or(0).into()),
            Type::FLOAT8 => CellValue::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::TEXT | Type::VARCHAR | Type::NAME => CellValue::Text(std::str::from_utf8(raw)?),
            _ => CellValue::Unreadable,
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(DecodedCell(CellValue::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub fn read_cell(row: &PgRow, column: usize) -> CellValue<'_> {
    row.try_get::<_, DecodedCell<'_>>(column).map_or(CellValue::Unreadable, |cell| cell.0)
}

/// A row of a flat level.
pub struct PostgresRow<'r> {
    pub row: &'r PgRow,
    pub level: &'r SelectLevel,
}

impl Row for PostgresRow<'_> {
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

/// An internal error of the store, not of the plan.
pub fn internal_error(cause: &str) -> PostgresError {
    PostgresError::Store(Error::internal(cause))
}
