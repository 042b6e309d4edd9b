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

use crate::http1::connection_state::{Next, Outgoing, Turns};
use crate::http1::guarded_stream::Wire;
use crate::http1::streamed_body::{Ending, Stream};
use trefoil_config::{Config, Limits};
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::request_limits::Came;
use trefoil_http::response_headers::RequestId;
use trefoil_http::service::App;
use trefoil_http::shutdown::Shutdown;
use trefoil_http::streaming::upgrade::{Endless, Tunnel};

/// As many as are told at once that the server is full; beyond that they are closed without a word.
const TURNED_AWAY: usize = 64;

/// hyper's own limit for its buffers; raised only where longer heads are allowed.
const USUAL_BUFFER: usize = 400 << 10;

struct Server {
    app: App,
    limits: Arc<Limits>,
    open: Gauge,
    shutdown: Shutdown,
    places: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
    http: http1::Builder,
}

/// A connection's right to exist: it goes with the socket, into a WebSocket too.
pub struct Place {
    _permit: OwnedSemaphorePermit,
    open: Gauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.dec();
    }
}

/// Serves until [`Shutdown::drain`], then until everything has ended or the time for it is over.
pub async fn serve(
    listeners: Vec<TcpListener>,
    app: App,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: Shutdown,
) {
    let server = Arc::new(Server {
        app,
        limits: Arc::new(config.limits.clone()),
        open: metrics.connections.clone(),
        shutdown: shutdown.clone(),
        places: Arc::new(Semaphore::new(config.limits.connections.min(Semaphore::MAX_PERMITS))),
        turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
        http: protocol(&config.limits),
    });
    for listener in listeners {
        shutdown.spawn(accept_all(listener, server.clone()));
    }
    shutdown.draining().await;
    shutdown.finish().await;
}

/// hyper's timers stay off: [`Wire`] has them, and answers where hyper would only close.
fn protocol(limits: &Limits) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None);
    let needed = limits.headers.saturating_add(8192);
    if needed > USUAL_BUFFER {
        http.max_buf_size(needed);
    }
    http
}

async fn accept_all(listener: TcpListener, server: Arc<Server>) {
    loop {
        tokio::select! {
            () = server.shutdown.draining() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => admit(&server, stream, peer),
                Err(error) => recover(error).await,
            }
        }
    }
}

/// A client that gave up is none of our business; anything else (no file left) passes, but not at once.
async fn recover(error: io::Error) {
    let kinds = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
    if !kinds.contains(&error.kind()) {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn admit(server: &Arc<Server>, stream: TcpStream, peer: SocketAddr) {
    if let Ok(permit) = server.places.clone().try_acquire_owned() {
        server.open.inc();
        let place = Place { _permit: permit, open: server.open.clone() };
        server.shutdown.spawn(converse(server.clone(), stream, peer, place));
    } else if let Ok(permit) = server.turned_away.clone().try_acquire_owned() {
        let limit = server.limits.connections;
        server.shutdown.spawn(async move {
            let _ = tokio::time::timeout(Duration::from_secs(1), turn_away(stream, limit)).await;
            drop(permit);
        });
    }
}

async fn turn_away(mut stream: TcpStream, limit: usize) -> io::Result<()> {
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

async fn converse(server: Arc<Server>, stream: TcpStream, peer: SocketAddr, place: Place) {
    // An answer must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let turns = Arc::new(Turns::default());
    let wire = Wire::new(stream, server.limits.clone(), turns.clone(), place);
    let (app, shared) = (server.app.clone(), turns.clone());
    let service = service_fn(move |request| answer(app.clone(), request, peer, shared.clone()));
    let mut connection = server.http.serve_connection(TokioIo::new(wire), service);
    let mut told = false;
    until_cut(&server.shutdown, |cx| {
        // A head on its way is still answered, with "shutting down"; anything else closes when it is done.
        if server.shutdown.is_draining() && !told && !turns.has_begun() {
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
        if turns.is_free() { Poll::Ready(()) } else { polled }
    })
    .await;
    if let Some(next) = turns.next().filter(|_| turns.is_free()) {
        go_on(&server.shutdown, connection.into_parts().io.into_inner(), next);
    }
}

/// In a task of its own, which is smaller than one that may have any request to answer.
fn go_on(shutdown: &Shutdown, wire: Wire, next: Next) {
    match next {
        Next::Tunnel(tunnel) => tunnel.open(Box::new(wire)),
        Next::Stream(stream) => {
            let own = shutdown.clone();
            shutdown.spawn(async move {
                let mut stream = pin!(stream.run(wire));
                // How it ends is the client's affair.
                until_cut(&own, |cx| stream.as_mut().poll(cx).map(|_| ())).await;
            });
        }
    }
}

/// Polls `work` until it is ready or the time for finishing is over.
///
/// All connections wait for the same two events; asking those at every turn would make them queue for one lock, so
/// each is asked once, to be woken by it, and read from an atomic after that.
async fn until_cut(shutdown: &Shutdown, mut work: impl FnMut(&mut Context<'_>) -> Poll<()>) {
    let (mut draining, mut cut) = (pin!(shutdown.draining()), pin!(shutdown.cut()));
    let mut subscribed = false;
    poll_fn(|cx| {
        if !subscribed {
            subscribed = true;
            let _ = (draining.as_mut().poll(cx), cut.as_mut().poll(cx));
        }
        match work(cx) {
            Poll::Pending if !shutdown.is_cut() => Poll::Pending,
            Poll::Pending | Poll::Ready(()) => Poll::Ready(()),
        }
    })
    .await;
}

async fn answer(
    app: App,
    request: Request<Incoming>,
    peer: SocketAddr,
    turns: Arc<Turns>,
) -> Result<Response<Outgoing>, Infallible> {
    let is_head = request.method() == Method::HEAD;
    let ending = if request.version() == Version::HTTP_10 { Ending::Close } else { Ending::Chunk };
    let (arrival, turn) = turns.begin();
    let (first_byte, refused) = arrival.map_or((None, None), |arrival| (arrival.first_byte, arrival.refusal));
    let came =
        Came { peer, at: first_byte.unwrap_or_else(Instant::now), timer: turns.timer.clone(), refused };
    let request = request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) });
    let mut response = app.answer(request, came).await;
    turns.answers(response.body().request_id());
    if let Some(tunnel) = response.extensions_mut().remove::<Tunnel>() {
        turns.go_on_as(Next::Tunnel(tunnel));
    }
    let is_endless = response.extensions_mut().remove::<Endless>().is_some() && !is_head;
    if !is_endless {
        return Ok(response.map(|body| turn.until_the_end_of(body)));
    }
    // hyper's buffers would stay for as long as the body lasts, so it gets the head alone.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    let (head, body) = response.into_parts();
    turns.go_on_as(Next::Stream(Stream { body: Body::new(body), ending }));
    Ok(Response::from_parts(head, turn.without_a_body()))
}
