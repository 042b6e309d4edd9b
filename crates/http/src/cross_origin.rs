//! Requests that come from pages of other sites: which are let in (CORS), and which writes are refused (CSRF).

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, HOST, HeaderName, LINK, LOCATION, ORIGIN, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::csrf::{CsrfLayer, ProtectionError};

use crate::errors::problem::Problem;
use crate::rate_limit::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::response_headers::X_REQUEST_ID;
use crate::streaming::response::LAST_EVENT_ID;

/// Stands for every origin in `cors-origins`: all of them may read, none of them may write for it.
const ANY_ORIGIN: &str = "*";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const CROSS_SITE: &str = "CROSS_SITE";

/// A method at a very path.
pub(crate) type Address = (Method, &'static str);

/// Refuses writes that another site made a browser send. An origin that is listed by its name is no stranger. Where all may
/// read, what comes to `judging` may be a reading: who answers there asks [`may_only_read`].
pub fn refuse_forged_writes(router: Router, origins: &[String], judging: Vec<Address>) -> Router {
    let trusting = named(origins).fold(CsrfLayer::new(), |layer, origin| {
        layer.clone().add_trusted_origin(origin).unwrap_or_else(|error| {
            tracing::warn!(%error, "cors-origins");
            layer
        })
    });
    let layer = trusting.with_rejection_response(forged_response);
    if !is_read_by_all(origins) {
        return router.layer(layer);
    }
    let is_judged = move |method: &Method, uri: &Uri| {
        judging.iter().any(|(own, path)| own == method && *path == uri.path())
    };
    router.layer(layer.with_insecure_bypass(is_judged))
}

/// The origins that are listed by their names.
fn named(origins: &[String]) -> impl Iterator<Item = &String> {
    origins.iter().filter(|origin| *origin != ANY_ORIGIN)
}

fn is_read_by_all(origins: &[String]) -> bool {
    origins.iter().any(|origin| origin == ANY_ORIGIN)
}

/// Whether [`refuse_forged_writes`] would certainly let it pass.
pub fn needs_no_csrf_check(request: &Request) -> bool {
    let headers = request.headers();
    matches!(*request.method(), Method::GET | Method::HEAD)
        || !(headers.contains_key(ORIGIN) || headers.contains_key(SEC_FETCH_SITE))
}

/// Whether this is let in for reading alone, because it comes from a page that `*` stands for.
pub fn may_only_read(headers: &HeaderMap, origins: &[String]) -> bool {
    is_read_by_all(origins) && is_foreign(headers) && !is_named(headers, origins)
}

/// The same judgement on a socket that is asked for: writes can come through it, although it begins as a GET, and a
/// browser sends with it whatever it has for us, which it does for no page that only reads. So `*` opens none.
pub fn check_websocket_origin(headers: &HeaderMap, origins: &[String]) -> Result<(), Problem> {
    if is_foreign(headers) && !is_named(headers, origins) { Err(cross_site_problem()) } else { Ok(()) }
}

/// Whether a page of another origin had the browser send this.
fn is_foreign(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
    match headers.get(SEC_FETCH_SITE).map_or(&b""[..], HeaderValue::as_bytes) {
        b"same-origin" | b"none" => false,
        b"" => !origin.is_empty() && !is_same_host(origin, headers),
        _ => true,
    }
}

fn is_named(headers: &HeaderMap, origins: &[String]) -> bool {
    let origin = headers.get(ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
    named(origins).any(|own| own.as_bytes() == origin)
}

fn is_same_host(origin: &[u8], headers: &HeaderMap) -> bool {
    let named = [&b"http://"[..], b"https://"].iter().find_map(|scheme| origin.strip_prefix(*scheme));
    named.is_some() && named == headers.get(HOST).map(HeaderValue::as_bytes)
}

fn forged_response(_: ProtectionError) -> Response {
    cross_site_problem().into_response()
}

pub fn cross_site_problem() -> Problem {
    let detail = "this comes from a page of another site (Sec-Fetch-Site or Origin says so) and could write; \
                  list its origin in cors-origins to allow it (* lets others only read)";
    Problem::new(StatusCode::FORBIDDEN, CROSS_SITE, detail)
}

/// Says in the log what a page could not do, for whoever wonders why: it is told in words that its browser may keep back.
pub fn log_refusal(response: &Response, origin: Option<&HeaderValue>) {
    if response.extensions().get::<Problem>().is_some_and(|problem| problem.code == CROSS_SITE) {
        tracing::warn!(
            origin = shown(origin),
            "a write or a WebSocket of a page of another site was refused; list its origin in cors-origins to allow it"
        );
    }
}

/// The same of an answer that the browser will not let the page read.
pub fn log_unreadable(request: &Request, origins: &[String]) {
    let headers = request.headers();
    let Some(origin) = headers.get(ORIGIN) else { return };
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let is_told = is_write || headers.contains_key(UPGRADE) || is_read_by_all(origins);
    if !is_told && is_foreign(headers) && !is_named(headers, origins) {
        tracing::info!(
            origin = shown(Some(origin)),
            "a page of another site asked, and its browser keeps the answer from it; list its origin in cors-origins to \
             let it read"
        );
    }
}

fn shown(origin: Option<&HeaderValue>) -> &str {
    origin.and_then(|origin| origin.to_str().ok()).unwrap_or("unknown")
}

/// None where nobody from elsewhere is let in: then there is nothing to say about it.
pub fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    let list: Vec<_> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    let allowed = match origins {
        [] => return None,
        // The browser then sends nothing along that it has for us, and lets no page read where it did.
        origins if is_read_by_all(origins) => AllowOrigin::any(),
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
