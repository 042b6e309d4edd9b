//! The HTTP layer over raw bytes: a real listener, a small router, and a client that can misbehave.

mod answers;
mod elsewhere;
mod endless;
mod framing;
mod hosts;
mod life;
mod limits;
mod log;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use trefoil_config::{Config, ServerLimits};
use trefoil_http::authentication::OpenAuthenticator;
use trefoil_http::client_info::ClientInfo;
use trefoil_http::host_check::AllowedHosts;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::monitoring::{health, metrics};
use trefoil_http::service::{ErrorContext, ServiceHandlers};
use trefoil_http::streaming::upgrade::ConnectionUpgrade;
use trefoil_http::{Problem, service};
use trefoil_model::error::Error;
use trefoil_server::http1::connection;
use trefoil_server::listen;
use trefoil_server::signals::Shutdown;

/// Longer than anything here may take; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(8);

struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    task: JoinHandle<()>,
    metrics: Metrics,
    /// Says "dropped" for each handler of `/slow` that did not end by itself, "done" for one that did.
    fates: mpsc::UnboundedReceiver<&'static str>,
}

/// Limits short enough that meeting them takes no time.
fn short() -> Config {
    let limits = ServerLimits {
        body: 1000,
        headers: 2000,
        header_timeout: Duration::from_millis(300),
        request_timeout: Duration::from_millis(600),
        stall_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_millis(500),
        ..ServerLimits::default()
    };
    let allowed_hosts = ["a", "x"].map(str::to_owned).to_vec();
    Config { port: 0, host: "127.0.0.1".into(), allowed_hosts, limits, ..Config::default() }
}

/// The usual limits: for tests that are about something else.
fn usual() -> Config {
    Config { limits: ServerLimits::default(), ..short() }
}

async fn start(config: Config) -> Server {
    start_with(config, Shutdown::new()).await
}

async fn start_with(config: Config, shutdown: Shutdown) -> Server {
    let config = Arc::new(config);
    let metrics = Metrics::new();
    let listeners = listen::bind_listeners(&config, false).await.expect("a free port");
    let address = listeners[0].local_addr().expect("bound");
    let (fate, fates) = mpsc::unbounded_channel();
    let ready: health::ReadinessCheck = Arc::new(|| Box::pin(async { Ok(()) }));
    let router = routes(fate, shutdown.clone())
        .merge(health::health_routes(ready, &shutdown).into_parts().0)
        .merge(metrics::metrics_routes(&metrics, Arc::new(|_, _| Ok(()))).into_parts().0);
    let ground = ServiceHandlers {
        protected_mode: Default::default(),
        route_lookup: Arc::new(|_: &str| None),
        error_page: Arc::new(|problem: &Problem, _: &ErrorContext, id: &str| {
            format!("<h1>{} {}</h1><p>{} {id}</p>", problem.status.as_u16(), problem.title(), problem.detail)
        }),
        route_handler: Arc::new(|_, _| unreachable!("no path has an owner")),
        direct_routes: Vec::new(),
        hosts: AllowedHosts::new(&config, &[address]),
        authenticator: Arc::new(OpenAuthenticator),
    };
    let app = service::build_service(router, ground, &config, &metrics, &shutdown);
    let (counted, stop) = (metrics.clone(), shutdown.clone());
    let task = tokio::spawn(async move {
        connection::serve_connections(listeners, None, app, &config, &counted, stop).await
    });
    Server { address, shutdown, task, metrics, fates }
}

struct Fate(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Fate {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

fn routes(fates: mpsc::UnboundedSender<&'static str>, shutdown: Shutdown) -> Router {
    let (endless, stops) = (fates.clone(), shutdown.clone());
    let slow = async move |body: Body| {
        let mut fate = Fate(fates, "dropped");
        let _ = axum::body::to_bytes(body, usize::MAX).await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        fate.1 = "done";
        "slept"
    };
    Router::new()
        .route("/hello", get(async || "Hello"))
        .route("/soon", get(soon))
        .route("/users/{id}", get(async || "a user"))
        .route("/echo", post(async |body: Bytes| body))
        .route("/deaf", post(async || "did not listen"))
        .route("/slow", get(slow.clone()).post(slow))
        .route(
            "/big",
            get(async || {
                ([("content-type", "text/plain; charset=utf-8"), ("etag", "\"1\"")], "x".repeat(10_000))
            }),
        )
        .route("/packed", get(async || ([("content-encoding", "br")], "x".repeat(10_000))))
        .route("/ndjson", get(async || ([("content-type", "application/x-ndjson")], "x".repeat(10_000))))
        .route(
            "/own",
            get(async || ([("content-security-policy", "mine"), ("cache-control", "immutable")], "")),
        )
        .route("/panic", get(panics))
        .route("/internal", get(async || Err::<(), _>(Problem::from(Error::internal("the secret cause")))))
        .route(
            "/invalid",
            post(async || Err::<(), _>(Problem::from(Error::invalid("name", "NOT_BLANK", "name is blank")))),
        )
        .route("/graphql", post(async |body: Bytes| body))
        .route("/client", get(who))
        .route("/flood", get(async || Body::from_stream(futures_util::stream::repeat(flood()))))
        .route("/events", get(move || events(shutdown.clone())))
        .route("/endless", get(async move || endless::answer(Fate(endless, "dropped"), stops)))
        .route("/tunnel", get(tunnel))
}

async fn soon() -> &'static str {
    tokio::time::sleep(Duration::from_millis(100)).await;
    "a moment later"
}

async fn panics() -> &'static str {
    panic!("on purpose")
}

