//! What the guard and the hyper service of a connection tell each other.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
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

/// Facts about one request beside its bytes.
#[derive(Debug)]
pub struct RequestStart {
    /// `None` if the whole head came at once.
    pub first_byte: Option<Instant>,
    /// Boxed, because refusals are rare.
    pub refusal: Option<Box<Problem>>,
}

/// Shared by both sides of hyper. Only one task uses it, so relaxed ordering is enough.
#[derive(Default)]
pub struct ConnectionState {
    /// Times the current request.
    pub request_timer: RequestTimer,
    /// A validated head on its way through hyper to the service.
    request_start: Mutex<Option<RequestStart>>,
    /// The request whose response is being sent or was sent last.
    request: Mutex<Option<RequestId>>,
    is_busy: AtomicBool,
    is_reading_head: AtomicBool,
    /// The successor of hyper on the connection. The response head being written is the last one for hyper.
    takeover: OnceLock<ConnectionUpgrade>,
    /// That head is written, so the takeover can begin.
    is_handed_over: AtomicBool,
}

impl ConnectionState {
    /// Called by the guard before hyper sees a head.
    pub fn announce_request(&self, start: RequestStart) {
        *self.request_start.lock() = Some(start);
        self.is_reading_head.store(false, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
    }

    /// Called by the service when it starts the next request. `None` means that the guard has not seen its head: the
    /// guard and hyper disagree on the end of the previous request.
    pub fn begin_request(&self) -> Option<RequestStart> {
        self.is_busy.store(true, Ordering::Relaxed);
        self.request_start.lock().take()
    }

    /// Whether a request is being handled or its response sent.
    pub fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// Sets the request whose response is sent from now on.
    pub fn set_request_id(&self, request: &RequestId) {
        *self.request.lock() = Some(request.clone());
    }

    /// The request whose response is being sent, for the log.
    pub fn request_id(&self) -> Option<RequestId> {
        self.request.lock().clone()
    }

    pub fn set_reading_head(&self, is_reading: bool) {
        self.is_reading_head.store(is_reading, Ordering::Relaxed);
    }

    /// Whether the client is in the middle of sending a head.
    pub fn is_reading_head(&self) -> bool {
        self.is_reading_head.load(Ordering::Relaxed)
    }

    /// Hands the connection over once the head that is being written is out.
    pub fn set_takeover(&self, takeover: ConnectionUpgrade) {
        self.request_timer.stop();
        // A response has one successor at most.
        let _ = self.takeover.set(takeover);
    }

    /// Whether the head being written is the last one for hyper.
    pub fn is_last_head(&self) -> bool {
        self.takeover.get().is_some()
    }

    /// Called when everything written so far is flushed; returns whether that was the last head.
    pub fn on_flush(&self) -> bool {
        let is_last = self.is_last_head();
        if is_last {
            self.is_handed_over.store(true, Ordering::Relaxed);
        }
        is_last
    }

    /// Whether hyper has finished with the connection.
    pub fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    /// The successor of hyper, if hyper has finished.
    pub fn takeover(&self) -> Option<ConnectionUpgrade> {
        self.takeover.get().filter(|_| self.is_handed_over()).cloned()
    }
}

/// A response body. hyper drops it when the response is sent, or with the connection.
pub struct ResponseBody {
    /// `None` if the successor of hyper sends it.
    pub body: Option<LoggedBody>,
    pub state: Arc<ConnectionState>,
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.state.is_busy.store(false, Ordering::Relaxed);
    }
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
