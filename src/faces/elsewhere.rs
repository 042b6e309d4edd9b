//! Requests that come from pages of other sites: which are let in (CORS), and which writes are refused (CSRF).

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, HOST, HeaderName, LINK, LOCATION, ORIGIN, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::csrf::{CsrfLayer, ProtectionError};

use super::follow::LAST_EVENT_ID;
use super::headers::X_REQUEST_ID;
use super::problem::Problem;
use super::rate::{RATE_LIMIT, RATE_LIMIT_POLICY};

/// Stands for every origin in `cors-origins`.
const ANY: &str = "*";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses writes that another site made a browser send. An origin that CORS lets in is no stranger.
pub(super) fn refuse_forged_writes(router: Router, origins: &[String]) -> Router {
    if origins.iter().any(|origin| origin == ANY) {
        return router;
    }
    let trusting = origins.iter().fold(CsrfLayer::new(), |layer, origin| {
        layer.clone().add_trusted_origin(origin).unwrap_or_else(|error| {
            tracing::warn!(%error, "cors-origins");
            layer
        })
    });
    router.layer(trusting.with_rejection_response(forged))
}

/// Whether [`refuse_forged_writes`] would certainly let it pass.
pub(super) fn is_harmless(request: &Request) -> bool {
    let headers = request.headers();
    matches!(*request.method(), Method::GET | Method::HEAD)
        || !(headers.contains_key(ORIGIN) || headers.contains_key(FETCH_SITE))
}

/// The same judgement on a socket that is asked for: writes can come through it, although it begins as a GET.
pub(super) fn check_socket(headers: &HeaderMap, origins: &[String]) -> Result<(), Problem> {
    let origin = headers.get(ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
    let trusted = origins.iter().any(|own| own == ANY || own.as_bytes() == origin);
    let foreign = match headers.get(FETCH_SITE).map_or(&b""[..], HeaderValue::as_bytes) {
        b"same-origin" | b"none" => false,
        b"" => !origin.is_empty() && !is_host(origin, headers),
        _ => true,
    };
    if foreign && !trusted { Err(cross_site()) } else { Ok(()) }
}

fn is_host(origin: &[u8], headers: &HeaderMap) -> bool {
    let named = [&b"http://"[..], b"https://"].iter().find_map(|scheme| origin.strip_prefix(*scheme));
    named.is_some() && named == headers.get(HOST).map(HeaderValue::as_bytes)
}

fn forged(_: ProtectionError) -> Response {
    cross_site().into_response()
}

fn cross_site() -> Problem {
    let detail = "this write comes from another site (Sec-Fetch-Site or Origin says so); \
                  list that origin in cors-origins to allow it";
    Problem::new(StatusCode::FORBIDDEN, "CROSS_SITE", detail)
}

/// None where nobody from elsewhere is let in: then there is nothing to say about it.
pub(super) fn cors(origins: &[String]) -> Option<CorsLayer> {
    let list: Vec<_> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    let allowed = match origins {
        [] => return None,
        origins if origins.iter().any(|origin| origin == ANY) => AllowOrigin::any(),
        _ => AllowOrigin::list(list),
    };
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let total_count = HeaderName::from_static("x-total-count");
    let exposed = [
        ETAG,
        LINK,
        LOCATION,
        RETRY_AFTER,
        RATE_LIMIT,
        RATE_LIMIT_POLICY,
        X_REQUEST_ID,
        total_count,
        LAST_EVENT_ID,
    ];
    let layer = CorsLayer::new().allow_origin(allowed).allow_methods(methods).expose_headers(exposed);
    Some(layer.allow_headers(AllowHeaders::mirror_request()).max_age(std::time::Duration::from_secs(3600)))
}
