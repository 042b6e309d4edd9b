//! Responses that stream until the client or the server ends them: their bytes, and what is left afterwards.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::io::AsyncWriteExt;
use trefoil_http::streaming::upgrade::LongLivedBody;
use trefoil_server::signals::Shutdown;

use super::life::none_open;
use super::{Fate, Line, request, short, start, usual};

const LONG: usize = 100_000;

/// Much at once, nothing for a while, and when the server stops a last word.
pub fn answer(fate: Fate, shutdown: Shutdown) -> Response {
    let long = "x".repeat(LONG);
    let first = ["one".to_owned(), String::new(), "two".to_owned(), long, "three".to_owned()];
    let last = stream::once(async move {
        let mut fate = fate;
        shutdown.wait_for_drain().await;
        fate.1 = "done";
        "last".to_owned()
    });
    let body = stream::iter(first).chain(last).map(|text| Ok::<_, std::io::Error>(Bytes::from(text)));
    (axum::Extension(LongLivedBody), Body::from_stream(body)).into_response()
}

async fn first(line: &mut Line) {
    assert_eq!((line.chunk().await, line.chunk().await), (b"one".to_vec(), b"two".to_vec()));
    assert_eq!(line.chunk().await, vec![b'x'; LONG]);
    assert_eq!(line.chunk().await, b"three");
}

#[tokio::test]
async fn chunked_stream_ends_properly_at_shutdown() {
    let mut server = start(usual()).await;
    let mut line = server.connect().await;
    // The second must neither be answered nor disturb.
    line.send(request("GET /endless", "") + &request("GET /hello", "")).await;
    let head = line.head().await;
    assert_eq!((head.status, head.field("transfer-encoding")), (200, Some("chunked")));
    assert_eq!(head.field("connection"), Some("close"));
    first(&mut line).await;
    server.shutdown.begin_draining();
    assert_eq!((line.chunk().await, line.chunk().await), (b"last".to_vec(), Vec::new()));
    assert!(line.is_closed().await);
    assert_eq!(server.fate().await, "done");
}

#[tokio::test]
async fn stream_follows_a_response_on_one_connection() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send(request("GET /hello", "") + &request("GET /endless", "")).await;
    line.answer().await.is(200, "Hello");
    assert_eq!(line.head().await.status, 200);
    first(&mut line).await;
}

#[tokio::test]
async fn http_1_0_stream_is_not_chunked() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send("GET /endless HTTP/1.0\r\nHost: x\r\n\r\n").await;
    assert_eq!(line.head().await.field("transfer-encoding"), None);
    let expected = format!("onetwo{}three", "x".repeat(LONG));
    assert_eq!(line.take(expected.len()).await, expected.as_bytes());
    server.shutdown.begin_draining();
    assert_eq!(line.take(4).await, b"last");
    assert!(line.is_closed().await);
}

#[tokio::test]
async fn head_request_ends_at_once() {
    let mut server = start(usual()).await;
    let mut line = server.connect().await;
    line.send(request("HEAD /endless", "") + &request("GET /hello", "")).await;
    assert_eq!(line.head().await.status, 200);
    line.answer().await.is(200, "Hello");
    assert_eq!(server.fate().await, "dropped");
}

#[tokio::test]
async fn stream_ends_when_the_client_closes_or_half_closes() {
    let mut server = start(usual()).await;
    for half in [false, true] {
        let mut line = server.connect().await;
        line.send(request("GET /endless", "")).await;
        line.head().await;
        first(&mut line).await;
        if half {
            line.0.shutdown().await.expect("half closed");
        } else {
            drop(line);
        }
        assert_eq!(server.fate().await, "dropped");
        none_open(&server).await;
    }
}

#[tokio::test]
async fn stream_outlasts_request_and_idle_timeouts() {
    let mut server = start(short()).await;
    let mut line = server.connect().await;
    line.send(request("GET /endless", "")).await;
    line.head().await;
    first(&mut line).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(server.metrics.connections.get(), 1);
    drop(line);
    assert_eq!(server.fate().await, "dropped");
}
