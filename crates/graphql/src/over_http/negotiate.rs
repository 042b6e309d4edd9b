//! The transport of a response, by operation type first and `Accept` second.
//!
//! Clients such as urql accept stream types on ordinary queries too, so `Accept` alone is not enough.

use http::{HeaderMap, StatusCode};

use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::accept::AcceptHeader;

pub const EVENT_STREAM: &str = "text/event-stream";
const MULTIPART: &str = "multipart/mixed";
const GRAPHQL_RESPONSE: &str = "application/graphql-response+json";
const JSON: &str = "application/json";

/// The transports that a client accepts for a single response and for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedTransports {
    single: Option<ResponseTransport>,
    stream: Option<StreamTransport>,
}

/// The transport of a single response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseTransport {
    Whole(ResponseMedia),
    /// An event stream with one event, for clients that accept nothing else.
    SingleEvent,
}

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
}

/// The transport of a stream of responses in an HTTP body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamTransport {
    EventStream,
    Multipart,
}

impl AcceptedTransports {
    /// 406 if the client accepts none of the transports.
    pub fn from_headers(headers: &HeaderMap) -> Result<AcceptedTransports, Problem> {
        let accept = AcceptHeader::from_headers(headers);
        let events = accept.quality(EVENT_STREAM);
        let media = ResponseMedia::negotiate(&accept);
        let single =
            media.map(ResponseTransport::Whole).or((events > 0).then_some(ResponseTransport::SingleEvent));
        let multipart = accept.quality_with(MULTIPART, "subscriptionSpec", "1.0");
        // At equal quality an explicit multipart type beats an event stream that only a wildcard accepts.
        let events_rank = if accept.names_type(EVENT_STREAM) { events } else { events.saturating_sub(1) };
        let stream = match (multipart > events_rank, events > 0) {
            (true, _) => Some(StreamTransport::Multipart),
            (false, true) => Some(StreamTransport::EventStream),
            (false, false) => None,
        };
        if single.is_none() && stream.is_none() {
            return Err(Problem::from_status(StatusCode::NOT_ACCEPTABLE));
        }
        Ok(AcceptedTransports { single, stream })
    }

    /// For a query, a mutation or an invalid request.
    pub fn for_response(self) -> Result<ResponseTransport, Problem> {
        self.single.ok_or_else(|| Problem::from_status(StatusCode::NOT_ACCEPTABLE))
    }

    /// For a subscription.
    pub fn for_stream(self) -> Result<StreamTransport, Problem> {
        self.stream.ok_or_else(|| {
            let detail = "a subscription needs a streaming transport: Accept: text/event-stream, Accept: multipart/mixed;subscriptionSpec=1.0, or a WebSocket (graphql-transport-ws)";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "SUBSCRIPTION_TRANSPORT", detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::ACCEPT;

    fn accepted(accept: Option<&'static str>) -> Option<AcceptedTransports> {
        let headers = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect();
        AcceptedTransports::from_headers(&headers).ok()
    }

    #[test]
    fn transport_follows_operation_type_and_accept() {
        use StreamTransport::{EventStream, Multipart};
        let json = Some(ResponseTransport::Whole(ResponseMedia::Json));
        let own = Some(ResponseTransport::Whole(ResponseMedia::GraphqlResponse));
        let table: &[(Option<&'static str>, Option<ResponseTransport>, Option<StreamTransport>)] = &[
            (None, json, Some(EventStream)),
            (Some("*/*"), json, Some(EventStream)),
            (Some("application/json"), json, None),
            (Some("application/graphql-response+json"), own, None),
            (Some("text/event-stream"), Some(ResponseTransport::SingleEvent), Some(EventStream)),
            (Some("text/*"), Some(ResponseTransport::SingleEvent), Some(EventStream)),
            (Some("application/json, text/event-stream;q=0"), json, None),
            // urql: on queries, on subscriptions
            (
                Some(
                    "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed",
                ),
                own,
                Some(EventStream),
            ),
            (
                Some("text/event-stream, multipart/mixed"),
                Some(ResponseTransport::SingleEvent),
                Some(EventStream),
            ),
            // Apollo Client 3 and 4, Apollo Kotlin
            (
                Some("multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json"),
                json,
                Some(Multipart),
            ),
            (
                Some(
                    "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json,application/json;q=0.9",
                ),
                own,
                Some(Multipart),
            ),
            (
                Some(
                    "multipart/mixed;subscriptionSpec=1.0, application/graphql-response+json, application/json",
                ),
                own,
                Some(Multipart),
            ),
            (Some("multipart/mixed;subscriptionSpec=1.0"), None, Some(Multipart)),
            (Some("multipart/mixed;subscriptionSpec=1.0, */*"), json, Some(Multipart)),
            (Some("multipart/mixed;subscriptionSpec=1.0;q=0.5, */*"), json, Some(EventStream)),
            (
                Some("multipart/mixed;subscriptionSpec=1.0, text/event-stream"),
                Some(ResponseTransport::SingleEvent),
                Some(EventStream),
            ),
            (
                Some("multipart/mixed;subscriptionSpec=1.0, text/event-stream;q=0.9"),
                Some(ResponseTransport::SingleEvent),
                Some(Multipart),
            ),
        ];
        for (accept, single, stream) in table {
            let expected = AcceptedTransports { single: *single, stream: *stream };
            assert_eq!(accepted(*accept), Some(expected), "{accept:?}");
        }
        for accept in ["image/png", "multipart/mixed", "multipart/mixed;subscriptionSpec=2.0", "*/*;q=0"] {
            assert_eq!(accepted(Some(accept)), None, "{accept}");
        }
    }

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
