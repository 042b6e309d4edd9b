//! Why a whole store could not be copied, as a line for whoever runs the command.

use std::fmt;
use std::path::Path;

use crate::migrate::MigrateError;
use trefoil_model::error::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(pub String);

impl Failed {
    /// Something about a file or a folder.
    pub fn at(path: &Path, why: impl fmt::Display) -> Failed {
        Failed(format!("{}: {why}", path.display()))
    }

    /// The same, with what was being done before it.
    pub fn while_doing(self, what: impl fmt::Display) -> Failed {
        Failed(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Failed(crate::sqlite::words(&error))
    }
}

/// With its details and, where rows are copied, the line and the column that it is about.
impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
            return Failed(format!("{error}{}", cause.unwrap_or_default()));
        };
        if error.code() == Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE) {
            let line = "waited in vain for a lock: end other programs' open transactions and run it again";
            return Failed(line.to_owned());
        }
        let parts = [said.detail(), said.where_()].into_iter().flatten().map(|part| format!("; {part}"));
        Failed(format!("{}{}", said.message(), parts.collect::<String>()))
    }
}

impl From<MigrateError> for Failed {
    fn from(error: MigrateError) -> Self {
        Failed(error.to_string())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed(error.full_text())
    }
}
