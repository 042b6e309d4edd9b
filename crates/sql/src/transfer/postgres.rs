//! The PostgreSQL side of a copy: pages of rows, COPY, sequences, and locking out servers.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, CopyInSink};

use crate::migrate::postgres::read_expression;
use crate::migrate::quote_name;
use crate::postgres::connections::manager::SERVING_LOCK;
use crate::transfer::TransferError;
use crate::transfer::copied_table::{CopiedRow, CopiedTable, CopiedType, CopiedValue};

/// Session settings for a long copy: no timeouts, and a durable commit, because the source may be closed right after it.
const NO_TIMEOUTS: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
                         SET lock_timeout = '10s'; SET client_min_messages = warning; SET synchronous_commit = on";

pub async fn disable_timeouts(client: &Client) -> Result<(), TransferError> {
    Ok(client.batch_execute(NO_TIMEOUTS).await?)
}

/// Attempts to get the lock: PostgreSQL may notice the end of a server later than we do.
const MAX_LOCK_TRIES: u32 = 10;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(300);

/// Locks out servers until the session ends. Running servers hold the same lock in shared mode.
pub async fn lock_out_servers(client: &Client) -> Result<(), TransferError> {
    let lock = format!("SELECT pg_try_advisory_lock({SERVING_LOCK})");
    for _ in 0..MAX_LOCK_TRIES {
        if client.query_one(&lock, &[]).await?.try_get(0)? {
            return Ok(());
        }
        tokio::time::sleep(LOCK_RETRY_DELAY).await;
    }
    Err(TransferError("the database is in use by a server or another command: stop it first".to_owned()))
}

pub async fn read_page(
    client: &Client,
    table: &CopiedTable,
    after: &[CopiedValue],
    limit: usize,
) -> Result<Vec<CopiedRow>, TransferError> {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| match &column.value_type {
            CopiedType::Stored(stored_type) => read_expression(stored_type, &quote_name(&column.name)),
            CopiedType::Bytes => quote_name(&column.name),
        })
        .collect();
    let sql = table.page_sql(&columns, !after.is_empty(), limit);
    let keys: Vec<KeyParameter<'_>> = after.iter().map(KeyParameter).collect();
    let parameters: Vec<&(dyn ToSql + Sync)> = keys.iter().map(|key| key as _).collect();
    let rows = client.query(&sql, &parameters).await?;
    let decode = |row: &tokio_postgres::Row| -> Result<CopiedRow, TransferError> {
        (0..columns.len()).map(|column| Ok(row.try_get::<_, DecodedValue>(column)?.0)).collect()
    };
    rows.iter().map(decode).collect()
}

struct DecodedValue(CopiedValue);

