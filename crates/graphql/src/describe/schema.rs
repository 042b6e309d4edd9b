//! `GET /graphql/schema.graphqls`: the SDL with directive definitions.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue};
use xxhash_rust::xxh3::xxh3_64;

use trefoil_http::etags::not_modified_if_known;

/// Plain text, so that browsers display it.
const TEXT_PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub fn respond(sdl: &str, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:016x}\"", xxh3_64(sdl.as_bytes()));
    let response_headers = [
        (ETAG, HeaderValue::try_from(tag).expect("hexadecimal digits in quotes")),
        (CONTENT_TYPE, TEXT_PLAIN),
    ];
    not_modified_if_known(headers, (response_headers, sdl.to_owned()).into_response())
}
