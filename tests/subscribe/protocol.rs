//! Every rule of the WebSocket protocol `graphql-transport-ws`, in the order of its text.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use trefoil::{ResolverResult, Trefoil};
use trefoil_application::App;
use trefoil_config::{Config, ServerLimits};

use super::{CREATED, Line, create, memory, sample, until_metric};
use crate::support::Server;

/// What a subscription says of a created user.
fn event(id: &str, user: &str, name: &str, place: &Value) -> Value {
    json!({ "id": id, "type": "next", "payload": {
        "data": { "userCreated": { "id": user, "name": name } }, "extensions": { "eventId": place } } })
}

fn place_of(message: &Value) -> Value {
    message["payload"]["extensions"]["eventId"].clone()
}

/// A query that takes its time, and one that does not.
fn slow() -> Server {
    let schema = "type Query { slow(ms: Int! = 400): String  quick: String  failing: String }";
    let trefoil = Trefoil::app(App::from_schema("slow", schema))
        .resolver("Query.slow", |call| async move {
            let ms = call.arguments.get("ms").and_then(trefoil::Value::as_i64).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(ms as u64)).await;
            Ok(ResolverResult::Value("slept".into()))
        })
        .resolver("Query.quick", |_| async { Ok(ResolverResult::Value("here".into())) })
        .resolver("Query.failing", |_| async {
            Err(trefoil::Error::Resolver { message: "it failed".into(), code: "MINE".into() })
        });
    Server::start(trefoil, memory())
}

#[tokio::test]
async fn connection_ack_has_the_start_event_id() {
    let server = sample(memory());
    for payload in [None, Some(Value::Null), Some(json!({ "token": "x" }))] {
        let mut line = Line::open(&server).await;
        let mut init = json!({ "type": "connection_init" });
        if let Some(payload) = payload {
            init["payload"] = payload;
        }
        line.send(init).await;
        let ack = line.receive().await;
        assert_eq!(ack["type"], "connection_ack");
        assert!(ack["payload"]["lastEventId"].as_str().is_some_and(|id| !id.is_empty()), "{ack}");
    }
}

#[tokio::test]
async fn missing_connection_init_closes_with_4408() {
    let limits = ServerLimits { socket_init_timeout: Duration::from_millis(100), ..ServerLimits::default() };
    let server = sample(Config { limits, ..memory() });
    let mut line = Line::open(&server).await;
    line.settle().await;
    let (code, reason) = line.closed().await;
    assert_eq!(code, 4408);
    assert_eq!(reason, "Connection initialisation timeout: 100ms (limits.socket-init-timeout)");
}

#[tokio::test]
async fn second_connection_init_closes_with_4429() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.send(json!({ "type": "connection_init" })).await;
    assert_eq!(line.closed().await, (4429, "Too many initialisation requests".into()));
    let mut both = Line::open(&server).await;
    both.send(json!({ "type": "connection_init" })).await;
    both.send(json!({ "type": "connection_init" })).await;
    assert_eq!(both.closed().await.0, 4429);
}

#[tokio::test]
async fn ping_is_answered_at_any_time_with_its_payload() {
    let server = sample(memory());
    let mut line = Line::open(&server).await;
    for acknowledged in [false, true] {
        if acknowledged {
            line.send(json!({ "type": "connection_init" })).await;
            assert_eq!(line.receive().await["type"], "connection_ack");
        }
        line.send(json!({ "type": "ping" })).await;
        assert_eq!(line.receive().await, json!({ "type": "pong" }));
        line.send(json!({ "type": "ping", "payload": null })).await;
        assert_eq!(line.receive().await, json!({ "type": "pong" }));
        let payload = json!({ "at": 1.50, "text": "\"ä", "deep": [{ "x": null }] });
        line.send(json!({ "type": "ping", "payload": payload })).await;
        assert_eq!(line.receive().await, json!({ "type": "pong", "payload": payload }));
    }
}

