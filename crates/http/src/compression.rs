//! Compression of responses for clients that accept it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, VARY};
use http::{HeaderMap, HeaderValue};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::negotiation::accept::parse_encodings;

/// Smaller responses fit into one packet anyway.
pub const MIN_COMPRESSED_BYTES: usize = 1024;

/// The `Accept-Encoding` lines of a request.
pub struct AcceptedEncodings(Vec<HeaderValue>);

impl AcceptedEncodings {
    pub fn from_headers(headers: &HeaderMap) -> AcceptedEncodings {
        AcceptedEncodings(headers.get_all(ACCEPT_ENCODING).iter().cloned().collect())
    }

    pub fn accepts_gzip(&self) -> bool {
        self.accepts(&["gzip", "x-gzip"])
    }

    /// True if one of these names of a coding (or `*`) has a quality above 0 and at least that of identity.
    pub fn accepts(&self, coding: &[&str]) -> bool {
        let quality = |names: &[&str]| {
            let named = |(name, _): &(&str, _)| names.iter().any(|own| own.eq_ignore_ascii_case(name));
            parse_encodings(&self.0)
                .find(named)
                .or_else(|| parse_encodings(&self.0).find(|(name, _)| *name == "*"))
        };
        let coded = quality(coding).map_or(0, |(_, quality)| quality);
        coded > 0 && quality(&["identity"]).is_none_or(|(_, identity)| coded >= identity)
    }
}

/// Whether a response is compressed for clients that accept it.
pub fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let is_final = headers.contains_key(CONTENT_ENCODING) || headers.contains_key(CONTENT_RANGE);
    compression_predicate().should_compress(response) && !is_final
}

/// Streams are excluded: buffering them for compression would delay them.
fn compression_predicate() -> impl Predicate {
    SizeAbove::new(MIN_COMPRESSED_BYTES as u64)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::SSE)
        .and(NotForContentType::const_new("multipart/mixed"))
        .and(NotForContentType::const_new("application/x-ndjson"))
        .and(NotForContentType::const_new("text/csv"))
}

/// Compresses the response if the client accepts gzip; otherwise adds `Vary`. Clients that accept neither gzip nor
/// identity get identity all the same, because a refusal would come after a write is done.
pub async fn compress_response(mut response: Response, accepted: AcceptedEncodings) -> Response {
    if !is_compressible(&response) {
        return response;
    }
    if !accepted.accepts_gzip() {
        let is_told =
            response.headers().get_all(VARY).iter().any(|names| *names == *ACCEPT_ENCODING.as_str());
        if !is_told {
            response.headers_mut().append(VARY, ACCEPT_ENCODING.into());
        }
        return response;
    }
    let mut request = Request::new(Body::empty());
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let mut response = Some(response);
    let inner = service_fn(move |_: Request| std::future::ready(response.take().ok_or(())));
    let layer =
        CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(compression_predicate());
    match Box::pin(layer.layer(inner).oneshot(request)).await {
        Ok(response) => response.map(Body::new),
        Err(()) => unreachable!("it is taken once"),
    }
}
