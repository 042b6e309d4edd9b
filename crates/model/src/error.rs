//! The errors that callers see, independent of HTTP; GraphQL, REST and HTML each format them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{RecordId, SourceLocation};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. Its `Display` text is safe to show to any client.
#[derive(Debug, Clone)]
pub enum Error {
    /// A record or another named thing does not exist.
    NotFound {
        what: MissingItem,
        /// The rule that hides it from a writer, for the log only.
        hidden_by: Option<Box<SourceLocation>>,
    },
    /// The input breaks rules; all broken rules are listed.
    Invalid(Vec<Violation>),
    /// A unique value is taken, or other records still need this one.
    Conflict(Vec<Violation>),
    /// Only actors with a credential may do this, and the caller has none.
    Unauthenticated {
        /// The rule that refused, for the log only.
        rule: Option<Box<SourceLocation>>,
    },
    /// The rules of the schema do not let the caller do this. The violations name fields that may not be read or set.
    Forbidden {
        violations: Vec<Violation>,
        /// The rule that refused, for the log only.
        rule: Option<Box<SourceLocation>>,
    },
    /// The record is not at the version that the caller expected.
    Stale { expected: i64, found: i64 },
    /// The idempotency key belongs to another request.
    KeyReused,
    /// The first request with this idempotency key has not finished.
    KeyInUse,
    /// A limit on what a request may ask for; the text has the limit, its value and the setting.
    Limit(String),
    /// The store cannot run the operation now; a retry may succeed.
    Unavailable { reason: String, retry_after: Duration },
    /// The connection was lost before the store answered: the operation may or may not have happened.
    OutcomeUnknown,
    /// The caller disconnected or its time ran out.
    Cancelled,
    /// Undone, or not begun, because another operation of the same transaction failed.
    RolledBack,
    /// A bug or failure of the server. The cause is logged once and never shown to a caller.
    Internal { cause: ErrorSource },
    /// An error of a registered resolver, with its own code.
    Resolver { message: String, code: String },
    /// Changes after an event id are not available: no longer kept, or the id was never issued.
    EventId { code: &'static str, message: String },
}

/// The thing that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingItem {
    /// The record that a write names; `type_name` is the label for people.
    Record { type_name: String, id: RecordId },
    /// Anything else, described in words.
    Named(String),
}

impl fmt::Display for MissingItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingItem::Record { type_name, id } => write!(f, "{type_name} {id}"),
            MissingItem::Named(what) => f.write_str(what),
        }
    }
}

/// The error behind an [`Error::Internal`], shared by all operations that it failed. `Display` gives the whole
/// chain of sources in one line, for the log only. The inner box keeps `Error` one pointer smaller than a fat `Arc`
/// would.
#[derive(Debug, Clone)]
pub struct ErrorSource(Arc<Box<dyn std::error::Error + Send + Sync>>);

impl ErrorSource {
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ErrorSource {
        ErrorSource(Arc::new(cause.into()))
    }
}

/// Equal only if it is the same error instance, not one with the same text.
impl PartialEq for ErrorSource {
    fn eq(&self, other: &ErrorSource) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ErrorSource {}

impl fmt::Display for ErrorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_chain(&**self.0))
    }
}

/// What a panic said. It takes the box, because a reference to the box would itself pass for the content.
pub fn panic_text(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// An error and its sources, outermost first. Many errors repeat their source in their own text: it is written
/// once.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = error.source();
    }
    text
}

/// One broken rule: its position in the input, a code and a message. The same for GraphQL, REST and HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub path: Vec<PathSegment>,
    /// Stable and in capitals: `REQUIRED`, `NOT_BLANK`, `UNIQUE`, …
    pub code: &'static str,
    pub message: String,
}

/// One step of a path into an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    Field(String),
    Index(usize),
}

impl Violation {
    pub fn new(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Violation { path: vec![PathSegment::Field(field.to_owned())], code, message: message.into() }
    }

    /// The same violation with `segment` in front of its path.
    pub fn nested_under(mut self, segment: PathSegment) -> Self {
        self.path.insert(0, segment);
        self
    }
}

