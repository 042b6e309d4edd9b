//! Every HTTP limit: the status when it is exceeded, and that the error names it.

use std::time::{Duration, Instant};

use super::{request, short, start, usual};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use trefoil_config::{Config, IpNetwork, RateLimit, ServerLimits};

#[tokio::test]
async fn body_over_the_limit_is_413_declared_or_not() {
    let server = start(short()).await;
    server.ask("POST /echo", &"x".repeat(1000)).await.is(200, "xxx");
    let mut line = server.connect().await;
    line.send(request("POST /echo", &"x".repeat(1001))).await;
    let answer = line.answer().await;
    answer.is(413, "1000 B (limits.body)");
    assert_eq!(answer.field("connection"), Some("close"));
    assert!(line.is_closed().await);

    let mut line = server.connect().await;
    line.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    for _ in 0..3 {
        line.send(format!("190\r\n{}\r\n", "x".repeat(400))).await;
    }
    line.answer().await.is(413, "limits.body");
    assert!(line.is_closed().await);
}

/// axum has its own limit (2 MB), which must not apply.
#[tokio::test]
async fn body_limit_may_exceed_the_framework_default() {
    let limits = ServerLimits { body: 3 << 20, ..ServerLimits::default() };
    let server = start(Config { limits, ..usual() }).await;
    assert_eq!(server.ask("POST /echo", &"x".repeat(3 << 20)).await.body.len(), 3 << 20);
    server.ask("POST /echo", &"x".repeat((3 << 20) + 1)).await.is(413, "limits.body");
}

#[tokio::test]
async fn large_upload_still_reads_its_413() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    let upload = request("POST /echo", &"x".repeat(4 << 20));
    let (mut read, mut write) = line.0.split();
    let writing = async {
        let _ = write.write_all(upload.as_bytes()).await;
    };
    let mut text = String::new();
    let reading = tokio::time::timeout(super::PATIENCE, read.read_to_string(&mut text));
    let (_, read) = tokio::join!(writing, reading);
    read.expect("in time").expect("closed properly, not reset");
    assert!(text.starts_with("HTTP/1.1 413"), "{text}");
}

#[tokio::test]
async fn expect_continue_is_answered_before_the_body() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    line.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n").await;
    line.answer().await.is(413, "limits.body");
    let mut line = server.connect().await;
    line.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    assert_eq!(line.head().await.status, 100);
    line.send("ok").await;
    line.answer().await.is(200, "ok");
}

