//! Requests from pages of other origins: CORS, and the refusal of forged writes (CSRF).

use std::collections::HashSet;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, HOST, HeaderName, LINK, LOCATION, ORIGIN, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use parking_lot::Mutex;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::csrf::{CsrfLayer, ProtectionError};

use crate::errors::problem::Problem;
use crate::rate_limit::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::response_headers::{RequestId, X_REQUEST_ID};
use crate::streaming::response::LAST_EVENT_ID;

/// Stands for every origin in `cors-origins`: pages of any origin may read, but not write.
const ANY_ORIGIN: &str = "*";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

const CROSS_SITE: &str = "CROSS_SITE";

/// The most origins of each kind that are told.
const MAX_LOGGED_ORIGINS: usize = 100;

/// A method and an exact path.
pub(crate) type MethodAndPath = (Method, &'static str);

/// Refuses writes that a page of another site made a browser send, unless `origins` lists its origin by name. With `*`
/// in `origins`, requests to `checked_in_handler` pass, since they may be reads: those handlers call [`may_only_read`].
pub fn refuse_forged_writes(
    router: Router,
    origins: &[String],
    checked_in_handler: Vec<MethodAndPath>,
) -> Router {
    let layer = named(origins).fold(CsrfLayer::new(), |layer, origin| {
        layer.clone().add_trusted_origin(origin).unwrap_or_else(|error| {
            tracing::warn!(%error, "cors-origins");
            layer
        })
    });
    let layer = layer.with_rejection_response(forged_response);
    if !is_read_by_all(origins) {
        return router.layer(layer);
    }
    let is_exempt = move |method: &Method, uri: &Uri| {
        checked_in_handler.iter().any(|(own, path)| own == method && *path == uri.path())
    };
    router.layer(layer.with_insecure_bypass(is_exempt))
}

/// The origins listed by name.
fn named(origins: &[String]) -> impl Iterator<Item = &String> {
    origins.iter().filter(|origin| *origin != ANY_ORIGIN)
}

fn is_read_by_all(origins: &[String]) -> bool {
    origins.iter().any(|origin| origin == ANY_ORIGIN)
}

/// Whether [`refuse_forged_writes`] would certainly pass this request.
pub fn needs_no_csrf_check(request: &Request) -> bool {
    let headers = request.headers();
    matches!(*request.method(), Method::GET | Method::HEAD)
        || !(headers.contains_key(ORIGIN) || headers.contains_key(SEC_FETCH_SITE))
}

/// Whether the request may only read, because its origin is allowed by `*` alone.
pub fn may_only_read(headers: &HeaderMap, origins: &[String]) -> bool {
    is_read_by_all(origins) && is_foreign(headers) && !is_named(headers, origins)
}

/// The same check for a WebSocket: it starts as a GET but can carry writes, and browsers send cookies and other
/// credentials with it, which CORS with `*` prevents for reads. So `*` does not allow WebSockets.
pub fn check_websocket_origin(headers: &HeaderMap, origins: &[String]) -> Result<(), Problem> {
    if is_foreign(headers) && !is_named(headers, origins) { Err(cross_site_problem()) } else { Ok(()) }
}

/// Whether the browser goes to the answer, instead of loading it into a page.
pub fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate")
}

/// Whether a page of another origin made the browser send this.
pub fn is_foreign(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
    match headers.get(SEC_FETCH_SITE).map_or(&b""[..], HeaderValue::as_bytes) {
        b"same-origin" | b"none" => false,
        b"" => !origin.is_empty() && !is_same_host(origin, headers),
        _ => true,
    }
}

/// Refuses what a page of another site made a browser send, whatever origins are allowed: it would sign people in or out.
pub fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Problem> {
    if is_foreign(headers) { Err(cross_site_problem()) } else { Ok(()) }
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
    let detail = "cross-site writes are not allowed (according to Sec-Fetch-Site or Origin); add the origin to cors-origins to allow them (* allows only reads)";
    Problem::new(StatusCode::FORBIDDEN, CROSS_SITE, detail)
}

/// The origins that the log has told about. Each is told once for its writes and once for its reads: a page sends many
/// requests, and the first says all that the operator needs to know.
#[derive(Default)]
pub struct LoggedOrigins {
    refused: Mutex<HashSet<Vec<u8>>>,
    unreadable: Mutex<HashSet<Vec<u8>>>,
}

impl LoggedOrigins {
    /// True for an origin that is not in the set yet. A full set takes no more: clients can invent origins.
    fn is_new(set: &Mutex<HashSet<Vec<u8>>>, origin: Option<&HeaderValue>) -> bool {
        let origin = origin.map_or(&b""[..], HeaderValue::as_bytes);
        let mut set = set.lock();
        set.len() < MAX_LOGGED_ORIGINS && !set.contains(origin) && set.insert(origin.to_vec())
    }

    /// Logs a refused cross-site write for the operator, because the browser may hide the response from the page.
    pub fn log_refusal(
        &self,
        response: &Response,
        origin: Option<&HeaderValue>,
        request_id: Option<&RequestId>,
    ) {
        let problem = response.extensions().get::<Problem>();
        if problem.is_none_or(|problem| problem.code != CROSS_SITE) || !Self::is_new(&self.refused, origin) {
            return;
        }
        tracing::warn!(
            request_id = request_id.map(RequestId::as_str),
            origin = origin_text(origin),
            "rejected a cross-site write or WebSocket; add the origin to cors-origins to allow it"
        );
    }

    /// Logs a response that the browser will not let the page read.
    pub fn log_unreadable(&self, request: &Request, origins: &[String], request_id: Option<&RequestId>) {
        let headers = request.headers();
        let Some(origin) = headers.get(ORIGIN) else { return };
        let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let is_logged_elsewhere = is_write || headers.contains_key(UPGRADE) || is_read_by_all(origins);
        let is_hidden = !is_logged_elsewhere && is_foreign(headers) && !is_named(headers, origins);
        if is_hidden && Self::is_new(&self.unreadable, Some(origin)) {
            tracing::info!(
                request_id = request_id.map(RequestId::as_str),
                origin = origin_text(Some(origin)),
                "the browser will hide this response from a cross-site page; add the origin to cors-origins to let it read responses"
            );
        }
    }
}

fn origin_text(origin: Option<&HeaderValue>) -> &str {
    origin.and_then(|origin| origin.to_str().ok()).unwrap_or("unknown")
}

/// `None` if no other origins are allowed.
pub fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    let list: Vec<_> = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    let allowed = match origins {
        [] => return None,
        // With `*` browsers send no credentials, or do not let the page read the response.
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
