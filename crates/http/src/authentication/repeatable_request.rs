//! [`RepeatableRequest`]: a request that can be answered once more, if its actor turns out to be another one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http::request::Parts;
use http_body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;

/// The longest body that is kept while it is read.
const MAX_BUFFERED_BYTES: u64 = 64 << 10;

/// A request, with as much of its body as was read.
pub(crate) struct RepeatableRequest {
    head: Parts,
    /// `None` if it has none.
    body: Option<Arc<Mutex<BufferedBody>>>,
}

struct BufferedBody {
    read: Vec<Bytes>,
    rest: Body,
    /// Why it broke off after what was read; the body itself may tell that only once.
    failed: Option<String>,
}

/// A body that is read from its beginning.
struct RepeatedBody {
    kept: Arc<Mutex<BufferedBody>>,
    position: usize,
    /// Whether its reader was told that it broke off, after which nothing comes.
    has_failed: bool,
}

impl RepeatableRequest {
    /// The request again if its body may be too long to keep.
    pub fn new(request: Request) -> Result<RepeatableRequest, Box<Request>> {
        if request.body().is_end_stream() {
            let (head, _) = request.into_parts();
            return Ok(RepeatableRequest { head, body: None });
        }
        if request.body().size_hint().upper().is_none_or(|most| most > MAX_BUFFERED_BYTES) {
            return Err(Box::new(request));
        }
        let (head, rest) = request.into_parts();
        let body = BufferedBody { read: Vec::new(), rest, failed: None };
        Ok(RepeatableRequest { head, body: Some(Arc::new(Mutex::new(body))) })
    }

    /// The request with a body of its own.
    pub fn request(&self) -> Request {
        Request::from_parts(self.head.clone(), self.repeated_body())
    }

    /// The same for the last time.
    pub fn into_request(self) -> Request {
        let body = self.repeated_body();
        Request::from_parts(self.head, body)
    }

    fn repeated_body(&self) -> Body {
        match &self.body {
            Some(kept) => Body::new(RepeatedBody { kept: kept.clone(), position: 0, has_failed: false }),
            None => Body::empty(),
        }
    }
}

impl http_body::Body for RepeatedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let kept = self.kept.clone();
        let mut kept = kept.lock();
        if let Some(bytes) = kept.read.get(self.position) {
            self.position += 1;
            return Poll::Ready(Some(Ok(Frame::data(bytes.clone()))));
        }
        if self.has_failed {
            return Poll::Ready(None);
        }
        if let Some(reason) = &kept.failed {
            self.has_failed = true;
            return Poll::Ready(Some(Err(axum::Error::new(reason.clone()))));
        }
        let frame = std::task::ready!(Pin::new(&mut kept.rest).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    kept.read.push(bytes.clone());
                    self.position += 1;
                }
            }
            Some(Err(error)) => {
                kept.failed = Some(error.to_string());
                self.has_failed = true;
            }
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let kept = self.kept.lock();
        match &kept.failed {
            Some(_) => self.has_failed,
            None => self.position == kept.read.len() && kept.rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let kept = self.kept.lock();
        let known: u64 = kept.read[self.position..].iter().map(|bytes| bytes.len() as u64).sum();
        let rest = kept.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + known);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + known);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A body that comes in parts, of a length that is known.
    struct PartedBody(VecDeque<&'static str>);

    impl http_body::Body for PartedBody {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
        }
    }

    fn request(parts: &[&'static str]) -> Request {
        let body = Body::new(PartedBody(parts.iter().copied().collect()));
        Request::builder().uri("/posts").header("accept", "text/html").body(body).expect("a request")
    }

    async fn text(request: Request) -> String {
        assert_eq!((request.uri().path(), request.headers().len()), ("/posts", 1));
        let bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn bodies_are_read_again_whatever_was_read() {
        let kept = RepeatableRequest::new(request(&["one ", "two ", "three"])).expect("short");
        let mut begun = kept.request().into_body();
        assert_eq!(begun.size_hint().exact(), Some(13));
        let first = std::future::poll_fn(|cx| Pin::new(&mut begun).poll_frame(cx)).await;
        let first = first.expect("a part").expect("no error").into_data();
        assert_eq!(first.ok(), Some(Bytes::from_static(b"one ")));
        assert_eq!(begun.size_hint().exact(), Some(9));
        assert_eq!(text(kept.request()).await, "one two three");
        assert_eq!(text(kept.into_request()).await, "one two three");
    }

    /// A body that breaks off, and says so once.
    struct BrokenBody(VecDeque<Result<&'static str, &'static str>>);

    impl http_body::Body for BrokenBody {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            let part = self.0.pop_front();
            Poll::Ready(part.map(|part| match part {
                Ok(text) => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
                Err(reason) => Err(axum::Error::new(reason)),
            }))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_empty()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(10)
        }
    }

    #[tokio::test]
    async fn bodies_that_broke_off_are_broken_again() {
        let body = Body::new(BrokenBody(VecDeque::from([Ok("one "), Err("gone")])));
        let kept = RepeatableRequest::new(Request::new(body)).expect("short");
        for request in [kept.request(), kept.request(), kept.into_request()] {
            let mut body = request.into_body();
            let mut told = Vec::new();
            while !body.is_end_stream()
                && let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
            {
                told.push(frame.map(|frame| frame.into_data().ok()).map_err(|error| error.to_string()));
            }
            let first = Some(Bytes::from_static(b"one "));
            assert_eq!(told, [Ok(first), Err("gone".to_owned())]);
            let after = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            assert!(after.is_none());
        }
    }

    #[tokio::test]
    async fn long_bodies_are_not_kept() {
        let long: &'static str = "x".repeat(MAX_BUFFERED_BYTES as usize).leak();
        assert!(RepeatableRequest::new(request(&[long])).is_ok());
        let refused = RepeatableRequest::new(request(&[long, "y"])).err().expect("long");
        assert_eq!(text(*refused).await.len(), long.len() + 1);
        let endless =
            Request::new(Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>()));
        assert!(RepeatableRequest::new(endless).is_err());
    }
}
