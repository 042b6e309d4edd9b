//! Subscriptions over SSE (`text/event-stream`) byte for byte, and how such a stream ends.

use std::time::Duration;

use serde_json::json;
use trefoil_config::Config;

use super::{Body, CREATED, create, memory, sample, until_metric};

/// `id: x` of a block.
fn id_of(block: &str) -> &str {
    block.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id")
}

#[test]
fn sse_sends_the_start_id_and_an_id_per_event() {
    let server = sample(memory());
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    let start = body.take("\n\n");
    assert_eq!(start, format!("id: {}\n\n", id_of(&start)));
    assert_eq!(body.header("last-event-id"), Some(id_of(&start)));
    for name in ["Ada", "line\nbreak"] {
        let user = create(&server, name);
        let block = body.take("\n\n");
        let (id, name) = (id_of(&block), json!(name));
        let data = format!(
            "{{\"data\":{{\"userCreated\":{{\"id\":\"{user}\",\"name\":{name}}}}},\"extensions\":{{\"eventId\":\"{id}\"}}}}"
        );
        assert_eq!(block, format!("event: next\nid: {id}\ndata: {data}\n\n"));
    }
}

#[test]
fn sse_works_by_get_like_by_post() {
    let server = sample(memory());
    let path = "/graphql?query=subscription(%24x%3ABoolean!)%7BuserCreated%7Bname%40include(if%3A%24x)%7D%7D&variables=%7B%22x%22%3Atrue%7D";
    let mut body = Body::open(&server, "GET", path, &[("Accept", "text/event-stream")], "");
    assert_eq!(body.status, 200);
    let start = id_of(&body.take("\n\n")).to_owned();
    create(&server, "Ada");
    assert!(body.take("\n\n").contains("{\"userCreated\":{\"name\":\"Ada\"}}"));
    let path = format!("{path}&extensions=%7B%22lastEventId%22%3A%22{start}%22%7D");
    let mut again = Body::open(&server, "GET", &path, &[], "");
    assert_eq!(again.take("\n\n"), format!("id: {start}\n\n"));
    assert!(again.take("\n\n").contains("{\"userCreated\":{\"name\":\"Ada\"}}"));
}

#[test]
fn sse_heartbeat_is_a_comment_with_the_event_id() {
    let server = sample(Config { heartbeat: Duration::from_millis(100), ..memory() });
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    let start = body.take("\n\n");
    for _ in 0..2 {
        assert_eq!(body.take("\n\n"), format!(":\nid: {}\n\n", id_of(&start)));
    }
    create(&server, "Ada");
    let mut event = body.take("\n\n");
    while event.starts_with(':') {
        event = body.take("\n\n");
    }
    assert_eq!(body.take("\n\n"), format!(":\nid: {}\n\n", id_of(&event)));
}

#[test]
fn stream_is_not_cached_buffered_or_compressed() {
    let server = sample(memory());
    for accept in ["text/event-stream", "multipart/mixed;subscriptionSpec=1.0"] {
        let request = json!({ "query": CREATED }).to_string();
        let headers = [("Accept", accept), ("Content-Type", "application/json"), ("Accept-Encoding", "gzip")];
        let body = Body::open(&server, "POST", "/graphql", &headers, &request);
        assert_eq!(body.header("cache-control"), Some("no-store"));
        assert_eq!(body.header("x-accel-buffering"), Some("no"));
        assert_eq!(body.header("content-encoding"), None);
        assert!(body.header("vary").is_some_and(|vary| vary.to_ascii_lowercase().contains("accept")));
        assert!(body.header("x-request-id").is_some());
    }
}

#[test]
fn head_answers_like_get() {
    let server = sample(memory());
    let path = "/graphql?query=subscription%7BuserCreated%7Bid%7D%7D";
    let body = Body::open(&server, "HEAD", path, &[("Accept", "text/event-stream")], "");
    assert_eq!((body.status, body.header("content-type")), (200, Some("text/event-stream; charset=utf-8")));
    until_metric(&server, "trefoil_subscriptions{transport=\"sse\"} 0");
}

#[test]
fn metrics_drop_disconnected_sse_clients() {
    let server = sample(memory());
    let first = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    let mut second = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    until_metric(&server, "trefoil_subscriptions{transport=\"sse\"} 2");
    drop(first);
    until_metric(&server, "trefoil_subscriptions{transport=\"sse\"} 1");
    create(&server, "Ada");
    second.take("event: next");
    until_metric(&server, "trefoil_subscription_events_total{transport=\"sse\"} 1");
}

#[test]
fn shutdown_ends_sse_without_complete() {
    let server = sample(memory());
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    body.take("\n\n");
    drop(server);
    assert_eq!(body.rest(), "", "clients come back by themselves, which they would not after `complete`");
}

#[test]
fn sse_outlives_the_request_timeout() {
    let limits = trefoil_config::ServerLimits {
        request_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_millis(300),
        ..trefoil_config::ServerLimits::default()
    };
    let server = sample(Config { limits, ..memory() });
    let mut body = Body::post(&server, "text/event-stream", json!({ "query": CREATED }));
    body.take("\n\n");
    std::thread::sleep(Duration::from_millis(900));
    create(&server, "Ada");
    assert!(body.take("\n\n").contains("Ada"));
}
