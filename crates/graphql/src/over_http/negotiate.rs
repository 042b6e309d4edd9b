//! Which transport answers a request over HTTP: the type of its operation decides first, `Accept` second.
//!
//! Clients list the types of streams on ordinary queries too (urql does), so `Accept` alone says nothing.

use http::{HeaderMap, StatusCode};

use crate::over_http::response::Media;
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::accept::Accept;

pub const EVENT_STREAM: &str = "text/event-stream";
const MULTIPART: &str = "multipart/mixed";

/// What a client takes, for both kinds of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    single: Option<Single>,
    stream: Option<Transport>,
}

/// How one answer travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single {
    Whole(Media),
    /// A client that takes nothing but a stream of events gets one with a single event in it.
    Event,
}

/// How a stream of answers travels in the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Events,
    Multipart,
}

impl Accepted {
    /// The error is for clients that take nothing of what there is.
    pub fn of(headers: &HeaderMap) -> Result<Accepted, Problem> {
        let accept = Accept::of(headers);
        let events = accept.quality(EVENT_STREAM);
        let media = Media::of(&accept);
        let single = media.map(Single::Whole).or((events > 0).then_some(Single::Event));
        let multipart = accept.quality_with(MULTIPART, "subscriptionSpec", "1.0");
        // What is spelled out goes before what a wildcard lets through.
        let rival = if accept.names(EVENT_STREAM) { events } else { events.saturating_sub(1) };
        let stream = match (multipart > rival, events > 0) {
            (true, _) => Some(Transport::Multipart),
            (false, true) => Some(Transport::Events),
            (false, false) => None,
        };
        if single.is_none() && stream.is_none() {
            return Err(Problem::of_status(StatusCode::NOT_ACCEPTABLE));
        }
        Ok(Accepted { single, stream })
    }

    /// For a query or a mutation, and for what is neither because it is wrong.
    pub fn single(self) -> Result<Single, Problem> {
        self.single.ok_or_else(|| Problem::of_status(StatusCode::NOT_ACCEPTABLE))
    }

    /// For a subscription.
    pub fn stream(self) -> Result<Transport, Problem> {
        self.stream.ok_or_else(|| {
            let detail = "a subscription needs a transport that stays open: Accept: text/event-stream, \
                          Accept: multipart/mixed;subscriptionSpec=1.0, or a WebSocket (graphql-transport-ws)";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "SUBSCRIPTION_TRANSPORT", detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::ACCEPT;

    fn accepted(accept: Option<&'static str>) -> Option<Accepted> {
        let headers = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect();
        Accepted::of(&headers).ok()
    }

    #[test]
    fn the_type_of_the_operation_decides_first_and_accept_second() {
        use Transport::{Events, Multipart};
        let json = Some(Single::Whole(Media::Json));
        let own = Some(Single::Whole(Media::Response));
        let table: &[(Option<&'static str>, Option<Single>, Option<Transport>)] = &[
            (None, json, Some(Events)),
            (Some("*/*"), json, Some(Events)),
            (Some("application/json"), json, None),
            (Some("application/graphql-response+json"), own, None),
            (Some("text/event-stream"), Some(Single::Event), Some(Events)),
            (Some("text/*"), Some(Single::Event), Some(Events)),
            (Some("application/json, text/event-stream;q=0"), json, None),
            // urql: on queries, on subscriptions
            (
                Some(
                    "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed",
                ),
                own,
                Some(Events),
            ),
            (Some("text/event-stream, multipart/mixed"), Some(Single::Event), Some(Events)),
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
            (Some("multipart/mixed;subscriptionSpec=1.0;q=0.5, */*"), json, Some(Events)),
            (
                Some("multipart/mixed;subscriptionSpec=1.0, text/event-stream"),
                Some(Single::Event),
                Some(Events),
            ),
            (
                Some("multipart/mixed;subscriptionSpec=1.0, text/event-stream;q=0.9"),
                Some(Single::Event),
                Some(Multipart),
            ),
        ];
        for (accept, single, stream) in table {
            let expected = Accepted { single: *single, stream: *stream };
            assert_eq!(accepted(*accept), Some(expected), "{accept:?}");
        }
        for accept in ["image/png", "multipart/mixed", "multipart/mixed;subscriptionSpec=2.0", "*/*;q=0"] {
            assert_eq!(accepted(Some(accept)), None, "{accept}");
        }
    }
}
