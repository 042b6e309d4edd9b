//! A subscription as the body of a response: events as they come, signs of life between them, an end when the server stops.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue};
use tokio::time::Interval;

use crate::over_http::negotiate::Transport;
use crate::response_error::Failure;
use crate::subscribe::event::Event;
use crate::subscribe::streams::Streams;
use crate::subscribe::{Step, Subscription, multipart, sse};
use trefoil_http::errors::error_log::{LogScope, StreamEnd};
use trefoil_http::monitoring::metrics::Open;
use trefoil_http::response_headers::RequestId;
use trefoil_http::shutdown::Drained;
use trefoil_http::streaming::response;
use trefoil_http::streaming::response::LAST_EVENT_ID;

impl Transport {
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Events => "sse",
            Transport::Multipart => "multipart",
        }
    }

    fn start(self, id: &str) -> Bytes {
        match self {
            Transport::Events => sse::start(id),
            Transport::Multipart => multipart::start(id),
        }
    }

    fn event(self, event: &Event) -> Bytes {
        match self {
            Transport::Events => event.block(),
            Transport::Multipart => event.part(),
        }
    }

    fn beat(self, id: &str) -> Bytes {
        match self {
            Transport::Events => sse::beat(id),
            Transport::Multipart => multipart::beat(id),
        }
    }

    fn failed(self, failures: &[Failure]) -> Bytes {
        match self {
            Transport::Events => sse::failed(failures),
            Transport::Multipart => multipart::failed(failures),
        }
    }

    fn rejected(self, failures: &[Failure]) -> Bytes {
        match self {
            Transport::Events => sse::failed(failures),
            Transport::Multipart => multipart::rejected(failures),
        }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Transport::Events => "text/event-stream; charset=utf-8",
            Transport::Multipart => multipart::CONTENT_TYPE,
        })
    }
}

/// Where a client comes back to by the header. It goes before what the request itself says: browsers write it when
/// they come back to an address that stays the same.
pub fn place(headers: &HeaderMap) -> Option<String> {
    response::last_event_id(headers).map(str::to_owned)
}

/// The answer to a subscription that has begun.
pub fn respond(
    subscription: Subscription,
    transport: Transport,
    streams: &Arc<Streams>,
    request: Option<&RequestId>,
) -> Response {
    let place = HeaderValue::from_str(subscription.id());
    let live = Live {
        transport,
        beat: streams.heartbeat(),
        drained: streams.shutdown.drained(),
        open: streams.metrics.subscribed(transport.name()),
        subscription,
        request: request.cloned(),
        phase: Phase::Start,
    };
    let mut response = response::endless(streamed(Body::from_stream(live), transport));
    if let Ok(place) = place {
        response.headers_mut().insert(LAST_EVENT_ID, place);
    }
    response
}

/// The answer to one that cannot begin: in the stream, because browsers show nobody the body of any other answer.
pub fn reject(failures: &[Failure], transport: Transport) -> Response {
    response::passing(streamed(Body::from(transport.rejected(failures)), transport))
}

/// One answer as a stream that ends with it.
pub fn single(answer: &[u8]) -> Response {
    response::passing(streamed(Body::from(sse::single(answer)), Transport::Events))
}

fn streamed(body: Body, transport: Transport) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, transport.content_type());
    headers.insert(VARY, ACCEPT.into());
    response
}

struct Live {
    subscription: Subscription,
    transport: Transport,
    /// The request that opened it, for the log.
    request: Option<RequestId>,
    phase: Phase,
    beat: Interval,
    drained: Drained,
    open: Open,
}

enum Phase {
    Start,
    Going,
    Over,
}

enum Happened {
    Drained,
    Step(Step),
    Beat,
}

impl Stream for Live {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.phase {
            Phase::Over => return Poll::Ready(None),
            Phase::Start => {
                self.phase = Phase::Going;
                return Poll::Ready(Some(Ok(self.transport.start(self.subscription.id()))));
            }
            Phase::Going => {}
        }
        let happened = ready!(self.poll(cx));
        Poll::Ready(self.tell(happened).map(Ok))
    }
}

impl Live {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if self.drained.poll(cx).is_ready() {
            return Poll::Ready(Happened::Drained);
        }
        if let Poll::Ready(step) = self.subscription.poll_next(cx) {
            return Poll::Ready(Happened::Step(step));
        }
        self.beat.poll_tick(cx).map(|_| Happened::Beat)
    }

    fn tell(&mut self, happened: Happened) -> Option<Bytes> {
        match happened {
            Happened::Step(Step::Event(event)) => {
                self.open.delivered();
                event.log_causes(LogScope::of(self.request.as_ref()));
                Some(self.transport.event(&event))
            }
            Happened::Beat => Some(self.transport.beat(self.subscription.id())),
            Happened::Step(Step::Ended(end, failures)) => {
                self.end(&end);
                Some(self.transport.failed(&failures))
            }
            // Without the word that ends it, which its client would take for the end of the subscription: a stream
            // that merely breaks off is one to come back to, as after a crash.
            Happened::Drained => {
                self.end(&StreamEnd::ServerStopping);
                None
            }
        }
    }

    fn end(&mut self, end: &StreamEnd) {
        self.phase = Phase::Over;
        LogScope::of(self.request.as_ref()).stream_ended(self.transport.name(), end);
    }
}
