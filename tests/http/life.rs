//! Client disconnects and server shutdown.

use std::time::{Duration, Instant};

use super::{PATIENCE, Server, request, short, start, start_with, usual};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use trefoil_server::signals::Shutdown;

#[tokio::test]
async fn client_disconnect_cancels_its_work() {
    let mut server = start(usual()).await;
    for head in ["GET /slow", "POST /slow"] {
        let mut line = server.connect().await;
        line.send(request(head, if head.starts_with("POST") { "body" } else { "" })).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(line);
        assert_eq!(server.fate().await, "dropped", "{head}");
    }
}

/// The beginning of the next request does not hide that the client has gone.
#[tokio::test]
async fn disconnect_behind_a_pipelined_head_cancels_work() {
    let mut server = start(usual()).await;
    let mut line = server.connect().await;
    line.send(request("GET /slow", "") + "GET /hello HTTP/1.1\r\n").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    line.send("Host: a\r\n").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(line);
    assert_eq!(server.fate().await, "dropped");
}

/// `printf … | nc` closes its half at once and still expects the response.
#[tokio::test]
async fn half_closed_client_gets_its_response() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send(request("GET /soon", "")).await;
    line.0.shutdown().await.expect("half closed");
    line.answer().await.is(200, "a moment later");
    assert!(line.is_closed().await);
}

#[tokio::test]
async fn shutdown_finishes_requests_and_closes_idle() {
    let mut server = start(usual()).await;
    let mut idle = server.connect().await;
    idle.send(request("GET /hello", "")).await;
    idle.answer().await.is(200, "Hello");
    let mut busy = server.connect().await;
    busy.send(request("GET /slow", "")).await;
    let mut begun = server.connect().await;
    begun.send("GET /hello HTTP/1.1\r\n").await;
    tokio::time::sleep(Duration::from_millis(100)).await;

    let stopped = Instant::now();
    server.shutdown.begin_draining();
    assert!(idle.is_closed().await);
    assert!(stopped.elapsed() < Duration::from_millis(500), "idle connections wait for nobody");
    begun.send("Host: a\r\n\r\n").await;
    let late = begun.answer().await;
    late.is(503, "shutting down");
    assert_eq!((late.field("retry-after"), late.field("connection")), (Some("1"), Some("close")));
    assert!(begun.is_closed().await);
    let answer = busy.answer().await;
    answer.is(200, "slept");
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(busy.is_closed().await);
    assert_eq!(server.fate().await, "done");
    timeout(PATIENCE, &mut server.task).await.expect("it ends").expect("without panic");
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn health_ready_fails_while_draining() {
    let server = start(short()).await;
    server.ask("GET /health/live", "").await.is(200, "ok");
    server.ask("GET /health/ready", "").await.is(200, "ok");
    let mut begun = server.connect().await;
    begun.send("GET /health/ready HTTP/1.1\r\n").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.shutdown.begin_draining();
    begun.send("Host: a\r\n\r\n").await;
    begun.answer().await.is(503, "shutting down");
}

#[tokio::test]
async fn shutdown_cuts_requests_after_the_timeout() {
    let mut server = start_with(usual(), Shutdown::with_grace(Duration::from_millis(200))).await;
    let mut stuck = server.connect().await;
    stuck.send(request("GET /slow", "")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.shutdown.begin_draining();
    timeout(Duration::from_secs(1), &mut server.task).await.expect("it ends").expect("without panic");
    assert_eq!(server.fate().await, "dropped");
    assert!(stuck.is_closed().await);
}

/// After 101 no request heads are read, no idle timeout applies, and the connection still counts.
#[tokio::test]
async fn upgraded_connection_has_no_http_timeouts() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    line.send(request("GET /tunnel|Connection: Upgrade|Upgrade: websocket", "")).await;
    assert_eq!(line.head().await.status, 101);
    line.send("\n\n\u{0}GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(line.take(21).await, b"\n\n\0GET / HTTP/1.1\r\n\r\n");
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(server.metrics.connections.get(), 1);
    line.send("still there").await;
    assert_eq!(line.take(11).await, b"still there");
    drop(line);
    none_open(&server).await;
}

pub async fn none_open(server: &Server) {
    let began = Instant::now();
    while server.metrics.connections.get() > 0 {
        assert!(began.elapsed() < PATIENCE, "still open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
