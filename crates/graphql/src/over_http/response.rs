//! GraphQL over HTTP, outwards: the media type that was asked for, and the status that goes with it.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::Reply;
use crate::over_http::negotiate::Single;
use crate::response_error;
use crate::response_error::Failure;
use crate::subscribe::stream_response;
use trefoil_http::errors::problem::{Problem, method_not_allowed};
use trefoil_http::negotiation::accept::Accept;
use trefoil_http::response_cache::Made;
use trefoil_http::response_headers;

const RESPONSE: &str = "application/graphql-response+json";
const JSON: &str = "application/json";

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The two media types of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Statuses tell whether the request was executed.
    Response,
    /// Any well-formed request is answered with 200.
    Json,
}

impl Media {
    /// What the client prefers; plain JSON where it does not care, nothing where it takes neither. Types of streams,
    /// which clients list on every request, do not count.
    pub fn of(accept: &Accept<'_>) -> Option<Media> {
        let (own, plain) = (accept.quality(RESPONSE), accept.quality(JSON));
        if own == 0 && plain == 0 {
            return None;
        }
        let named = accept.names(RESPONSE) && own >= plain;
        Some(if named || plain == 0 { Media::Response } else { Media::Json })
    }

    fn headers(self) -> HeaderMap {
        static RESPONSE: LazyLock<HeaderMap> =
            LazyLock::new(|| ready("application/graphql-response+json; charset=utf-8"));
        static JSON: LazyLock<HeaderMap> = LazyLock::new(|| ready("application/json; charset=utf-8"));
        match self {
            Media::Response => RESPONSE.clone(),
            Media::Json => JSON.clone(),
        }
    }

    /// For a well-formed request that was not executed.
    fn refusal(self) -> StatusCode {
        match self {
            Media::Response => StatusCode::BAD_REQUEST,
            Media::Json => StatusCode::OK,
        }
    }
}

/// The answer to a query or a mutation.
pub fn respond(reply: Reply, wanted: Single) -> Response {
    match reply {
        Reply::Executed(executed) => {
            let mut response = match wanted {
                Single::Whole(media) => {
                    Made::mark(executed.before, written(StatusCode::OK, media, executed.body))
                }
                Single::Event => stream_response::single(&executed.body),
            };
            if executed.replayed {
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            }
            response
        }
        Reply::Rejected(failures) => match wanted {
            Single::Whole(media) => written(media.refusal(), media, rejection(&failures)),
            Single::Event => stream_response::single(&rejection(&failures)),
        },
        Reply::Failed(error) => Problem::from(error).into_response(),
        Reply::OnlyByPost => method_not_allowed("POST").into_response(),
    }
}

/// A response without `data`.
pub fn rejection(failures: &[Failure]) -> Vec<u8> {
    let mut out = b"{\"errors\":".to_vec();
    response_error::write_all(&mut out, failures);
    out.push(b'}');
    out
}

fn written(status: StatusCode, media: Media, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = media.headers();
    response
}

fn ready(media: &'static str) -> HeaderMap {
    let own = [(CONTENT_TYPE, HeaderValue::from_static(media)), (VARY, ACCEPT.into())];
    response_headers::ready(HeaderMap::from_iter(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses_the_media_type() {
        let table = [
            (None, Some(Media::Json)),
            (Some("*/*"), Some(Media::Json)),
            (Some("application/json"), Some(Media::Json)),
            (Some("application/graphql-response+json"), Some(Media::Response)),
            (Some("application/graphql-response+json, application/json;q=0.9"), Some(Media::Response)),
            (Some("application/graphql-response+json;q=0.8, application/json"), Some(Media::Json)),
            // urql
            (
                Some(
                    "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed",
                ),
                Some(Media::Response),
            ),
            // Apollo Client
            (Some("multipart/mixed;q=0.9, application/json"), Some(Media::Json)),
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Some(Media::Json)),
            (Some("application/json;q=0, application/*"), Some(Media::Response)),
            (Some("image/png"), None),
            (Some("text/event-stream"), None),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Media::of(&Accept::of(&headers)), expected, "{accept:?}");
        }
    }
}
