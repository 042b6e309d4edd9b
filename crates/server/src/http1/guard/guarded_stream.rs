//! The byte stream that hyper reads: each head is validated before hyper sees it, and every wait for the client is limited.
//!
//! A refused head is replaced by a harmless substitute, and the service answers that request with the refusal. So a
//! refusal keeps its place among pipelined responses and has the same headers, log line and format as any other
//! response.

use std::cmp;
use std::io::{self, IoSlice};
use std::mem::{self, MaybeUninit};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use trefoil_config::ServerLimits;
use trefoil_http::Problem;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::MovingDeadline;

use crate::http1::connection_slot::ConnectionSlot;
use crate::http1::guard::connection_state::{ConnectionState, RequestStart};
use crate::http1::guard::handshake_head;
use crate::http1::guard::input_state::InputState;
use crate::http1::guard::request_head::{self, ParsedHead};

/// A client that closed its sending half may still read the response. We wait this long before treating it as gone.
pub const HALF_CLOSED_TIMEOUT: Duration = Duration::from_millis(500);

/// How long we read on after our last byte, because closing with unread bytes would destroy that response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// How soon hyper asks again, if it asks for the next head before it has dropped the body of the last response.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// The number of bytes read from the socket at a time.
const READ_BUFFER_BYTES: usize = 8192;

/// Wraps the socket for hyper, which must be built with `half_close`: it then reads only heads and bodies, and never to
/// learn whether the client is still there.
pub struct GuardedStream<S> {
    socket: S,
    client: IpAddr,
    limits: Arc<ServerLimits>,
    state: Arc<ConnectionState>,
    input_state: InputState,
    /// Bytes that hyper has not taken yet. It may have the first `validated` bytes.
    input: BytesMut,
    validated: usize,
    /// A line may have ended since the head was last parsed.
    has_new_line: bool,
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

impl<S: AsyncRead + AsyncWrite + Unpin> GuardedStream<S> {
    pub fn new(
        socket: S,
        client: IpAddr,
        limits: Arc<ServerLimits>,
        state: Arc<ConnectionState>,
        slot: ConnectionSlot,
    ) -> Self {
        GuardedStream {
            socket,
            client,
            limits,
            state,
            input_state: InputState::Head,
            input: BytesMut::new(),
            validated: 0,
            has_new_line: false,
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

    /// Passes all further bytes through, when hyper has left the connection.
    pub fn begin_tunnel(&mut self) {
        self.input_state = InputState::Tunnel;
        self.validated = self.input.len();
        self.read_deadline = MovingDeadline::default();
    }

    /// Reads into hyper's buffer and takes back what hyper may not have yet; 0 is the end of input.
    fn read_socket(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let start = out.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, out))?;
        let bytes = &out.filled()[start..];
        let count = bytes.len();
        // A head that comes in one piece, as most do, or a part of a body.
        let is_usual = self.input_state != InputState::Head
            || (bytes.contains(&b'\n') && !matches!(bytes[0], b'\r' | b'\n'));
        let passed = if is_usual && self.input.is_empty() { self.validate(bytes) } else { 0 };
        if passed < count && self.input_state != InputState::Discarded {
            let rest = &bytes[passed..];
            self.input.extend_from_slice(rest);
            self.has_new_line |= rest.contains(&b'\n')
                || self.input.len() >= self.limits.headers
                || request_head::is_tls_hello(&self.input);
        }
        out.set_filled(start + passed);
        Poll::Ready(Ok(count))
    }

