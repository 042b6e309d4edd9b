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

use crate::subscribe::protocol::Close;
use trefoil_http::streaming::upgrade::Line;
use trefoil_http::streaming::wake_filter::Bell;
use trefoil_http::streaming::write_buffer::Outbox;

/// As much as is read at a time; clients say little.
const GULP: usize = 1024;

/// How long a client may take to answer a close before the line is cut.
const LINGER: Duration = Duration::from_secs(1);

pub struct Socket {
    stream: WebSocketStream<Box<dyn Line>>,
    limit: usize,
    /// Each event wakes the task, and asking the client then would cost as much as the event.
    bell: Bell,
    /// A pong of the WebSocket may be half written.
    owes: bool,
    out: Outbox,
}

/// What came from the client.
#[derive(Debug)]
pub enum Received {
    Text(Utf8Bytes),
    /// A ping or pong of the WebSocket itself, which is answered already.
    Sign,
    /// It has said good-bye, or is gone.
    Gone,
    /// It breaks a rule.
    Wrong(Close),
}

/// The line is dead.
#[derive(Debug)]
pub struct Broken;

impl Socket {
    pub async fn new(line: Box<dyn Line>, limit: usize) -> Socket {
        let config = WebSocketConfig::default()
            .read_buffer_size(GULP)
            .write_buffer_size(0)
            .max_message_size(Some(limit))
            .max_frame_size(Some(limit));
        let stream = WebSocketStream::from_raw_socket(line, Role::Server, Some(config)).await;
        Socket { stream, limit, bell: Bell::default(), owes: false, out: Outbox::default() }
    }

    /// Waits for the next message. May be dropped while waiting.
    pub async fn receive(&mut self) -> Received {
        let Socket { stream, bell, .. } = self;
        match poll_fn(|cx| bell.poll(cx, |cx| stream.poll_next_unpin(cx))).await {
            None | Some(Ok(Message::Close(_))) => Received::Gone,
            Some(Ok(Message::Text(text))) => Received::Text(text),
            Some(Ok(Message::Binary(_))) => Received::Wrong(Close::invalid("it is binary, and must be text")),
            Some(Ok(Message::Ping(_))) => {
                self.owes = true;
                Received::Sign
            }
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => Received::Sign,
            Some(Err(error)) => self.judge(&error),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the errors of others: what is not known here ends the line"
    )]
    fn judge(&self, error: &tungstenite::Error) -> Received {
        match error {
            tungstenite::Error::Capacity(_) => {
                let reason = format!("a message is larger than {} bytes (limits.socket-message)", self.limit);
                Received::Wrong(Close::new(1009, reason))
            }
            tungstenite::Error::Utf8(_) => Received::Wrong(Close::new(1007, "a text is not UTF-8")),
            tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Received::Gone,
            tungstenite::Error::Protocol(error) => Received::Wrong(Close::new(1002, error.to_string())),
            _ => Received::Gone,
        }
    }

    /// Puts one message that consists of these parts behind what is to be sent.
    pub fn text(&mut self, parts: [&Bytes; 3]) {
        let (header, size) = header(parts.iter().map(|part| part.len()).sum());
        self.out.add(&header[..size]);
        parts.into_iter().for_each(|part| self.out.share(part));
    }

    pub fn has_room(&self) -> bool {
        self.out.has_room()
    }

    /// Sends it, and waits until the system has taken all of it.
    pub async fn send(&mut self) -> Result<(), Broken> {
        if std::mem::take(&mut self.owes) {
            self.stream.flush().await.map_err(|_| Broken)?;
        }
        self.out.send(self.stream.get_mut()).await.map_err(|_| Broken)
    }

    /// Says why, gives the client a moment to answer, and lets go.
    pub async fn close(mut self, close: &Close) {
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
        let _ = timeout(LINGER, farewell).await;
    }

    /// After the good-bye of the client: answers it, if it is still there.
    pub async fn leave(mut self) {
        let _ = timeout(LINGER, async { while let Some(Ok(_)) = self.stream.next().await {} }).await;
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
fn header(length: usize) -> ([u8; 10], usize) {
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
