//! What a connection's bytes and its service tell each other about whose turn it is.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Bytes;
use http_body::{Frame, SizeHint};

use crate::http1::streamed_body::Stream;
use trefoil_http::Problem;
use trefoil_http::monitoring::access_log::Followed;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::Timer;
use trefoil_http::streaming::upgrade::Tunnel;

/// What came with one request besides its bytes.
#[derive(Debug)]
pub struct Arrival {
    /// None when it was waiting behind another request, whose slowness is not its own.
    pub first_byte: Option<Instant>,
    /// In a box: connections keep room for arrivals as long as they live, and hardly any is refused.
    pub refusal: Option<Box<Problem>>,
}

/// What a connection is from now on, instead of HTTP.
pub enum Next {
    Tunnel(Tunnel),
    Stream(Stream),
}

/// Shared by the two halves of a connection. Only one task ever uses it, so ordering is no concern.
#[derive(Default)]
pub struct Turns {
    /// Of the request whose turn it is.
    pub timer: Timer,
    arrivals: Mutex<VecDeque<Arrival>>,
    last_end: Mutex<Option<Instant>>,
    /// Whose answer goes out, or went out last.
    request: Mutex<Option<RequestId>>,
    busy: AtomicBool,
    begun: AtomicBool,
    tunnel: AtomicBool,
    next: Mutex<Option<Next>>,
    /// The head of the last answer that hyper has to do with is still to go out …
    last: AtomicBool,
    /// … and now it has.
    free: AtomicBool,
}

impl Turns {
    pub fn announce(&self, arrival: Arrival) {
        lock(&self.arrivals).push_back(arrival);
        self.begun.store(false, Ordering::Relaxed);
        self.busy.store(true, Ordering::Relaxed);
    }

    /// The service begins with the next request.
    pub fn begin(self: &Arc<Self>) -> (Option<Arrival>, Turn) {
        self.busy.store(true, Ordering::Relaxed);
        let arrival = lock(&self.arrivals).pop_front();
        (arrival, Turn(self.clone()))
    }

    /// A request is being worked on, or its answer still going out.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// The answer to this request goes out from now on.
    pub fn answers(&self, request: &RequestId) {
        *lock(&self.request) = Some(request.clone());
    }

    /// Of the answer that goes out, for the log.
    pub fn request_id(&self) -> Option<RequestId> {
        lock(&self.request).clone()
    }

    /// When the last answer was through.
    pub fn last_end(&self) -> Option<Instant> {
        *lock(&self.last_end)
    }

    pub fn set_begun(&self, begun: bool) {
        self.begun.store(begun, Ordering::Relaxed);
    }

    /// The client is in the middle of sending a head.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// From here on the bytes are another protocol's.
    pub fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Relaxed)
    }

    /// After the head that is written now the connection is something else.
    pub fn go_on_as(&self, next: Next) {
        self.tunnel.store(matches!(next, Next::Tunnel(_)), Ordering::Relaxed);
        *lock(&self.next) = Some(next);
        self.timer.stop();
        self.last.store(true, Ordering::Relaxed);
    }

    /// All that was to be written is.
    pub fn flushed(&self) {
        if self.last.load(Ordering::Relaxed) {
            self.free.store(true, Ordering::Relaxed);
        }
    }

    /// Nothing of the answer is left with hyper.
    pub fn is_free(&self) -> bool {
        self.free.load(Ordering::Relaxed)
    }

    pub fn next(&self) -> Option<Next> {
        lock(&self.next).take()
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lasts from the call of the service to the last byte of its answer, or to the end of the connection.
pub struct Turn(Arc<Turns>);

impl Turn {
    pub fn until_the_end_of(self, body: Followed) -> Outgoing {
        Outgoing { body: Some(body), _turn: self }
    }

    /// Leaves the head to hyper and the body to somebody else.
    pub fn without_a_body(self) -> Outgoing {
        Outgoing { body: None, _turn: self }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.0.last_end) = Some(Instant::now());
        self.0.busy.store(false, Ordering::Relaxed);
    }
}

/// The body of an answer, which hyper drops when it is through with it.
pub struct Outgoing {
    /// Nothing where somebody else sends it.
    body: Option<Followed>,
    _turn: Turn,
}

impl http_body::Body for Outgoing {
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
