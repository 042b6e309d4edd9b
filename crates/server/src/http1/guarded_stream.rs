//! The bytes of one connection: each head is judged before hyper sees it, and every wait for the client has an end.
//!
//! A head that is refused is replaced by a harmless stand-in, for which the service finds the refusal waiting. So a
//! refusal keeps its place among pipelined answers and has the same headers, log line and form as any other answer.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use std::{cmp, sync::Arc};

use bytes::{Buf, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::http1::chunked_body::ChunkedState;
use crate::http1::connection::ConnectionSlot;
use crate::http1::connection_state::{ConnectionState, RequestStart};
use crate::http1::request_head;
use crate::http1::request_head::{BodyFraming, ParsedHead};
use trefoil_config::ServerLimits;
use trefoil_http::Problem;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::MovingDeadline;

/// A client that has closed its half may still want its answer; so long we cannot tell it from one that has gone.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_millis(500);

/// How long we go on reading after our last byte, because closing on unread bytes would destroy that answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// As much as is taken from the socket at a time.
const READ_BUFFER_BYTES: usize = 8192;

pub struct GuardedStream {
    stream: TcpStream,
    limits: Arc<ServerLimits>,
    state: Arc<ConnectionState>,
    phase: InputPhase,
    /// Received, but not yet given to hyper …
    input: BytesMut,
    /// … except that so many of its first bytes may be.
    validated: usize,
    /// Bytes have come since the head was last judged.
    has_new_bytes: bool,
    first_byte: Option<Instant>,
    idle_since: Option<Instant>,
    /// The client sends no more, since then.
    ended_at: Option<Instant>,
    lingering_since: Option<Instant>,
    read_deadline: MovingDeadline,
    stalled_since: Option<Instant>,
    /// It stalled for too long, and the log has been told so.
    is_stall_logged: bool,
    write_deadline: MovingDeadline,
    _slot: ConnectionSlot,
}

/// What the next byte from the client is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputPhase {
    Head,
    /// A body of which so many bytes are missing.
    Length(u64),
    Chunked(ChunkedState),
    /// Something that can no longer be understood, so nothing more is given to hyper.
    Malformed,
    /// What follows a refused head: read, and thrown away.
    Refused,
}

impl GuardedStream {
    pub fn new(
        stream: TcpStream,
        limits: Arc<ServerLimits>,
        turns: Arc<ConnectionState>,
        place: ConnectionSlot,
    ) -> Self {
        GuardedStream {
            stream,
            limits,
            state: turns,
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
            _slot: place,
        }
    }

