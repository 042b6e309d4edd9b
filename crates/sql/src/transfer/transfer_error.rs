//! The error of a transfer: a message for the person who runs the command.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

use tokio_postgres::error::SqlState;

use trefoil_model::error::Error;

use crate::migrate::MigrateError;
use crate::sqlite::error_message;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferError(pub String);

impl TransferError {
    /// An error about a file or folder.
    pub fn for_path(path: &Path, reason: impl fmt::Display) -> TransferError {
        TransferError(format!("{}: {reason}", path.display()))
    }

    /// Puts a context before the message.
    pub fn with_context(self, context: impl fmt::Display) -> TransferError {
        TransferError(format!("{context}: {}", self.0))
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for TransferError {}

impl From<rusqlite::Error> for TransferError {
    fn from(error: rusqlite::Error) -> Self {
        TransferError(error_message(&error))
    }
}

/// Includes the detail and, for COPY, the line and column.
impl From<tokio_postgres::Error> for TransferError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database_error) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(" ({cause})"));
            return TransferError(format!("{error}{}", cause.unwrap_or_default()));
        };
        if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
            let message =
                "timed out waiting for a lock: end open transactions of other programs and try again";
            return TransferError(message.to_owned());
        }
        let parts = [database_error.detail(), database_error.where_()]
            .into_iter()
            .flatten()
            .map(|part| format!("; {part}"));
        TransferError(format!("{}{}", database_error.message(), parts.collect::<String>()))
    }
}

impl From<MigrateError> for TransferError {
    fn from(error: MigrateError) -> Self {
        TransferError(error.to_string())
    }
}

impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        TransferError(error.full_text())
    }
}
