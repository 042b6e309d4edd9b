//! The PostgreSQL side of a copy: pages of rows, COPY, sequences, and who else is using the store.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, CopyInSink};

use crate::migrate::postgres::reading;
use crate::migrate::quoted;
use crate::postgres::SERVING;
use crate::transfer::Failed;
use crate::transfer::copied_table::{Datum, Holds, Row, Section};
use crate::transfer::sqlite::page_sql;

/// What a long copy must not be ended by, nor lost by: the store that it is of may be closed right after its commit.
const UNBOUNDED: &str = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
                         SET lock_timeout = '10s'; SET client_min_messages = warning; SET synchronous_commit = on";

pub async fn prepare(client: &Client) -> Result<(), Failed> {
    Ok(client.batch_execute(UNBOUNDED).await?)
}

/// How often a lock is asked for, with pauses between: PostgreSQL may notice a little later than we that a server has ended.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);

/// Keeps servers out until the session ends. Those that are there hold the lock too, but share it.
pub async fn keep_servers_out(client: &Client) -> Result<(), Failed> {
    let lock = format!("SELECT pg_try_advisory_lock({SERVING})");
    for _ in 0..TRIES {
        if client.query_one(&lock, &[]).await?.try_get(0)? {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failed("a server or another command is using the database: stop it first".to_owned()))
}

pub async fn page(
    client: &Client,
    section: &Section,
    after: &[Datum],
    limit: usize,
) -> Result<Vec<Row>, Failed> {
    let columns: Vec<String> = section
        .columns
        .iter()
        .map(|column| match &column.holds {
            Holds::Form(form) => reading(form, &quoted(&column.name)),
            Holds::Bytes => quoted(&column.name),
        })
        .collect();
    let sql = page_sql(section, &columns, !after.is_empty(), limit);
    let bound: Vec<Bound<'_>> = after.iter().map(Bound).collect();
    let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|one| one as _).collect();
    let rows = client.query(&sql, &bound).await?;
    let read = |row: &tokio_postgres::Row| -> Result<Row, Failed> {
        (0..columns.len()).map(|at| Ok(row.try_get::<_, Read>(at)?.0)).collect()
    };
    rows.iter().map(read).collect()
}

struct Read(Datum);

impl<'a> FromSql<'a> for Read {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Read(match *kind {
            Type::INT8 => Datum::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Datum::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::FLOAT8 => Datum::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::BYTEA => Datum::Bytes(raw.to_vec()),
            _ => Datum::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Read(Datum::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A key, as text: the server knows of which type it is.
#[derive(Debug)]
struct Bound<'a>(&'a Datum);

impl ToSql for Bound<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            Datum::Null | Datum::Bytes(_) => return Ok(IsNull::Yes),
            Datum::Int(number) => write!(out, "{number}")?,
            Datum::Real(number) => write!(out, "{number}")?,
            Datum::Text(text) => out.extend_from_slice(text.as_bytes()),
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

/// The rows of one table on their way into it.
pub struct Copying {
    sink: Pin<Box<CopyInSink<Bytes>>>,
    table: String,
}

impl Copying {
    pub async fn begin(client: &Client, section: &Section) -> Result<Copying, Failed> {
        let columns: Vec<String> = section.columns.iter().map(|column| quoted(&column.name)).collect();
        let sql = format!("COPY {} ({}) FROM STDIN", quoted(&section.table), columns.join(", "));
        Ok(Copying { sink: Box::pin(client.copy_in(&sql).await?), table: section.table.clone() })
    }

    pub async fn write(&mut self, rows: &[Row]) -> Result<(), Failed> {
        let mut out = BytesMut::new();
        for row in rows {
            for (at, value) in row.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(b"\t");
                }
                spell(&mut out, value);
            }
            out.extend_from_slice(b"\n");
        }
        let sent = self.sink.send(out.freeze()).await;
        sent.map_err(|error| Failed::from(error).while_doing(format_args!("writing {}", self.table)))
    }

    pub async fn finish(mut self) -> Result<(), Failed> {
        let done = self.sink.as_mut().finish().await;
        done.map(drop)
            .map_err(|error| Failed::from(error).while_doing(format_args!("writing {}", self.table)))
    }
}

/// In the text format of COPY.
fn spell(out: &mut BytesMut, value: &Datum) {
    // Writing to memory does not fail.
    let _ = match value {
        Datum::Null => out.write_str("\\N"),
        Datum::Int(number) => write!(out, "{number}"),
        Datum::Real(number) => write!(out, "{number}"),
        Datum::Text(text) => {
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
        Datum::Bytes(bytes) => {
            let _ = out.write_str("\\\\x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
    };
}

/// The last id that a table has given.
pub async fn counter(client: &Client, table: &str) -> Result<i64, Failed> {
    let sql = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass), 0)";
    Ok(client.query_one(sql, &[&quoted(table)]).await?.try_get(0)?)
}

pub async fn last_change(client: &Client) -> Result<i64, Failed> {
    let sql = "SELECT \"value\"::bigint FROM \"trefoil_meta\" WHERE \"key\" = 'numbering'";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

pub async fn set_counters(
    client: &Client,
    counters: &[(String, i64)],
    last_change: i64,
) -> Result<(), Failed> {
    let sql =
        "SELECT setval(pg_get_serial_sequence($1, 'id')::regclass, greatest($2::bigint, 1), $2::bigint > 0)";
    for (table, last) in counters {
        client.execute(sql, &[&quoted(table), last]).await?;
    }
    let lists: i64 =
        client.query_one("SELECT coalesce(max(id), 0) FROM trefoil_lists", &[]).await?.try_get(0)?;
    client.execute(sql, &[&"trefoil_lists", &lists]).await?;
    let sql = "UPDATE \"trefoil_meta\" SET \"value\" = $1 WHERE \"key\" = 'numbering'";
    client.execute(sql, &[&last_change.to_string()]).await?;
    Ok(())
}

/// Gives every change its number that can be seen now.
pub async fn number_changes(client: &Client) -> Result<(), Failed> {
    let waits = "SELECT EXISTS (SELECT FROM \"trefoil_unnumbered\")";
    while client.query_one(waits, &[]).await?.try_get(0)? {
        client.batch_execute("SELECT \"trefoil_number_changes\"(true)").await?;
    }
    Ok(())
}

/// Takes a store out of the database, all tables at once since they refer to each other. What other programs have made
/// of them keeps them there and is named.
pub async fn drop_store(client: &Client, tables: &[String]) -> Result<(), Failed> {
    let ours = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
    let sql = format!(
        "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relnamespace = {ours} \
         AND relkind = 'r' AND (relname = ANY ($1) OR relname LIKE 'trefoil!_%' ESCAPE '!')"
    );
    let named: Option<String> = client.query_one(&sql, &[&tables]).await?.try_get(0)?;
    if let Some(named) = named {
        client.batch_execute(&format!("DROP TABLE {named}")).await?;
    }
    let sql = format!(
        "SELECT string_agg(oid::regprocedure::text, ', ') FROM pg_proc WHERE pronamespace = {ours} \
         AND proname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let functions: Option<String> = client.query_one(&sql, &[]).await?.try_get(0)?;
    if let Some(functions) = functions {
        client.batch_execute(&format!("DROP FUNCTION {functions}")).await?;
    }
    Ok(())
}
