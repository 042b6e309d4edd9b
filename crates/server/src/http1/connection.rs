//! The accept loop: every connection gets a place, a task and an end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http1::connection_state::{ConnectionState, ConnectionTakeover, ResponseBody};
use crate::http1::guarded_stream::GuardedStream;
use crate::http1::streamed_body::{BodyEnding, StreamedBody};
use trefoil_config::{Config, ServerLimits};
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::request_limits::ConnectionInfo;
use trefoil_http::response_headers::RequestId;
use trefoil_http::service::HttpService;
use trefoil_http::shutdown::Shutdown;
use trefoil_http::streaming::upgrade::{ConnectionUpgrade, LongLivedBody};

/// As many as are told at once that the server is full; beyond that they are closed without a word.
const MAX_REJECTIONS: usize = 64;

/// hyper's own limit for its buffers; raised only where longer heads are allowed.
const HYPER_BUFFER_BYTES: usize = 400 << 10;

struct ConnectionServer {
    service: HttpService,
    limits: Arc<ServerLimits>,
    open_connections: Gauge,
    shutdown: Shutdown,
    slots: Arc<Semaphore>,
    rejection_slots: Arc<Semaphore>,
    http: http1::Builder,
}

/// A connection's right to exist: it goes with the socket, into a WebSocket too.
pub struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    open_connections: Gauge,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open_connections.dec();
    }
}

/// Serves until [`Shutdown::drain`], then until everything has ended or the time for it is over.
pub async fn serve_connections(
    listeners: Vec<TcpListener>,
    app: HttpService,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    let server = Arc::new(ConnectionServer {
        service: app,
        limits: Arc::new(config.limits.clone()),
        open_connections: metrics.connections.clone(),
        shutdown: shutdown.clone(),
        slots: Arc::new(Semaphore::new(config.limits.connections.min(Semaphore::MAX_PERMITS))),
        rejection_slots: Arc::new(Semaphore::new(MAX_REJECTIONS)),
        http: http1_builder(&config.limits),
    });
    for listener in listeners {
        shutdown.spawn(accept_loop(listener, server.clone()));
    }
    shutdown.wait_for_drain().await;
    shutdown.finish().await;
}

/// hyper's timers stay off: [`Wire`] has them, and answers where hyper would only close.
fn http1_builder(limits: &ServerLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None);
    let needed = limits.headers.saturating_add(8192);
    if needed > HYPER_BUFFER_BYTES {
        http.max_buf_size(needed);
    }
    http
}

async fn accept_loop(listener: TcpListener, server: Arc<ConnectionServer>) {
    loop {
        tokio::select! {
            () = server.shutdown.wait_for_drain() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => admit_connection(&server, stream, peer),
                Err(error) => handle_accept_error(error).await,
            }
        }
    }
}

/// A client that gave up is none of our business; anything else (no file left) passes, but not at once.
async fn handle_accept_error(error: io::Error) {
    let kinds = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
    if !kinds.contains(&error.kind()) {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn admit_connection(server: &Arc<ConnectionServer>, stream: TcpStream, peer: SocketAddr) {
    if let Ok(permit) = server.slots.clone().try_acquire_owned() {
        server.open_connections.inc();
        let place = ConnectionSlot { _permit: permit, open_connections: server.open_connections.clone() };
        server.shutdown.spawn(run_connection(server.clone(), stream, peer, place));
    } else if let Ok(permit) = server.rejection_slots.clone().try_acquire_owned() {
        let limit = server.limits.connections;
        server.shutdown.spawn(async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), reject_connection(stream, limit)).await;
            drop(permit);
        });
    }
}

