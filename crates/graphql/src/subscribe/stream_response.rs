//! A subscription as an HTTP response body: events, heartbeats between them, an end when the server stops.

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

use trefoil_http::errors::error_log::{LogScope, StreamEnd};
use trefoil_http::monitoring::metrics::OpenSubscription;
use trefoil_http::response_headers::RequestId;
use trefoil_http::shutdown::DrainWaiter;
use trefoil_http::streaming::response::{self, LAST_EVENT_ID};

use crate::over_http::negotiate::StreamTransport;
use crate::response_error::ResponseError;
use crate::subscribe::event::SubscriptionEvent;
use crate::subscribe::stream_context::StreamContext;
use crate::subscribe::{Subscription, SubscriptionStep, multipart, sse};

impl StreamTransport {
    pub const fn name(self) -> &'static str {
        match self {
            StreamTransport::EventStream => "sse",
            StreamTransport::Multipart => "multipart",
        }
    }

    fn encode_start(self, id: &str) -> Bytes {
        match self {
            StreamTransport::EventStream => sse::start(id),
            StreamTransport::Multipart => multipart::start(id),
        }
    }

    fn encode_event(self, event: &SubscriptionEvent) -> Bytes {
        match self {
            StreamTransport::EventStream => event.sse_block(),
            StreamTransport::Multipart => event.multipart_part(),
        }
    }

    fn encode_heartbeat(self, id: &str) -> Bytes {
        match self {
            StreamTransport::EventStream => sse::heartbeat(id),
            StreamTransport::Multipart => multipart::heartbeat(id),
        }
    }

    fn encode_failure(self, failures: &[ResponseError]) -> Bytes {
        match self {
            StreamTransport::EventStream => sse::failure(failures),
            StreamTransport::Multipart => multipart::failure(failures),
        }
    }

    fn encode_rejection(self, failures: &[ResponseError]) -> Bytes {
        match self {
            StreamTransport::EventStream => sse::failure(failures),
            StreamTransport::Multipart => multipart::rejection(failures),
        }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            StreamTransport::EventStream => "text/event-stream; charset=utf-8",
            StreamTransport::Multipart => multipart::CONTENT_TYPE,
        })
    }
}

/// The `Last-Event-ID` header. It takes precedence over the request's own `lastEventId`: browsers set it when they
/// reconnect to an unchanged URL.
pub fn last_event_id(headers: &HeaderMap) -> Option<String> {
    response::last_event_id(headers).map(str::to_owned)
}

/// The response with the events of an open subscription.
pub fn respond(
    subscription: Subscription,
    transport: StreamTransport,
    context: &Arc<StreamContext>,
    request: Option<&RequestId>,
) -> Response {
    let event_id = HeaderValue::from_str(subscription.last_event_id());
    let stream = SubscriptionStream {
        transport,
        heartbeat: context.heartbeat(),
        drained: context.shutdown.drain_waiter(),
        stream_guard: context.metrics.subscription_opened(transport.name()),
        subscription,
        request: request.cloned(),
        phase: StreamPhase::Start,
    };
    let mut response = response::long_lived(stream_headers(Body::from_stream(stream), transport));
    if let Ok(event_id) = event_id {
        response.headers_mut().insert(LAST_EVENT_ID, event_id);
    }
    response
}

/// The response to a rejected subscription. The errors are in the stream, since an `EventSource` hides other bodies.
pub fn reject(failures: &[ResponseError], transport: StreamTransport) -> Response {
    response::unbuffered(stream_headers(Body::from(transport.encode_rejection(failures)), transport))
}

/// An event stream with a single response.
pub fn single_event(body: &[u8]) -> Response {
    response::unbuffered(stream_headers(Body::from(sse::single_event(body)), StreamTransport::EventStream))
}

fn stream_headers(body: Body, transport: StreamTransport) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, transport.content_type());
    headers.insert(VARY, ACCEPT.into());
    response
}

struct SubscriptionStream {
    subscription: Subscription,
    transport: StreamTransport,
    /// The request that opened the stream, for the log.
    request: Option<RequestId>,
    phase: StreamPhase,
    heartbeat: Interval,
    drained: DrainWaiter,
    stream_guard: OpenSubscription,
}

enum StreamPhase {
    Start,
    Running,
    Ended,
}

enum StreamSignal {
    Drained,
    Step(SubscriptionStep),
    Heartbeat,
}

impl Stream for SubscriptionStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.phase {
            StreamPhase::Ended => return Poll::Ready(None),
            StreamPhase::Start => {
                self.phase = StreamPhase::Running;
                return Poll::Ready(Some(Ok(self.transport.encode_start(self.subscription.last_event_id()))));
            }
            StreamPhase::Running => {}
        }
        let signal = ready!(self.poll_signal(cx));
        Poll::Ready(self.encode_signal(signal).map(Ok))
    }
}

impl SubscriptionStream {
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<StreamSignal> {
        if self.drained.poll(cx).is_ready() {
            return Poll::Ready(StreamSignal::Drained);
        }
        if let Poll::Ready(step) = self.subscription.poll_next(cx) {
            return Poll::Ready(StreamSignal::Step(step));
        }
        self.heartbeat.poll_tick(cx).map(|_| StreamSignal::Heartbeat)
    }

    fn encode_signal(&mut self, signal: StreamSignal) -> Option<Bytes> {
        match signal {
            StreamSignal::Step(SubscriptionStep::Event(event)) => {
                self.stream_guard.event_delivered();
                event.log_causes(LogScope::of(self.request.as_ref()));
                Some(self.transport.encode_event(&event))
            }
            StreamSignal::Heartbeat => {
                Some(self.transport.encode_heartbeat(self.subscription.last_event_id()))
            }
            StreamSignal::Step(SubscriptionStep::Ended(end, failures)) => {
                self.end(&end);
                Some(self.transport.encode_failure(&failures))
            }
            // No `complete`: it would tell the client that the subscription is over. A stream that just breaks off
            // makes it reconnect, as after a crash.
            StreamSignal::Drained => {
                self.end(&StreamEnd::ServerStopping);
                None
            }
        }
    }

    fn end(&mut self, end: &StreamEnd) {
        self.phase = StreamPhase::Ended;
        LogScope::of(self.request.as_ref()).stream_ended(self.transport.name(), end);
    }
}
