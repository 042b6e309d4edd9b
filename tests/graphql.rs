//! GraphQL tests that a case file cannot express: two clients at once, a locked store.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Server};

const TYPED: (&str, &str) = ("content-type", "application/json");

fn create(client: &mut Client, name: &str) -> crate::support::Reply {
    let body = json!({ "query": "mutation($n: String!) { createUser(name: $n, email: \"\") { id } }", "variables": { "n": name } });
    client.send("POST", "/graphql", &[TYPED, ("idempotency-key", "k")], body.to_string().as_bytes())
}

fn code(body: &Value) -> &Value {
    &body["errors"][0]["extensions"]["code"]
}

#[test]
fn locked_store_is_a_graphql_error_with_retry_after() {
    let folder = tempfile::tempdir().unwrap();
    let database = DatabaseLocation::Embedded;
    let config = Config { database, data: folder.path().to_owned(), ..Config::default() };
    let server = Server::start(Trefoil::sample(), config);
    let outsider = rusqlite::Connection::open(folder.path().join("trefoil.db")).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut client = Client::of(&server);
    let first = std::thread::spawn(move || create(&mut client, "Ada"));
    std::thread::sleep(Duration::from_millis(500));

    let second = create(&mut Client::of(&server), "Ada");
    assert_eq!((second.status, code(&second.json())), (409, &json!("IDEMPOTENCY_KEY_IN_USE")));
    let first = first.join().unwrap();
    assert_eq!((first.status, code(&first.json())), (503, &json!("UNAVAILABLE")));
    assert!(first.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().unwrap() > 0));

    // Nothing was kept of what failed, and the next attempt succeeds; another request may not have its key.
    outsider.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        create(&mut Client::of(&server), "Ada").json(),
        json!({ "data": { "createUser": { "id": "8" } } })
    );
    let other = create(&mut Client::of(&server), "Bo");
    assert_eq!((other.status, code(&other.json())), (422, &json!("IDEMPOTENCY_KEY_REUSED")));
}

#[test]
fn graphiql_tab_operations_all_run() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let tabs = client.send("GET", "/_/graphiql/tabs.json", &[], b"").json();
    let mut ran = 0;
    for tab in tabs.as_array().unwrap() {
        let text = tab["query"].as_str().unwrap();
        assert!(text.lines().all(|line| line.len() <= 120), "a long line in {text}");
        let names = text.lines().filter_map(|line| line.strip_suffix(" {")?.split_once(' '));
        for (kind, name) in names.filter(|(kind, _)| matches!(*kind, "query" | "mutation" | "subscription")) {
            let body = json!({ "query": text, "operationName": name }).to_string();
            ran += 1;
            if kind == "subscription" {
                assert!(begins(&server, &body), "{name} of {text}");
                continue;
            }
            let reply = client.send("POST", "/graphql", &[TYPED], body.as_bytes()).json();
            assert_eq!(reply.get("errors"), None, "{name} of {text}");
            assert!(
                reply["data"].as_object().is_some_and(|data| data.values().all(|value| !value.is_null()))
            );
        }
    }
    assert_eq!(ran, 16, "three operations for each of five record types, and one subscription: {tabs}");
}

/// Whether a subscription tells where it starts.
fn begins(server: &Server, body: &str) -> bool {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = "POST /graphql HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
                Content-Type: application/json\r\nContent-Length: ";
    (&stream).write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    BufReader::new(stream).lines().map_while(Result::ok).take(100).any(|line| line.starts_with("id: "))
}