async fn reject_connection(mut stream: TcpStream, limit: usize) -> io::Result<()> {
    let body = format!("all {limit} connections are taken (limits.connections)\n");
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncache-control: no-store\r\n\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing on unread bytes would destroy the answer.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

async fn run_connection(
    server: Arc<ConnectionServer>,
    stream: TcpStream,
    peer: SocketAddr,
    place: ConnectionSlot,
) {
    // An answer must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let turns = Arc::new(ConnectionState::default());
    let wire = GuardedStream::new(stream, server.limits.clone(), turns.clone(), place);
    let (app, shared) = (server.service.clone(), turns.clone());
    let service = service_fn(move |request| handle_request(app.clone(), request, peer, shared.clone()));
    let mut connection = server.http.serve_connection(TokioIo::new(wire), service);
    let mut told = false;
    run_until_aborted(&server.shutdown, |cx| {
        // A head on its way is still answered, with "shutting down"; anything else closes when it is done.
        if server.shutdown.is_draining() && !told && !turns.is_reading_head() {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        let polled = Pin::new(&mut connection).poll(cx).map(|ended| {
            if let Err(error) = ended {
                let request = turns.request_id();
                let request_id = request.as_ref().map(RequestId::as_str);
                tracing::debug!(request_id, %peer, %error, "connection ended");
            }
        });
        if turns.is_handed_over() { Poll::Ready(()) } else { polled }
    })
    .await;
    if let Some(next) = turns.take_takeover().filter(|_| turns.is_handed_over()) {
        run_takeover(&server.shutdown, connection.into_parts().io.into_inner(), next);
    }
}

/// In a task of its own, which is smaller than one that may have any request to answer.
fn run_takeover(shutdown: &Shutdown, wire: GuardedStream, next: ConnectionTakeover) {
    match next {
        ConnectionTakeover::Upgrade(tunnel) => tunnel.run(Box::new(wire)),
        ConnectionTakeover::Stream(stream) => {
            let own = shutdown.clone();
            shutdown.spawn(async move {
                let mut stream = pin!(stream.run(wire));
                // How it ends is the client's affair.
                run_until_aborted(&own, |cx| stream.as_mut().poll(cx).map(|_| ())).await;
            });
        }
    }
}

/// Polls `work` until it is ready or the time for finishing is over.
///
/// All connections wait for the same two events; asking those at every turn would make them queue for one lock, so
/// each is asked once, to be woken by it, and read from an atomic after that.
async fn run_until_aborted(shutdown: &Shutdown, mut work: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let (mut draining, mut cut) = (pin!(shutdown.wait_for_drain()), pin!(shutdown.wait_for_abort()));
    let mut subscribed = false;
    poll_fn(|cx| {
        if !subscribed {
            subscribed = true;
            let _ = (draining.as_mut().poll(cx), cut.as_mut().poll(cx));
        }
        match work(cx) {
            Poll::Pending if !shutdown.is_aborted() => Poll::Pending,
            Poll::Pending | Poll::Ready(()) => Poll::Ready(()),
        }
    })
    .await;
}

async fn handle_request(
    app: HttpService,
    request: Request<Incoming>,
    peer: SocketAddr,
    turns: Arc<ConnectionState>,
) -> Result<Response<ResponseBody>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let ending =
        if request.version() == Version::HTTP_10 { BodyEnding::Close } else { BodyEnding::LastChunk };
    let (arrival, turn) = turns.begin_request();
    let (first_byte, refused) = arrival.map_or((None, None), |arrival| (arrival.first_byte, arrival.refusal));
    let came = ConnectionInfo {
        peer,
        received_at: first_byte.unwrap_or_else(Instant::now),
        timer: turns.request_timer.clone(),
        refusal: refused,
    };
    let request = request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) });
    let mut response = app.handle(request, came).await;
    turns.answers(response.body().request_id());
    if let Some(tunnel) = response.extensions_mut().remove::<ConnectionUpgrade>() {
        turns.set_takeover(ConnectionTakeover::Upgrade(tunnel));
    }
    let is_endless = response.extensions_mut().remove::<LongLivedBody>().is_some() && !is_head;
    if !is_endless {
        return Ok(response.map(|body| turn.with_body(body)));
    }
    // hyper's buffers would stay for as long as the body lasts, so it gets the head alone.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let (head, body) = response.into_parts();
    turns.set_takeover(ConnectionTakeover::Stream(StreamedBody { body: Body::new(body), ending }));
    Ok(Response::from_parts(head, turn.without_body()))
}
