//! What went wrong, as HTTP says it: [`Problem`], and the one table from [`Error`] to a status.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONNECTION, HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use trefoil_model::error::{Cause, Error, Violation};

/// A failed request. A handler returns it as it is; the foundation spells it for whoever asked
/// (in `spell.rs`), so that no face has to know another's way of saying no.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: StatusCode,
    /// Stable, in capitals, the same on every face.
    pub code: Cow<'static, str>,
    /// Safe to show to anyone.
    pub detail: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub violations: Vec<Violation>,
    /// What the violations are about.
    pub request_part: RequestPart,
    /// Set where the path decides and not `Accept`: text endpoints answer with text.
    pub format: Option<ErrorFormat>,
    /// For the log alone; the foundation writes it there, once, with the request id.
    pub cause: Option<Cause>,
}

/// The part of a request that breaks rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    Body,
    /// Parameters behind the `?`.
    Query,
}

/// The forms an error body takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFormat {
    Graphql,
    Html,
    Json,
    Text,
}

impl Problem {
    pub fn new(status: StatusCode, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Problem {
            status,
            code: code.into(),
            detail: detail.into(),
            headers: Vec::new(),
            violations: Vec::new(),
            request_part: RequestPart::Body,
            format: None,
            cause: None,
        }
    }

    /// For a status alone: what a handler or the router left without words.
    pub fn from_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("NOT_FOUND", "there is nothing at this address"),
            StatusCode::METHOD_NOT_ALLOWED => (
                "METHOD_NOT_ALLOWED",
                "this address does not take that method; the Allow header lists the ones it takes",
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("UNSUPPORTED_MEDIA_TYPE", "the content type of this request cannot be read here")
            }
            StatusCode::NOT_ACCEPTABLE => {
                ("NOT_ACCEPTABLE", "this address has no form that the Accept header allows")
            }
            status if status.is_server_error() => ("INTERNAL", "an unexpected error occurred"),
            _ => ("REFUSED", "the request was refused"),
        };
        Problem::new(status, code, detail)
    }

    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// A fault of ours: the cause is for the log alone.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::internal(cause).into()
    }

    pub fn unavailable(detail: impl Into<String>, retry_after: Duration) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", detail).with_retry_after(retry_after)
    }

    /// The status in words.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }

    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// In whole seconds, never zero: a client told "0" would come straight back.
    pub fn with_retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_millis().div_ceil(1000).max(1) as u64;
        self.with_header(RETRY_AFTER, seconds.into())
    }

    /// The rest of the request is not wanted, so the connection cannot be used again.
    pub fn closing_connection(self) -> Self {
        self.with_header(CONNECTION, HeaderValue::from_static("close"))
    }

    pub fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.violations = violations;
        self
    }

    pub fn about_part(mut self, about: RequestPart) -> Self {
        self.request_part = about;
        self
    }

    pub fn with_format(mut self, voice: ErrorFormat) -> Self {
        self.format = Some(voice);
        self
    }
}

/// No such path: the fallback of the router.
pub fn not_found() -> Problem {
    Problem::from_status(StatusCode::NOT_FOUND)
}

/// A known path, another method; `allow` is the list for the header, as `GET, HEAD`.
pub fn method_not_allowed(allow: &str) -> Problem {
    let problem = Problem::from_status(StatusCode::METHOD_NOT_ALLOWED);
    match HeaderValue::from_str(allow) {
        Ok(allow) => problem.with_header(ALLOW, allow),
        Err(_) => problem,
    }
}

/// The only table from a failure to a status.
pub fn error_status(error: &Error) -> StatusCode {
    match error {
        Error::NotFound { .. } => StatusCode::NOT_FOUND,
        Error::Invalid(_) | Error::Limit(_) | Error::EventId { .. } => StatusCode::BAD_REQUEST,
        Error::Conflict(_) | Error::KeyInUse => StatusCode::CONFLICT,
        Error::Stale { .. } => StatusCode::PRECONDITION_FAILED,
        Error::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        // Whoever cancelled is gone or has its 408 already; what is left is our own stopping.
        Error::Unavailable { .. } | Error::OutcomeUnknown | Error::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::Internal { .. } | Error::Resolver { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = Problem::new(error_status(&error), error.code().to_owned(), error.to_string());
        match error {
            Error::Internal { cause } => Problem { cause: Some(cause), ..problem },
            Error::Unavailable { retry_after, .. } => problem.with_retry_after(retry_after),
            Error::OutcomeUnknown | Error::KeyInUse | Error::Cancelled => {
                problem.with_retry_after(Duration::from_secs(1))
            }
            Error::Invalid(violations) | Error::Conflict(violations) => problem.with_violations(violations),
            Error::NotFound { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::Limit(_)
            | Error::Resolver { .. }
            | Error::EventId { .. } => problem,
        }
    }
}

/// The body stays empty here: only the foundation knows who asked.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers.iter().cloned());
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_status() {
        let table = [
            (Error::not_found("user 1"), 404),
            (Error::invalid("name", "NOT_BLANK", "name is blank"), 400),
            (Error::Conflict(vec![]), 409),
            (Error::Stale { expected: 1, found: 2 }, 412),
            (Error::KeyReused, 422),
            (Error::KeyInUse, 409),
            (Error::Limit("too deep".into()), 400),
            (
                Error::Unavailable { reason: "disk full".into(), retry_after: Duration::from_millis(1200) },
                503,
            ),
            (Error::OutcomeUnknown, 503),
            (Error::Cancelled, 503),
            (Error::internal("secret"), 500),
            (Error::Resolver { message: "no".into(), code: "MINE".into() }, 500),
            (Error::EventId { code: "EVENT_ID_EXPIRED", message: "too old".into() }, 400),
        ];
        for (error, expected) in table {
            let text = format!("{error:?}");
            let problem = Problem::from(error);
            assert_eq!(problem.status.as_u16(), expected, "{text}");
            assert_eq!(
                problem.headers.iter().any(|(name, _)| name == RETRY_AFTER),
                expected == 503 || text == "KeyInUse",
                "{text}"
            );
        }
    }

    #[test]
    fn retry_after_rounds_up_and_is_never_zero() {
        for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2")] {
            let problem = Problem::unavailable("", Duration::from_millis(millis));
            assert_eq!(problem.headers, [(RETRY_AFTER, HeaderValue::from_static(seconds))]);
        }
    }
}