    /// Reads what hyper does not wait for; 0 is the end of input.
    fn read_aside(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::uninit() }; READ_BUFFER_BYTES];
        self.read_socket(cx, &mut ReadBuf::uninit(&mut space))
    }

    /// Validates the kept bytes.
    fn validate_input(&mut self) {
        if self.input_state == InputState::Head {
            // Empty lines before a head are allowed, and are no part of it.
            while let Some(line) = [&b"\r\n"[..], b"\n"].iter().find(|end| self.input.starts_with(end)) {
                self.input.advance(line.len());
            }
            if !mem::take(&mut self.has_new_line) {
                return;
            }
        }
        let input = mem::take(&mut self.input);
        let validated = self.validate(&input);
        // A refusal has replaced the input.
        if self.input_state != InputState::Discarded || validated > 0 {
            (self.input, self.validated) = (input, validated);
        }
    }

    /// Returns how many of the bytes hyper may have. A body goes with its head: each read costs hyper a buffer.
    fn validate(&mut self, bytes: &[u8]) -> usize {
        if self.input_state != InputState::Head {
            return self.input_state.advance(bytes);
        }
        match request_head::parse_head(bytes, self.limits.headers) {
            ParsedHead::Partial => 0,
            ParsedHead::Complete { length, body } => {
                self.input_state = body;
                self.announce_request(None);
                length + self.input_state.advance(&bytes[length..])
            }
            ParsedHead::Refused(problem) => {
                self.refuse_request(problem, bytes);
                0
            }
        }
    }

    /// Passes the facts about the next request to the service.
    fn announce_request(&mut self, refusal: Option<Box<Problem>>) {
        self.idle_since = None;
        self.state.announce_request(RequestStart { first_byte: self.first_byte.take(), refusal });
    }

    fn refuse_request(&mut self, problem: Box<Problem>, head: &[u8]) {
        let substitute = request_head::substitute_head(head);
        self.input = BytesMut::from(&substitute[..]);
        self.validated = substitute.len();
        self.input_state = InputState::Discarded;
        self.announce_request(Some(problem));
    }

    /// The timeouts between requests and within a head, while no bytes arrive. Within a body, the service has one.
    fn poll_input_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.input_state != InputState::Head {
            return Poll::Pending;
        }
        let ServerLimits { header_timeout, idle_timeout, .. } = *self.limits;
        let now = Instant::now();
        let has_started = !self.input.is_empty();
        self.state.set_reading_head(has_started);
        if has_started {
            let since = *self.first_byte.get_or_insert(now);
            ready!(self.read_deadline.poll(since + header_timeout, cx));
            let head = mem::take(&mut self.input);
            self.refuse_request(Box::new(slow_head(header_timeout)), &head);
        } else {
            let since = *self.idle_since.get_or_insert(now);
            ready!(self.read_deadline.poll(since + idle_timeout, cx));
            self.ended_at = Some(now);
        }
        Poll::Ready(())
    }

    /// Ready once the client has gone, while the service works on a complete request. A part of the next one is kept.
    fn poll_client_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.input_state != InputState::Complete || !self.state.is_busy() {
            return Poll::Pending;
        }
        loop {
            if let Some(since) = self.ended_at {
                let gone =
                    io::Error::new(io::ErrorKind::ConnectionAborted, "the client closed the connection");
                return self.read_deadline.poll(since + HALF_CLOSED_TIMEOUT, cx).map(|()| gone);
            }
            if self.input.len() >= READ_BUFFER_BYTES {
                return Poll::Pending;
            }
            match ready!(self.read_aside(cx)) {
                Ok(0) => self.ended_at = Some(Instant::now()),
                Ok(_) => (),
                Err(error) => return Poll::Ready(error),
            }
        }
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        ready!(self.write_deadline.poll(since + self.limits.stall_timeout, cx));
        let limit = self.limits.stall_timeout;
        let reason = format!("the client did not read for {limit:?} (limits.stall-timeout)");
        if !mem::replace(&mut self.is_stall_logged, true) {
            let client = tracing::field::display(self.client);
            let request = self.state.request_id();
            let request_id = request.as_ref().map(RequestId::as_str);
            tracing::info!(request_id, client, reason, "slow client disconnected");
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }

    /// The head of a handshake as it is written instead of `bytes`, with the same length.
    fn handshake_head(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_head = self.state.is_last_head() && self.input_state != InputState::Tunnel;
        if is_head { handshake_head::with_usual_case(bytes) } else { None }
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.validated > 0 {
                let count = cmp::min(this.validated, out.remaining());
                out.put_slice(&this.input[..count]);
                this.input.advance(count);
                this.validated -= count;
                return Poll::Ready(Ok(()));
            }
            if this.input_state == InputState::Tunnel {
                // A WebSocket may stay open for days, so the buffer of its head is freed.
                this.input = BytesMut::new();
                return Pin::new(&mut this.socket).poll_read(cx, out);
            }
            if this.input_state == InputState::Complete {
                while this.state.is_busy() {
                    ready!(this.read_deadline.poll(Instant::now() + BUSY_INTERVAL, cx));
                }
                (this.input_state, this.has_new_line) = (InputState::Head, true);
            }
            if !this.input.is_empty() {
                this.validate_input();
            }
            if this.validated > 0 {
                continue;
            }
            if this.input_state == InputState::Discarded || this.ended_at.is_some() {
                return Poll::Ready(Ok(()));
            }
            match this.read_socket(cx, out)? {
                Poll::Ready(0) => this.ended_at = Some(Instant::now()),
                Poll::Ready(_) if !out.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(_) => (),
                Poll::Pending => ready!(this.poll_input_timeout(cx)),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let head = self.handshake_head(bytes);
        let polled = Pin::new(&mut self.socket).poll_write(cx, head.as_deref().unwrap_or(bytes));
        self.track_write(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let head = bytes.first().and_then(|first| self.handshake_head(first));
        let polled = match head {
            Some(head) => Pin::new(&mut self.socket).poll_write(cx, &head),
            None => Pin::new(&mut self.socket).poll_write_vectored(cx, bytes),
        };
        self.track_write(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper flushes each time it is polled, so this also notices that the client has gone.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        if self.state.on_flush() {
            return Poll::Ready(Ok(()));
        }
        match self.poll_client_gone(cx) {
            Poll::Ready(error) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
        let is_idle =
            matches!(self.input_state, InputState::Head | InputState::Complete) && self.input.is_empty();
        if is_idle || self.ended_at.is_some() || self.input_state == InputState::Tunnel {
            return Poll::Ready(Ok(()));
        }
        self.input_state = InputState::Discarded;
        let since = *self.lingering_since.get_or_insert_with(Instant::now);
        while self.read_deadline.poll(since + LINGER_TIMEOUT, cx).is_pending() {
            match ready!(self.read_aside(cx)) {
                Ok(0) | Err(_) => break,
                Ok(_) => (),
            }
        }
        Poll::Ready(Ok(()))
    }
}
