//! The frames of a WebSocket: messages in within their limit, texts out of shared parts, one good-bye.
//!
//! tungstenite reads and keeps the rules of frames. Texts are written past it, straight from the parts they consist of:
//! its buffer would hold a copy of the longest message for as long as the socket lives, for every socket.

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
use trefoil_http::streaming::wake_filter::WakeFilter;
use trefoil_http::streaming::write_buffer::WriteBuffer;

use crate::subscribe::protocol::SocketClose;

/// As much as is read at a time; clients say little.
const READ_BUFFER_BYTES: usize = 1024;

/// How long a client may take to answer a close before the line is cut.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub struct MessageSocket {
    stream: WebSocketStream<Box<dyn ConnectionIo>>,
    max_message_bytes: usize,
    /// Each event wakes the task, and asking the client then would cost as much as the event.
    wake_filter: WakeFilter,
    /// A pong of the WebSocket may be half written.
    pong_pending: bool,
    write_buffer: WriteBuffer,
}

/// What came from the client.
#[derive(Debug)]
pub enum ReceivedMessage {
    Text(Utf8Bytes),
    /// A ping or pong of the WebSocket itself, which is answered already.
    Control,
    /// It has said good-bye, or is gone.
    Closed,
    /// It breaks a rule.
    Invalid(SocketClose),
}

/// The line is dead.
#[derive(Debug)]
pub struct SocketError;

impl MessageSocket {
    pub async fn new(line: Box<dyn ConnectionIo>, limit: usize) -> MessageSocket {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let stream = WebSocketStream::from_raw_socket(line, Role::Server, Some(config)).await;
        MessageSocket {
            stream,
            max_message_bytes: limit,
            wake_filter: WakeFilter::default(),
            pong_pending: false,
            write_buffer: WriteBuffer::default(),
        }
    }

    /// Waits for the next message. May be dropped while waiting.
    pub async fn receive(&mut self) -> ReceivedMessage {
        let MessageSocket { stream, wake_filter: bell, .. } = self;
        match poll_fn(|cx| bell.poll_if_woken(cx, |cx| stream.poll_next_unpin(cx))).await {
            None | Some(Ok(Message::Close(_))) => ReceivedMessage::Closed,
            Some(Ok(Message::Text(text))) => ReceivedMessage::Text(text),
            Some(Ok(Message::Binary(_))) => {
                ReceivedMessage::Invalid(SocketClose::invalid_message("it is binary, and must be text"))
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
                let reason = format!(
                    "a message is larger than {} bytes (limits.socket-message)",
                    self.max_message_bytes
                );
                ReceivedMessage::Invalid(SocketClose::new(1009, reason))
            }
            tungstenite::Error::Utf8(_) => {
                ReceivedMessage::Invalid(SocketClose::new(1007, "a text is not UTF-8"))
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

    /// Puts one message that consists of these parts behind what is to be sent.
    pub fn queue_text(&mut self, parts: [&Bytes; 3]) {
        let (header, size) = frame_header(parts.iter().map(|part| part.len()).sum());
        self.write_buffer.push_copy(&header[..size]);
        parts.into_iter().for_each(|part| self.write_buffer.push_shared(part));
    }

    pub fn has_room(&self) -> bool {
        self.write_buffer.has_room()
    }

    /// Sends it, and waits until the system has taken all of it.
    pub async fn send(&mut self) -> Result<(), SocketError> {
        if std::mem::take(&mut self.pong_pending) {
            self.stream.flush().await.map_err(|_| SocketError)?;
        }
        self.write_buffer.write_to(self.stream.get_mut()).await.map_err(|_| SocketError)
    }

    /// Says why, gives the client a moment to answer, and lets go.
    pub async fn close(mut self, close: &SocketClose) {
        let frame = CloseFrame { code: CloseCode::from(close.code), reason: close.reason.as_str().into() };
        // After a broken rule nothing that follows can be understood.
        let deaf = self.stream.is_terminated();
        let farewell = async {
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
            if deaf {
                self.drain().await;
            } else {
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, farewell).await;
    }

    /// After the good-bye of the client: answers it, if it is still there.
    pub async fn wait_for_close(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, async { while let Some(Ok(_)) = self.stream.next().await {} }).await;
    }

    /// Closing on unread bytes would destroy the reason on its way to the client.
    async fn drain(&mut self) {
        let line = self.stream.get_mut();
        let _ = line.shutdown().await;
        let mut bytes = [0; 512];
        while matches!(line.read(&mut bytes).await, Ok(1..)) {}
    }
}

/// A whole text, unmasked as servers send; so many of the bytes.
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
