//! The accept loop: admits connections up to the limit, runs each in a task and shuts them down.

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
use tokio::sync::Semaphore;

use trefoil_config::{Config, ServerLimits};
use trefoil_http::Problem;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::request_limits::ConnectionInfo;
use trefoil_http::response_headers::RequestId;
use trefoil_http::service::HttpService;
use trefoil_http::shutdown::Shutdown;
use trefoil_http::streaming::upgrade::{ConnectionIo, ConnectionUpgrade, LongLivedBody};

use crate::http1::connection_slot::ConnectionSlot;
use crate::http1::guard::connection_state::{ConnectionState, RequestStart, ResponseBody};
use crate::http1::guard::guarded_stream::GuardedStream;
use crate::http1::streamed_body::{BodyEnding, StreamedBody};
use crate::listen::tls::{CertificateWatch, TlsTerminator};

/// How many connections at once get a 503 when the server is full; any more are closed without a response.
const MAX_REJECTIONS: usize = 64;

/// hyper's default limit for its buffers; raised only if longer heads are allowed.
const HYPER_BUFFER_BYTES: usize = 400 << 10;

struct ConnectionServer {
    service: HttpService,
    limits: Arc<ServerLimits>,
    open_connections: Gauge,
    shutdown: Shutdown,
    slots: Arc<Semaphore>,
    rejection_slots: Arc<Semaphore>,
    http: http1::Builder,
    tls: Option<TlsTerminator>,
}

/// Serves until draining begins, then until all connections have ended or the grace period is over.
pub async fn serve_connections(
    listeners: Vec<TcpListener>,
    tls: Option<(TlsTerminator, CertificateWatch)>,
    service: HttpService,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    let (tls, certificate_watch) = tls.unzip();
    let server = Arc::new(ConnectionServer {
        service,
        limits: Arc::new(config.limits.clone()),
        open_connections: metrics.connections.clone(),
        shutdown: shutdown.clone(),
        slots: Arc::new(Semaphore::new(config.limits.connections.min(Semaphore::MAX_PERMITS))),
        rejection_slots: Arc::new(Semaphore::new(MAX_REJECTIONS)),
        http: http1_builder(&config.limits),
        tls,
    });
    if let Some(watch) = certificate_watch {
        shutdown.spawn(watch.reload_on_change(shutdown.clone()));
    }
    for listener in listeners {
        shutdown.spawn(accept_loop(listener, server.clone()));
    }
    shutdown.wait_for_drain().await;
    shutdown.finish().await;
}

/// hyper's timers stay off: [`GuardedStream`] has its own, which send a response where hyper would only close. It also
/// notices clients that have gone, so hyper reads nothing but requests.
fn http1_builder(limits: &ServerLimits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None).half_close(true);
    let buffer_bytes = limits.headers.saturating_add(8192);
    if buffer_bytes > HYPER_BUFFER_BYTES {
        http.max_buf_size(buffer_bytes);
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

/// A client that gave up is ignored; other errors (too many open files) pass, but not at once.
async fn handle_accept_error(error: io::Error) {
    let ignored = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
    if !ignored.contains(&error.kind()) {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn admit_connection(server: &Arc<ConnectionServer>, stream: TcpStream, peer: SocketAddr) {
    if let Ok(permit) = server.slots.clone().try_acquire_owned() {
        let slot = ConnectionSlot::new(permit, server.open_connections.clone());
        // Without Nagle's algorithm, so that a response does not wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
        if server.tls.is_some() {
            server.shutdown.spawn(run_tls_connection(server.clone(), stream, peer, slot));
        } else {
            server.shutdown.spawn(run_connection(server.clone(), stream, peer, slot));
        }
    } else if let Ok(permit) = server.rejection_slots.clone().try_acquire_owned() {
        let limit = server.limits.connections;
        server.shutdown.spawn(async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), reject_connection(stream, limit)).await;
            drop(permit);
        });
    }
}

