//! HTTP responses to queries and mutations: the media type, and the status that goes with it.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use trefoil_http::errors::problem::{Problem, method_not_allowed};
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::response_cache::CacheableAt;
use trefoil_http::response_headers;

use crate::over_http::negotiate::ResponseTransport;
use crate::reply::GraphqlReply;
use crate::response_error::{self, ResponseError};
use crate::subscribe::stream_response;

const GRAPHQL_RESPONSE: &str = "application/graphql-response+json";
const JSON: &str = "application/json";

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The two media types of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMedia {
    /// The status says whether the request was executed.
    GraphqlResponse,
    /// Every well-formed request gets 200.
    Json,
}

impl ResponseMedia {
    /// The type that the client prefers: JSON if it has no preference, `None` if it accepts neither. Stream types are
    /// ignored, since clients list them on every request.
    pub fn negotiate(accept: &AcceptHeader<'_>) -> Option<ResponseMedia> {
        let (graphql, json) = (accept.quality(GRAPHQL_RESPONSE), accept.quality(JSON));
        if graphql == 0 && json == 0 {
            return None;
        }
        let prefers_graphql = accept.names_type(GRAPHQL_RESPONSE) && graphql >= json;
        Some(if prefers_graphql || json == 0 { ResponseMedia::GraphqlResponse } else { ResponseMedia::Json })
    }

    fn headers(self) -> HeaderMap {
        static RESPONSE: LazyLock<HeaderMap> =
            LazyLock::new(|| prepared_headers("application/graphql-response+json; charset=utf-8"));
        static JSON: LazyLock<HeaderMap> =
            LazyLock::new(|| prepared_headers("application/json; charset=utf-8"));
        match self {
            ResponseMedia::GraphqlResponse => RESPONSE.clone(),
            ResponseMedia::Json => JSON.clone(),
        }
    }

    /// The status of a well-formed request that was not executed.
    fn rejection_status(self) -> StatusCode {
        match self {
            ResponseMedia::GraphqlResponse => StatusCode::BAD_REQUEST,
            ResponseMedia::Json => StatusCode::OK,
        }
    }
}

/// The HTTP response to a query or a mutation.
pub fn respond(reply: GraphqlReply, transport: ResponseTransport) -> Response {
    match reply {
        GraphqlReply::Executed(executed) => {
            let mut response = match transport {
                ResponseTransport::Whole(media) => CacheableAt::mark_response(
                    executed.data_version,
                    json_response(StatusCode::OK, media, executed.body),
                ),
                ResponseTransport::SingleEvent => stream_response::single_event(&executed.body),
            };
            if executed.replayed {
                response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
            }
            response
        }
        GraphqlReply::Rejected(failures) => match transport {
            ResponseTransport::Whole(media) => {
                json_response(media.rejection_status(), media, rejection_body(&failures))
            }
            ResponseTransport::SingleEvent => stream_response::single_event(&rejection_body(&failures)),
        },
        GraphqlReply::Failed(error) => Problem::from(error).into_response(),
        GraphqlReply::PostRequired => method_not_allowed("POST").into_response(),
    }
}

/// The body of a response without `data`.
pub fn rejection_body(failures: &[ResponseError]) -> Vec<u8> {
    let mut out = b"{\"errors\":".to_vec();
    response_error::write_errors(&mut out, failures);
    out.push(b'}');
    out
}

fn json_response(status: StatusCode, media: ResponseMedia, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = media.headers();
    response
}

fn prepared_headers(media: &'static str) -> HeaderMap {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(media)), (VARY, ACCEPT.into())];
    response_headers::with_defaults(HeaderMap::from_iter(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_follows_accept() {
        let table = [
            (None, Some(ResponseMedia::Json)),
            (Some("*/*"), Some(ResponseMedia::Json)),
            (Some("application/json"), Some(ResponseMedia::Json)),
            (Some("application/graphql-response+json"), Some(ResponseMedia::GraphqlResponse)),
            (
                Some("application/graphql-response+json, application/json;q=0.9"),
                Some(ResponseMedia::GraphqlResponse),
            ),
            (Some("application/graphql-response+json;q=0.8, application/json"), Some(ResponseMedia::Json)),
            // urql
            (
                Some(
                    "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed",
                ),
                Some(ResponseMedia::GraphqlResponse),
            ),
            // Apollo Client
            (Some("multipart/mixed;q=0.9, application/json"), Some(ResponseMedia::Json)),
            (
                Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
                Some(ResponseMedia::Json),
            ),
            (Some("application/json;q=0, application/*"), Some(ResponseMedia::GraphqlResponse)),
            (Some("image/png"), None),
            (Some("text/event-stream"), None),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(
                ResponseMedia::negotiate(&AcceptHeader::from_headers(&headers)),
                expected,
                "{accept:?}"
            );
        }
    }
}
