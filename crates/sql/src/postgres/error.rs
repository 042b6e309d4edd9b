//! Classifies PostgreSQL's errors by SQLSTATE: the plan was refused, a retry may help, or the database is unavailable.

use std::time::Duration;

use tokio_postgres::error::DbError;

use trefoil_model::error::{Error, Violation, error_chain};

use crate::postgres::connections::connect_error::database_unreachable;

/// Why a plan failed.
#[derive(Debug)]
pub enum PostgresError {
    /// Only this plan failed; the transaction is intact.
    Plan(Error),
    /// The database refused a statement; an open transaction must be rolled back to before it.
    Refused(tokio_postgres::Error),
    /// A transient error: running the job again from its beginning may succeed.
    Retryable(Error),
    /// The connection is lost with everything uncommitted. The outcome of a commit in progress is unknown.
    ConnectionLost(Error),
    /// A lock was not obtained in time.
    Locked(Error),
    /// The database cannot run the job now.
    Store(Error),
}

impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        PostgresError::Plan(error)
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db_error) = error.as_db_error() else {
            let is_lost = error.is_closed()
                || std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
            return if is_lost {
                PostgresError::ConnectionLost(database_unreachable())
            } else {
                PostgresError::Store(Error::internal(error))
            };
        };
        let unavailable = |reason: &str, seconds| Error::Unavailable {
            reason: reason.to_owned(),
            retry_after: Duration::from_secs(seconds),
        };
        let code = db_error.code().code();
        match code {
            "40001" | "40P01" => {
                PostgresError::Retryable(unavailable("too many concurrent changes to the same records", 1))
            }
            // A prepared statement that is invalid after a table change, or lost by a pooler.
            "0A000" | "26000" => PostgresError::Retryable(Error::internal(log_text(db_error))),
            "25006" => PostgresError::Store(unavailable("cannot write to the database", 5)),
            "53100" => PostgresError::Store(unavailable("the disk is full", 5)),
            "53200" => PostgresError::Store(unavailable("the database is out of memory", 5)),
            "53300" | "53400" => {
                PostgresError::Store(unavailable("the database accepts no more connections", 1))
            }
            "55P03" => PostgresError::Locked(unavailable("the database is locked by another program", 1)),
            "57014" => PostgresError::Store(unavailable("the database query timed out", 1)),
            "58030" => PostgresError::Store(unavailable("the disk reported an I/O error", 5)),
            // Outside the classes 08 and 57P: completion unknown, and a transaction that was idle for too long.
            "40003" | "25P03" => PostgresError::ConnectionLost(database_unreachable()),
            _ if code.starts_with("08") || code.starts_with("57P") => {
                PostgresError::ConnectionLost(database_unreachable())
            }
            _ => PostgresError::Refused(error),
        }
    }
}

impl PostgresError {
    /// The error for the caller if the whole job failed.
    pub fn into_error(self) -> Error {
        match self {
            PostgresError::Plan(error)
            | PostgresError::Retryable(error)
            | PostgresError::ConnectionLost(error)
            | PostgresError::Locked(error)
            | PostgresError::Store(error) => error,
            PostgresError::Refused(error) => refused_error(&error),
        }
    }

    /// The error after a write was sent: if the connection is lost, its outcome is unknown.
    pub fn outcome_unknown_if_lost(self) -> PostgresError {
        match self {
            PostgresError::ConnectionLost(_) => PostgresError::Store(Error::OutcomeUnknown),
            error @ (PostgresError::Plan(_)
            | PostgresError::Refused(_)
            | PostgresError::Retryable(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_)) => error,
        }
    }
}

/// The error of a refused statement, apart from constraints that `constraint_errors` explains.
pub fn refused_error(error: &tokio_postgres::Error) -> Error {
    let Some(db_error) = error.as_db_error() else { return Error::internal(error_chain(error)) };
    let violation = |code, message: &str| Violation { path: Vec::new(), code, message: message.to_owned() };
    match db_error.code().code() {
        "23514" | "23P01" => {
            Error::Conflict(vec![violation("CONSTRAINT", "the record violates a constraint of the database")])
        }
        "54000" => Error::Invalid(vec![violation(
            "TOO_LONG",
            "a value is too long for an index of the database, which allows about 2,700 bytes",
        )]),
        "22003" => Error::Invalid(vec![violation("RANGE", "a number is out of range for the database")]),
        "22007" | "22008" => Error::Invalid(vec![violation(
            "RANGE",
            "a date is out of range for the database; years start at 0001",
        )]),
        code if code.starts_with("22") => {
            Error::Invalid(vec![violation("VALUE", "the database cannot store one of the values")])
        }
        _ => Error::internal(log_text(db_error)),
    }
}

/// Message and SQLSTATE for the log.
fn log_text(db_error: &DbError) -> String {
    format!("{} ({})", db_error.message(), db_error.code().code())
}
