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

use crate::http1::chunked_body::Chunks;
use crate::http1::connection::Place;
use crate::http1::connection_state::{Arrival, Turns};
use crate::http1::request_head;
use crate::http1::request_head::{Framing, Head};
use trefoil_config::Limits;
use trefoil_http::Problem;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::deadline::Clock;

/// A client that has closed its half may still want its answer; so long we cannot tell it from one that has gone.
const HALF_CLOSED: Duration = Duration::from_millis(500);

/// How long we go on reading after our last byte, because closing on unread bytes would destroy that answer.
const LINGER: Duration = Duration::from_secs(1);

/// As much as is taken from the socket at a time.
const GULP: usize = 8192;

pub struct Wire {
    stream: TcpStream,
    limits: Arc<Limits>,
    turns: Arc<Turns>,
    phase: Phase,
    /// Received, but not yet given to hyper …
    input: BytesMut,
    /// … except that so many of its first bytes may be.
    cleared: usize,
    /// Bytes have come since the head was last judged.
    fresh: bool,
    first_byte: Option<Instant>,
    idle_since: Option<Instant>,
    /// The client sends no more, since then.
    ended: Option<Instant>,
    lingering: Option<Instant>,
    reading: Clock,
    stalled_since: Option<Instant>,
    /// It stalled for too long, and the log has been told so.
    cut: bool,
    writing: Clock,
    _place: Place,
}

/// What the next byte from the client is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    /// A body of which so many bytes are missing.
    Length(u64),
    Chunked(Chunks),
    /// Something that can no longer be understood, so nothing more is given to hyper.
    Nonsense,
    /// What follows a refused head: read, and thrown away.
    Refused,
}

impl Wire {
    pub fn new(stream: TcpStream, limits: Arc<Limits>, turns: Arc<Turns>, place: Place) -> Self {
        Wire {
            stream,
            limits,
            turns,
            phase: Phase::Head,
            input: BytesMut::new(),
            cleared: 0,
            fresh: false,
            first_byte: None,
            idle_since: None,
            ended: None,
            lingering: None,
            reading: Clock::default(),
            stalled_since: None,
            cut: false,
            writing: Clock::default(),
            _place: place,
        }
    }

