//! PostgreSQL's SQLSTATEs and what each means: a plan was refused, the moment was bad, or the database is away.

use std::time::Duration;

use tokio_postgres::error::DbError;

use crate::postgres::connections::connect_error::database_unreachable;
use trefoil_model::error::{Error, Violation, chain};

/// Why a plan was not carried out.
#[derive(Debug)]
pub enum PostgresError {
    /// This plan alone; the transaction stands.
    Plan(Error),
    /// The database refused a statement of this plan; an open transaction must go back to before it.
    Refused(tokio_postgres::Error),
    /// Nothing is wrong with it but the moment: run again from its beginning it may well succeed.
    Retryable(Error),
    /// The connection is gone, and with it what it had not committed. What was being committed may or may not be.
    ConnectionLost(Error),
    /// Another program kept it from what it needs for too long.
    Locked(Error),
    /// The database cannot do it now.
    Store(Error),
}

impl From<Error> for PostgresError {
    fn from(error: Error) -> Self {
        PostgresError::Plan(error)
    }
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(refusal) = error.as_db_error() else {
            let cut = error.is_closed()
                || std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
            return if cut {
                PostgresError::ConnectionLost(database_unreachable())
            } else {
                PostgresError::Store(Error::internal(error))
            };
        };
        let unavailable = |reason: &str, seconds| Error::Unavailable {
            reason: reason.to_owned(),
            retry_after: Duration::from_secs(seconds),
        };
        let code = refusal.code().code();
        match code {
            "40001" | "40P01" => {
                PostgresError::Retryable(unavailable("too many are changing the same records at once", 1))
            }
            // A prepared statement that a changed table or a pooler has made useless.
            "0A000" | "26000" => PostgresError::Retryable(Error::internal(log_text(refusal))),
            "25006" => PostgresError::Store(unavailable("the database cannot be written", 5)),
            "53100" => PostgresError::Store(unavailable("the disk is full", 5)),
            "53200" => PostgresError::Store(unavailable("the database is out of memory", 5)),
            "53300" | "53400" => {
                PostgresError::Store(unavailable("the database takes no more connections", 1))
            }
            "55P03" => PostgresError::Locked(unavailable("the database is locked by another program", 1)),
            "57014" => PostgresError::Store(unavailable("the database took too long", 1)),
            "58030" => PostgresError::Store(unavailable("the disk reports an error", 5)),
            // Of those without 08 and 57P: nobody knows whether it was done, and a transaction that was idle for too long.
            "40003" | "25P03" => PostgresError::ConnectionLost(database_unreachable()),
            _ if code.starts_with("08") || code.starts_with("57P") => {
                PostgresError::ConnectionLost(database_unreachable())
            }
            _ => PostgresError::Refused(error),
        }
    }
}

impl PostgresError {
    /// What a caller is told when the whole job failed.
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

    /// The same, once a write was sent whose end was to be told by the answer that never came.
    pub fn outcome_unknown_if_lost(self) -> PostgresError {
        match self {
            PostgresError::ConnectionLost(_) => PostgresError::Store(Error::OutcomeUnknown),
            fault @ (PostgresError::Plan(_)
            | PostgresError::Refused(_)
            | PostgresError::Retryable(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_)) => fault,
        }
    }
}

/// What a refused statement means, constraints that have an own explanation aside.
pub fn refused_error(error: &tokio_postgres::Error) -> Error {
    let Some(refusal) = error.as_db_error() else { return Error::internal(chain(error)) };
    let wrong = |code, message: &str| Violation { path: Vec::new(), code, message: message.to_owned() };
    match refusal.code().code() {
        "23514" | "23P01" => {
            Error::Conflict(vec![wrong("CONSTRAINT", "a rule of the database does not allow this record")])
        }
        "54000" => Error::Invalid(vec![wrong(
            "TOO_LONG",
            "a value is longer than an index of the database can hold, which is about 2,700 bytes",
        )]),
        "22003" => Error::Invalid(vec![wrong("RANGE", "a number is beyond what the database can keep")]),
        "22007" | "22008" => Error::Invalid(vec![wrong(
            "RANGE",
            "a date is beyond what the database can keep; its years begin with 0001",
        )]),
        code if code.starts_with("22") => {
            Error::Invalid(vec![wrong("VALUE", "the database cannot take one of the values")])
        }
        _ => Error::internal(log_text(refusal)),
    }
}

/// For the log.
fn log_text(refusal: &DbError) -> String {
    format!("{} ({})", refusal.message(), refusal.code().code())
}
