//! The headers that every answer carries unless a face has set its own: request id, security, caching.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// No inline script, nothing from elsewhere, never in a frame.
pub const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The id of one request: in its answer, in its log line and in what it leaves in error messages.
#[derive(Debug, Clone)]
pub struct RequestId(Id);

#[derive(Debug, Clone)]
enum Id {
    /// The caller's own.
    Given(Box<str>),
    /// So many digits of it are used. In place: nearly every request gets one.
    Fresh([u8; LONGEST_FRESH], usize),
}

/// Two numbers of 64 bits in hexadecimal digits, and a dash.
const LONGEST_FRESH: usize = 33;

impl RequestId {
    /// The caller's own id if it is harmless to repeat, so that one id follows a request through many servers.
    pub fn of(headers: &HeaderMap) -> Self {
        let own = headers.get(X_REQUEST_ID).filter(|id| is_harmless(id.as_bytes()));
        // A copy: a part of the head would keep all of it for as long as a stream lasts.
        let own = own.and_then(|id| id.to_str().ok()).map(|id| RequestId(Id::Given(id.into())));
        own.unwrap_or_else(RequestId::fresh)
    }

    /// Unique without asking the system for randomness on every request: a random start, then counting.
    fn fresh() -> Self {
        static START: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut digits = [0; LONGEST_FRESH];
        let mut room = &mut digits[..];
        // There is room for both numbers.
        let _ = write!(room, "{:016x}-{:x}", *START, NEXT.fetch_add(1, Ordering::Relaxed));
        let used = LONGEST_FRESH - room.len();
        RequestId(Id::Fresh(digits, used))
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Id::Given(id) => id,
            Id::Fresh(digits, used) => std::str::from_utf8(&digits[..*used]).expect("hexadecimal digits"),
        }
    }
}

fn is_harmless(id: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b);
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}

/// As many headers as an answer usually has, those of [`complete`] with it.
const USUAL: usize = 12;

/// An answer with room for its headers: to make room for them one by one costs more than they do.
pub fn roomy(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().reserve(USUAL);
    response
}

/// Fills in what is missing; a face that knows better has already said so.
pub fn complete(headers: &mut HeaderMap, status: StatusCode, id: &RequestId) {
    let failed = status.is_client_error() || status.is_server_error();
    let caching = if failed { "no-store" } else { "no-cache" };
    let defaults = [
        (CACHE_CONTROL, caching),
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
    ];
    for (name, value) in defaults {
        if let Entry::Vacant(entry) = headers.entry(name) {
            entry.insert(HeaderValue::from_static(value));
        }
    }
    headers.insert(X_REQUEST_ID, HeaderValue::from_str(id.as_str()).expect("visible ASCII"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harmless_id_is_kept_and_any_other_replaced() {
        for (sent, kept) in
            [("abc-123", true), ("", false), ("a b", false), ("a\"b", false), ("\u{fc}", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(sent.as_bytes()).expect("a header value"));
            let id = RequestId::of(&headers);
            assert_eq!(id.as_str() == sent, kept, "{sent:?} became {id:?}");
        }
        assert_ne!(RequestId::fresh().as_str(), RequestId::fresh().as_str());
    }
}
