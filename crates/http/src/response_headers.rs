//! The headers that every answer carries unless a face has set its own: request id, security, caching.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Id);

#[derive(Debug, Clone, PartialEq, Eq)]
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
        static START: LazyLock<String> =
            LazyLock::new(|| format!("{:016x}-", RandomState::new().hash_one(std::process::id())));
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut digits = [0; LONGEST_FRESH];
        let (start, count) = digits.split_at_mut(START.len());
        start.copy_from_slice(START.as_bytes());
        // By hand, for every request does it: to write it as a text costs ten times as much.
        let unused = number.leading_zeros() as usize / 4;
        let count = &mut count[..16 - unused];
        for (place, digit) in count.iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
        }
        RequestId(Id::Fresh(digits, LONGEST_FRESH - unused))
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Id::Given(id) => id.as_bytes(),
            Id::Fresh(digits, used) => &digits[..*used],
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("visible ASCII")
    }
}

fn is_harmless(id: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b);
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}

/// What an answer has that is not refused: `own`, and whatever of the rest it does not say by itself.
///
/// It is put together once and cloned for each such answer: header by header it costs as much as a short text does.
pub fn ready(own: HeaderMap) -> HeaderMap {
    let mut headers = own;
    fill(&mut headers, ASKED_AGAIN);
    // The place of the id, by which `complete` knows that nothing else is missing.
    headers.insert(X_REQUEST_ID, HeaderValue::from_static(""));
    // A copy has no room to spare.
    headers.clone()
}

/// Fills in what is missing; a face that knows better has already said so.
pub fn complete(headers: &mut HeaderMap, status: StatusCode, id: &RequestId) {
    let id = HeaderValue::from_bytes(id.as_bytes()).expect("visible ASCII");
    let is_ready = headers.insert(X_REQUEST_ID, id).is_some_and(|place| place.is_empty());
    let failed = status.is_client_error() || status.is_server_error();
    if failed && is_ready && headers.get(CACHE_CONTROL).is_some_and(|caching| caching == ASKED_AGAIN) {
        headers.remove(CACHE_CONTROL);
    }
    if failed || !is_ready {
        fill(headers, if failed { NEVER_KEPT } else { ASKED_AGAIN });
    }
}

/// May be kept, and is asked for again each time.
const ASKED_AGAIN: &str = "no-cache";
const NEVER_KEPT: &str = "no-store";

fn fill(headers: &mut HeaderMap, caching: &'static str) {
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
        let [first, second] = [RequestId::fresh(), RequestId::fresh()].map(|id| {
            let (start, count) = id.as_str().split_once('-').expect("a dash");
            assert_eq!(start.len(), 16, "{id:?}");
            u64::from_str_radix(count, 16).expect("hexadecimal digits")
        });
        assert!(first < second, "{first} before {second}");
    }

    #[test]
    fn what_is_ready_lacks_nothing_but_the_id() {
        let one = |name: HeaderName, value| HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
        let owns = [one(REFERRER_POLICY, "no-referrer"), one(CACHE_CONTROL, "max-age=60")];
        for (own, status) in owns.iter().flat_map(|own| [(own, StatusCode::OK), (own, StatusCode::NOT_FOUND)])
        {
            let [mut made_before, mut made_now] = [ready(own.clone()), own.clone()];
            let id = RequestId::fresh();
            complete(&mut made_before, status, &id);
            complete(&mut made_now, status, &id);
            assert_eq!(made_before, made_now, "{status}");
            assert_eq!(made_now.len(), 6);
        }
        let mut named = one(X_REQUEST_ID, "its own");
        complete(&mut named, StatusCode::OK, &RequestId::fresh());
        assert_eq!(named.len(), 6, "only an empty place is ours");
    }
}
