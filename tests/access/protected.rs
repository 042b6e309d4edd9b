//! An application whose schema has no rules is protected as soon as `trefoil.toml` has `[auth]`: what nothing allows is refused.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Process, Reply, Server};

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

const RULES: &str = r#"
enum Role { ADMIN }
type User @account(login: "email", roles: "role") @allow(read: "role(ADMIN)")
{ id: ID! email: String! @unique role: Role @allow(write: false) }
type Note @allow(read: "role(ADMIN)") { id: ID! text: String! }
"#;

#[test]
fn a_start_says_who_has_access() {
    for (schema, flags, says) in [
        (RULES, &[][..], Some("access: protected (2 types, 1 role); sign in at /_/sign-in")),
        (RULES, &["--host", "0.0.0.0"], Some("access: protected (2 types, 1 role)")),
        // It does nothing here.
        (RULES, &["--host", "0.0.0.0", "--open"], Some("access: protected (2 types, 1 role)")),
        (SCHEMA, &["--host", "0.0.0.0", "--open"], None),
        (SCHEMA, &["--open"], None),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write_application(&folder.path().join("app"), schema, &[]).expect("written");
        let server = Process::start(folder.path(), &[&["serve", "app"], flags].concat());
        server.wait_for("listening on");
        let log = server.log();
        assert_eq!(log.contains("access: protected"), says.is_some(), "{flags:?}: {log}");
        assert!(log.contains(says.unwrap_or_default()), "{flags:?}: {log}");
        let warning = "may read and change everything: no @allow, no @account";
        let is_warned = log.contains("everybody who reaches 0.0.0.0:") && log.contains(warning);
        assert_eq!(is_warned, says.is_none() && flags.contains(&"--host"), "{flags:?}: {log}");
        let listed = server.client().send("GET", "/notes", &[("accept", "application/json")], b"");
        assert_eq!(listed.status, if says.is_some() { 401 } else { 200 }, "{flags:?}");
    }
}

#[test]
fn a_reload_does_not_open_an_application_for_others() {
    let listed = |server: &Process| {
        server.client().send("GET", "/notes", &[("accept", "application/json")], b"").status
    };
    for (host, is_opened) in [("0.0.0.0", false), ("127.0.0.1", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let app = folder.path().join("app");
        write_application(&app, RULES, &[]).expect("written");
        let server = Process::start(folder.path(), &["serve", "app", "--watch", "--host", host]);
        assert_eq!(listed(&server), 401);
        let open = "enum Role { ADMIN }\ntype User { id: ID! email: String! @unique role: Role }\n\
                    type Note { id: ID! text: String! }";
        std::fs::write(app.join("graphql/schema.graphqls"), open).expect("written");
        if is_opened {
            wait_until(|| listed(&server) == 200, &server);
            continue;
        }
        server.wait_for("still serving the previous one");
        assert!(server.log().contains("start the server with --open to allow this"), "{}", server.log());
        assert_eq!(listed(&server), 401, "the schema with rules goes on");
        // What [auth] protects is not open.
        std::fs::write(app.join("trefoil.toml"), "[auth]\n").expect("written");
        server.wait_for("reloaded the schema");
        assert_eq!(listed(&server), 401);
    }
}

fn wait_until(condition: impl Fn() -> bool, server: &Process) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
