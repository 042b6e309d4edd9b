//! Headers that every response carries unless its handler set them: request id, security, caching.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

pub use trefoil_engine::RequestId;

pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// No inline scripts, nothing from other origins, never in a frame.
pub const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The client's own id if it is safe to repeat, so that one id follows a request through many servers.
pub fn request_id(headers: &HeaderMap) -> RequestId {
    headers
        .get(X_REQUEST_ID)
        .and_then(|id| RequestId::received(id.as_bytes()))
        .unwrap_or_else(RequestId::generate)
}

/// `own` completed by the default headers of a successful response.
///
/// Built once and cloned for each response: inserting header by header costs as much as a short text response.
pub fn with_defaults(own: HeaderMap) -> HeaderMap {
    let mut headers = own;
    insert_defaults(&mut headers, REVALIDATE);
    // An empty id marks the map, for `complete_headers`, as having all defaults.
    headers.insert(X_REQUEST_ID, HeaderValue::from_static(""));
    // A clone has no spare capacity.
    headers.clone()
}

/// Sets the request id and adds the default headers that are missing.
pub fn complete_headers(headers: &mut HeaderMap, status: StatusCode, id: &RequestId) {
    let id = HeaderValue::from_bytes(id.as_bytes()).expect("visible ASCII");
    let is_ready = headers.insert(X_REQUEST_ID, id).is_some_and(|previous| previous.is_empty());
    let failed = status.is_client_error() || status.is_server_error();
    if failed && is_ready && headers.get(CACHE_CONTROL).is_some_and(|caching| caching == REVALIDATE) {
        headers.remove(CACHE_CONTROL);
    }
    if failed || !is_ready {
        insert_defaults(headers, if failed { NO_STORE } else { REVALIDATE });
    }
}

/// Caches may store the response but must revalidate it each time.
const REVALIDATE: &str = "no-cache";
const NO_STORE: &str = "no-store";

fn insert_defaults(headers: &mut HeaderMap, caching: &'static str) {
    let defaults = [
        (CACHE_CONTROL, caching),
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
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
    fn safe_request_ids_are_reused() {
        for (sent, is_reused) in
            [("abc-123", true), ("", false), ("a b", false), ("a\"b", false), ("\u{fc}", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(sent.as_bytes()).expect("a header value"));
            let id = request_id(&headers);
            assert_eq!(id.as_str() == sent, is_reused, "{sent:?} became {id:?}");
        }
        let [first, second] = [RequestId::generate(), RequestId::generate()].map(|id| {
            let (start, count) = id.as_str().split_once('-').expect("a dash");
            assert_eq!(start.len(), 16, "{id:?}");
            u64::from_str_radix(count, 16).expect("hexadecimal digits")
        });
        assert!(first < second, "{first} before {second}");
    }

    #[test]
    fn defaults_are_complete_but_for_the_id() {
        let one = |name: HeaderName, value| HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
        let owns = [one(REFERRER_POLICY, "no-referrer"), one(CACHE_CONTROL, "max-age=60")];
        for (own, status) in owns.iter().flat_map(|own| [(own, StatusCode::OK), (own, StatusCode::NOT_FOUND)])
        {
            let [mut prepared, mut completed] = [with_defaults(own.clone()), own.clone()];
            let id = RequestId::generate();
            complete_headers(&mut prepared, status, &id);
            complete_headers(&mut completed, status, &id);
            assert_eq!(prepared, completed, "{status}");
            assert_eq!(completed.len(), 6);
        }
        let mut named = one(X_REQUEST_ID, "its own");
        complete_headers(&mut named, StatusCode::OK, &RequestId::generate());
        assert_eq!(named.len(), 6, "only an empty place is ours");
    }
}
