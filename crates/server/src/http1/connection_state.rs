//! Per-connection state shared by [`GuardedStream`](crate::http1::guarded_stream::GuardedStream) and the hyper service.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use trefoil_http::Problem;
use trefoil_http::monitoring::access_log::LoggedBody;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::RequestTimer;
use trefoil_http::streaming::upgrade::ConnectionUpgrade;

use crate::http1::streamed_body::StreamedBody;

/// Facts about one request beside its bytes.
#[derive(Debug)]
pub struct RequestStart {
    /// `None` if the request waited behind another one, whose duration must not count.
    pub first_byte: Option<Instant>,
    /// Boxed: every connection holds a queue of these, and refusals are rare.
    pub refusal: Option<Box<Problem>>,
}

/// The successor of hyper on a connection.
pub enum ConnectionTakeover {
    Upgrade(ConnectionUpgrade),
    Stream(StreamedBody),
}

/// Shared by both halves of a connection. Only one task uses it, so relaxed ordering is enough.
#[derive(Default)]
pub struct ConnectionState {
    /// Times the current request.
    pub request_timer: RequestTimer,
    request_starts: Mutex<VecDeque<RequestStart>>,
    last_response_end: Mutex<Option<Instant>>,
    /// The request whose response is being sent or was sent last.
    request: Mutex<Option<RequestId>>,
    is_busy: AtomicBool,
    is_reading_head: AtomicBool,
    is_upgraded: AtomicBool,
    takeover: Mutex<Option<ConnectionTakeover>>,
    /// The response head being written is the last one for hyper.
    is_last_head: AtomicBool,
    /// That head is written, so the takeover can begin.
    is_handed_over: AtomicBool,
}

impl ConnectionState {
    pub fn push_request(&self, start: RequestStart) {
        self.request_starts.lock().push_back(start);
        self.is_reading_head.store(false, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Called by the service when it starts the next request.
    pub fn begin_request(self: &Arc<Self>) -> (Option<RequestStart>, RequestTurn) {
        self.is_busy.store(true, Ordering::Relaxed);
        let start = self.request_starts.lock().pop_front();
        (start, RequestTurn(self.clone()))
    }

    /// Whether a request is being handled or its response sent.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Sets the request whose response is sent from now on.
    pub fn answers(&self, request: &RequestId) {
        *self.request.lock() = Some(request.clone());
    }

    /// The request whose response is being sent, for the log.
    pub fn request_id(&self) -> Option<RequestId> {
        self.request.lock().clone()
    }

    /// When the last response was complete.
    pub fn last_response_end(&self) -> Option<Instant> {
        *self.last_response_end.lock()
    }

    pub fn set_reading_head(&self, is_reading: bool) {
        self.is_reading_head.store(is_reading, Ordering::Relaxed);
    }

    /// Whether the client is in the middle of sending a head.
    pub fn is_reading_head(&self) -> bool {
        self.is_reading_head.load(Ordering::Relaxed)
    }

    /// Whether the bytes belong to another protocol from here on.
    pub fn is_upgraded(&self) -> bool {
        self.is_upgraded.load(Ordering::Relaxed)
    }

    /// Hands the connection over once the head that is being written is out.
    pub fn set_takeover(&self, takeover: ConnectionTakeover) {
        self.is_upgraded.store(matches!(takeover, ConnectionTakeover::Upgrade(_)), Ordering::Relaxed);
        *self.takeover.lock() = Some(takeover);
        self.request_timer.stop();
        self.is_last_head.store(true, Ordering::Relaxed);
    }

    /// Called when everything written so far is flushed.
    pub fn on_flush(&self) {
        if self.is_last_head.load(Ordering::Relaxed) {
            self.is_handed_over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether hyper has finished with the connection.
    pub fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    pub fn take_takeover(&self) -> Option<ConnectionTakeover> {
        self.takeover.lock().take()
    }
}

/// The time from the call of the service to the last byte of its response, or to the end of the connection.
pub struct RequestTurn(Arc<ConnectionState>);

impl RequestTurn {
    pub fn with_body(self, body: LoggedBody) -> ResponseBody {
        ResponseBody { body: Some(body), _turn: self }
    }

    /// For a takeover: hyper sends the head, and another task the body.
    pub fn without_body(self) -> ResponseBody {
        ResponseBody { body: None, _turn: self }
    }
}

impl Drop for RequestTurn {
    fn drop(&mut self) {
        *self.0.last_response_end.lock() = Some(Instant::now());
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

/// A response body; hyper drops it when the response is sent.
pub struct ResponseBody {
    /// `None` if another task sends it.
    body: Option<LoggedBody>,
    _turn: RequestTurn,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.body.as_mut().map_or(Poll::Pending, |body| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(http_body::Body::size_hint).unwrap_or_default()
    }
}
