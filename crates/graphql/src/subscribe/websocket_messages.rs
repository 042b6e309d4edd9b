//! Reads and writes the messages of one WebSocket.
//!
//! tungstenite reads frames and checks them. Text messages are written past it, straight from their shared parts: its
//! write buffer would hold a copy of the longest message for the life of each socket.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FusedStream;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use trefoil_http::streaming::upgrade::ConnectionIo;
use trefoil_http::streaming::wake_source::WakeSource;
use trefoil_http::streaming::write_buffer::WriteBuffer;

use crate::subscribe::protocol::SocketClose;

/// Small, because clients send little.
const READ_BUFFER_BYTES: usize = 1024;

/// Time for the client to answer a close before the connection is dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub struct MessageSocket {
    stream: WebSocketStream<Box<dyn ConnectionIo>>,
    max_message_bytes: usize,
    /// Skips reading unless the socket woke the task: events wake it too, and a read costs as much as an event.
    wake_source: WakeSource,
    /// tungstenite may not have written its pong completely.
    pong_pending: bool,
    write_buffer: WriteBuffer,
}

/// A message from the client, or the end of its messages.
#[derive(Debug)]
pub enum ReceivedMessage {
    Text(Utf8Bytes),
    /// A ping or pong frame; tungstenite has answered it.
    Control,
    /// The client closed the socket or is gone.
    Closed,
    /// The message violates the protocol or a limit.
    Invalid(SocketClose),
}

/// The connection is broken.
#[derive(Debug)]
pub struct SocketError;

impl MessageSocket {
    pub async fn new(io: Box<dyn ConnectionIo>, max_message_bytes: usize) -> MessageSocket {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(max_message_bytes))
            .max_frame_size(Some(max_message_bytes));
        let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        MessageSocket {
            stream,
            max_message_bytes,
            wake_source: WakeSource::default(),
            pong_pending: false,
            write_buffer: WriteBuffer::default(),
        }
    }

    /// Waits for the next message. Cancel-safe.
    pub async fn receive(&mut self) -> ReceivedMessage {
        let MessageSocket { stream, wake_source, .. } = self;
        match poll_fn(|cx| wake_source.poll_if_woken(cx, |cx| stream.poll_next_unpin(cx))).await {
            None | Some(Ok(Message::Close(_))) => ReceivedMessage::Closed,
            Some(Ok(Message::Text(text))) => ReceivedMessage::Text(text),
            Some(Ok(Message::Binary(_))) => {
                ReceivedMessage::Invalid(SocketClose::invalid_message("binary messages are not supported"))
            }
            Some(Ok(Message::Ping(_))) => {
                self.pong_pending = true;
                ReceivedMessage::Control
            }
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => ReceivedMessage::Control,
            Some(Err(error)) => self.classify_error(&error),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the errors of others: what is not known here ends the line"
    )]
    fn classify_error(&self, error: &tungstenite::Error) -> ReceivedMessage {
        match error {
            tungstenite::Error::Capacity(_) => {
                let reason =
                    format!("message larger than {} bytes (limits.socket-message)", self.max_message_bytes);
                ReceivedMessage::Invalid(SocketClose::new(1009, reason))
            }
            tungstenite::Error::Utf8(_) => {
                ReceivedMessage::Invalid(SocketClose::new(1007, "text is not valid UTF-8"))
            }
            tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                ReceivedMessage::Closed
            }
            tungstenite::Error::Protocol(error) => {
                ReceivedMessage::Invalid(SocketClose::new(1002, error.to_string()))
            }
            _ => ReceivedMessage::Closed,
        }
    }

    /// Appends a text message, made of these parts, to the write buffer.
    pub fn queue_text(&mut self, parts: [&Bytes; 3]) {
        let (header, size) = frame_header(parts.iter().map(|part| part.len()).sum());
        self.write_buffer.push_copy(&header[..size]);
        parts.into_iter().for_each(|part| self.write_buffer.push_shared(part));
    }

    pub fn has_room(&self) -> bool {
        self.write_buffer.has_room()
    }

    /// Writes the whole buffer to the connection.
    pub async fn send(&mut self) -> Result<(), SocketError> {
        if std::mem::take(&mut self.pong_pending) {
            self.stream.flush().await.map_err(|_| SocketError)?;
        }
        self.write_buffer.write_to(self.stream.get_mut()).await.map_err(|_| SocketError)
    }

    /// Sends a close frame and waits briefly for the client's answer.
    pub async fn close(mut self, close: &SocketClose) {
        let frame = CloseFrame { code: CloseCode::from(close.code), reason: close.reason.as_str().into() };
        // After a protocol violation tungstenite cannot read on.
        let terminated = self.stream.is_terminated();
        let closing = async {
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
            if terminated {
                self.drain().await;
            } else {
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }

    /// Answers the client's close frame, if the client is still there.
    pub async fn wait_for_close(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = self.stream.next().await {} }).await;
    }

    /// Reads the remaining bytes: closing a connection with unread bytes resets it, and the close frame may be lost.
    async fn drain(&mut self) {
        let io = self.stream.get_mut();
        let _ = io.shutdown().await;
        let mut bytes = [0; 512];
        while matches!(io.read(&mut bytes).await, Ok(1..)) {}
    }
}

/// The header of an unfragmented, unmasked text frame, and its length.
fn frame_header(length: usize) -> ([u8; 10], usize) {
    let mut header = [0; 10];
    header[0] = 0x81;
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..=125), _) => {
            header[1] = short;
            (header, 2)
        }
        (_, Ok(medium)) => {
            header[1] = 126;
            header[2..4].copy_from_slice(&medium.to_be_bytes());
            (header, 4)
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(length as u64).to_be_bytes());
            (header, 10)
        }
    }
}
