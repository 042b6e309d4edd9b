//! An answer that goes on for as long as its client does: written by a task of its own, without what reading the request took.

use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::Body as _;
use tokio::io::AsyncWriteExt;

use crate::http1::guarded_stream::GuardedStream;
use trefoil_http::streaming::wake_filter::WakeFilter;
use trefoil_http::streaming::write_buffer::WriteBuffer;

/// How the client knows where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnding {
    LastChunk,
    /// By the end of the connection: HTTP/1.0 knows no chunks.
    Close,
}

pub struct StreamedBody {
    pub body: Body,
    pub ending: BodyEnding,
}

impl StreamedBody {
    /// Until the body ends or the client has gone.
    pub async fn run(mut self, mut wire: GuardedStream) -> io::Result<()> {
        wire.release_buffers();
        let (mut out, bell) = (WriteBuffer::default(), WakeFilter::default());
        while poll_fn(|cx| self.poll_fill(&mut wire, &bell, &mut out, cx)).await {
            out.write_to(&mut wire).await?;
        }
        if self.ending == BodyEnding::LastChunk {
            out.push_copy(b"0\r\n\r\n");
        }
        out.write_to(&mut wire).await?;
        wire.shutdown().await
    }

    /// Gathers what there is; false, when that is the last of it.
    fn poll_fill(
        &mut self,
        wire: &mut GuardedStream,
        bell: &WakeFilter,
        out: &mut WriteBuffer,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        if bell.poll_if_woken(cx, |cx| wire.poll_client_gone(cx)).is_ready() {
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
                    // Without a proper end.
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
}

impl BodyEnding {
    fn write_data(self, data: &Bytes, out: &mut WriteBuffer) {
        match self {
            // An empty chunk would be the last.
            BodyEnding::LastChunk if data.is_empty() => {}
            BodyEnding::LastChunk => {
                let mut size = [0; 18];
                let mut rest = &mut size[..];
                // 16 digits are enough for any length.
                let _ = write!(rest, "{:x}\r\n", data.len());
                let left = rest.len();
                out.push_copy(&size[..size.len() - left]);
                out.push_shared(data);
                out.push_copy(b"\r\n");
            }
            BodyEnding::Close => out.push_shared(data),
        }
    }
}
