//! Checks that the guard and hyper agree on every request in given bytes; for tests and fuzzing only.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::Body;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;

use trefoil_config::ServerLimits;

use crate::http1::connection_slot::ConnectionSlot;
use crate::http1::guard::connection_state::{ConnectionState, ResponseBody};
use crate::http1::guard::guarded_stream::GuardedStream;

/// A request as the service sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenRequest {
    Refused,
    /// The body is `None` if it is malformed or incomplete.
    Served {
        line: String,
        body: Option<Vec<u8>>,
    },
}

impl SeenRequest {
    fn is_incomplete(&self) -> bool {
        matches!(self, SeenRequest::Served { body: None, .. })
    }
}

/// Sends the pieces one by one, and checks three things: hyper parses no head that the guard has not validated; where
/// the bytes are cut makes no difference; and hyper alone reads the same requests in the same bytes, up to the first one
/// that the guard refuses.
///
/// # Panics
///
/// If one of them is not so.
pub fn check_agreement(pieces: &[&[u8]]) -> Vec<SeenRequest> {
    // A head is parsed whenever a line of it has ended, so the last one must end for the comparison.
    let pieces = [pieces, &[b"\r\n"]].concat();
    let whole = pieces.concat();
    let guarded = read_guarded(&[&whole]);
    assert_eq!(read_guarded(&pieces), guarded, "cut and uncut: {}", whole.escape_ascii());
    let mut alone = read_alone(&whole);
    let mut allowed = guarded.clone();
    if allowed.pop_if(|last| *last == SeenRequest::Refused).is_some() {
        alone.truncate(allowed.len());
    } else if has_lone_line_feed(&whole) && allowed.pop_if(|last| last.is_incomplete()).is_some() {
        // hyper accepts a lone line feed in trailers.
        alone.truncate(allowed.len());
    }
    assert_eq!(allowed, alone, "guarded and alone: {}", whole.escape_ascii());
    guarded
}

fn has_lone_line_feed(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\n") || bytes.windows(2).any(|pair| pair[0] != b'\r' && pair[1] == b'\n')
}

fn read_guarded(pieces: &[&[u8]]) -> Vec<SeenRequest> {
    let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("nobody else has it");
    let slot = ConnectionSlot::new(permit, Gauge::default());
    let state = Arc::new(ConnectionState::default());
    let (client, limits) = (Ipv4Addr::LOCALHOST.into(), Arc::new(ServerLimits::default()));
    let stream = GuardedStream::new(PieceStream::new(pieces), client, limits, state.clone(), slot);
    let (seen, ended) = run_hyper(stream, async move |request| {
        let start = state.begin_request().expect("hyper parses no head that the guard has not validated");
        let seen = match start.refusal {
            Some(_) => SeenRequest::Refused,
            None => read_request(request).await,
        };
        drop(ResponseBody { body: None, state: state.clone() });
        seen
    });
    assert!(
        !ended.is_err_and(|error| error.is_parse()),
        "hyper refuses no head that the guard has validated"
    );
    seen
}

fn read_alone(bytes: &[u8]) -> Vec<SeenRequest> {
    run_hyper(PieceStream::new(&[bytes]), read_request).0
}

fn run_hyper(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    read: impl AsyncFn(Request<Incoming>) -> SeenRequest,
) -> (Vec<SeenRequest>, hyper::Result<()>) {
    let seen = Mutex::new(Vec::new());
    let service = service_fn(async |request| {
        let request = read(request).await;
        seen.lock().expect("no panic").push(request);
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut http = http1::Builder::new();
    let connection = http.header_read_timeout(None).half_close(true);
    let ended = runtime.block_on(connection.serve_connection(TokioIo::new(stream), service));
    (seen.into_inner().expect("no panic"), ended)
}

async fn read_request(request: Request<Incoming>) -> SeenRequest {
    let line = format!("{} {}", request.method(), request.uri());
    let (mut incoming, mut body) = (request.into_body(), Some(Vec::new()));
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        match (frame, &mut body) {
            (Ok(frame), Some(body)) => body.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            (Ok(_), None) => (),
            (Err(_), _) => body = None,
        }
    }
    SeenRequest::Served { line, body }
}

/// A client that sends pieces, then closes its half; what it is sent is discarded.
struct PieceStream {
    pieces: VecDeque<Vec<u8>>,
    is_ready: bool,
}

impl PieceStream {
    fn new(pieces: &[&[u8]]) -> PieceStream {
        let pieces = pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| piece.to_vec()).collect();
        PieceStream { pieces, is_ready: false }
    }
}

