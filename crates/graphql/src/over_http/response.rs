//! HTTP responses to queries and mutations: the media type, and the status that goes with it.

use std::sync::LazyLock;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use trefoil_engine::Engine;
use trefoil_http::errors::problem::{Problem, method_not_allowed};
use trefoil_http::response_cache::CacheableAt;
use trefoil_http::{protected_mode, response_headers};

use crate::over_http::negotiate::{ResponseMedia, ResponseTransport};
use crate::reply::GraphqlReply;
use crate::response_error::{ErrorNotes, rejection_body};
use crate::subscribe::stream_response;

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

impl ResponseMedia {
    /// The headers of the applications with rules, or of those without.
    fn headers(self, engine: &Engine) -> HeaderMap {
        static RESPONSE: LazyLock<[HeaderMap; 2]> =
            LazyLock::new(|| prepared_headers("application/graphql-response+json; charset=utf-8"));
        static JSON: LazyLock<[HeaderMap; 2]> =
            LazyLock::new(|| prepared_headers("application/json; charset=utf-8"));
        let [open, protected] = match self {
            ResponseMedia::GraphqlResponse => &*RESPONSE,
            ResponseMedia::Json => &*JSON,
        };
        if engine.access_view().is_some() { protected.clone() } else { open.clone() }
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
pub fn respond(engine: &Engine, reply: GraphqlReply, transport: ResponseTransport) -> Response {
    match reply {
        GraphqlReply::Executed(executed) => {
            let mut response = match transport {
                ResponseTransport::Whole(media) => CacheableAt::mark_response(
                    executed.data_version,
                    json_response(StatusCode::OK, media.headers(engine), executed.body),
                ),
                ResponseTransport::SingleEvent => stream_response::single_event(&executed.body),
            };
            executed.notes.refusals.attach(&mut response);
            if executed.replayed {
                response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
            }
            response
        }
        GraphqlReply::Rejected(failures) => {
            let body = rejection_body(&failures);
            let mut response = match transport {
                ResponseTransport::Whole(media) => {
                    json_response(media.rejection_status(), media.headers(engine), body)
                }
                ResponseTransport::SingleEvent => stream_response::single_event(&body),
            };
            ErrorNotes::of(&failures).refusals.attach(&mut response);
            response
        }
        GraphqlReply::Failed(error) => Problem::from(error).into_response(),
        GraphqlReply::PostRequired => method_not_allowed("POST").into_response(),
    }
}

fn json_response(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn prepared_headers(media: &'static str) -> [HeaderMap; 2] {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(media)), (VARY, ACCEPT.into())];
    let headers = HeaderMap::from_iter(headers);
    [response_headers::with_defaults(headers.clone()), protected_mode::with_protection(headers)]
}