async fn who(axum::Extension(client): axum::Extension<ClientInfo>, headers: http::HeaderMap) -> String {
    format!("{} {}", client.address.expect("a peer"), client.origin(headers.get("host")))
}

fn flood() -> Result<Bytes, std::convert::Infallible> {
    Ok(Bytes::from_static(&[b'x'; 65536]))
}

/// One event, then silence until the server stops.
async fn events(shutdown: Shutdown) -> Response {
    let first = futures_util::stream::once(async { Ok::<_, std::io::Error>(Bytes::from("data: first\n\n")) });
    let last = futures_util::stream::once(async move {
        shutdown.wait_for_drain().await;
        Ok(Bytes::from("data: last\n\n"))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, last));
    ([("content-type", "text/event-stream")], body).into_response()
}

/// Another protocol after 101: everything comes back as it went.
async fn tunnel() -> Response {
    let tunnel = ConnectionUpgrade::new(|line| {
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(line);
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
    });
    let status = http::StatusCode::SWITCHING_PROTOCOLS;
    (status, [("connection", "upgrade"), ("upgrade", "websocket")], axum::Extension(tunnel)).into_response()
}

impl Server {
    async fn connect(&self) -> Line {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        stream.set_nodelay(true).expect("no delay");
        Line(stream, Vec::new())
    }

    /// One request on its own connection: what `head` lacks of a good one is added.
    async fn ask(&self, head: &str, body: &str) -> Answer {
        let mut line = self.connect().await;
        line.send(&request(head, body)).await;
        line.answer().await
    }

    async fn fate(&mut self) -> &'static str {
        timeout(PATIENCE, self.fates.recv()).await.expect("in time").expect("a handler ran")
    }
}

/// `"POST /x|Accept: a/b"` with a Host and a length.
fn request(head: &str, body: &str) -> String {
    let mut parts = head.split('|');
    let mut text = format!("{} HTTP/1.1\r\nHost: localhost\r\n", parts.next().expect("a request line"));
    for field in parts {
        text.push_str(&format!("{field}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text + "\r\n" + body
}

/// A connection and what was read of it too early.
struct Line(TcpStream, Vec<u8>);

#[derive(Debug)]
struct Answer {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Line {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("the server reads");
    }

    async fn more(&mut self) -> usize {
        timeout(PATIENCE, self.0.read_buf(&mut self.1)).await.expect("in time").unwrap_or(0)
    }

    /// The server has closed, and said nothing more.
    async fn is_closed(&mut self) -> bool {
        self.1.is_empty() && self.more().await == 0
    }

    async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.1.len() < length {
            assert!(self.more().await > 0, "closed after {:?}", String::from_utf8_lossy(&self.1));
        }
        self.1.drain(..length).collect()
    }

    async fn take_to(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.1.windows(end.len()).position(|window| window == end) {
                return self.take(at + end.len()).await;
            }
            assert!(self.more().await > 0, "closed after {:?}", String::from_utf8_lossy(&self.1));
        }
    }

    async fn head(&mut self) -> Answer {
        let head = String::from_utf8(self.take_to(b"\r\n\r\n").await).expect("ASCII");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().expect("a status line")[9..12].parse().expect("a status");
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Answer { status, fields: lines.filter_map(pair).collect(), body: Vec::new() }
    }

    async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if let Some(length) = answer.field("content-length") {
            answer.body = self.take(length.parse().expect("a length")).await;
        } else if answer.field("transfer-encoding") == Some("chunked") {
            while let chunk @ [_, ..] = &self.chunk().await[..] {
                answer.body.extend_from_slice(chunk);
            }
        }
        answer
    }

    async fn chunk(&mut self) -> Vec<u8> {
        let size = String::from_utf8(self.take_to(b"\r\n").await).expect("ASCII");
        let size = usize::from_str_radix(size.trim(), 16).expect("a chunk size");
        let mut chunk = self.take(size + 2).await;
        chunk.truncate(size);
        chunk
    }
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status, and what the body must say.
    fn is(&self, status: u16, words: &str) {
        assert!(
            self.status == status && self.text().contains(words),
            "not {status} with {words:?}: {self:?}"
        );
    }
}
