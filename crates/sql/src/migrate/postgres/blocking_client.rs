//! Lets the migration, which is plain code that waits, ask a client that is not: questions go through a channel to
//! the task that has the client.

use std::error::Error as StdError;

use bytes::BytesMut;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, GenericClient, Row};

use crate::migrate::MigrateError;
use trefoil_model::StoredValue;

type StoredRows = Vec<Vec<StoredValue>>;

/// The end that asks, on a thread of its own.
pub struct BlockingClient(mpsc::Sender<QueryRequest>);

pub struct QueryRequest {
    sql: String,
    /// `None` for statements in a batch, which have no answer.
    parameters: Option<Vec<StoredValue>>,
    reply: oneshot::Sender<Result<StoredRows, MigrateError>>,
}

pub fn client_channel() -> (BlockingClient, mpsc::Receiver<QueryRequest>) {
    let (send, receive) = mpsc::channel(1);
    (BlockingClient(send), receive)
}

impl BlockingClient {
    /// Waits on the caller's thread, which must be none of the runtime's.
    pub fn query(&self, sql: &str, parameters: Option<&[StoredValue]>) -> Result<StoredRows, MigrateError> {
        let (answer, answered) = oneshot::channel();
        let gone = || MigrateError::Database("the migration was broken off".to_owned());
        let question =
            QueryRequest { sql: sql.to_owned(), parameters: parameters.map(<[_]>::to_vec), reply: answer };
        self.0.blocking_send(question).map_err(|_| gone())?;
        answered.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}

impl QueryRequest {
    pub async fn execute(self, client: &impl GenericClient) {
        let answer = match &self.parameters {
            None => client.batch_execute(&self.sql).await.map(|()| Vec::new()).map_err(Into::into),
            Some(parameters) => query_rows(client, &self.sql, parameters).await,
        };
        // Nobody waits any more when the migration has panicked, which its task reports.
        let _ = self.reply.send(answer);
    }
}

async fn query_rows(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[StoredValue],
) -> Result<StoredRows, MigrateError> {
    let bound: Vec<TextParameter<'_>> = parameters.iter().map(TextParameter).collect();
    let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|one| one as _).collect();
    client.query(sql, &bound).await?.iter().map(stored_row).collect()
}

fn stored_row(row: &Row) -> Result<Vec<StoredValue>, MigrateError> {
    let cells = row.columns().iter().enumerate().map(|(at, column)| {
        Ok(match *column.type_() {
            Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(|flag| StoredValue::Int(i64::from(flag))),
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(at)?.map(|number| StoredValue::Int(i64::from(number)))
            }
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(StoredValue::Int),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map(StoredValue::Real),
            _ => row.try_get::<_, Option<String>>(at)?.map(StoredValue::Text),
        }
        .unwrap_or(StoredValue::Null))
    });
    cells.collect()
}

/// A parameter whose type the server finds out.
#[derive(Debug)]
struct TextParameter<'a>(&'a StoredValue);

impl ToSql for TextParameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            StoredValue::Null => return Ok(IsNull::Yes),
            StoredValue::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
            StoredValue::Real(number) => out.extend_from_slice(number.to_string().as_bytes()),
            StoredValue::Text(text) => out.extend_from_slice(text.as_bytes()),
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

impl From<Error> for MigrateError {
    fn from(error: Error) -> Self {
        let Some(said) = error.as_db_error() else { return MigrateError::Database(error.to_string()) };
        if error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE) {
            return MigrateError::Locked(Vec::new());
        }
        let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        MigrateError::Database(format!("{}{detail}", said.message()))
    }
}
