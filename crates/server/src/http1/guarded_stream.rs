//! The byte stream of a connection: validates each head before hyper sees it, and limits every wait for the client.
//!
//! A refused head is replaced by a harmless substitute, and the service answers that request with the refusal. So a
//! refusal keeps its place among pipelined responses and has the same headers, log line and format as any other
//! response.

use std::cmp;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use trefoil_config::ServerLimits;
use trefoil_http::Problem;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::MovingDeadline;

use crate::http1::chunked_body::ChunkedState;
use crate::http1::connection::ConnectionSlot;
use crate::http1::connection_state::{ConnectionState, RequestStart};
use crate::http1::request_head::{self, BodyFraming, ParsedHead};

/// A client that closed its sending half may still read the response. We wait this long before treating it as gone.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_millis(500);

/// How long we read on after our last byte, because closing with unread bytes would destroy that response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of bytes read from the socket at a time.
const READ_BUFFER_BYTES: usize = 8192;

/// Wraps the socket for hyper.
pub struct GuardedStream {
    stream: TcpStream,
    limits: Arc<ServerLimits>,
    state: Arc<ConnectionState>,
    phase: InputPhase,
    /// Bytes read from the socket. The first `validated` bytes may be passed to hyper.
    input: BytesMut,
    validated: usize,
    /// Bytes have arrived since the head was last parsed.
    has_new_bytes: bool,
    first_byte: Option<Instant>,
    idle_since: Option<Instant>,
    /// When the client finished sending.
    ended_at: Option<Instant>,
    lingering_since: Option<Instant>,
    read_deadline: MovingDeadline,
    stalled_since: Option<Instant>,
    /// The stall timeout has been logged.
    is_stall_logged: bool,
    write_deadline: MovingDeadline,
    _slot: ConnectionSlot,
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputPhase {
    Head,
    /// A body with this many bytes to come.
    Length(u64),
    Chunked(ChunkedState),
    /// A malformed body: nothing more is passed to hyper.
    Malformed,
    /// After a refused head: input is discarded.
    Refused,
}

impl GuardedStream {
    pub fn new(
        stream: TcpStream,
        limits: Arc<ServerLimits>,
        state: Arc<ConnectionState>,
        slot: ConnectionSlot,
    ) -> Self {
        GuardedStream {
            stream,
            limits,
            state,
            phase: InputPhase::Head,
            input: BytesMut::new(),
            validated: 0,
            has_new_bytes: false,
            first_byte: None,
            idle_since: None,
            ended_at: None,
            lingering_since: None,
            read_deadline: MovingDeadline::default(),
            stalled_since: None,
            is_stall_logged: false,
            write_deadline: MovingDeadline::default(),
            _slot: slot,
        }
    }

