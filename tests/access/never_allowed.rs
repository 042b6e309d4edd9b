//! What the claims of a token decide for every record is refused as a whole, on each face.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Server};

const SCHEMA: &str = r#"
type User @account(login: "login") @allow(read: true) { id: ID! login: String! @unique }
type Note @allow(all: "claim('level') >= 5") { id: ID! text: String! }
"#;

#[test]
fn claims_that_do_not_suffice_are_refused_on_each_face() {
    let folder = tempfile::tempdir().expect("a folder");
    write_application(folder.path(), SCHEMA, &[("notes", json!([{ "text": "a" }]).to_string())])
        .expect("written");
    tokens::add_issuer(folder.path(), "login").expect("written");
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::folder(folder.path()), config);
    let level = |level: Value| Some(tokens::bearer(&json!({ "level": level })));
    for (credential, status, code, created) in [
        (None, 401, json!("UNAUTHENTICATED"), 401),
        (level(json!(4)), 403, json!("FORBIDDEN"), 403),
        (level(json!("x")), 403, json!("FORBIDDEN"), 403),
        (level(json!(true)), 403, json!("FORBIDDEN"), 403),
        (level(json!(5)), 200, Value::Null, 201),
    ] {
        let mut client = Client::of(&server);
        let mut send = |method: &str, path: &str, kind: &str, body: &str| {
            let own = credential.as_deref().map(|credential| ("authorization", credential));
            let headers: Vec<(&str, &str)> =
                [("accept", kind), ("content-type", "application/json")].into_iter().chain(own).collect();
            client.send(method, path, &headers, body.as_bytes())
        };
        assert_eq!(send("GET", "/notes", "application/json", "").status, status, "{credential:?}");
        // Who is nobody yet is led to where people sign in.
        let page = if credential.is_none() { 303 } else { status };
        assert_eq!(send("GET", "/notes", "text/html", "").status, page, "{credential:?}");
        let query = json!({ "query": "{ notes { text } }" }).to_string();
        let answer = send("POST", "/graphql", "application/json", &query);
        let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!(answer["errors"][0]["extensions"]["code"], code, "{credential:?}: {answer}");
        let new = send("POST", "/notes", "application/json", r#"{"text": "b"}"#);
        assert_eq!(new.status, created, "{credential:?}");
    }
}
