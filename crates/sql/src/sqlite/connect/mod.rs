//! Opens connections: durability, limits, and the SQL functions for queries.

pub mod file_identity;
mod sql_functions;

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::OnceLock;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::options::SqliteOptions;
use crate::sqlite::connect::sql_functions::register_functions;

/// What SQLite calls `temp_store = MEMORY`.
const IN_MEMORY: i64 = 2;

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
    match role {
        ConnectionRole::Writer => {
            // In memory, the journal of each statement is kept in pieces of 1 KiB that are allocated and freed one by one:
            // a fifth of what an insert of ten records costs. Otherwise it is one piece of 64 KiB, then a file.
            if !has_temporary_folder() {
                set_pragma(&connection, "temp_store", "MEMORY")?;
            }
            set_pragma(&connection, "journal_mode", "WAL")?;
            set_pragma(&connection, "synchronous", "FULL")?;
            set_pragma(&connection, "journal_size_limit", "67108864")?;
        }
        ConnectionRole::Reader => {
            set_pragma(&connection, "temp_store", "MEMORY")?;
            set_pragma(&connection, "query_only", "ON")?;
        }
    }
    register_functions(&connection)?;
    Ok(connection)
}

/// While it exists, what a statement sorts or groups beyond the page cache goes to a temporary file. That of the writer
/// always does.
pub struct TemporaryFiles<'c>(Option<&'c Connection>);

impl<'c> TemporaryFiles<'c> {
    /// Without a folder for them, everything stays in memory.
    pub fn use_for(connection: &'c Connection) -> rusqlite::Result<TemporaryFiles<'c>> {
        static HAS_FOLDER: OnceLock<bool> = OnceLock::new();
        let kept_in: i64 = connection.pragma_query_value(None, "temp_store", |row| row.get(0))?;
        if kept_in != IN_MEMORY || !*HAS_FOLDER.get_or_init(has_temporary_folder) {
            return Ok(TemporaryFiles(None));
        }
        set_pragma(connection, "temp_store", "FILE")?;
        Ok(TemporaryFiles(Some(connection)))
    }
}

impl Drop for TemporaryFiles<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            // It only fails where there are temporary tables, and readers make none.
            let _ = set_pragma(connection, "temp_store", "MEMORY");
        }
    }
}

/// Whether SQLite finds a folder for temporary files. Servers may run where nothing but their data can be written.
fn has_temporary_folder() -> bool {
    let path = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
    File::create_new(&path).and_then(|_| fs::remove_file(&path)).is_ok()
}

/// Some pragmas return a row, others none.
fn set_pragma(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    match connection.pragma_update_and_check(None, name, value, |_| Ok(())) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// Otherwise groups of a million records need the memory of all of them.
    #[test]
    fn temporary_files_are_used_also_within_transactions() {
        let table = [(ConnectionRole::Reader, (IN_MEMORY, 1)), (ConnectionRole::Writer, (0, 0))];
        for (role, (before, during)) in table {
            let connection =
                connect(&SqliteLocation::Memory, role, &SqliteOptions::default()).expect("a connection");
            let kept_in = || -> i64 {
                connection.pragma_query_value(None, "temp_store", |row| row.get(0)).expect("a number")
            };
            connection.execute_batch("BEGIN").expect("a transaction");
            assert_eq!(kept_in(), before);
            let files = TemporaryFiles::use_for(&connection).expect("files");
            let sql = "SELECT count(*) FROM sqlite_schema GROUP BY name ORDER BY 1";
            let mut statement = connection.prepare(sql).expect("a statement");
            assert!(!statement.exists([]).expect("runs"));
            assert_eq!(kept_in(), during);
            drop(files);
            assert_eq!(kept_in(), before);
        }
    }

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
