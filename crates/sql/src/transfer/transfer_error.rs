//! Why a whole store could not be copied, as a line for whoever runs the command.

use std::fmt;
use std::path::Path;

use trefoil_model::error::Error;

use crate::migrate::MigrateError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferError(pub String);

impl TransferError {
    /// Something about a file or a folder.
    pub fn for_path(path: &Path, why: impl fmt::Display) -> TransferError {
        TransferError(format!("{}: {why}", path.display()))
    }

    /// The same, with what was being done before it.
    pub fn with_context(self, what: impl fmt::Display) -> TransferError {
        TransferError(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TransferError {}

impl From<rusqlite::Error> for TransferError {
    fn from(error: rusqlite::Error) -> Self {
        TransferError(crate::sqlite::error_message(&error))
    }
}

/// With its details and, where rows are copied, the line and the column that it is about.
impl From<tokio_postgres::Error> for TransferError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
            return TransferError(format!("{error}{}", cause.unwrap_or_default()));
        };
        if error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE) {
            let line = "waited in vain for a lock: end other programs' open transactions and run it again";
            return TransferError(line.to_owned());
        }
        let parts = [said.detail(), said.where_()].into_iter().flatten().map(|part| format!("; {part}"));
        TransferError(format!("{}{}", said.message(), parts.collect::<String>()))
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
