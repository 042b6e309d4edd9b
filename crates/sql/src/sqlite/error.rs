//! Classifies SQLite's result codes: the failure of one plan, or of the store as a whole.

use std::time::Duration;

use rusqlite::ffi;

use trefoil_model::error::{Error, error_chain};

/// Why a plan was not executed.
#[derive(Debug)]
pub enum SqliteError {
    /// Only this plan failed; its statement is undone and the transaction continues.
    Plan(Error),
    /// The store failed; the transaction may already be rolled back.
    Store(rusqlite::Error),
}

impl From<Error> for SqliteError {
    fn from(error: Error) -> Self {
        SqliteError::Plan(error)
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match primary_code(&error) {
            ffi::SQLITE_FULL
            | ffi::SQLITE_IOERR
            | ffi::SQLITE_BUSY
            | ffi::SQLITE_LOCKED
            | ffi::SQLITE_READONLY
            | ffi::SQLITE_CANTOPEN
            | ffi::SQLITE_NOMEM
            | ffi::SQLITE_PERM
            | ffi::SQLITE_AUTH
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_CORRUPT
            | ffi::SQLITE_NOTADB
            | ffi::SQLITE_INTERRUPT => SqliteError::Store(error),
            _ if is_too_deep(&error) => SqliteError::Plan(Error::Limit(
                "the conditions and rules of this request lead through more relations than SQLite can follow at once; ask \
                 for less in one request"
                    .to_owned(),
            )),
            _ => SqliteError::Plan(Error::internal(error)),
        }
    }
}

/// True if subqueries are nested deeper than SQLite's parser allows, which it says in words alone.
fn is_too_deep(error: &rusqlite::Error) -> bool {
    primary_code(error) == ffi::SQLITE_ERROR && error.to_string().contains("nested too deep")
}

/// The primary result code; 0 for errors that do not come from SQLite.
fn primary_code(error: &rusqlite::Error) -> i32 {
    extended_code(error) & 0xff
}

pub fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |error| error.extended_code)
}

/// The error for the caller if another program holds a lock for too long.
pub fn locked() -> Error {
    let reason = "the database is locked by another program".to_owned();
    Error::Unavailable { reason, retry_after: Duration::from_secs(1) }
}

/// The error for the caller if the store failed.
pub fn store_error(error: &rusqlite::Error) -> Error {
    let (reason, seconds) = match primary_code(error) {
        ffi::SQLITE_INTERRUPT => return Error::Cancelled,
        // The index of the WAL needs space too, however little is written.
        ffi::SQLITE_IOERR if extended_code(error) == ffi::SQLITE_IOERR_SHMSIZE => ("the disk is full", 5),
        ffi::SQLITE_FULL => ("the disk is full", 5),
        ffi::SQLITE_IOERR => ("the disk reported an I/O error", 5),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => return locked(),
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => ("cannot write to the database", 5),
        ffi::SQLITE_CANTOPEN => ("cannot open the database", 5),
        ffi::SQLITE_NOMEM => ("the server is out of memory", 5),
        _ => return Error::internal(error_chain(error)),
    };
    Error::Unavailable { reason: reason.to_owned(), retry_after: Duration::from_secs(seconds) }
}

/// True if another connection or program holds a lock.
pub fn is_locked(error: &rusqlite::Error) -> bool {
    primary_code(error) == ffi::SQLITE_BUSY
}

/// True if the connection may be the cause, so that a new one is worth a try.
pub fn needs_new_connection(error: &rusqlite::Error) -> bool {
    matches!(
        primary_code(error),
        ffi::SQLITE_IOERR
            | ffi::SQLITE_CANTOPEN
            | ffi::SQLITE_CORRUPT
            | ffi::SQLITE_NOTADB
            | ffi::SQLITE_READONLY
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_NOMEM
    )
}

/// True if jobs that read other pages may succeed. Not for a lock: each of them would wait for it in turn.
pub fn is_single_page_error(error: &rusqlite::Error) -> bool {
    matches!(primary_code(error), ffi::SQLITE_CORRUPT | ffi::SQLITE_IOERR)
}