#[tokio::test]
async fn unsolicited_pong_counts_as_alive() {
    let server = sample(memory());
    let mut line = Line::open(&server).await;
    line.send(json!({ "type": "pong" })).await;
    line.send(json!({ "type": "pong", "payload": { "x": 1 } })).await;
    line.settle().await;
}

#[tokio::test]
async fn server_ping_without_pong_closes_with_4408() {
    let server = sample(Config { heartbeat: Duration::from_millis(150), ..memory() });
    let mut line = Line::ready(&server).await;
    for _ in 0..3 {
        assert_eq!(line.receive().await, json!({ "type": "ping" }));
        line.send(json!({ "type": "pong" })).await;
    }
    assert_eq!(line.receive().await, json!({ "type": "ping" }));
    assert_eq!(line.closed().await, (4408, "no pong within 150ms (heartbeat)".into()));
}

#[tokio::test]
async fn subscribe_before_ack_closes_with_4401() {
    let server = sample(memory());
    let mut line = Line::open(&server).await;
    line.subscribe("1", "{ __typename }").await;
    assert_eq!(line.closed().await, (4401, "Unauthorized".into()));
}

#[tokio::test]
async fn duplicate_subscription_id_closes_with_4409() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.subscribe("one two", CREATED).await;
    line.subscribe("one two", CREATED).await;
    assert_eq!(line.closed().await, (4409, "Subscriber for one two already exists".into()));
}

#[tokio::test]
async fn duplicate_query_id_closes_with_4409() {
    let server = slow();
    let mut line = Line::ready(&server).await;
    line.subscribe("q", "{ slow(ms: 60000) }").await;
    line.subscribe("q", "{ quick }").await;
    assert_eq!(line.closed().await, (4409, "Subscriber for q already exists".into()));
}

#[tokio::test]
async fn operation_id_is_free_again_after_complete() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    for _ in 0..2 {
        line.subscribe("1", CREATED).await;
        line.send(json!({ "id": "1", "type": "complete" })).await;
    }
    for _ in 0..2 {
        line.subscribe("1", "{ __typename }").await;
        assert_eq!(line.receive().await["payload"], json!({ "data": { "__typename": "Query" } }));
        assert_eq!(line.receive().await, json!({ "id": "1", "type": "complete" }));
    }
    line.subscribe("1", "{ nonsense }").await;
    assert_eq!(line.receive().await["type"], "error");
    line.subscribe("1", "{ __typename }").await;
    assert_eq!(line.receive().await["type"], "next");
}

#[tokio::test]
async fn next_is_sent_for_every_event_in_order() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    for name in ["Ada", "Bo \"q\" \u{2028}", "Çelik"] {
        let user = create(&server, name);
        let message = line.receive().await;
        assert_eq!(message, event("a", &user, name, &place_of(&message)));
    }
}

#[tokio::test]
async fn operations_run_concurrently_on_one_websocket() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    line.subscribe("b", "subscription { userCreated { name } }").await;
    line.subscribe("q", "{ __typename }").await;
    assert_eq!(line.receive().await["id"], "q");
    assert_eq!(line.receive().await, json!({ "id": "q", "type": "complete" }));
    line.settle().await;
    until_metric(&server, "trefoil_subscriptions{transport=\"websocket\"} 2");
    create(&server, "Ada");
    let mut ids = [line.receive().await["id"].clone(), line.receive().await["id"].clone()];
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!("a"), json!("b")]);
    line.send(json!({ "id": "a", "type": "complete" })).await;
    line.settle().await;
    create(&server, "Bo");
    assert_eq!(line.receive().await["id"], "b");
}

#[tokio::test]
async fn validation_error_is_an_error_without_complete() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    let wrong = [
        ("{ users", "GRAPHQL_PARSE_FAILED"),
        ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ("query A { __typename } query B { __typename }", "OPERATION_RESOLUTION_FAILURE"),
        ("query ($x: ID!) { getUserById(id: $x) { id } }", "BAD_USER_INPUT"),
    ];
    for (query, code) in wrong {
        line.subscribe("1", query).await;
        let message = line.receive().await;
        assert_eq!((&message["id"], &message["type"]), (&json!("1"), &json!("error")), "{message}");
        let errors = message["payload"].as_array().expect("a list");
        assert_eq!(errors[0]["extensions"]["code"], code, "{message}");
        assert!(errors[0]["message"].is_string());
        line.settle().await;
    }
}