impl<'a> FromSql<'a> for DecodedValue {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(DecodedValue(match *kind {
            Type::INT8 => CopiedValue::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => CopiedValue::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::FLOAT8 => CopiedValue::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::BYTEA => CopiedValue::Bytes(raw.to_vec()),
            _ => CopiedValue::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(DecodedValue(CopiedValue::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A key in text format, so that the server converts it to the type of the column.
#[derive(Debug)]
struct KeyParameter<'a>(&'a CopiedValue);

impl ToSql for KeyParameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            CopiedValue::Null | CopiedValue::Bytes(_) => return Ok(IsNull::Yes),
            CopiedValue::Int(number) => write!(out, "{number}")?,
            CopiedValue::Real(number) => write!(out, "{number}")?,
            CopiedValue::Text(text) => out.extend_from_slice(text.as_bytes()),
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

/// Writes the rows of one table with COPY.
pub struct CopyWriter {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    table: String,
}

impl CopyWriter {
    pub async fn begin(client: &Client, table: &CopiedTable) -> Result<CopyWriter, TransferError> {
        let columns: Vec<String> = table.columns.iter().map(|column| quote_name(&column.name)).collect();
        let sql = format!("COPY {} ({}) FROM STDIN", quote_name(&table.name), columns.join(", "));
        Ok(CopyWriter { sink: Box::pin(client.copy_in(&sql).await?), table: table.name.clone() })
    }

    pub async fn write_rows(&mut self, rows: &[CopiedRow]) -> Result<(), TransferError> {
        let mut out = BytesMut::new();
        for row in rows {
            for (column, value) in row.iter().enumerate() {
                if column > 0 {
                    out.extend_from_slice(b"\t");
                }
                write_copy_value(&mut out, value);
            }
            out.extend_from_slice(b"\n");
        }
        let sent = self.sink.send(out.freeze()).await;
        sent.map_err(|error| TransferError::from(error).with_context(format_args!("writing {}", self.table)))
    }

    pub async fn finish(mut self) -> Result<(), TransferError> {
        let result = self.sink.as_mut().finish().await;
        result
            .map(drop)
            .map_err(|error| TransferError::from(error).with_context(format_args!("writing {}", self.table)))
    }
}

/// Writes a value in the text format of COPY.
fn write_copy_value(out: &mut BytesMut, value: &CopiedValue) {
    // Writing to memory cannot fail.
    let _ = match value {
        CopiedValue::Null => out.write_str("\\N"),
        CopiedValue::Int(number) => write!(out, "{number}"),
        CopiedValue::Real(number) => write!(out, "{number}"),
        CopiedValue::Text(text) => {
            for byte in text.bytes() {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    byte => out.extend_from_slice(&[byte]),
                }
            }
            Ok(())
        }
        CopiedValue::Bytes(bytes) => {
            let _ = out.write_str("\\\\x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
    };
}

/// The last id that a table has assigned.
pub async fn last_id(client: &Client, table: &str) -> Result<i64, TransferError> {
    let sql = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0)";
    Ok(client.query_one(sql, &[&quote_name(table)]).await?.try_get(0)?)
}

pub async fn last_change(client: &Client) -> Result<i64, TransferError> {
    let sql = "SELECT \"value\"::bigint FROM \"trefoil_meta\" WHERE \"key\" = 'numbering'";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

pub async fn set_counters(
    client: &Client,
    counters: &[(String, i64)],
    last_change: i64,
) -> Result<(), TransferError> {
    let sql =
        "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass, greatest($2::bigint, 1), $2::bigint > 0)";
    for (table, last) in counters {
        client.execute(sql, &[&quote_name(table), last]).await?;
    }
    let lists: i64 =
        client.query_one("SELECT coalesce(max(id), 0) FROM trefoil_lists", &[]).await?.try_get(0)?;
    client.execute(sql, &[&"trefoil_lists", &lists]).await?;
    let sql = "UPDATE \"trefoil_meta\" SET \"value\" = $1 WHERE \"key\" = 'numbering'";
    client.execute(sql, &[&last_change.to_string()]).await?;
    Ok(())
}

/// Numbers all changes that are visible now.
pub async fn number_changes(client: &Client) -> Result<(), TransferError> {
    let has_unnumbered = "SELECT EXISTS (SELECT FROM \"trefoil_unnumbered\")";
    while client.query_one(has_unnumbered, &[]).await?.try_get(0)? {
        client.batch_execute("SELECT \"trefoil_number_changes\"(true)").await?;
    }
    Ok(())
}

/// Drops the tables and functions of a store, all tables at once because they refer to each other. Fails, naming them,
/// if objects of other programs depend on them.
pub async fn drop_store(client: &Client, tables: &[String]) -> Result<(), TransferError> {
    let schema = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    let sql = format!(
        "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relnamespace = {schema} \
         AND relkind = 'r' AND (relname = ANY ($1) OR relname LIKE 'trefoil!_%' ESCAPE '!')"
    );
    let names: Option<String> = client.query_one(&sql, &[&tables]).await?.try_get(0)?;
    if let Some(names) = names {
        client.batch_execute(&format!("DROP TABLE {names}")).await?;
    }
    let sql = format!(
        "SELECT string_agg(oid::regprocedure::text, ', ') FROM pg_proc WHERE pronamespace = {schema} \
         AND proname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let functions: Option<String> = client.query_one(&sql, &[]).await?.try_get(0)?;
    if let Some(functions) = functions {
        client.batch_execute(&format!("DROP FUNCTION {functions}")).await?;
    }
    Ok(())
}
