//! Opens connections: durability, limits, and the functions that queries use and the schema never does.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::sqlite::Options;
use crate::statements::decimal_key;

/// Where the database is.
#[derive(Debug, Clone)]
pub enum Place {
    Memory,
    File(PathBuf),
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
}

pub fn connect(place: &Place, role: Role, options: &Options) -> rusqlite::Result<Connection> {
    let connection = match place {
        Place::Memory => Connection::open_in_memory()?,
        // No URI: a folder's name may hold any character.
        Place::File(path) => Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?,
    };
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(512);
    // A plan that depended on the values, as of a LIMIT, would be made anew at each run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    pragma(&connection, "foreign_keys", "ON")?;
    pragma(&connection, "cache_size", &format!("-{}", options.cache_kib))?;
    pragma(&connection, "temp_store", "MEMORY")?;
    match role {
        Role::Writer => {
            pragma(&connection, "journal_mode", "WAL")?;
            pragma(&connection, "synchronous", "FULL")?;
            pragma(&connection, "journal_size_limit", "67108864")?;
        }
        Role::Reader => pragma(&connection, "query_only", "ON")?,
    }
    register(&connection)?;
    Ok(connection)
}

/// Some pragmas answer with a row, some with none.
fn pragma(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    match connection.pragma_update_and_check(None, name, value, |_| Ok(())) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        result => result,
    }
}

fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("trefoil_decimal_key", 1, flags, decimal_key)?;
    connection.create_scalar_function("trefoil_real", 1, flags, real)
}

fn decimal_key(context: &Context<'_>) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match context.get_raw(0) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(decimal_key::key(&number.to_string())),
        ValueRef::Real(number) => Some(decimal_key::key(&number.to_string())),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(decimal_key::key(&String::from_utf8_lossy(bytes)))
        }
    })
}

fn real(context: &Context<'_>) -> rusqlite::Result<Option<f64>> {
    Ok(context.get_raw(0).as_str().ok().and_then(|text| text.parse().ok()))
}

impl Options {
    /// For connections that are used on threads of the runtime: a lock is an error there, never a wait.
    pub(crate) fn without_waiting(&self) -> Options {
        Options { busy_timeout: Duration::ZERO, ..self.clone() }
    }
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Options {
            readers: cores.max(2),
            cache_kib: 16 << 10,
            busy_timeout: Duration::from_secs(5),
            queue: 4_096,
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn another_value_is_no_reason_to_plan_a_statement_anew() {
        let connection = connect(&Place::Memory, Role::Writer, &Options::default()).expect("a connection");
        connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").expect("a table");
        let mut statement = connection.prepare("SELECT b FROM t ORDER BY a LIMIT ?1").expect("a statement");
        for limit in [1, 2, 2] {
            assert!(!statement.exists([limit]).expect("runs"));
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