impl AsyncRead for PieceStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_ready = !self.is_ready;
        if !self.is_ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(mut piece) = self.pieces.pop_front() {
            let rest = piece.split_off(piece.len().min(out.remaining()));
            out.put_slice(&piece);
            if !rest.is_empty() {
                self.pieces.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PieceStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    /// Parts of requests, which follow each other in any order.
    const PARTS: &[&str] = &[
        "GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /d HTTP/1.1\r\nhost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.0\r\n",
        "GET http://a/e HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Connection: close\r\n",
        "Connection: upgrade\r\nUpgrade: x\r\n",
        "X: y\r\n",
        " folded\r\n",
        "3\r\nabc\r\n",
        "0A;x=y \r\nGET / HTTP\r\n",
        "4\r\n\r\n\r\n\r\n",
        "0\r\n",
        "0\r\n\r\n",
        "\r\n",
        "\n",
        "\r",
        "abc",
        ":",
        " ",
        "3",
    ];

    fn part() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            12 => select(PARTS).prop_map(|part| part.as_bytes().to_vec()),
            1 => vec(any::<u8>(), 1..4),
        ]
    }

    const CHUNKED: &str = "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                           3;x=y\r\nabc\r\n0A \r\n012\r\n\r\n789\r\n00\r\nT: u\r\nV:\r\n\r\n";

    /// Complete requests, of which a few bytes are replaced.
    fn damaged_requests() -> impl Strategy<Value = Vec<u8>> {
        let requests = vec(select(vec![PARTS[0], PARTS[2], CHUNKED, CHUNKED]), 1..4);
        let edits = vec((any::<Index>(), 0..2usize, "[\r\n 09A;:xG]{0,2}"), 0..3);
        (requests, edits).prop_map(|(requests, edits)| {
            let mut bytes = requests.concat().into_bytes();
            for (at, removed, inserted) in edits {
                let at = at.index(bytes.len());
                bytes.splice(at..at + removed, inserted.into_bytes());
            }
            bytes
        })
    }

    fn check_cut(bytes: &[u8], cuts: &[Index]) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        check_agreement(&cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn guard_and_hyper_agree(parts in vec(part(), 1..8), cuts in vec(any::<Index>(), 0..8)) {
            check_cut(&parts.concat(), &cuts);
        }

        #[test]
        fn damaged_requests_are_read_alike(bytes in damaged_requests(), cuts in vec(any::<Index>(), 0..8)) {
            check_cut(&bytes, &cuts);
        }

        #[test]
        fn every_target_is_refused_or_read(target in vec(any::<u8>(), 1..6), method in "[!-~]{1,4}") {
            let target = [b"/", &target[..]].concat();
            check_agreement(&[method.as_bytes(), b" ", &target, b" HTTP/1.1\r\nHost: a\r\n\r\n"]);
        }
    }

    #[test]
    fn requests_are_seen_one_by_one() {
        let seen = check_agreement(&PARTS[..4].iter().map(|part| part.as_bytes()).collect::<Vec<_>>());
        let lines = ["GET /a?b=c", "GET /", "POST /b", "POST /c"];
        let bodies = [Some(&b""[..]), Some(b""), Some(b"abc"), None];
        let expected = lines.iter().zip(bodies).map(|(line, body)| SeenRequest::Served {
            line: (*line).to_owned(),
            body: body.map(<[u8]>::to_vec),
        });
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
}
