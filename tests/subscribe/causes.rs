//! The log of failed requests and ended streams: the cause, and the request id.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Body, PATIENCE, shake_at};
use crate::support::{Outsider, Process};

const SCHEMA: &str = "
    type Author { id: ID! name: String! books: [Book!]! }
    type Book { id: ID! title: String! author: Author! }
    type Note { id: ID! text: String! }
    type Query { books: [Book!] notes: [Note!]! }
    type Mutation { createAuthor(name: String!): Author }
    type Subscription { authorCreated: Author noteCreated: Note }
";

const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

/// A server whose books and notes another program has taken away.
async fn robbed(folder: &std::path::Path) -> Process {
    std::fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
    std::fs::write(folder.join("app/graphql/schema.graphqls"), SCHEMA).expect("a schema");
    let process = Process::start(folder, &["serve", "app"]);
    let outsider = Outsider::file(&folder.join("trefoil-data/trefoil.db"));
    outsider.run("DROP TABLE books; DROP TABLE notes").await.expect("dropped");
    process
}

/// The lines of these levels with this request id, once there are so many.
fn lines(process: &Process, id: &str, levels: &[&str], count: usize) -> Vec<Value> {
    let begin = Instant::now();
    loop {
        let log = process.log();
        let all = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found: Vec<Value> = all
            .filter(|line| line["request_id"] == id && levels.iter().any(|level| line["level"] == *level))
            .collect();
        if found.len() >= count {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "no line for {id} in\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_cause(line: &Value) -> bool {
    line["cause"].as_str().is_some_and(|cause| cause.contains("no such table"))
}

#[tokio::test]
async fn field_error_is_logged_with_the_request_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = robbed(folder.path()).await;
    let query = json!({ "query": "{ books { id } }" }).to_string();
    let headers = [("X-Request-Id", "posted-1"), ("Content-Type", "application/json")];
    let answer = process.client().send("POST", "/graphql", &headers, query.as_bytes()).json();
    assert_eq!(answer["errors"][0]["extensions"]["code"], "INTERNAL", "{answer}");
    process.client().send("GET", "/graphql?query=%7Bbooks%7Bid%7D%7D", &[("X-Request-Id", "read-1")], b"");
    for id in ["posted-1", "read-1"] {
        let found = lines(&process, id, &["ERROR"], 1);
        assert!(found.len() == 1 && has_cause(&found[0]), "{found:?}");
    }

    let headers = [("sec-websocket-protocol", "graphql-transport-ws"), ("x-request-id", "socket-1")];
    let (mut line, _) = shake_at(process.address, &headers).await.expect("the handshake");
    line.send(json!({ "type": "connection_init" })).await;
    assert_eq!(line.receive().await["type"], "connection_ack");
    line.subscribe("operation-7", "{ books { id } }").await;
    assert_eq!(line.receive().await["type"], "next");
    let found = lines(&process, "socket-1", &["ERROR"], 1);
    assert!(found.len() == 1 && has_cause(&found[0]), "{found:?}");
    assert_eq!(found[0]["operation_id"], "operation-7");
}

#[tokio::test]
async fn event_error_is_logged_once_with_a_request_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = robbed(folder.path()).await;
    let path = "/graphql?query=subscription%7BauthorCreated%7Bbooks%7Bid%7D%7D%7D";
    let headers = [EVENTS, ("X-Request-Id", "events-1")];
    let mut streams = [0, 1].map(|_| Body::at(process.address, "GET", path, &headers, ""));
    for stream in &mut streams {
        stream.take("\n\n");
    }
    process.client().graphql("mutation { createAuthor(name: \"Ada\") { id } }");
    for stream in &mut streams {
        let event = stream.take("}\n\n");
        assert!(event.contains("INTERNAL"), "{event}");
    }
    let found = lines(&process, "events-1", &["ERROR"], 1);
    assert!(found.len() == 1 && has_cause(&found[0]), "{found:?}");
    assert!(found[0]["event_id"].as_str().is_some_and(|id| id.contains('-')), "{found:?}");
}

#[tokio::test]
async fn stream_end_is_logged_with_its_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = robbed(folder.path()).await;
    let headers = [EVENTS, ("X-Request-Id", "snapshot-1")];
    let mut broken = Body::at(process.address, "GET", "/notes?snapshot=true", &headers, "");
    assert_eq!((broken.status, broken.rest()), (200, String::new()));
    let found = lines(&process, "snapshot-1", &["ERROR"], 1);
    assert!(found.len() == 1 && has_cause(&found[0]), "{found:?}");
    assert_eq!((&found[0]["message"], &found[0]["transport"]), (&"stream ended".into(), &"rest".into()));

    let graphql = "/graphql?query=subscription%7BauthorCreated%7Bid%7D%7D";
    let open = [
        ("sse-1", "sse", graphql, "text/event-stream"),
        ("parts-1", "multipart", graphql, "multipart/mixed;subscriptionSpec=1.0"),
        ("rest-1", "rest", "/authors", "text/event-stream"),
    ];
    let mut streams = open.map(|(id, _, path, accept)| {
        Body::at(process.address, "GET", path, &[("Accept", accept), ("X-Request-Id", id)], "")
    });
    for stream in &mut streams {
        stream.take("\n");
    }
    process.signal("TERM");
    for (id, transport, ..) in open {
        let found = lines(&process, id, &["INFO"], 2);
        let ended = found.iter().find(|line| line["message"] == "stream ended");
        let ended = ended.unwrap_or_else(|| panic!("{found:?}"));
        assert_eq!(
            (&ended["transport"], &ended["reason"]),
            (&transport.into(), &"the server is stopping".into())
        );
    }
    drop(streams);
    assert_eq!(process.ended_within(Duration::from_secs(10)).code(), Some(0));
}
