//! Resuming: every transport sends event ids, and accepts one to continue from.

use std::time::Duration;

use serde_json::{Value, json};
use trefoil_config::Config;

use super::{Body, CREATED, Line, create, memory, sample};
use crate::support::Server;

fn names(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["payload"]["data"]["userCreated"]["name"].as_str()).collect()
}

async fn resume(server: &Server, last: &str, count: usize) -> Vec<Value> {
    let mut line = Line::ready(server).await;
    let payload = json!({ "query": CREATED, "extensions": { "lastEventId": last } });
    line.send(json!({ "id": "r", "type": "subscribe", "payload": payload })).await;
    let mut messages = Vec::new();
    while messages.len() < count {
        messages.push(line.receive().await);
    }
    messages
}

#[tokio::test]
async fn websocket_resumes_from_an_event_or_ack_id() {
    let server = sample(memory());
    let mut line = Line::open(&server).await;
    line.send(json!({ "type": "connection_init" })).await;
    let ack = line.receive().await;
    let start = ack["payload"]["lastEventId"].as_str().expect("a place").to_owned();
    for name in ["a", "b", "c"] {
        create(&server, name);
    }
    let all = resume(&server, &start, 3).await;
    assert_eq!(names(&all), ["a", "b", "c"]);
    let first = all[0]["payload"]["extensions"]["eventId"].as_str().expect("an id");
    create(&server, "d");
    assert_eq!(names(&resume(&server, first, 3).await), ["b", "c", "d"]);
}

#[tokio::test]
async fn websocket_ping_has_the_event_id_without_matches() {
    let config = Config { heartbeat: Duration::from_millis(300), ..memory() };
    let schema = "type Note { id: ID! text: String! }
        type Query { notes: [Note] }
        type Mutation { createNote(text: String!): Note }
        type Subscription { noteCreated(text: String): Note }";
    let server =
        Server::start(trefoil::Trefoil::app(trefoil_application::App::from_schema("notes", schema)), config);
    let mut line = Line::ready(&server).await;
    line.subscribe("n", "subscription { noteCreated(text: \"never\") { text } }").await;
    let mut before = Value::Null;
    let mut seen = Vec::new();
    // The place moves on with changes that this subscription does not ask for.
    for _ in 0..60 {
        let message = line.receive().await;
        assert_eq!(message["type"], "ping", "{message}");
        line.send(json!({ "type": "pong" })).await;
        let place = message["payload"]["lastEventId"].clone();
        if place != before && !place.is_null() {
            seen.push(place.clone());
            before = place;
        }
        if seen.len() == 2 {
            return;
        }
        crate::support::Client::of(&server).graphql("mutation { createNote(text: \"other\") { id } }");
    }
    panic!("the place stood still: {seen:?}");
}

#[tokio::test]
async fn unknown_event_id_is_an_error_on_every_transport() {
    let server = sample(memory());
    let message = resume(&server, "nonsense", 1).await.remove(0);
    assert_eq!((&message["id"], &message["type"]), (&json!("r"), &json!("error")));
    assert_eq!(message["payload"][0]["extensions"]["code"], "EVENT_ID_UNKNOWN", "{message}");

    let request = json!({ "query": CREATED, "extensions": { "lastEventId": "nonsense" } });
    let mut events = Body::post(&server, "text/event-stream", request.clone());
    let text = events.rest();
    assert!(text.starts_with("event: next\ndata: {\"errors\":[{\"message\":"), "{text}");
    assert!(text.contains("EVENT_ID_UNKNOWN") && text.ends_with("\n\nevent: complete\ndata:\n\n"), "{text}");

    let mut parts = Body::post(&server, "multipart/mixed;subscriptionSpec=1.0", request);
    let text = parts.rest();
    assert!(text.contains("{\"payload\":{\"errors\":[{") && text.contains("EVENT_ID_UNKNOWN"), "{text}");
    assert!(text.ends_with("\r\n--graphql--\r\n"), "{text}");
}

#[test]
fn last_event_id_header_overrides_the_extension() {
    let server = sample(memory());
    let request = json!({ "query": CREATED }).to_string();
    let head = [("Accept", "text/event-stream"), ("Content-Type", "application/json")];
    let start = Body::open(&server, "POST", "/graphql", &head, &request).take("\n\n");
    let start = start.strip_prefix("id: ").expect("a place").trim_end().to_owned();
    create(&server, "a");
    create(&server, "b");

    let mut body = Body::open(
        &server,
        "POST",
        "/graphql",
        &[&head[..], &[("Last-Event-ID", &start)]].concat(),
        &request,
    );
    assert_eq!(body.take("\n\n"), format!("id: {start}\n\n"));
    let first = body.take("\n\n");
    assert!(first.contains("\"name\":\"a\""), "{first}");
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id").to_owned();
    assert!(body.take("\n\n").contains("\"name\":\"b\""));

    let no_text = [&head[..], &[("Last-Event-ID", "\u{e4}")]].concat();
    let told = Body::open(&server, "POST", "/graphql", &no_text, &request).take("\n\n");
    assert!(told.contains("EVENT_ID_UNKNOWN"), "what is no text was never given: {told}");

    let both = json!({ "query": CREATED, "extensions": { "lastEventId": start } }).to_string();
    let mut body =
        Body::open(&server, "POST", "/graphql", &[&head[..], &[("Last-Event-ID", &id)]].concat(), &both);
    body.take("\n\n");
    assert!(body.take("\n\n").contains("\"name\":\"b\""), "the header is newer");
    let mut body =
        Body::open(&server, "POST", "/graphql", &[&head[..], &[("Last-Event-ID", "")]].concat(), &both);
    body.take("\n\n");
    assert!(body.take("\n\n").contains("\"name\":\"a\""), "an empty header is none");
    let empty = json!({ "query": CREATED, "extensions": { "lastEventId": "" } });
    let mut body = Body::post(&server, "text/event-stream", empty);
    assert_ne!(body.take("\n\n"), format!("id: {start}\n\n"), "now");
}