async fn reject_connection(mut stream: TcpStream, limit: usize) -> io::Result<()> {
    let body = format!("too many connections: the limit is {limit} (limits.connections)\n");
    let response = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncache-control: no-store\r\n\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread bytes would destroy the response.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// The handshake has as much time as the head of a request.
async fn run_tls_connection(
    server: Arc<ConnectionServer>,
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
) {
    let Some(tls) = &server.tls else { return };
    let handshake = tokio::time::timeout(server.limits.header_timeout, tls.accept(stream));
    let encrypted = tokio::select! {
        ended = handshake => ended.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        () = server.shutdown.wait_for_abort() => return,
    };
    match encrypted {
        // Boxed: the handshake is over, and its future no longer needs the space of a connection.
        Ok(stream) => Box::pin(run_connection(server, stream, peer, slot)).await,
        Err(error) => tracing::debug!(%peer, %error, "TLS handshake failed"),
    }
}

async fn run_connection<S: ConnectionIo + 'static>(
    server: Arc<ConnectionServer>,
    stream: S,
    peer: SocketAddr,
    slot: ConnectionSlot,
) {
    let state = Arc::new(ConnectionState::default());
    let stream = GuardedStream::new(stream, peer.ip(), server.limits.clone(), state.clone(), slot);
    let shared = (server.clone(), state.clone());
    let service =
        service_fn(move |request| handle_request(shared.0.clone(), request, peer, shared.1.clone()));
    let mut connection = server.http.serve_connection(TokioIo::new(stream), service);
    let mut is_closing = false;
    run_until_aborted(&server.shutdown, |cx| {
        // A head that is being sent still gets a response, "shutting down"; otherwise the connection closes after its
        // response.
        if server.shutdown.is_draining() && !is_closing && !state.is_reading_head() {
            is_closing = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        let polled = Pin::new(&mut connection).poll(cx).map(|ended| {
            if let Err(error) = ended {
                let request = state.request_id();
                let request_id = request.as_ref().map(RequestId::as_str);
                tracing::debug!(request_id, %peer, %error, "connection ended");
            }
        });
        if state.is_handed_over() { Poll::Ready(()) } else { polled }
    })
    .await;
    if let Some(takeover) = state.takeover() {
        let mut stream = connection.into_parts().io.into_inner();
        stream.begin_tunnel();
        takeover.run(Box::new(stream));
    }
}

/// A stream runs in a task of its own, which is smaller than one that can handle requests.
fn stream_takeover(shutdown: Shutdown, body: StreamedBody) -> ConnectionUpgrade {
    ConnectionUpgrade::new(move |stream| {
        let task_shutdown = shutdown.clone();
        shutdown.spawn(async move {
            let mut running = pin!(body.run(stream));
            // An error only means that the client has gone.
            run_until_aborted(&task_shutdown, |cx| running.as_mut().poll(cx).map(|_| ())).await;
        });
    })
}

/// Polls `work` until it is ready or the grace period is over.
///
/// All connections wait for the same two tokens, and polling them on every wake-up would make the connections queue for
/// one lock. So each token is polled once, to register the task, and an atomic is read after that.
async fn run_until_aborted(shutdown: &Shutdown, mut work: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let (mut draining, mut aborted) = (pin!(shutdown.wait_for_drain()), pin!(shutdown.wait_for_abort()));
    let mut subscribed = false;
    poll_fn(|cx| {
        if !subscribed {
            subscribed = true;
            let _ = (draining.as_mut().poll(cx), aborted.as_mut().poll(cx));
        }
        match work(cx) {
            Poll::Pending if !shutdown.is_aborted() => Poll::Pending,
            Poll::Pending | Poll::Ready(()) => Poll::Ready(()),
        }
    })
    .await;
}

async fn handle_request(
    server: Arc<ConnectionServer>,
    request: Request<Incoming>,
    peer: SocketAddr,
    state: Arc<ConnectionState>,
) -> Result<Response<ResponseBody>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let ending =
        if request.version() == Version::HTTP_10 { BodyEnding::Close } else { BodyEnding::LastChunk };
    let start = state.begin_request().unwrap_or_else(unexpected_request);
    let connection = ConnectionInfo {
        peer,
        is_encrypted: server.tls.is_some(),
        received_at: start.first_byte.unwrap_or_else(Instant::now),
        timer: state.request_timer.clone(),
        refusal: start.refusal,
    };
    let request = request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) });
    let mut response = server.service.handle(request, connection).await;
    state.set_request_id(response.body().request_id());
    if let Some(upgrade) = response.extensions_mut().remove::<ConnectionUpgrade>() {
        state.set_takeover(upgrade);
    }
    let is_long_lived = response.extensions_mut().remove::<LongLivedBody>().is_some() && !is_head;
    if !is_long_lived {
        return Ok(response.map(|body| ResponseBody { body: Some(body), state }));
    }
    // hyper would hold its buffers for as long as the body lasts, so it gets only the head.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let (head, body) = response.into_parts();
    let body = StreamedBody::new(Body::new(body), ending);
    state.set_takeover(stream_takeover(server.shutdown.clone(), body));
    Ok(Response::from_parts(head, ResponseBody { body: None, state }))
}

/// For a head that hyper found where the guard saw none.
fn unexpected_request() -> RequestStart {
    let problem = Problem::bad_request("MALFORMED_REQUEST", "the end of the previous request is ambiguous");
    RequestStart { first_byte: None, refusal: Some(Box::new(problem.closing_connection())) }
}
