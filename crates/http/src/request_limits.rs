//! Limits on one request: body size, deadline, and catching panics.

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

use trefoil_config::{ServerLimits, SettingSyntax, SizeSyntax};
use trefoil_model::error::panic_text;

use crate::errors::problem::Problem;
use crate::streaming::deadline::RequestTimer;

/// Facts about the connection and arrival of a request, from the accept loop.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// The other end of the TCP connection.
    pub peer: SocketAddr,
    /// TLS ends in this server.
    pub is_encrypted: bool,
    /// When the first byte of the request arrived.
    pub received_at: Instant,
    /// The timer of the connection.
    pub timer: RequestTimer,
    /// The only response to this request, if its head was malformed, too large or too slow.
    pub refusal: Option<Box<Problem>>,
}

/// Runs `run` within the limits.
pub(crate) async fn run_limited<F: Future<Output = Response>>(
    limits: &ServerLimits,
    connection: &ConnectionInfo,
    request: Request,
    run: impl FnOnce(Request) -> F,
) -> Response {
    if let Err(problem) = check_body_headers(request.headers(), limits.body) {
        return problem.closing_connection().into_response();
    }
    let progress = Arc::new(BodyProgress::for_body(request.body()));
    let request = request.map(|body| meter_body(body, limits.body, &progress));
    let work = AssertUnwindSafe(run(request)).catch_unwind();
    let outcome = connection.timer.run_until(connection.received_at + limits.request_timeout, work).await;
    match (outcome, progress.get()) {
        (_, BodyProgress::TOO_LARGE) => too_large(limits.body).closing_connection().into_response(),
        (_, BodyProgress::BROKEN) => broken_body().closing_connection().into_response(),
        (Some(Ok(response)), _) => response,
        (Some(Err(panic)), _) => Problem::internal(format!("panic: {}", panic_text(&panic))).into_response(),
        (None, BodyProgress::WHOLE) => response_too_slow(limits.request_timeout).into_response(),
        (None, _) => request_too_slow(limits.request_timeout).closing_connection().into_response(),
    }
}

/// Checks the headers that describe the body.
fn check_body_headers(headers: &HeaderMap, limit: usize) -> Result<(), Problem> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(encoded_body()),
        Some(_) | None => Ok(()),
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the request body is larger than {} (limits.body)", SizeSyntax::show(&limit));
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail)
}

fn encoded_body() -> Problem {
    let detail = "Content-Encoding is not supported; send the body uncompressed";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
        .with_header(http::header::ACCEPT_ENCODING, HeaderValue::from_static("identity"))
}

fn broken_body() -> Problem {
    Problem::bad_request("MALFORMED_BODY", "the body is incomplete or its chunks are malformed")
}

fn request_too_slow(limit: Duration) -> Problem {
    let detail = format!("the request was not received within {limit:?} (limits.request-timeout)");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail)
}

fn response_too_slow(limit: Duration) -> Problem {
    let detail = format!("no response within {limit:?} (limits.request-timeout)");
    let problem = Problem::unavailable(detail, Duration::from_secs(1));
    Problem { code: "TIMEOUT".into(), ..problem }
}

/// How much of the body has been read, as seen from outside the handler.
struct BodyProgress(AtomicU8);

impl BodyProgress {
    const COMING: u8 = 0;
    const WHOLE: u8 = 1;
    const TOO_LARGE: u8 = 2;
    const BROKEN: u8 = 3;

    fn for_body(body: &Body) -> Self {
        let is_empty = http_body::Body::is_end_stream(body);
        BodyProgress(AtomicU8::new(if is_empty { BodyProgress::WHOLE } else { BodyProgress::COMING }))
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }

    /// Nothing more comes. A body that was too large or broke off is not whole because it has ended.
    fn end(&self) {
        if self.get() == BodyProgress::COMING {
            self.set(BodyProgress::WHOLE);
        }
    }
}

fn meter_body(body: Body, limit: usize, progress: &Arc<BodyProgress>) -> Body {
    if progress.get() == BodyProgress::WHOLE {
        return body;
    }
    Body::new(MeteredBody { body, remaining: limit, progress: progress.clone() })
}

/// Counts the bytes read, so that bodies without a declared length are limited too.
struct MeteredBody {
    body: Body,
    remaining: usize,
    progress: Arc<BodyProgress>,
}

impl MeteredBody {
    fn count_frame(&mut self, frame: &Frame<Bytes>) -> Result<(), axum::Error> {
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.remaining = self.remaining.checked_sub(size).ok_or_else(|| {
            self.progress.set(BodyProgress::TOO_LARGE);
            axum::Error::new("the body is over the limit")
        })?;
        if self.body_has_ended() {
            self.progress.end();
        }
        Ok(())
    }

    fn body_has_ended(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }
}

impl http_body::Body for MeteredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match polled {
            Some(Ok(frame)) => Some(self.count_frame(&frame).map(|()| frame)),
            Some(Err(error)) => {
                self.progress.set(BodyProgress::BROKEN);
                Some(Err(error))
            }
            None => {
                self.progress.end();
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

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn bodies_that_broke_off_stay_broken() {
        for (parts, expected) in [
            (vec![Ok("one "), Ok("two")], BodyProgress::WHOLE),
            (vec![Ok("one "), Err("gone")], BodyProgress::BROKEN),
            (vec![Ok("one "), Ok("two three four")], BodyProgress::TOO_LARGE),
            (vec![Ok("one two three"), Ok("four")], BodyProgress::TOO_LARGE),
        ] {
            let parts = parts.into_iter().map(|part| part.map(Bytes::from).map_err(axum::Error::new));
            let body = Body::from_stream(futures_util::stream::iter(parts));
            let progress = Arc::new(BodyProgress::for_body(&body));
            let mut body = meter_body(body, 10, &progress);
            while std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.is_some() {}
            assert_eq!(progress.get(), expected);
        }
    }
}
