//! An answer that goes on for as long as its client does: written by a task of its own, without what reading the request took.

use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::Body as _;
use tokio::io::AsyncWriteExt;

use crate::http1::guarded_stream::Wire;
use trefoil_http::streaming::wake_filter::Bell;
use trefoil_http::streaming::write_buffer::Outbox;

/// How the client knows where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Chunk,
    /// By the end of the connection: HTTP/1.0 knows no chunks.
    Close,
}

pub struct Stream {
    pub body: Body,
    pub ending: Ending,
}

impl Stream {
    /// Until the body ends or the client has gone.
    pub async fn run(mut self, mut wire: Wire) -> io::Result<()> {
        wire.let_go();
        let (mut out, bell) = (Outbox::default(), Bell::default());
        while poll_fn(|cx| self.poll(&mut wire, &bell, &mut out, cx)).await {
            out.send(&mut wire).await?;
        }
        if self.ending == Ending::Chunk {
            out.add(b"0\r\n\r\n");
        }
        out.send(&mut wire).await?;
        wire.shutdown().await
    }

    /// Gathers what there is; false, when that is the last of it.
    fn poll(&mut self, wire: &mut Wire, bell: &Bell, out: &mut Outbox, cx: &mut Context<'_>) -> Poll<bool> {
        if bell.poll(cx, |cx| wire.poll_gone(cx)).is_ready() {
            return Poll::Ready(false);
        }
        while out.has_room() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.ending.put(&data, out);
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    // Without a proper end.
                    self.ending = Ending::Close;
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

impl Ending {
    fn put(self, data: &Bytes, out: &mut Outbox) {
        match self {
            // An empty chunk would be the last.
            Ending::Chunk if data.is_empty() => {}
            Ending::Chunk => {
                let mut size = [0; 18];
                let mut rest = &mut size[..];
                // 16 digits are enough for any length.
                let _ = write!(rest, "{:x}\r\n", data.len());
                let left = rest.len();
                out.add(&size[..size.len() - left]);
                out.share(data);
                out.add(b"\r\n");
            }
            Ending::Close => out.share(data),
        }
    }
}
