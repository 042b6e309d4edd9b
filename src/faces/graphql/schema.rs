//! `GET /graphql/schema.graphqls`: the schema as text, directive definitions included.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use crate::faces::tags::is_known;

/// As text, so that a browser shows it.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub fn respond(sdl: &str, headers: &HeaderMap) -> Response {
    let tag = format!("\"{:016x}\"", xxh3_64(sdl.as_bytes()));
    let told = [(ETAG, HeaderValue::try_from(tag.as_str()).expect("hexadecimal digits in quotes"))];
    if is_known(headers, &tag) {
        return (StatusCode::NOT_MODIFIED, told).into_response();
    }
    (told, [(CONTENT_TYPE, TEXT)], sdl.to_owned()).into_response()
}
