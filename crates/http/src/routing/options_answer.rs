//! Answers to OPTIONS requests, and the methods that a path has.

use axum::response::{IntoResponse, Response};
use http::header::ALLOW;
use http::{HeaderValue, StatusCode};

use crate::errors::problem::Problem;

/// Adds OPTIONS to the `Allow` header of the router's 405 responses, and answers OPTIONS requests with that list.
pub fn answer_options(mut response: Response, asks_for_methods: bool) -> Response {
    let is_own = response.extensions().get::<Problem>().is_none();
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || !is_own {
        return response;
    }
    let listed = response.headers().get(ALLOW).and_then(|allow| allow.to_str().ok()).unwrap_or_default();
    let others = listed.split(',').map(str::trim).filter(|method| !["", "OPTIONS"].contains(method));
    let allow = others.chain(["OPTIONS"]).collect::<Vec<_>>().join(", ");
    let allow = HeaderValue::from_str(&allow).expect("methods are visible ASCII");
    if asks_for_methods {
        return (StatusCode::NO_CONTENT, [(ALLOW, allow)]).into_response();
    }
    response.headers_mut().insert(ALLOW, allow);
    response
}