    /// Takes what the client has sent; 0 is the end.
    fn read_socket(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::uninit() }; READ_BUFFER_BYTES];
        let mut gulp = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut gulp))?;
        let bytes = gulp.filled();
        self.input.extend_from_slice(bytes);
        self.has_new_bytes |= bytes.contains(&b'\n') || self.input.len() >= self.limits.headers;
        Poll::Ready(Ok(bytes.len()))
    }

    /// Clears as much of the input for hyper as its phase allows.
    fn validate_input(&mut self) {
        match self.phase {
            InputPhase::Head => self.validate_head(),
            InputPhase::Length(_) | InputPhase::Chunked(_) => self.validate_body(),
            InputPhase::Malformed | InputPhase::Refused => self.input.clear(),
        }
    }

    /// Clears as much of the body as has come, behind what is cleared already.
    fn validate_body(&mut self) {
        let rest = &self.input[self.validated..];
        match &mut self.phase {
            InputPhase::Length(left) => {
                let step = cmp::min(*left, rest.len() as u64);
                *left -= step;
                self.validated += step as usize;
                if *left == 0 {
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
            ParsedHead::Complete { length, framing: body } => {
                self.phase = match body {
                    BodyFraming::Length(length) => InputPhase::Length(length),
                    BodyFraming::Chunked => InputPhase::Chunked(ChunkedState::Start),
                };
                self.validated = length;
                // Together with its head: each reading costs hyper a buffer.
                self.validate_body();
                self.announce_request(None);
            }
            ParsedHead::Refused(problem) => self.refuse_request(problem),
        }
    }

    /// Tells the service what comes with the next request.
    fn announce_request(&mut self, refusal: Option<Box<Problem>>) {
        self.idle_since = None;
        self.state.push_request(RequestStart { first_byte: self.first_byte.take(), refusal });
    }

    fn refuse_request(&mut self, problem: Box<Problem>) {
        let stand_in = substitute_head(&self.input);
        self.input.clear();
        self.input.extend_from_slice(&stand_in);
        self.validated = stand_in.len();
        self.phase = InputPhase::Refused;
        self.announce_request(Some(problem));
    }

    /// Nothing has come. Between requests, and within a head, only for so long.
    fn poll_input_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase != InputPhase::Head {
            return Poll::Pending;
        }
        let ServerLimits { header_timeout, idle_timeout, .. } = *self.limits;
        let now = Instant::now();
        if self.state.is_busy() {
            // hyper does not ask again when the turn ends, so we look again by ourselves.
            return self.read_deadline.poll(now + cmp::min(header_timeout, idle_timeout), cx);
        }
        let begun = !self.input.is_empty();
        self.state.set_reading_head(begun);
        if begun {
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

    /// The client sends no more: hyper is told, unless that would cost a client that only half closed its answer.
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

    /// No further request is read here, and what was kept for one goes.
    pub fn release_buffers(&mut self) {
        (self.input, self.read_deadline) = (BytesMut::new(), MovingDeadline::default());
    }

    /// Ready once the client has gone. What it sends meanwhile nobody waits for.
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
        let reason = format!("the client read nothing for {limit:?} (limits.stall-timeout)");
        if !std::mem::replace(&mut self.is_stall_logged, true) {
            let client = self.stream.peer_addr().ok().map(|peer| tracing::field::display(peer.ip()));
            let request = self.state.request_id();
            let request_id = request.as_ref().map(RequestId::as_str);
            tracing::info!(request_id, client, reason, "reader cut");
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
    let detail = format!("the headers took longer than {limit:?} to come in (limits.header-timeout)");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail).closing_connection()
}

/// A request that hyper reads without complaint, as much like the refused one as is safe.
fn substitute_head(refused: &[u8]) -> Vec<u8> {
    let mut lines = refused.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut line = lines.next().unwrap_or(b"").split(|byte| *byte == b' ');
    let method = line.next().filter(|method| is_usual_method(method)).unwrap_or(b"GET");
    let path = line.next().filter(|path| is_plain_path(path)).unwrap_or(b"/");
    let accept = lines.find(|line| is_plain_accept(line)).unwrap_or(b"accept: */*");
    let rest: [&[u8]; 6] =
        [method, b" ", path, b" HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n", accept, b"\r\n\r\n"];
    rest.concat()
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
        let wire = self.get_mut();
        loop {
            if wire.state.is_upgraded() {
                wire.validated = wire.input.len();
            }
            if wire.validated > 0 {
                let step = cmp::min(wire.validated, out.remaining());
                out.put_slice(&wire.input[..step]);
                wire.input.advance(step);
                wire.validated -= step;
                return Poll::Ready(Ok(()));
            }
            if wire.state.is_upgraded() {
                // A socket may stay for days, and what its head took would stay with it.
                wire.input = BytesMut::new();
                return Pin::new(&mut wire.stream).poll_read(cx, out);
            }
            wire.validate_input();
            if wire.validated > 0 {
                continue;
            }
            if wire.phase == InputPhase::Malformed {
                return Poll::Ready(Ok(()));
            }
            if let Some(since) = wire.ended_at {
                return wire.poll_end_of_input(since, cx);
            }
            match wire.read_socket(cx)? {
                Poll::Ready(0) => wire.ended_at = Some(Instant::now()),
                Poll::Ready(_) => (),
                Poll::Pending => ready!(wire.poll_input_timeout(cx)),
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
        let at_rest = self.phase == InputPhase::Head && self.input.is_empty();
        if at_rest || self.ended_at.is_some() || self.state.is_upgraded() {
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
    fn a_stand_in_is_always_a_good_request() {
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
            let verdict = request_head::parse_head(&head, 4096);
            assert!(
                matches!(verdict, ParsedHead::Complete { length, .. } if length == head.len()),
                "{verdict:?}"
            );
        }
    }
}
