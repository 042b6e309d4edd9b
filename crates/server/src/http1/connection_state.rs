//! What a connection's bytes and its service tell each other about whose turn it is.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Bytes;
use http_body::{Frame, SizeHint};

use crate::http1::streamed_body::StreamedBody;
use trefoil_http::Problem;
use trefoil_http::monitoring::access_log::LoggedBody;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::RequestTimer;
use trefoil_http::streaming::upgrade::ConnectionUpgrade;

/// What came with one request besides its bytes.
#[derive(Debug)]
pub struct RequestStart {
    /// None when it was waiting behind another request, whose slowness is not its own.
    pub first_byte: Option<Instant>,
    /// In a box: connections keep room for arrivals as long as they live, and hardly any is refused.
    pub refusal: Option<Box<Problem>>,
}

/// What a connection is from now on, instead of HTTP.
pub enum ConnectionTakeover {
    Upgrade(ConnectionUpgrade),
    Stream(StreamedBody),
}

/// Shared by the two halves of a connection. Only one task ever uses it, so ordering is no concern.
#[derive(Default)]
pub struct ConnectionState {
    /// Of the request whose turn it is.
    pub request_timer: RequestTimer,
    request_starts: Mutex<VecDeque<RequestStart>>,
    last_response_end: Mutex<Option<Instant>>,
    /// Whose answer goes out, or went out last.
    request: Mutex<Option<RequestId>>,
    is_busy: AtomicBool,
    is_reading_head: AtomicBool,
    is_upgraded: AtomicBool,
    takeover: Mutex<Option<ConnectionTakeover>>,
    /// The head of the last answer that hyper has to do with is still to go out …
    is_last_head: AtomicBool,
    /// … and now it has.
    is_handed_over: AtomicBool,
}

impl ConnectionState {
    pub fn push_request(&self, arrival: RequestStart) {
        lock_value(&self.request_starts).push_back(arrival);
        self.is_reading_head.store(false, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// The service begins with the next request.
    pub fn begin_request(self: &Arc<Self>) -> (Option<RequestStart>, RequestTurn) {
        self.is_busy.store(true, Ordering::Relaxed);
        let arrival = lock_value(&self.request_starts).pop_front();
        (arrival, RequestTurn(self.clone()))
    }

    /// A request is being worked on, or its answer still going out.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// The answer to this request goes out from now on.
    pub fn answers(&self, request: &RequestId) {
        *lock_value(&self.request) = Some(request.clone());
    }

    /// Of the answer that goes out, for the log.
    pub fn request_id(&self) -> Option<RequestId> {
        lock_value(&self.request).clone()
    }

    /// When the last answer was through.
    pub fn last_response_end(&self) -> Option<Instant> {
        *lock_value(&self.last_response_end)
    }

    pub fn set_reading_head(&self, begun: bool) {
        self.is_reading_head.store(begun, Ordering::Relaxed);
    }

    /// The client is in the middle of sending a head.
    pub fn is_reading_head(&self) -> bool {
        self.is_reading_head.load(Ordering::Relaxed)
    }

    /// From here on the bytes are another protocol's.
    pub fn is_upgraded(&self) -> bool {
        self.is_upgraded.load(Ordering::Relaxed)
    }

    /// After the head that is written now the connection is something else.
    pub fn set_takeover(&self, next: ConnectionTakeover) {
        self.is_upgraded.store(matches!(next, ConnectionTakeover::Upgrade(_)), Ordering::Relaxed);
        *lock_value(&self.takeover) = Some(next);
        self.request_timer.stop();
        self.is_last_head.store(true, Ordering::Relaxed);
    }

    /// All that was to be written is.
    pub fn on_flush(&self) {
        if self.is_last_head.load(Ordering::Relaxed) {
            self.is_handed_over.store(true, Ordering::Relaxed);
        }
    }

    /// Nothing of the answer is left with hyper.
    pub fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    pub fn take_takeover(&self) -> Option<ConnectionTakeover> {
        lock_value(&self.takeover).take()
    }
}

fn lock_value<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lasts from the call of the service to the last byte of its answer, or to the end of the connection.
pub struct RequestTurn(Arc<ConnectionState>);

impl RequestTurn {
    pub fn with_body(self, body: LoggedBody) -> ResponseBody {
        ResponseBody { body: Some(body), _turn: self }
    }

    /// Leaves the head to hyper and the body to somebody else.
    pub fn without_body(self) -> ResponseBody {
        ResponseBody { body: None, _turn: self }
    }
}

impl Drop for RequestTurn {
    fn drop(&mut self) {
        *lock_value(&self.0.last_response_end) = Some(Instant::now());
        self.0.is_busy.store(false, Ordering::Relaxed);
    }
}

/// The body of an answer, which hyper drops when it is through with it.
pub struct ResponseBody {
    /// Nothing where somebody else sends it.
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
