//! An application whose schema has no rules is protected as soon as `trefoil.toml` has `[auth]`: what nothing allows is refused.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Reply, Server};

const SCHEMA: &str = r#"
type Note { id: ID! text: String! }
type Query { notes: [Note!]! }
type Mutation { createNote(text: String!): Note }
"#;

const LISTS: &str = r#"
[[list]]
path = "/open"
read = true

[[list]]
path = "/closed"

[[list]]
path = "/words"
read = "signedIn"
write = "role(EDITOR)"

[[text]]
path = "/hello"
text = "hello"
"#;

const ISSUER: &str = r#"
[[auth.jwt]]
issuer = "tests"
audience = "app"
secret-file = "SECRET"
roles = "roles"
role-map = { "editors" = "EDITOR" }
"#;

fn status(server: &Server, credential: Option<&str>, method: &str, path: &str, body: &str) -> Reply {
    let own = credential.map(|credential| ("authorization", credential));
    let kinds = [("accept", "application/json"), ("content-type", "application/json")];
    let headers: Vec<(&str, &str)> = kinds.into_iter().chain(own).collect();
    Client::of(server).send(method, path, &headers, body.as_bytes())
}

#[test]
fn a_table_of_settings_protects_a_schema_without_rules() {
    for (auth, is_protected) in [("", false), ("[auth]\n", true), ("[auth]\nsession-idle = \"1d\"\n", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let seeds = [("notes", json!([{ "text": "a" }]).to_string())];
        write_application(folder.path(), SCHEMA, &seeds).expect("written");
        std::fs::write(folder.path().join("trefoil.toml"), auth).expect("written");
        let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
        let server = Server::start(Trefoil::folder(folder.path()), config);
        let query = json!({ "query": "{ notes { text } }" }).to_string();
        let found = status(&server, None, "POST", "/graphql", &query).json();
        let code = if is_protected { json!("UNAUTHENTICATED") } else { Value::Null };
        assert_eq!(found["errors"][0]["extensions"]["code"], code, "{auth}: {found}");
        for (method, path, body, open) in [
            ("GET", "/notes", "", 200),
            ("GET", "/notes/1", "", 200),
            ("POST", "/notes", r#"{"text":"b"}"#, 201),
            ("DELETE", "/notes/1", "", 204),
        ] {
            let expected = if is_protected { 401 } else { open };
            let found = status(&server, None, method, path, body);
            assert_eq!(found.status, expected, "{auth}: {method} {path}: {}", found.text());
        }
    }
}

#[test]
fn tokens_are_looked_at_where_only_lists_have_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    write_application(folder.path(), SCHEMA, &[]).expect("written");
    let secret = folder.path().join("issuer.secret");
    std::fs::write(&secret, tokens::SECRET).expect("written");
    let manifest = [LISTS, &ISSUER.replace("SECRET", &secret.display().to_string())].concat();
    std::fs::write(folder.path().join("trefoil.toml"), manifest).expect("written");
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::folder(folder.path()), config);
    let editor = tokens::bearer(&json!({ "roles": ["editors"] }));
    let other = tokens::bearer(&json!({ "roles": ["others"] }));
    for (method, path, expected) in [
        ("GET", "/hello", [200, 200, 200]),
        ("GET", "/open", [200, 200, 200]),
        ("GET", "/closed", [401, 403, 403]),
        ("GET", "/words", [401, 200, 200]),
        ("POST", "/words", [401, 403, 201]),
        ("GET", "/notes", [401, 403, 403]),
    ] {
        let body = if method == "POST" { "\"a\"" } else { "" };
        let askers = [None, Some(other.as_str()), Some(editor.as_str())];
        let found = askers.map(|asker| status(&server, asker, method, path, body).status);
        assert_eq!(found, expected, "{method} {path}");
    }
    assert_eq!(status(&server, Some("Bearer tfk_unknown"), "GET", "/open", "").status, 401);
}