    /// Reads from the socket; 0 is the end of input.
    fn read_socket(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::uninit() }; READ_BUFFER_BYTES];
        let mut chunk = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut chunk))?;
        let bytes = chunk.filled();
        self.input.extend_from_slice(bytes);
        self.has_new_bytes |= bytes.contains(&b'\n') || self.input.len() >= self.limits.headers;
        Poll::Ready(Ok(bytes.len()))
    }

    /// Validates as much of the input as its phase allows.
    fn validate_input(&mut self) {
        match self.phase {
            InputPhase::Head => self.validate_head(),
            InputPhase::Length(_) | InputPhase::Chunked(_) => self.validate_body(),
            InputPhase::Malformed | InputPhase::Refused => self.input.clear(),
        }
    }

    /// Validates the bytes of the body that follow those already validated.
    fn validate_body(&mut self) {
        let rest = &self.input[self.validated..];
        match &mut self.phase {
            InputPhase::Length(remaining) => {
                let count = cmp::min(*remaining, rest.len() as u64);
                *remaining -= count;
                self.validated += count as usize;
                if *remaining == 0 {
                    self.begin_head();
                }
            }
            InputPhase::Chunked(chunks) => {
                self.validated += chunks.advance(rest);
                if *chunks == ChunkedState::End {
                    self.begin_head();
                } else if *chunks == ChunkedState::Malformed {
                    self.phase = InputPhase::Malformed;
                }
            }
            InputPhase::Head | InputPhase::Malformed | InputPhase::Refused => (),
        }
    }

    fn begin_head(&mut self) {
        self.phase = InputPhase::Head;
        self.has_new_bytes = self.input.len() > self.validated;
    }

    fn validate_head(&mut self) {
        if !std::mem::take(&mut self.has_new_bytes) {
            return;
        }
        let blank = self.input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.input.advance(blank);
        match request_head::parse_head(&self.input, self.limits.headers) {
            ParsedHead::Partial => (),
            ParsedHead::Complete { length, framing } => {
                self.phase = match framing {
                    BodyFraming::Length(length) => InputPhase::Length(length),
                    BodyFraming::Chunked => InputPhase::Chunked(ChunkedState::Start),
                };
                self.validated = length;
                // The body goes with its head: each read costs hyper a buffer.
                self.validate_body();
                self.announce_request(None);
            }
            ParsedHead::Refused(problem) => self.refuse_request(problem),
        }
    }

    /// Passes the facts about the next request to the service.
    fn announce_request(&mut self, refusal: Option<Box<Problem>>) {
        self.idle_since = None;
        self.state.push_request(RequestStart { first_byte: self.first_byte.take(), refusal });
    }

    fn refuse_request(&mut self, problem: Box<Problem>) {
        let substitute = substitute_head(&self.input);
        self.input.clear();
        self.input.extend_from_slice(&substitute);
        self.validated = substitute.len();
        self.phase = InputPhase::Refused;
        self.announce_request(Some(problem));
    }

    /// The timeouts between requests and within a head, while no bytes arrive.
    fn poll_input_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase != InputPhase::Head {
            return Poll::Pending;
        }
        let ServerLimits { header_timeout, idle_timeout, .. } = *self.limits;
        let now = Instant::now();
        if self.state.is_busy() {
            // hyper does not poll again when the response ends, so the timer must wake us.
            return self.read_deadline.poll(now + cmp::min(header_timeout, idle_timeout), cx);
        }
        let has_started = !self.input.is_empty();
        self.state.set_reading_head(has_started);
        if has_started {
            let since = *self.first_byte.get_or_insert(now);
            ready!(self.read_deadline.poll(since + header_timeout, cx));
            self.refuse_request(Box::new(slow_head(header_timeout)));
        } else {
            let since = *self.idle_since.get_or_insert_with(|| self.state.last_response_end().unwrap_or(now));
            ready!(self.read_deadline.poll(since + idle_timeout, cx));
            self.ended_at = Some(now);
        }
        Poll::Ready(())
    }

    /// The client sends no more. Passed on to hyper, unless a client that closed only one half would lose its response.
    fn poll_end_of_input(&mut self, since: Instant, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.phase {
            InputPhase::Head if self.state.is_busy() => {
                self.read_deadline.poll(since + HALF_CLOSED_TIMEOUT, cx).map(Ok)
            }
            InputPhase::Refused => Poll::Pending,
            InputPhase::Head | InputPhase::Length(_) | InputPhase::Chunked(_) | InputPhase::Malformed => {
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Frees the buffers for requests, when no further request is read.
    pub fn release_buffers(&mut self) {
        (self.input, self.read_deadline) = (BytesMut::new(), MovingDeadline::default());
    }

    /// Ready once the client has gone; anything it sends is discarded.
    pub fn poll_client_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(since) = self.ended_at {
                return self.read_deadline.poll(since + HALF_CLOSED_TIMEOUT, cx);
            }
            match ready!(self.read_socket(cx)) {
                Ok(0) => self.ended_at = Some(Instant::now()),
                Ok(_) => self.input = BytesMut::new(),
                Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        ready!(self.write_deadline.poll(since + self.limits.stall_timeout, cx));
        let limit = self.limits.stall_timeout;
        let reason = format!("the client did not read for {limit:?} (limits.stall-timeout)");
        if !std::mem::replace(&mut self.is_stall_logged, true) {
            let client = self.stream.peer_addr().ok().map(|peer| tracing::field::display(peer.ip()));
            let request = self.state.request_id();
            let request_id = request.as_ref().map(RequestId::as_str);
            tracing::info!(request_id, client, reason, "slow client disconnected");
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }

    fn track_write(
        &mut self,
        polled: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_pending() {
            return self.poll_stall(cx);
        }
        self.stalled_since = None;
        polled
    }
}

fn slow_head(limit: Duration) -> Problem {
    let detail = format!("the headers were not received within {limit:?} (limits.header-timeout)");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail).closing_connection()
}

/// A valid request in place of the refused one, with the same method, path and `Accept` where those are safe.
fn substitute_head(refused: &[u8]) -> Vec<u8> {
    let mut lines = refused.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut line = lines.next().unwrap_or(b"").split(|byte| *byte == b' ');
    let method = line.next().filter(|method| is_usual_method(method)).unwrap_or(b"GET");
    let path = line.next().filter(|path| is_plain_path(path)).unwrap_or(b"/");
    let accept = lines.find(|line| is_plain_accept(line)).unwrap_or(b"accept: */*");
    let parts: [&[u8]; 6] =
        [method, b" ", path, b" HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n", accept, b"\r\n\r\n"];
    parts.concat()
}

fn is_usual_method(method: &[u8]) -> bool {
    [&b"GET"[..], b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"].contains(&method)
}

fn is_plain_path(path: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~%".contains(byte);
    path.starts_with(b"/") && path.len() <= 1024 && path.iter().all(plain)
}

fn is_plain_accept(line: &[u8]) -> bool {
    let named = line.get(..7).is_some_and(|name| name.eq_ignore_ascii_case(b"accept:"));
    named && line.len() <= 1024 && line.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

impl AsyncRead for GuardedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.state.is_upgraded() {
                this.validated = this.input.len();
            }
            if this.validated > 0 {
                let count = cmp::min(this.validated, out.remaining());
                out.put_slice(&this.input[..count]);
                this.input.advance(count);
                this.validated -= count;
                return Poll::Ready(Ok(()));
            }
            if this.state.is_upgraded() {
                // A WebSocket may stay open for days, so the buffer of its head is freed.
                this.input = BytesMut::new();
                return Pin::new(&mut this.stream).poll_read(cx, out);
            }
            this.validate_input();
            if this.validated > 0 {
                continue;
            }
            if this.phase == InputPhase::Malformed {
                return Poll::Ready(Ok(()));
            }
            if let Some(since) = this.ended_at {
                return this.poll_end_of_input(since, cx);
            }
            match this.read_socket(cx)? {
                Poll::Ready(0) => this.ended_at = Some(Instant::now()),
                Poll::Ready(_) => (),
                Poll::Pending => ready!(this.poll_input_timeout(cx)),
            }
        }
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.track_write(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.track_write(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.on_flush();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        let is_idle = self.phase == InputPhase::Head && self.input.is_empty();
        if is_idle || self.ended_at.is_some() || self.state.is_upgraded() {
            return Poll::Ready(Ok(()));
        }
        let since = *self.lingering_since.get_or_insert_with(Instant::now);
        while self.read_deadline.poll(since + LINGER_TIMEOUT, cx).is_pending() {
            match ready!(self.read_socket(cx)) {
                Ok(0) | Err(_) => break,
                Ok(_) => self.input.clear(),
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitute_head_is_always_valid() {
        let table: [(&[u8], &str); 5] = [
            (b"", "GET / "),
            (b"POST /graphql HTTP/1.1\r\nHost: a\r\nHost: b\r\nAccept: a/b\r\n\r\n", "POST /graphql "),
            (b"GET /a\x01b HTTP/1.1\r\nAccept: a\x00\r\n\r\n", "GET / "),
            (b"CONNECT a:80 HTTP/1.1\r\n\r\n", "GET / "),
            (b"\xff\xfe\n\n", "GET / "),
        ];
        for (refused, start) in table {
            let head = substitute_head(refused);
            assert!(head.starts_with(start.as_bytes()), "{}", head.escape_ascii());
            let parsed = request_head::parse_head(&head, 4096);
            assert!(
                matches!(parsed, ParsedHead::Complete { length, .. } if length == head.len()),
                "{parsed:?}"
            );
        }
    }
}
