//! Writes a long-lived response body from a task of its own, without hyper and its buffers.

use std::future::poll_fn;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes};
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

use trefoil_http::streaming::deadline::MovingDeadline;
use trefoil_http::streaming::upgrade::ConnectionIo;
use trefoil_http::streaming::wake_source::WakeSource;
use trefoil_http::streaming::write_buffer::WriteBuffer;

use crate::http1::guard::guarded_stream::HALF_CLOSED_TIMEOUT;

/// How the client finds the end of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnding {
    LastChunk,
    /// The end of the connection: HTTP/1.0 has no chunks.
    Close,
}

pub struct StreamedBody {
    body: Body,
    ending: BodyEnding,
    /// When the client finished sending.
    ended_at: Option<Instant>,
    half_closed_deadline: MovingDeadline,
}

impl StreamedBody {
    pub fn new(body: Body, ending: BodyEnding) -> StreamedBody {
        StreamedBody { body, ending, ended_at: None, half_closed_deadline: MovingDeadline::default() }
    }

    /// Writes until the body ends or the client has gone.
    pub async fn run(mut self, mut stream: Box<dyn ConnectionIo>) -> io::Result<()> {
        let (mut out, client_wake) = (WriteBuffer::default(), WakeSource::default());
        while poll_fn(|cx| self.poll_fill(&mut stream, &client_wake, &mut out, cx)).await {
            out.write_to(&mut stream).await?;
        }
        if self.ending == BodyEnding::LastChunk {
            out.push_copy(b"0\r\n\r\n");
        }
        out.write_to(&mut stream).await?;
        stream.shutdown().await
    }

    /// Collects the available data; returns false after the last of it.
    fn poll_fill(
        &mut self,
        stream: &mut Box<dyn ConnectionIo>,
        client_wake: &WakeSource,
        out: &mut WriteBuffer,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        if client_wake.poll_if_woken(cx, |cx| self.poll_client_gone(stream, cx)).is_ready() {
            return Poll::Ready(false);
        }
        while out.has_room() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.ending.write_data(&data, out);
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    // Close without the last chunk, so that the client sees the error.
                    self.ending = BodyEnding::Close;
                    return Poll::Ready(false);
                }
                Poll::Ready(None) => return Poll::Ready(false),
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(true)
    }

    /// Ready once the client has gone; anything it sends is discarded.
    fn poll_client_gone(&mut self, stream: &mut Box<dyn ConnectionIo>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(since) = self.ended_at {
                return self.half_closed_deadline.poll(since + HALF_CLOSED_TIMEOUT, cx);
            }
            let mut space = [const { MaybeUninit::uninit() }; 1024];
            let mut discarded = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut discarded)) {
                Ok(()) if discarded.filled().is_empty() => self.ended_at = Some(Instant::now()),
                Ok(()) => (),
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}

impl BodyEnding {
    fn write_data(self, data: &Bytes, out: &mut WriteBuffer) {
        match self {
            // An empty chunk would end the body.
            BodyEnding::LastChunk if data.is_empty() => {}
            BodyEnding::LastChunk => {
                let mut size = [0; 18];
                let mut rest = &mut size[..];
                // 16 digits are enough for any length.
                let _ = write!(rest, "{:x}\r\n", data.len());
                let unused = rest.len();
                out.push_copy(&size[..size.len() - unused]);
                out.push_shared(data);
                out.push_copy(b"\r\n");
            }
            BodyEnding::Close => out.push_shared(data),
        }
    }
}
