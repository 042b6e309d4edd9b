//! The SQLite side of a copy: connections without the server's threads, pages of rows, and the file as a whole.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Statement, params_from_iter};

use crate::migrate::quote_name;
use crate::transfer::copied_table::{CHANGES_TABLE, CopiedRow, CopiedTable, CopiedValue};
use crate::transfer::{TransferError, TransferProgress};

/// How long to wait for a lock of another program.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages of a file copied between two progress reports.
const PAGES_PER_STEP: i32 = 1_000;

/// Opens an existing store or backup.
pub fn open_file(path: &Path) -> Result<Connection, TransferError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open_with(path, flags).map_err(|error| TransferError::for_path(path, open_failure(path).unwrap_or(error)))
}

/// Opens a file read-only; its folder may be read-only too.
pub fn open_read_only(path: &Path) -> Result<Connection, TransferError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open_with(path, flags).map_err(|error| TransferError::for_path(path, open_failure(path).unwrap_or(error)))
}

/// The system's reason why a file cannot be opened. Only called after SQLite has failed: closing a file releases the
/// process's locks on it, including SQLite's.
fn open_failure(path: &Path) -> Option<TransferError> {
    let reason = match path.metadata() {
        Ok(found) if found.is_file() => File::open(path).err()?.to_string(),
        Ok(found) if found.is_dir() => "this is a folder; give a file".to_owned(),
        Ok(_) => "not a regular file".to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => "file not found".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(TransferError(reason))
}

fn open_with(path: &Path, flags: OpenFlags) -> Result<Connection, TransferError> {
    if !path.is_file() {
        return Err(TransferError("file not found".to_owned()));
    }
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Fails if the file is not a database.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

/// Creates a temporary file, fast and without durability: after a power cut it is not used.
pub fn create_file(path: &Path) -> Result<Connection, TransferError> {
    let connection =
        Connection::open(path).map_err(|error| TransferError::from(error).with_context(path.display()))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -32_768)?;
    Ok(connection)
}

/// Opens a file without WAL, so that no journals remain beside it when it is closed.
pub fn open_exclusive(path: &Path) -> Result<Connection, TransferError> {
    let connection = open_file(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    Ok(connection)
}

/// Copies the whole database of `from` as its transaction sees it, including tables of other programs.
pub fn copy_file(
    from: &Connection,
    to: &mut Connection,
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let backup = Backup::new(from, to)?;
    let (mut remaining, mut last_progress) = (None, Instant::now());
    loop {
        let step = backup.step(PAGES_PER_STEP)?;
        let now = backup.progress();
        if remaining.is_none() {
            progress.begin("copying", "pages", u64::try_from(now.pagecount).unwrap_or(0));
            remaining = Some(now.pagecount);
        }
        progress.advance(u64::try_from(remaining.unwrap_or(0) - now.remaining).unwrap_or(0));
        remaining = Some(now.remaining);
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => last_progress = Instant::now(),
            StepResult::Busy | StepResult::Locked if last_progress.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            StepResult::Busy | StepResult::Locked => {
                return Err(TransferError("the file is locked by another program".to_owned()));
            }
            _ => {
                return Err(TransferError("the copy stopped for an unknown reason".to_owned()));
            }
        }
    }
}

/// Fails with SQLite's message if the file is damaged.
pub fn check_integrity(connection: &Connection) -> Result<(), TransferError> {
    let message: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if message != "ok" {
        return Err(TransferError(format!("the file is damaged: {message}")));
    }
    Ok(())
}

pub fn read_page(
    connection: &Connection,
    table: &CopiedTable,
    after: &[CopiedValue],
    limit: usize,
) -> Result<Vec<CopiedRow>, TransferError> {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_name(&column.name)).collect();
    let sql = table.page_sql(&columns, !after.is_empty(), limit);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(after))?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let cells = (0..columns.len()).map(|column| copied_value(table, column, row.get_ref(column)?));
        let cells: Result<CopiedRow, TransferError> = cells.collect();
        let key = || row.get_ref(0).map_or_else(|_| String::new(), key_text);
        page.push(cells.map_err(|error| error.with_context(key()))?);
    }
    Ok(page)
}

fn copied_value(
    table: &CopiedTable,
    column: usize,
    value: ValueRef<'_>,
) -> Result<CopiedValue, TransferError> {
    let column = &table.columns[column].name;
    Ok(match value {
        ValueRef::Null => CopiedValue::Null,
        ValueRef::Integer(number) => CopiedValue::Int(number),
        ValueRef::Real(number) => CopiedValue::Real(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => CopiedValue::Text(text.to_owned()),
            // Invalid text of another program stays in the log for ever, and must not prevent copying the store.
            Err(_) if table.name == CHANGES_TABLE => {
                CopiedValue::Text(String::from_utf8_lossy(bytes).into_owned())
            }
            Err(_) => return Err(TransferError(format!("the text in {column} is not UTF-8"))),
        },
        ValueRef::Blob(bytes) => CopiedValue::Bytes(bytes.to_vec()),
    })
}

fn key_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => String::new(),
    }
}

pub fn prepare_insert<'c>(
    connection: &'c Connection,
    table: &CopiedTable,
) -> Result<Statement<'c>, TransferError> {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_name(&column.name)).collect();
    let marks: Vec<String> = (1..=columns.len()).map(|number| format!("?{number}")).collect();
    let (name, columns, marks) = (quote_name(&table.name), columns.join(", "), marks.join(", "));
    Ok(connection.prepare(&format!("INSERT INTO {name} ({columns}) VALUES ({marks})"))?)
}

pub fn insert_rows(statement: &mut Statement<'_>, rows: &[CopiedRow]) -> rusqlite::Result<()> {
    rows.iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(drop))
}

impl ToSql for CopiedValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            CopiedValue::Null => ValueRef::Null,
            CopiedValue::Int(number) => ValueRef::Integer(*number),
            // SQLite would store NaN as null.
            CopiedValue::Real(number) if number.is_nan() => {
                return Ok(ToSqlOutput::Owned(Value::Text("NaN".to_owned())));
            }
            CopiedValue::Real(number) => ValueRef::Real(*number),
            CopiedValue::Text(text) => ValueRef::Text(text.as_bytes()),
            CopiedValue::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The last id that a table has assigned.
pub fn last_id(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    Ok(connection.query_row(sql, [table], |row| row.get(0)).optional()?.unwrap_or(0))
}

pub fn set_last_id(connection: &Connection, table: &str, last: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))?;
    Ok(())
}
