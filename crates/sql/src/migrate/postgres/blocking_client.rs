//! A blocking client for the migration, which is not async: queries go through a channel to the task that owns the
//! async client.

use std::error::Error as StdError;

use bytes::BytesMut;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, GenericClient, Row};

use trefoil_model::StoredValue;

use crate::migrate::MigrateError;

type StoredRows = Vec<Vec<StoredValue>>;

/// Sends queries from a blocking thread.
pub struct BlockingClient(mpsc::Sender<QueryRequest>);

/// A query and the channel for its result.
pub struct QueryRequest {
    sql: String,
    /// `None` for a batch of statements, which returns no rows.
    parameters: Option<Vec<StoredValue>>,
    reply: oneshot::Sender<Result<StoredRows, MigrateError>>,
}

pub fn client_channel() -> (BlockingClient, mpsc::Receiver<QueryRequest>) {
    let (send, receive) = mpsc::channel(1);
    (BlockingClient(send), receive)
}

impl BlockingClient {
    /// Runs the query and blocks the calling thread, which must not be a thread of the runtime.
    pub fn query(&self, sql: &str, parameters: Option<&[StoredValue]>) -> Result<StoredRows, MigrateError> {
        let (reply, receiver) = oneshot::channel();
        let aborted = || MigrateError::Database("the migration was aborted".to_owned());
        let request = QueryRequest { sql: sql.to_owned(), parameters: parameters.map(<[_]>::to_vec), reply };
        self.0.blocking_send(request).map_err(|_| aborted())?;
        receiver.blocking_recv().unwrap_or_else(|_| Err(aborted()))
    }
}

impl QueryRequest {
    pub async fn execute(self, client: &impl GenericClient) {
        let result = match &self.parameters {
            None => client.batch_execute(&self.sql).await.map(|()| Vec::new()).map_err(Into::into),
            Some(parameters) => query_rows(client, &self.sql, parameters).await,
        };
        // The receiver is gone if the migration panicked, which its task reports.
        let _ = self.reply.send(result);
    }
}

async fn query_rows(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[StoredValue],
) -> Result<StoredRows, MigrateError> {
    let bound: Vec<TextParameter<'_>> = parameters.iter().map(TextParameter).collect();
    let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|parameter| parameter as _).collect();
    client.query(sql, &bound).await?.iter().map(stored_row).collect()
}

fn stored_row(row: &Row) -> Result<Vec<StoredValue>, MigrateError> {
    let cells = row.columns().iter().enumerate().map(|(position, column)| {
        Ok(match *column.type_() {
            Type::BOOL => {
                row.try_get::<_, Option<bool>>(position)?.map(|flag| StoredValue::Int(i64::from(flag)))
            }
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(position)?.map(|number| StoredValue::Int(i64::from(number)))
            }
            Type::INT8 => row.try_get::<_, Option<i64>>(position)?.map(StoredValue::Int),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(position)?.map(StoredValue::Real),
            _ => row.try_get::<_, Option<String>>(position)?.map(StoredValue::Text),
        }
        .unwrap_or(StoredValue::Null))
    });
    cells.collect()
}

/// A parameter sent as text, whose type the server infers.
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
        let Some(db_error) = error.as_db_error() else { return MigrateError::Database(error.to_string()) };
        if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            return MigrateError::Locked(Vec::new());
        }
        let detail = db_error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        MigrateError::Database(format!("{}{detail}", db_error.message()))
    }
}
