//! Subscriptions over `multipart/mixed;subscriptionSpec=1.0` byte for byte.

use std::time::Duration;

use serde_json::json;
use trefoil_config::Config;

use super::{Body, CREATED, create, memory, sample};

const ACCEPT: &str = "multipart/mixed;subscriptionSpec=1.0, application/json";
const BOUNDARY: &str = "\r\n--graphql";

fn part(place: &str, body: &str) -> String {
    format!(
        "\r\ncontent-type: application/json; charset=utf-8; last-event-id=\"{place}\"\r\n\r\n{body}{BOUNDARY}"
    )
}

#[test]
fn start_id_comes_first_and_parts_end_with_boundary() {
    let server = sample(memory());
    let mut body = Body::post(&server, ACCEPT, json!({ "query": CREATED }));
    let start = body.header("last-event-id").expect("a place").to_owned();
    assert_eq!(body.take(BOUNDARY), BOUNDARY);
    assert_eq!(body.take(BOUNDARY), part(&start, "{}"));
    for name in ["Ada", "Bo"] {
        let user = create(&server, name);
        let text = body.take(BOUNDARY);
        let id = text.split('"').nth(1).expect("an id");
        let data = format!("{{\"userCreated\":{{\"id\":\"{user}\",\"name\":\"{name}\"}}}}");
        let payload = format!("{{\"payload\":{{\"data\":{data},\"extensions\":{{\"eventId\":\"{id}\"}}}}}}");
        assert_eq!(text, part(id, &payload));
    }
}

#[test]
fn heartbeat_is_an_empty_object_with_the_event_id() {
    let server = sample(Config { heartbeat: Duration::from_millis(100), ..memory() });
    let mut body = Body::post(&server, ACCEPT, json!({ "query": CREATED }));
    let start = body.header("last-event-id").expect("a place").to_owned();
    body.take(BOUNDARY);
    for _ in 0..3 {
        assert_eq!(body.take(BOUNDARY), part(&start, "{}"));
    }
}

#[test]
fn resume_with_the_last_event_id_extension() {
    let server = sample(memory());
    let start =
        Body::post(&server, ACCEPT, json!({ "query": CREATED })).header("last-event-id").map(str::to_owned);
    create(&server, "a");
    create(&server, "b");
    let request = json!({ "query": CREATED, "extensions": { "lastEventId": start } });
    let mut body = Body::post(&server, ACCEPT, request);
    body.take("{}");
    assert!(body.take("--graphql\r\n").contains("--graphql"));
    assert!(body.take(BOUNDARY).contains("\"name\":\"a\""));
    assert!(body.take(BOUNDARY).contains("\"name\":\"b\""));
}

/// The error of the store is the response, although the client accepts nothing but streams.
#[test]
fn store_error_is_not_a_406() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = trefoil_config::DatabaseLocation::Embedded;
    let server = sample(Config { database, data: folder.path().to_owned(), ..Config::default() });
    let outsider = rusqlite::Connection::open(folder.path().join("trefoil.db")).expect("the store");
    outsider.busy_timeout(super::PATIENCE).expect("a timeout");
    outsider.execute_batch("UPDATE trefoil_meta SET value = '?' WHERE key = 'epochs'").expect("spoiled");
    for accept in ["multipart/mixed;subscriptionSpec=1.0", ACCEPT, "text/event-stream"] {
        let body = Body::post(&server, accept, json!({ "query": CREATED }));
        assert_eq!(body.status, 500, "{accept}");
    }
}

#[test]
fn shutdown_ends_the_body_without_closing_boundary() {
    let server = sample(memory());
    let mut body = Body::post(&server, ACCEPT, json!({ "query": CREATED }));
    body.take("{}");
    body.take(BOUNDARY);
    drop(server);
    assert_eq!(body.rest(), "", "a body that breaks off is a lost connection to its clients, not the end");
}
