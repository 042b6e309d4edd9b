//! Limits of one subscription client: message size, operations per socket, rate, and timeouts.

use std::time::{Duration, Instant};

use serde_json::json;
use trefoil_config::{Config, RateLimit, ServerLimits};

use super::{Body, CREATED, Line, PATIENCE, create, memory, sample, until_metric};
use crate::support::{Client, Server};

fn limited(change: impl FnOnce(&mut ServerLimits)) -> Server {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    sample(Config { limits, ..memory() })
}

#[tokio::test]
async fn websocket_message_over_the_limit_closes_with_1009() {
    let server = limited(|limits| limits.socket_message = 1000);
    let mut line = Line::ready(&server).await;
    line.send(json!({ "type": "ping", "payload": { "x": "y".repeat(900) } })).await;
    assert_eq!(line.receive().await["type"], "pong");
    line.send(json!({ "type": "ping", "payload": { "x": "y".repeat(2000) } })).await;
    assert_eq!(line.closed().await, (1009, "message larger than 1000 bytes (limits.socket-message)".into()));
}

#[tokio::test]
async fn operation_over_the_limit_is_refused_others_go_on() {
    let server = limited(|limits| limits.socket_subscriptions = 2);
    let mut line = Line::ready(&server).await;
    line.subscribe("1", CREATED).await;
    line.subscribe("2", CREATED).await;
    line.subscribe("3", CREATED).await;
    let message = line.receive().await;
    assert_eq!((&message["id"], &message["type"]), (&json!("3"), &json!("error")));
    let error = &message["payload"][0];
    assert_eq!(error["extensions"]["code"], "LIMIT_EXCEEDED");
    assert_eq!(
        error["message"],
        "more than 2 concurrent operations on one socket (limits.socket-subscriptions)"
    );
    line.send(json!({ "id": "1", "type": "complete" })).await;
    line.subscribe("4", "{ __typename }").await;
    assert_eq!(line.receive().await["id"], "4");
}

#[tokio::test]
async fn document_over_the_limit_fails_its_operation() {
    let server = limited(|limits| limits.tokens = 10);
    let mut line = Line::ready(&server).await;
    line.subscribe("1", &format!("{{ {} }}", "__typename ".repeat(2000))).await;
    let message = line.receive().await;
    assert_eq!(message["type"], "error");
    assert_eq!(message["payload"][0]["extensions"]["code"], "LIMIT_EXCEEDED", "{message}");
    line.settle().await;
}

#[tokio::test]
async fn websocket_operations_count_for_the_rate_limit() {
    let rate_limit = Some(RateLimit { requests: 3, period: Duration::from_secs(60) });
    let server = sample(Config { rate_limit, ..memory() });
    let mut line = Line::ready(&server).await;
    for id in ["1", "2"] {
        line.subscribe(id, "{ __typename }").await;
        assert_eq!(line.receive().await["type"], "next");
        assert_eq!(line.receive().await["type"], "complete");
    }
    line.subscribe("3", "{ __typename }").await;
    let message = line.receive().await;
    assert_eq!(message["payload"][0]["extensions"]["code"], "RATE_LIMITED", "{message}");
}

#[tokio::test]
async fn websocket_operation_has_the_request_timeout() {
    use trefoil::{ResolverResult, Trefoil};
    use trefoil_application::App;
    let app = Trefoil::app(App::from_schema("slow", "type Query { slow: String }")).resolver(
        "Query.slow",
        |_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(ResolverResult::Value("slept".into()))
        },
    );
    let limits = ServerLimits { request_timeout: Duration::from_millis(200), ..ServerLimits::default() };
    let server = Server::start(app, Config { limits, ..memory() });
    let mut line = Line::ready(&server).await;
    line.subscribe("1", "{ slow }").await;
    let message = line.receive().await;
    assert_eq!(
        message["payload"][0]["message"], "no response within 200ms (limits.request-timeout)",
        "{message}"
    );
}

/// More than the buffers of both systems hold.
fn flood(server: &Server, subscribers: &str) {
    let name = "x".repeat(500_000);
    let begin = Instant::now();
    let line = format!("trefoil_subscriptions{{transport=\"{subscribers}\"}} 0");
    loop {
        create(server, &name);
        let text = Client::of(server).send("GET", "/metrics", &[], b"").text();
        if text.lines().any(|own| own == line) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE * 2, "it was never cut");
    }
}

fn impatient() -> Server {
    limited(|limits| limits.stall_timeout = Duration::from_millis(400))
}

#[test]
fn stalled_sse_reader_is_disconnected() {
    let server = impatient();
    let body = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    until_metric(&server, "trefoil_subscriptions{transport=\"sse\"} 1");
    flood(&server, "sse");
    drop(body);
}

#[tokio::test]
async fn stalled_websocket_is_disconnected() {
    let server = impatient();
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    until_metric(&server, "trefoil_subscriptions{transport=\"websocket\"} 1");
    flood(&server, "websocket");
    drop(line);
}

/// Lengths of both larger forms of a frame.
#[tokio::test]
async fn events_of_any_size_arrive_whole() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    for length in [1, 30, 100, 300, 65_000, 66_000, 700_000] {
        let name = "ä".repeat(length / 2 + 1);
        create(&server, &name);
        let message = line.receive().await;
        assert_eq!(message["payload"]["data"]["userCreated"]["name"], name.as_str(), "{length}");
    }
}
