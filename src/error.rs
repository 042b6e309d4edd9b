//! The only failures a caller ever sees, in words without HTTP; each face spells them in its own way.

use std::fmt;
use std::time::Duration;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why it is not known whether an operation happened.
pub const UNSURE: &str = "the connection to the database was lost before it had answered: the change may or may not have been made";

/// Why an operation did not happen. `Display` is safe to show to anyone.
#[derive(Debug, Clone)]
pub enum Error {
    /// What was named does not exist.
    NotFound(String),
    /// The input breaks rules; every broken rule is listed.
    Invalid(Vec<Violation>),
    /// A unique value is taken, or the record is still needed by others.
    Conflict(Vec<Violation>),
    /// The record is no longer at the version the caller saw.
    Stale { expected: i64, found: i64 },
    /// The idempotency key belongs to another request.
    KeyReused,
    /// The first request with this idempotency key has not finished.
    KeyInUse,
    /// A limit of meaning was hit; the text names it, its value and the setting.
    Limit(String),
    /// The store cannot take the operation now; trying again later may work.
    Unavailable { reason: String, retry_after: Duration },
    /// The caller went away or its time ran out.
    Cancelled,
    /// A fault of ours. The cause goes to the log, once, and never to a caller.
    Internal { cause: String },
    /// What a registered resolver said went wrong, with its own code.
    Resolver { message: String, code: String },
    /// What comes after an event id cannot be told: it is no longer kept, or the id was never given.
    EventId { code: &'static str, message: String },
}

/// One broken rule: where, which and in words. The same object on every face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub path: Vec<Segment>,
    /// Stable, in capitals: `REQUIRED`, `NOT_BLANK`, `UNIQUE`, …
    pub code: &'static str,
    pub message: String,
}

/// One step of a path into an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Field(String),
    Index(usize),
}

impl Violation {
    pub fn new(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Violation { path: vec![Segment::Field(field.to_owned())], code, message: message.into() }
    }

    /// The same complaint seen from one level further out.
    pub fn under(mut self, segment: Segment) -> Self {
        self.path.insert(0, segment);
        self
    }
}

impl Error {
    /// Whether it may have happened all the same.
    pub fn is_unsure(&self) -> bool {
        matches!(self, Error::Unavailable { reason, .. } if reason == UNSURE)
    }

    pub fn internal(cause: impl fmt::Display) -> Self {
        Error::Internal { cause: cause.to_string() }
    }

    pub fn invalid(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Error::Invalid(vec![Violation::new(field, code, message)])
    }

    /// The stable name of the failure, the same on every face.
    pub fn code(&self) -> &str {
        match self {
            Error::NotFound(_) => "NOT_FOUND",
            Error::Invalid(_) => "INVALID",
            Error::Conflict(_) => "CONFLICT",
            Error::Stale { .. } => "STALE",
            Error::KeyReused => "IDEMPOTENCY_KEY_REUSED",
            Error::KeyInUse => "IDEMPOTENCY_KEY_IN_USE",
            Error::Limit(_) => "LIMIT_EXCEEDED",
            Error::Unavailable { .. } => "UNAVAILABLE",
            Error::Cancelled => "CANCELLED",
            Error::Internal { .. } => "INTERNAL",
            Error::Resolver { code, .. } => code,
            Error::EventId { code, .. } => code,
        }
    }

    pub fn violations(&self) -> &[Violation] {
        match self {
            Error::Invalid(list) | Error::Conflict(list) => list,
            Error::NotFound(_)
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::Cancelled
            | Error::Internal { .. }
            | Error::Resolver { .. }
            | Error::EventId { .. } => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(what) => write!(f, "{what} not found"),
            Error::Invalid(list) | Error::Conflict(list) => {
                for (i, violation) in list.iter().enumerate() {
                    let gap = if i == 0 { "" } else { "; " };
                    write!(f, "{gap}{}", violation.message)?;
                }
                Ok(())
            }
            Error::Stale { expected, found } => {
                write!(
                    f,
                    "the record is at version {found}, not at the expected version {expected}; read it again"
                )
            }
            Error::KeyReused => {
                f.write_str("this Idempotency-Key was used for another request; use a new key")
            }
            Error::KeyInUse => {
                f.write_str("the first request with this Idempotency-Key is still running; try again later")
            }
            Error::Limit(text) => f.write_str(text),
            Error::Unavailable { reason, .. } => f.write_str(reason),
            Error::Cancelled => f.write_str("the request was cancelled"),
            Error::Internal { .. } => f.write_str("an unexpected error occurred"),
            Error::Resolver { message, .. } | Error::EventId { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