    /// Takes what the client has sent; 0 is the end.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [const { MaybeUninit::uninit() }; GULP];
        let mut gulp = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut gulp))?;
        let bytes = gulp.filled();
        self.input.extend_from_slice(bytes);
        self.fresh |= bytes.contains(&b'\n') || self.input.len() >= self.limits.headers;
        Poll::Ready(Ok(bytes.len()))
    }

    /// Clears as much of the input for hyper as its phase allows.
    fn clear(&mut self) {
        match self.phase {
            Phase::Head => self.clear_head(),
            Phase::Length(_) | Phase::Chunked(_) => self.clear_body(),
            Phase::Nonsense | Phase::Refused => self.input.clear(),
        }
    }

    /// Clears as much of the body as has come, behind what is cleared already.
    fn clear_body(&mut self) {
        let rest = &self.input[self.cleared..];
        match &mut self.phase {
            Phase::Length(left) => {
                let step = cmp::min(*left, rest.len() as u64);
                *left -= step;
                self.cleared += step as usize;
                if *left == 0 {
                    self.expect_head();
                }
            }
            Phase::Chunked(chunks) => {
                self.cleared += chunks.pass(rest);
                if *chunks == Chunks::End {
                    self.expect_head();
                } else if *chunks == Chunks::Malformed {
                    self.phase = Phase::Nonsense;
                }
            }
            Phase::Head | Phase::Nonsense | Phase::Refused => (),
        }
    }

    fn expect_head(&mut self) {
        self.phase = Phase::Head;
        self.fresh = self.input.len() > self.cleared;
    }

    fn clear_head(&mut self) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        let blank = self.input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.input.advance(blank);
        match request_head::read(&self.input, self.limits.headers) {
            Head::Partial => (),
            Head::Whole { length, body } => {
                self.phase = match body {
                    Framing::Length(length) => Phase::Length(length),
                    Framing::Chunked => Phase::Chunked(Chunks::Start),
                };
                self.cleared = length;
                // Together with its head: each reading costs hyper a buffer.
                self.clear_body();
                self.announce(None);
            }
            Head::Refused(problem) => self.refuse(problem),
        }
    }

    /// Tells the service what comes with the next request.
    fn announce(&mut self, refusal: Option<Box<Problem>>) {
        self.idle_since = None;
        self.turns.announce(Arrival { first_byte: self.first_byte.take(), refusal });
    }

    fn refuse(&mut self, problem: Box<Problem>) {
        let stand_in = stand_in(&self.input);
        self.input.clear();
        self.input.extend_from_slice(&stand_in);
        self.cleared = stand_in.len();
        self.phase = Phase::Refused;
        self.announce(Some(problem));
    }

    /// Nothing has come. Between requests, and within a head, only for so long.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase != Phase::Head {
            return Poll::Pending;
        }
        let Limits { header_timeout, idle_timeout, .. } = *self.limits;
        let now = Instant::now();
        if self.turns.is_busy() {
            // hyper does not ask again when the turn ends, so we look again by ourselves.
            return self.reading.poll(now + cmp::min(header_timeout, idle_timeout), cx);
        }
        let begun = !self.input.is_empty();
        self.turns.set_begun(begun);
        if begun {
            let since = *self.first_byte.get_or_insert(now);
            ready!(self.reading.poll(since + header_timeout, cx));
            self.refuse(Box::new(slow_head(header_timeout)));
        } else {
            let since = *self.idle_since.get_or_insert_with(|| self.turns.last_end().unwrap_or(now));
            ready!(self.reading.poll(since + idle_timeout, cx));
            self.ended = Some(now);
        }
        Poll::Ready(())
    }

    /// The client sends no more: hyper is told, unless that would cost a client that only half closed its answer.
    fn end(&mut self, since: Instant, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.phase {
            Phase::Head if self.turns.is_busy() => self.reading.poll(since + HALF_CLOSED, cx).map(Ok),
            Phase::Refused => Poll::Pending,
            Phase::Head | Phase::Length(_) | Phase::Chunked(_) | Phase::Nonsense => Poll::Ready(Ok(())),
        }
    }

    /// No further request is read here, and what was kept for one goes.
    pub fn let_go(&mut self) {
        (self.input, self.reading) = (BytesMut::new(), Clock::default());
    }

    /// Ready once the client has gone. What it sends meanwhile nobody waits for.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(since) = self.ended {
                return self.reading.poll(since + HALF_CLOSED, cx);
            }
            match ready!(self.fill(cx)) {
                Ok(0) => self.ended = Some(Instant::now()),
                Ok(_) => self.input = BytesMut::new(),
                Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn stall(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        ready!(self.writing.poll(since + self.limits.stall_timeout, cx));
        let limit = self.limits.stall_timeout;
        let reason = format!("the client read nothing for {limit:?} (limits.stall-timeout)");
        if !std::mem::replace(&mut self.cut, true) {
            let client = self.stream.peer_addr().ok().map(|peer| tracing::field::display(peer.ip()));
            let request = self.turns.request_id();
            let request_id = request.as_ref().map(RequestId::as_str);
            tracing::info!(request_id, client, reason, "reader cut");
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }

    fn written(&mut self, polled: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if polled.is_pending() {
            return self.stall(cx);
        }
        self.stalled_since = None;
        polled
    }
}

fn slow_head(limit: Duration) -> Problem {
    let detail = format!("the headers took longer than {limit:?} to come in (limits.header-timeout)");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", detail).closing()
}

/// A request that hyper reads without complaint, as much like the refused one as is safe.
fn stand_in(refused: &[u8]) -> Vec<u8> {
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

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        loop {
            if wire.turns.is_tunnel() {
                wire.cleared = wire.input.len();
            }
            if wire.cleared > 0 {
                let step = cmp::min(wire.cleared, out.remaining());
                out.put_slice(&wire.input[..step]);
                wire.input.advance(step);
                wire.cleared -= step;
                return Poll::Ready(Ok(()));
            }
            if wire.turns.is_tunnel() {
                // A socket may stay for days, and what its head took would stay with it.
                wire.input = BytesMut::new();
                return Pin::new(&mut wire.stream).poll_read(cx, out);
            }
            wire.clear();
            if wire.cleared > 0 {
                continue;
            }
            if wire.phase == Phase::Nonsense {
                return Poll::Ready(Ok(()));
            }
            if let Some(since) = wire.ended {
                return wire.end(since, cx);
            }
            match wire.fill(cx)? {
                Poll::Ready(0) => wire.ended = Some(Instant::now()),
                Poll::Ready(_) => (),
                Poll::Pending => ready!(wire.wait(cx)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.written(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.turns.flushed();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        let at_rest = self.phase == Phase::Head && self.input.is_empty();
        if at_rest || self.ended.is_some() || self.turns.is_tunnel() {
            return Poll::Ready(Ok(()));
        }
        let since = *self.lingering.get_or_insert_with(Instant::now);
        while self.reading.poll(since + LINGER, cx).is_pending() {
            match ready!(self.fill(cx)) {
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
            let head = stand_in(refused);
            assert!(head.starts_with(start.as_bytes()), "{}", head.escape_ascii());
            let verdict = request_head::read(&head, 4096);
            assert!(matches!(verdict, Head::Whole { length, .. } if length == head.len()), "{verdict:?}");
        }
    }
}