#[tokio::test]
async fn execution_error_is_part_of_next() {
    let server = slow();
    let mut line = Line::ready(&server).await;
    line.subscribe("1", "{ quick failing }").await;
    let message = line.receive().await;
    assert_eq!(message["type"], "next");
    assert_eq!(message["payload"]["data"], json!({ "quick": "here", "failing": null }));
    assert_eq!(message["payload"]["errors"][0]["extensions"]["code"], "MINE");
    assert_eq!(line.receive().await, json!({ "id": "1", "type": "complete" }));
}

#[tokio::test]
async fn query_and_mutation_get_one_next_and_complete() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    let payload = json!({ "query": "query A { __typename } mutation B($n: String!) { createUser(name: $n, email: \"\") { name } }",
        "operationName": "B", "variables": { "n": "Ada" }, "extensions": null });
    line.send(json!({ "id": "m", "type": "subscribe", "payload": payload })).await;
    let next =
        json!({ "id": "m", "type": "next", "payload": { "data": { "createUser": { "name": "Ada" } } } });
    assert_eq!(line.receive().await, next);
    assert_eq!(line.receive().await, json!({ "id": "m", "type": "complete" }));
    line.subscribe("q", "{ getAllUsers { name } }").await;
    let answer = line.receive().await;
    let users = answer["payload"]["data"]["getAllUsers"].as_array().expect("a list");
    assert!(users.contains(&json!({ "name": "Ada" })), "{answer}");
    assert_eq!(line.receive().await, json!({ "id": "q", "type": "complete" }));
}

#[tokio::test]
async fn client_complete_stops_the_subscription() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    line.send(json!({ "id": "a", "type": "complete" })).await;
    line.settle().await;
    until_metric(&server, "trefoil_subscriptions{transport=\"websocket\"} 0");
    create(&server, "Ada");
    line.settle().await;
}

#[tokio::test]
async fn client_complete_silences_a_running_query() {
    let server = slow();
    let mut line = Line::ready(&server).await;
    line.subscribe("q", "{ slow(ms: 300) }").await;
    line.send(json!({ "id": "q", "type": "complete" })).await;
    line.subscribe("later", "{ slow(ms: 900) }").await;
    assert_eq!(line.receive().await["id"], "later");
}

#[tokio::test]
async fn complete_of_an_unknown_id_is_ignored() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.send(json!({ "id": "never", "type": "complete" })).await;
    line.subscribe("1", "{ __typename }").await;
    assert_eq!(line.receive().await["type"], "next");
    assert_eq!(line.receive().await["type"], "complete");
    line.send(json!({ "id": "1", "type": "complete" })).await;
    line.settle().await;
}

#[tokio::test]
async fn invalid_message_closes_with_4400() {
    let server = sample(memory());
    let wrong = [
        "",
        "nonsense",
        "[]",
        "null",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"connection_ack"}"#,
        r#"{"type":"next","id":"1","payload":{}}"#,
        r#"{"type":"error","id":"1","payload":[]}"#,
        r#"{"type":"start","id":"1","payload":{}}"#,
        r#"{"type":"ping","payload":"x"}"#,
        r#"{"type":"subscribe","payload":{"query":"{ __typename }"}}"#,
        r#"{"type":"subscribe","id":"","payload":{"query":"{ __typename }"}}"#,
        r#"{"type":"subscribe","id":1,"payload":{"query":"{ __typename }"}}"#,
        r#"{"type":"subscribe","id":"1"}"#,
        r#"{"type":"subscribe","id":"1","payload":{}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":null}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":1}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","variables":[]}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","operationName":1}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","extensions":"x"}}"#,
        r#"{"type":"subscribe","id":"1","payload":{"query":"{ __typename }","extensions":{"lastEventId":7}}}"#,
        r#"{"type":"complete"}"#,
    ];
    for text in wrong {
        let mut line = Line::ready(&server).await;
        line.send_text(text).await;
        let (code, reason) = line.closed().await;
        assert_eq!(code, 4400, "{text}");
        assert!(reason.starts_with("Invalid message: ") && reason.len() > 20, "{text}: {reason}");
    }
}

