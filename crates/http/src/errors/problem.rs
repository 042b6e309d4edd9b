//! [`Problem`], a failed request in terms of HTTP, and the table from [`Error`] to a status.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONNECTION, HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use trefoil_model::SourceLocation;
use trefoil_model::error::{Error, ErrorSource, Violation};

/// A failed request. Handlers return it as it is; the service gives it a body in the client's format (see
/// [`crate::errors::render`]), so that handlers need not know the formats of other interfaces.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: StatusCode,
    /// Stable, in capitals, the same in every interface.
    pub code: Cow<'static, str>,
    /// Safe to show to anyone.
    pub detail: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub violations: Vec<Violation>,
    /// The part of the request that the violations refer to.
    pub request_part: RequestPart,
    /// The number of the request in a batch that failed.
    pub index: Option<u16>,
    /// Set where the path decides the format and not `Accept`: text endpoints answer with text.
    pub format: Option<ErrorFormat>,
    /// For the log only; the service writes it once, with the request id.
    pub cause: Option<ErrorSource>,
    /// The rule that refused, for the log only.
    pub refused_by: Option<Box<SourceLocation>>,
}

/// The part of a request that breaks rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    Body,
    /// The parameters after the `?`.
    Query,
}

/// The formats of an error body.
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
            index: None,
            format: None,
            cause: None,
            refused_by: None,
        }
    }

    /// The default code and text of a bare status.
    pub fn from_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("NOT_FOUND", "no resource exists at this path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("METHOD_NOT_ALLOWED", "method not allowed; the Allow header lists the allowed methods")
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("UNSUPPORTED_MEDIA_TYPE", "the content type of the request is not supported")
            }
            StatusCode::NOT_ACCEPTABLE => ("NOT_ACCEPTABLE", "no available format matches the Accept header"),
            status if status.is_server_error() => ("INTERNAL", "an unexpected error occurred"),
            _ => ("REFUSED", "the request was rejected"),
        };
        Problem::new(status, code, detail)
    }

    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// An error of ours: the cause is for the log only.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::internal(cause).into()
    }

    pub fn unavailable(detail: impl Into<String>, retry_after: Duration) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", detail).with_retry_after(retry_after)
    }

    /// The reason phrase of the status.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }

    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// In whole seconds, never zero: with 0 the client would retry at once.
    pub fn with_retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_millis().div_ceil(1000).max(1) as u64;
        self.with_header(RETRY_AFTER, seconds.into())
    }

    /// Says where people sign in, if that is what is missing.
    pub(crate) fn naming_sign_in(mut self) -> Self {
        let is_named = self.detail.contains("/_/sign-in") || self.detail.starts_with("login or password");
        if self.code == "UNAUTHENTICATED" && !is_named {
            self.detail.push_str("; people sign in at /_/sign-in");
        }
        self
    }

    /// The rest of the request is not read, so the connection cannot be reused.
    pub fn closing_connection(self) -> Self {
        self.with_header(CONNECTION, HeaderValue::from_static("close"))
    }

    /// The problem of the request with this number in a batch.
    pub fn at_index(self, index: usize) -> Self {
        Problem { index: u16::try_from(index).ok(), ..self }
    }

    pub fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.violations = violations;
        self
    }

    pub fn about_part(mut self, part: RequestPart) -> Self {
        self.request_part = part;
        self
    }

    pub fn with_format(mut self, format: ErrorFormat) -> Self {
        self.format = Some(format);
        self
    }
}

/// No such path: the fallback of the router.
pub fn not_found() -> Problem {
    Problem::from_status(StatusCode::NOT_FOUND)
}

/// A known path with another method; `allow` is the value of the `Allow` header, such as `GET, HEAD`.
pub fn method_not_allowed(allow: &str) -> Problem {
    let problem = Problem::from_status(StatusCode::METHOD_NOT_ALLOWED);
    match HeaderValue::from_str(allow) {
        Ok(allow) => problem.with_header(ALLOW, allow),
        Err(_) => problem,
    }
}

/// The only mapping from an error to a status.
pub fn error_status(error: &Error) -> StatusCode {
    match error {
        Error::NotFound { .. } => StatusCode::NOT_FOUND,
        Error::Invalid(_) | Error::Limit(_) | Error::EventId { .. } => StatusCode::BAD_REQUEST,
        Error::Conflict(_) | Error::KeyInUse => StatusCode::CONFLICT,
        Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        Error::Forbidden { .. } => StatusCode::FORBIDDEN,
        Error::Stale { .. } => StatusCode::PRECONDITION_FAILED,
        Error::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        // A client that cancelled is gone or already has its 408; what is left is our own shutdown.
        Error::RolledBack => StatusCode::CONFLICT,
        Error::Unavailable { .. } | Error::OutcomeUnknown | Error::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::Internal { .. } | Error::Resolver { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut problem = Problem::new(error_status(&error), error.code().to_owned(), error.to_string());
        problem.refused_by = error.refused_by().cloned().map(Box::new);
        match error {
            Error::Internal { cause } => Problem { cause: Some(cause), ..problem },
            Error::Unavailable { retry_after, .. } => problem.with_retry_after(retry_after),
            Error::OutcomeUnknown | Error::KeyInUse | Error::Cancelled => {
                problem.with_retry_after(Duration::from_secs(1))
            }
            Error::Invalid(violations)
            | Error::Conflict(violations)
            | Error::Forbidden { violations, .. } => problem.with_violations(violations),
            Error::NotFound { .. }
            | Error::Unauthenticated { .. }
            | Error::Stale { .. }
            | Error::RolledBack
            | Error::KeyReused
            | Error::Limit(_)
            | Error::Resolver { .. }
            | Error::EventId { .. } => problem,
        }
    }
}

/// The body stays empty here: the service adds it, in the format that the client accepts.
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
    fn every_error_has_its_status() {
        let table = [
            (Error::not_found("user 1"), 404),
            (Error::invalid("name", "NOT_BLANK", "name is blank"), 400),
            (Error::Conflict(vec![]), 409),
            (Error::Stale { expected: 1, found: 2 }, 412),
            (Error::KeyReused, 422),
            (Error::KeyInUse, 409),
            (Error::Unauthenticated { rule: None }, 401),
            (Error::Forbidden { violations: vec![], rule: None }, 403),
            (Error::Limit("too deep".into()), 400),
            (
                Error::Unavailable { reason: "disk full".into(), retry_after: Duration::from_millis(1200) },
                503,
            ),
            (Error::OutcomeUnknown, 503),
            (Error::Cancelled, 503),
            (Error::RolledBack, 409),
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