impl Error {
    /// An internal error, from an error or a text.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Internal { cause: ErrorSource::new(cause) }
    }

    /// A missing thing, described in words.
    pub fn not_found(what: impl Into<String>) -> Self {
        Error::NotFound { what: MissingItem::Named(what.into()), hidden_by: None }
    }

    /// For the log and the command line: the cause where there is one. Never for a client.
    pub fn full_text(&self) -> String {
        self.cause().map_or_else(|| self.to_string(), ErrorSource::to_string)
    }

    pub fn cause(&self) -> Option<&ErrorSource> {
        match self {
            Error::Internal { cause } => Some(cause),
            Error::NotFound { .. }
            | Error::Invalid(_)
            | Error::Conflict(_)
            | Error::Unauthenticated { .. }
            | Error::Forbidden { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Cancelled
            | Error::RolledBack
            | Error::Resolver { .. }
            | Error::EventId { .. } => None,
        }
    }

    /// The rule that refused, for the log only.
    pub fn refused_by(&self) -> Option<&SourceLocation> {
        match self {
            Error::Unauthenticated { rule }
            | Error::Forbidden { rule, .. }
            | Error::NotFound { hidden_by: rule, .. } => rule.as_deref(),
            Error::Invalid(_)
            | Error::Conflict(_)
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Cancelled
            | Error::RolledBack
            | Error::Internal { .. }
            | Error::Resolver { .. }
            | Error::EventId { .. } => None,
        }
    }

    pub fn invalid(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Error::Invalid(vec![Violation::new(field, code, message)])
    }

    /// The stable code of the error, the same everywhere.
    pub fn code(&self) -> &str {
        match self {
            Error::NotFound { .. } => "NOT_FOUND",
            Error::Invalid(_) => "INVALID",
            Error::Conflict(_) => "CONFLICT",
            Error::Unauthenticated { .. } => "UNAUTHENTICATED",
            Error::Forbidden { .. } => "FORBIDDEN",
            Error::Stale { .. } => "STALE",
            Error::KeyReused => "IDEMPOTENCY_KEY_REUSED",
            Error::KeyInUse => "IDEMPOTENCY_KEY_IN_USE",
            Error::Limit(_) => "LIMIT_EXCEEDED",
            Error::Unavailable { .. } | Error::OutcomeUnknown => "UNAVAILABLE",
            Error::Cancelled => "CANCELLED",
            Error::RolledBack => "ROLLED_BACK",
            Error::Internal { .. } => "INTERNAL",
            Error::Resolver { code, .. } => code,
            Error::EventId { code, .. } => code,
        }
    }

    /// The error of one of many records: its violations get the index of the record, and so does the refusal of a rule.
    pub fn of_item(mut self, index: usize) -> Error {
        let message = self.to_string();
        if let Error::Forbidden { violations, .. } = &mut self
            && violations.is_empty()
        {
            violations.push(Violation { path: Vec::new(), code: "FORBIDDEN", message });
        }
        self.under_path(&[PathSegment::Index(index)])
    }

    /// The error of a part of the input: its violations get the path of the part.
    pub fn under_path(mut self, path: &[PathSegment]) -> Error {
        if let Error::Invalid(violations)
        | Error::Conflict(violations)
        | Error::Forbidden { violations, .. } = &mut self
        {
            violations.iter_mut().for_each(|violation| {
                violation.path.splice(0..0, path.iter().cloned());
            });
        }
        self
    }

    pub fn violations(&self) -> &[Violation] {
        match self {
            Error::Invalid(list) | Error::Conflict(list) | Error::Forbidden { violations: list, .. } => list,
            Error::NotFound { .. }
            | Error::Unauthenticated { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Cancelled
            | Error::RolledBack
            | Error::Internal { .. }
            | Error::Resolver { .. }
            | Error::EventId { .. } => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { what, .. } => write!(f, "{what} not found"),
            Error::Forbidden { violations, .. } if violations.is_empty() => {
                f.write_str("the rules of this application do not allow this")
            }
            Error::Invalid(list) | Error::Conflict(list) | Error::Forbidden { violations: list, .. } => {
                for (i, violation) in list.iter().enumerate() {
                    let separator = if i == 0 { "" } else { "; " };
                    write!(f, "{separator}{}", violation.message)?;
                }
                Ok(())
            }
            Error::Unauthenticated { .. } => f.write_str("this needs a credential: an API key or a token"),
            Error::Stale { expected, found } => {
                write!(
                    f,
                    "the record was changed: expected version {expected}, found version {found}; read it again and retry"
                )
            }
            Error::KeyReused => {
                f.write_str("this Idempotency-Key was already used for a different request; use a new key")
            }
            Error::KeyInUse => {
                f.write_str("another request with this Idempotency-Key is still running; try again later")
            }
            Error::Limit(text) => f.write_str(text),
            Error::Unavailable { reason, .. } => f.write_str(reason),
            Error::OutcomeUnknown => f.write_str(
                "the connection to the database was lost before it confirmed the change; the change may or may not have been saved",
            ),
            Error::Cancelled => f.write_str("the request was cancelled"),
            Error::RolledBack => f.write_str("nothing was written, because another part of this request failed"),
            Error::Internal { .. } => f.write_str("an unexpected error occurred"),
            Error::Resolver { message, .. } | Error::EventId { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source: &(dyn std::error::Error + 'static) = &**self.cause()?.0;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct ChainedError(&'static str, Option<Box<ChainedError>>);

    impl fmt::Display for ChainedError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for ChainedError {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            let source: &(dyn std::error::Error + 'static) = self.1.as_deref()?;
            Some(source)
        }
    }

    #[test]
    fn display_hides_the_cause() {
        let disk = ChainedError("no space left", None);
        let file = ChainedError("writing failed: no space left", Some(Box::new(disk)));
        let error = Error::internal(ChainedError("the page cannot be kept", Some(Box::new(file))));
        assert_eq!(error.full_text(), "the page cannot be kept: writing failed: no space left");
        assert_eq!(error.to_string(), "an unexpected error occurred");
        assert_eq!(
            error_chain(&error),
            "an unexpected error occurred: the page cannot be kept: writing failed: no space left"
        );
        assert_eq!(Error::internal("in words").full_text(), "in words");
        assert_eq!(Error::KeyReused.full_text(), Error::KeyReused.to_string());
    }

    #[test]
    fn panic_text_is_what_the_panic_said() {
        let said: [(Box<dyn Any + Send>, &str); 3] = [
            (Box::new("text"), "text"),
            (Box::new("owned".to_owned()), "owned"),
            (Box::new(5), "no message"),
        ];
        for (panic, expected) in said {
            assert_eq!(panic_text(&panic), expected);
        }
    }
}