#[tokio::test]
async fn binary_message_closes_with_4400() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.0.send(Message::binary(br#"{"type":"ping"}"#.to_vec())).await.expect("sent");
    assert_eq!(line.closed().await, (4400, "Invalid message: binary messages are not supported".into()));
}

#[tokio::test]
async fn fragmented_message_with_pings_between_is_read() {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    let frame =
        |text: &'static str, code, last| Message::Frame(Frame::message(text, OpCode::Data(code), last));
    line.0.send(frame("{\"type\":", Data::Text, false)).await.expect("sent");
    line.0.send(Message::Ping("between".into())).await.expect("sent");
    line.0.send(frame("\"ping\"}", Data::Continue, true)).await.expect("sent");
    assert_eq!(line.next().await, Message::Pong("between".into()));
    assert_eq!(line.receive().await, json!({ "type": "pong" }));
}

#[tokio::test]
async fn client_close_with_1000_is_echoed() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    until_metric(&server, "trefoil_subscriptions{transport=\"websocket\"} 1");
    let close = CloseFrame { code: 1000.into(), reason: "Normal Closure".into() };
    line.0.close(Some(close)).await.expect("sent");
    assert_eq!(line.closed().await.0, 1000);
    until_metric(&server, "trefoil_subscriptions{transport=\"websocket\"} 0");
}

#[tokio::test]
async fn shutdown_answers_running_operations() {
    let server = slow();
    let mut line = Line::ready(&server).await;
    line.subscribe("q", "{ slow(ms: 1500) }").await;
    line.settle().await;
    let stopping = std::thread::spawn(move || drop(server));
    assert_eq!(line.receive().await["payload"], json!({ "data": { "slow": "slept" } }));
    assert_eq!(line.receive().await, json!({ "id": "q", "type": "complete" }));
    assert_eq!(line.closed().await, (1001, "Going away".into()));
    drop(line);
    stopping.join().expect("it ends");
}

#[tokio::test]
async fn shutdown_closes_with_1001() {
    let server = sample(memory());
    let mut line = Line::ready(&server).await;
    line.following(&server, "a").await;
    let stopping = std::thread::spawn(move || drop(server));
    assert_eq!(line.closed().await, (1001, "Going away".into()));
    drop(line);
    stopping.join().expect("it ends");
}

/// The texts of messages are compared: serde_json would read these objects as numbers.
#[tokio::test]
async fn serde_json_reserved_keys_are_ordinary_keys() {
    let schema = "scalar JSON type Note { id: ID! data: JSON } type Query { notes: [Note!]! }
        type Mutation { createNote(data: JSON): Note }";
    let server = Server::start(Trefoil::app(App::from_schema("notes", schema)), memory());
    let mut line = Line::ready(&server).await;
    for (id, data) in [
        r#"{"$serde_json::private::Number":"any text"}"#,
        r#"[{"a":{"$serde_json::private::Number":"1.5"}}]"#,
        r#"{"$serde_json::private::RawValue":"[1]"}"#,
    ]
    .iter()
    .enumerate()
    {
        let query = "mutation ($data: JSON) { createNote(data: $data) { data } }";
        let payload = format!(r#"{{"query":"{query}","variables":{{"data":{data}}}}}"#);
        line.send_text(&format!(r#"{{"id":"{id}","type":"subscribe","payload":{payload}}}"#)).await;
        let answer = line.next().await.to_string();
        assert!(answer.contains(&format!(r#"{{"createNote":{{"data":{data}}}}}"#)), "{answer}");
        assert_eq!(line.receive().await["type"], "complete");
    }
}
