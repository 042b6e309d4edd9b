//! Compression of answers on their way out, for clients that accept it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, VARY};
use http::{HeaderMap, HeaderValue};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

/// Smaller answers fit one packet anyway.
const WORTH_COMPRESSING: u64 = 1024;

/// The encodings that a client accepts, kept from its request.
pub struct Accepted(Vec<HeaderValue>);

impl Accepted {
    pub fn of(headers: &HeaderMap) -> Accepted {
        Accepted(headers.get_all(ACCEPT_ENCODING).iter().cloned().collect())
    }
}

/// A stream is read as it comes: holding it back to compress it would defeat it.
fn worthwhile() -> impl Predicate {
    SizeAbove::new(WORTH_COMPRESSING)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::SSE)
        .and(NotForContentType::const_new("multipart/mixed"))
        .and(NotForContentType::const_new("application/x-ndjson"))
        .and(NotForContentType::const_new("text/csv"))
}

/// The answer as the client wants it: what would be compressed for others says so.
pub async fn pack(mut response: Response, accepted: Accepted) -> Response {
    if !worthwhile().should_compress(&response) {
        return response;
    }
    let headers = response.headers();
    if headers.contains_key(CONTENT_ENCODING) || headers.contains_key(CONTENT_RANGE) {
        return response;
    }
    if accepted.0.is_empty() {
        response.headers_mut().append(VARY, ACCEPT_ENCODING.into());
        return response;
    }
    let mut asked = Request::new(Body::empty());
    asked.headers_mut().extend(accepted.0.into_iter().map(|line| (ACCEPT_ENCODING, line)));
    let mut response = Some(response);
    let given = service_fn(move |_: Request| std::future::ready(response.take().ok_or(())));
    let layer = CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worthwhile());
    match Box::pin(layer.layer(given).oneshot(asked)).await {
        Ok(response) => response.map(Body::new),
        Err(()) => unreachable!("it is taken once"),
    }
}