#[tokio::test]
async fn headers_over_the_limit_are_431() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    line.send(format!("GET /hello HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2000))).await;
    line.answer().await.is(431, "2000 B (limits.headers)");
    assert!(line.is_closed().await);
    // Far beyond, and without an end.
    let mut line = server.connect().await;
    line.send(format!("GET /hello HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(100_000))).await;
    line.answer().await.is(431, "limits.headers");
    assert!(line.is_closed().await);
}

#[tokio::test]
async fn headers_up_to_the_default_limit_are_read() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    let frame = "GET /hello HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n".len();
    line.send(format!("GET /hello HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat((16 << 10) - frame)))
        .await;
    line.answer().await.is(200, "Hello");
}

#[tokio::test]
async fn slow_headers_are_408_and_idle_connections_close() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    let began = Instant::now();
    line.send("GET /hello HTTP/1.1\r\nHo").await;
    let answer = line.answer().await;
    answer.is(408, "not received within 300ms (limits.header-timeout)");
    assert!(began.elapsed() >= Duration::from_millis(300) && answer.field("x-request-id").is_some());
    assert!(line.is_closed().await);

    let mut line = server.connect().await;
    let began = Instant::now();
    line.send(request("GET /hello", "")).await;
    line.answer().await.is(200, "Hello");
    assert!(line.is_closed().await);
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
}

/// One byte now and then must not keep a connection open for ever.
#[tokio::test]
async fn dripping_headers_are_408() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    for byte in b"GET /hello HTTP/1.1" {
        line.send([*byte]).await;
        if timeout(Duration::from_millis(60), line.0.readable()).await.is_ok() {
            break;
        }
    }
    line.answer().await.is(408, "limits.header-timeout");
}

#[tokio::test]
async fn slow_body_is_408_and_slow_handler_503() {
    let mut server = start(short()).await;
    let mut line = server.connect().await;
    line.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nxx").await;
    line.answer().await.is(408, "not received within 600ms (limits.request-timeout)");
    assert!(line.is_closed().await);
    assert_eq!(server.fate().await, "dropped");

    let answer = server.ask("POST /slow", "whole").await;
    answer.is(503, "no response within 600ms (limits.request-timeout)");
    assert_eq!(answer.field("retry-after"), Some("1"));
    assert_eq!(server.fate().await, "dropped");
}

/// The stream sends nothing for longer than every timeout; it is neither idle nor slow.
#[tokio::test]
async fn quiet_stream_outlives_the_timeouts() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    line.send(request("GET /events", "")).await;
    assert_eq!(line.head().await.status, 200);
    assert_eq!(line.chunk().await, b"data: first\n\n");
    tokio::time::sleep(Duration::from_millis(1200)).await;
    server.shutdown.begin_draining();
    assert_eq!(line.chunk().await, b"data: last\n\n");
    assert!(line.chunk().await.is_empty() && line.is_closed().await);
}

#[tokio::test]
async fn stalled_reader_is_disconnected() {
    let server = start(short()).await;
    let mut line = server.connect().await;
    line.send(request("GET /flood", "")).await;
    assert_eq!(line.head().await.status, 200);
    let began = Instant::now();
    while server.metrics.connections.get() > 0 {
        assert!(began.elapsed() < super::PATIENCE, "still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
}

#[tokio::test]
async fn connection_limit_answers_503() {
    let limits = ServerLimits { connections: 2, ..ServerLimits::default() };
    let server = start(Config { limits, ..usual() }).await;
    let mut first = server.connect().await;
    first.send(request("GET /hello", "")).await;
    first.answer().await.is(200, "Hello");
    let mut second = server.connect().await;
    second.send(request("GET /hello", "")).await;
    second.answer().await.is(200, "Hello");
    let answer = server.ask("GET /hello", "").await;
    answer.is(503, "the limit is 2 (limits.connections)");
    assert_eq!(answer.field("retry-after"), Some("1"));
    drop(first);
    let began = Instant::now();
    while server.ask("GET /hello", "").await.status != 200 {
        assert!(began.elapsed() < super::PATIENCE, "the place was not given back");
    }
}

#[tokio::test]
async fn rate_limit_sends_headers_and_spares_probes() {
    let rate_limit = Some(RateLimit { requests: 2, period: Duration::from_secs(60) });
    let server = start(Config { rate_limit, ..usual() }).await;
    let first = server.ask("GET /hello", "").await;
    first.is(200, "Hello");
    assert_eq!(first.field("ratelimit-policy"), Some("\"default\";q=2;w=60"));
    assert_eq!(first.field("ratelimit"), Some("\"default\";r=1;t=30"));
    server.ask("GET /no-such-path", "").await.is(404, "");
    let refused = server.ask("GET /hello", "").await;
    refused.is(429, "more than 2 requests in 60 s (rate-limit)");
    let wait: u64 = refused.field("retry-after").expect("a wait").parse().expect("seconds");
    assert!((1..=30).contains(&wait), "{wait}");
    assert!(refused.field("ratelimit").is_some_and(|state| state.contains("r=0")));
    server.ask("GET /health/ready", "").await.is(200, "ok");
}

#[tokio::test]
async fn rate_limit_is_per_client_behind_a_trusted_proxy() {
    let rate_limit = Some(RateLimit { requests: 1, period: Duration::from_secs(60) });
    let loopback = IpNetwork { address: std::net::Ipv4Addr::LOCALHOST.into(), prefix: 32 };
    let server = start(Config { rate_limit, trusted_proxies: vec![loopback], ..usual() }).await;
    server.ask("GET /hello|X-Forwarded-For: 192.0.2.1", "").await.is(200, "");
    server.ask("GET /hello|X-Forwarded-For: 192.0.2.1", "").await.is(429, "");
    let other = server.ask("GET /client|X-Forwarded-For: 192.0.2.2|X-Forwarded-Proto: https", "").await;
    other.is(200, "192.0.2.2 https://localhost");
}
