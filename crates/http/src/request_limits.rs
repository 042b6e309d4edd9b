//! What one request may cost in bytes and time: a body that is counted, a deadline, and a net for panics.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Frame, SizeHint};

use crate::errors::problem::Problem;
use crate::streaming::deadline::Timer;
use trefoil_config::{Kind, Limits, Size};

/// How a request came, told by the accept loop.
#[derive(Debug)]
pub struct Came {
    /// The other end of the TCP connection.
    pub peer: SocketAddr,
    /// When its first byte came.
    pub at: Instant,
    /// Its connection's.
    pub timer: Timer,
    /// It is answered with this and nothing else: its head was malformed, too large or too slow.
    pub refused: Option<Box<Problem>>,
}

/// Runs the rest of the stack within the limits.
pub(crate) async fn bounded<F: Future<Output = Response>>(
    limits: &Limits,
    came: &Came,
    request: Request,
    run: impl FnOnce(Request) -> F,
) -> Response {
    if let Err(problem) = readable(request.headers(), limits.body) {
        return problem.closing().into_response();
    }
    let state = Arc::new(Progress::of(request.body()));
    let request = request.map(|body| metered(body, limits.body, &state));
    let work = AssertUnwindSafe(run(request)).catch_unwind();
    let answer = came.timer.until(came.at + limits.request_timeout, work).await;
    match (answer, state.get()) {
        (_, Progress::TOO_LARGE) => too_large(limits.body).closing().into_response(),
        (_, Progress::BROKEN) => broken_body().closing().into_response(),
        (Some(Ok(response)), _) => response,
        (Some(Err(panic)), _) => Problem::internal(format!("panic: {}", words_of(&panic))).into_response(),
        (None, Progress::WHOLE) => too_slow(limits.request_timeout).into_response(),
        (None, _) => still_coming(limits.request_timeout).closing().into_response(),
    }
}

/// What the head alone tells about the body.
fn readable(headers: &HeaderMap, limit: usize) -> Result<(), Problem> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(encoded()),
        Some(_) | None => Ok(()),
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("what was sent is larger than {} (limits.body)", Size::show(&limit));
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail)
}

fn encoded() -> Problem {
    let detail = "a body with a Content-Encoding cannot be read here; send it as it is";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
        .header(http::header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))
}

fn broken_body() -> Problem {
    Problem::bad_request("MALFORMED_BODY", "the body ended early, or its chunks are malformed")
}

fn still_coming(limit: Duration) -> Problem {
    let detail = format!("the request took longer than {limit:?} to come in (limits.request-timeout)");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail)
}

fn too_slow(limit: Duration) -> Problem {
    let detail = format!("no answer within {limit:?} (limits.request-timeout)");
    let problem = Problem::unavailable(detail, Duration::from_secs(1));
    Problem { code: "TIMEOUT".into(), ..problem }
}

fn words_of(panic: &Box<dyn Any + Send>) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words")
}

/// How far the body has come, seen from outside of the handler that reads it.
struct Progress(AtomicU8);

impl Progress {
    const COMING: u8 = 0;
    const WHOLE: u8 = 1;
    const TOO_LARGE: u8 = 2;
    const BROKEN: u8 = 3;

    fn of(body: &Body) -> Self {
        let none = http_body::Body::is_end_stream(body);
        Progress(AtomicU8::new(if none { Progress::WHOLE } else { Progress::COMING }))
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }
}

fn metered(body: Body, limit: usize, progress: &Arc<Progress>) -> Body {
    if progress.get() == Progress::WHOLE {
        return body;
    }
    Body::new(Metered { body, left: limit, progress: progress.clone() })
}

/// Counts what is read, so that a body without a declared length cannot be endless either.
struct Metered {
    body: Body,
    left: usize,
    progress: Arc<Progress>,
}

impl Metered {
    fn take(&mut self, frame: &Frame<Bytes>) -> Result<(), axum::Error> {
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.left = self.left.checked_sub(size).ok_or_else(|| {
            self.progress.set(Progress::TOO_LARGE);
            axum::Error::new("the body is over the limit")
        })?;
        if self.body_has_ended() {
            self.progress.set(Progress::WHOLE);
        }
        Ok(())
    }

    fn body_has_ended(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }
}

impl http_body::Body for Metered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match polled {
            Some(Ok(frame)) => Some(self.take(&frame).map(|()| frame)),
            Some(Err(error)) => {
                self.progress.set(Progress::BROKEN);
                Some(Err(error))
            }
            None => {
                self.progress.set(Progress::WHOLE);
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body_has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
