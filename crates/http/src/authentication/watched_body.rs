//! [`WatchedBody`]: a long answer that ends when the credential of its request does.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body::{Body as _, Frame};

use crate::authentication::credential_watch::CredentialWatch;
use crate::streaming::wake_source::WakeSource;

/// A body that breaks off when the credential of its request ends.
pub(crate) struct WatchedBody {
    body: Body,
    end: BoxFuture<'static, ()>,
    /// Each event wakes the task, too, and the end is rare.
    end_wakes: WakeSource,
    kind: BodyKind,
}

enum BodyKind {
    /// A clean end would make a part look like the whole.
    Download,
    Events(EventCheck),
}

/// Before events go out, the log is asked whether something ended the right to them.
enum EventCheck {
    Idle(CredentialWatch),
    Running {
        frame: Frame<Bytes>,
        check: BoxFuture<'static, (CredentialWatch, bool)>,
    },
    /// The credential has ended.
    Failed,
}

impl WatchedBody {
    /// Watches the credential of a response that is made while it is sent.
    pub fn of_response(response: Response, watch: CredentialWatch) -> Response {
        // One that is there already is not made while it is sent.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_stream = content_type.is_some_and(|media| {
            media.starts_with(b"text/event-stream") || media.starts_with(b"multipart/mixed")
        });
        response.map(|body| {
            let end = Box::pin(watch.clone().wait_for_end());
            let kind = if is_stream { BodyKind::Events(EventCheck::Idle(watch)) } else { BodyKind::Download };
            Body::new(WatchedBody { body, end, end_wakes: WakeSource::default(), kind })
        })
    }
}

impl EventCheck {
    /// The next frame that may go out; `None` at the end of the body or of the right to it.
    fn poll_frame(
        &mut self,
        body: &mut Body,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            match std::mem::replace(self, EventCheck::Failed) {
                EventCheck::Failed => return Poll::Ready(None),
                EventCheck::Idle(mut watch) => {
                    let polled = Pin::new(&mut *body).poll_frame(cx);
                    let Poll::Ready(Some(Ok(frame))) = polled else {
                        *self = EventCheck::Idle(watch);
                        return polled;
                    };
                    // Nearly all events are known to be covered, and go out without a future of their own.
                    if watch.is_known_to_cover() {
                        *self = EventCheck::Idle(watch);
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    let check = Box::pin(async move {
                        let is_covered = watch.covers_known_changes().await;
                        (watch, is_covered)
                    });
                    *self = EventCheck::Running { frame, check };
                }
                EventCheck::Running { frame, mut check } => match check.as_mut().poll(cx) {
                    Poll::Ready((watch, true)) => {
                        *self = EventCheck::Idle(watch);
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Poll::Ready((_, false)) => return Poll::Ready(None),
                    Poll::Pending => {
                        *self = EventCheck::Running { frame, check };
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let WatchedBody { body, end, end_wakes, kind } = &mut *self;
        match (end_wakes.poll_if_woken(cx, |cx| end.as_mut().poll(cx)), kind) {
            (Poll::Ready(()), BodyKind::Events(_)) => Poll::Ready(None),
            (Poll::Ready(()), BodyKind::Download) => {
                Poll::Ready(Some(Err(axum::Error::new("the credential of the request has ended"))))
            }
            (Poll::Pending, BodyKind::Events(check)) => check.poll_frame(body, cx),
            (Poll::Pending, BodyKind::Download) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Events(EventCheck::Running { .. }) => false,
            BodyKind::Events(EventCheck::Idle(_) | EventCheck::Failed) | BodyKind::Download => {
                self.body.is_end_stream()
            }
        }
    }
}
