//! Opens connections: durability, limits, and the SQL functions for queries, which the schema must not use.

use std::path::PathBuf;

use rusqlite::config::DbConfig;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use trefoil_engine::plan::{pattern_count, without_marks, word_count};

use crate::options::SqliteOptions;
use crate::statements::decimal_key;

#[derive(Debug, Clone)]
pub enum SqliteLocation {
    Memory,
    File(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionRole {
    Writer,
    Reader,
}

pub fn connect(
    location: &SqliteLocation,
    role: ConnectionRole,
    options: &SqliteOptions,
) -> rusqlite::Result<Connection> {
    let connection = match location {
        SqliteLocation::Memory => Connection::open_in_memory()?,
        // Not a URI: the path may contain any character.
        SqliteLocation::File(path) => Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?,
    };
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(512);
    // Otherwise a query plan that depends on bound values, such as a LIMIT, is made again at each run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    set_pragma(&connection, "foreign_keys", "ON")?;
    set_pragma(&connection, "cache_size", &format!("-{}", options.cache_kib))?;
    set_pragma(&connection, "temp_store", "MEMORY")?;
    match role {
        ConnectionRole::Writer => {
            set_pragma(&connection, "journal_mode", "WAL")?;
            set_pragma(&connection, "synchronous", "FULL")?;
            set_pragma(&connection, "journal_size_limit", "67108864")?;
        }
        ConnectionRole::Reader => set_pragma(&connection, "query_only", "ON")?,
    }
    register_functions(&connection)?;
    Ok(connection)
}

/// Some pragmas return a row, others none.
fn set_pragma(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    match connection.pragma_update_and_check(None, name, value, |_| Ok(())) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        result => result,
    }
}

fn register_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("trefoil_decimal_key", 1, flags, decimal_key_function)?;
    connection.create_scalar_function("trefoil_real", 1, flags, real_function)?;
    connection.create_scalar_function("trefoil_without_marks", 1, flags, without_marks_function)?;
    connection.create_scalar_function("trefoil_pattern_count", 2, flags, |context| {
        count_function(context, pattern_count)
    })?;
    connection
        .create_scalar_function("trefoil_word_count", 2, flags, |context| count_function(context, word_count))
}

/// Counts the words of a JSON array in a text.
fn count_function(context: &Context<'_>, count: fn(&str, &[String]) -> usize) -> rusqlite::Result<i64> {
    let text = context.get_raw(0).as_str().unwrap_or_default();
    let words = context.get_raw(1).as_str().ok().and_then(|words| serde_json::from_str(words).ok());
    let words: Vec<String> = words.unwrap_or_default();
    Ok(i64::try_from(count(text, &words)).unwrap_or(i64::MAX))
}

fn decimal_key_function(context: &Context<'_>) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match context.get_raw(0) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(decimal_key::encode_decimal(&number.to_string())),
        ValueRef::Real(number) => Some(decimal_key::encode_decimal(&number.to_string())),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(decimal_key::encode_decimal(&String::from_utf8_lossy(bytes)))
        }
    })
}

fn real_function(context: &Context<'_>) -> rusqlite::Result<Option<f64>> {
    Ok(context.get_raw(0).as_str().ok().and_then(|text| text.parse().ok()))
}

fn without_marks_function(context: &Context<'_>) -> rusqlite::Result<Option<String>> {
    Ok(match context.get_raw(0) {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(without_marks(&String::from_utf8_lossy(bytes)).into_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn other_values_do_not_reprepare_statements() {
        let connection = connect(&SqliteLocation::Memory, ConnectionRole::Writer, &SqliteOptions::default())
            .expect("a connection");
        connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").expect("a table");
        let mut statement = connection.prepare("SELECT b FROM t ORDER BY a LIMIT ?1").expect("a statement");
        for limit in [1, 2, 2] {
            assert!(!statement.exists([limit]).expect("runs"));
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
