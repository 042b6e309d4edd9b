//! A schema reload under open subscriptions of every transport: they continue, or end with the reason.

use std::fs;

use serde_json::{Value, json};

use super::{Body, shake_at};
use crate::support::Process;

const FIRST: &str = "type Note { id: ID! text: String! extra: String }
    type Query { notes: [Note] }
    type Mutation { createNote(text: String!): Note }
    type Subscription { noteCreated: Note }";

const REQUEST: &str = "subscription { noteCreated { text extra } }";

fn errors(text: &str) -> Value {
    let from = text.find("{\"").unwrap_or_else(|| panic!("{text}"));
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    values.next().expect("a value").expect("JSON")
}

#[tokio::test]
async fn subscription_that_became_invalid_ends_with_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("app/graphql")).expect("a folder");
    let schema = folder.path().join("app/graphql/schema.graphqls");
    fs::write(&schema, FIRST).expect("a schema");
    let process = Process::start(folder.path(), &["serve", "app", "--watch", "--database", "memory:"]);

    let open = |accept: &str| {
        let headers = [("Accept", accept), ("Content-Type", "application/json")];
        Body::at(process.address, "POST", "/graphql", &headers, &json!({ "query": REQUEST }).to_string())
    };
    let mut events = open("text/event-stream");
    events.take("\n\n");
    let mut parts = open("multipart/mixed;subscriptionSpec=1.0");
    parts.take("{}\r\n--graphql");
    let protocol = ("sec-websocket-protocol", "graphql-transport-ws");
    let (mut line, _) = shake_at(process.address, &[protocol]).await.expect("the handshake");
    line.send(json!({ "type": "connection_init" })).await;
    line.receive().await;
    line.subscribe("n", REQUEST).await;
    line.settle().await;

    // First one under which all go on, then one that lacks what they ask for.
    let second = FIRST.replace("extra: String", "extra: String more: Int");
    fs::write(&schema, &second).expect("a schema");
    process.wait_for("reloaded the schema");
    process.client().graphql("mutation { createNote(text: \"still\") { id } }");
    assert!(events.take("\n\n").contains("{\"text\":\"still\",\"extra\":null}"));
    assert!(parts.take("--graphql").contains("{\"text\":\"still\",\"extra\":null}"));
    assert_eq!(line.receive().await["payload"]["data"]["noteCreated"]["text"], "still");

    fs::write(&schema, second.replace("noteCreated: Note", "other: String")).expect("a schema");
    let text = events.rest();
    assert!(text.starts_with("event: next\ndata: {\"errors\":[{\"message\":\"Cannot query field"), "{text}");
    assert!(text.ends_with("}\n\nevent: complete\ndata:\n\n"), "{text}");
    let text = parts.rest();
    assert!(text.ends_with("}\r\n--graphql--\r\n"), "{text}");
    let part = errors(&text);
    assert_eq!(part["payload"], Value::Null);
    assert_eq!(part["errors"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED", "{part}");
    let message = line.receive().await;
    assert_eq!((&message["id"], &message["type"]), (&json!("n"), &json!("error")), "{message}");
    assert_eq!(message["payload"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED", "{message}");
    line.settle().await;
}
