//! In which order the mistakes of a write are told: what the actor may never do goes before what they sent.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Reply, Server, postgres};

const SCHEMA: &str = r#"
scalar JSON
enum Role { ADMIN WRITER }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "login", roles: "role") @allow(read: true) {
  id: ID!
  login: String! @unique
  role: Role @allow(write: "role(ADMIN)")
}
type Note @allow(read: true, create: true, update: true) {
  id: ID!
  title: String! @length(max: 10)
  rank: Int @range(max: 5) @allow(write: "role(ADMIN)")
  secret: String @length(max: 3) @allow(read: "role(ADMIN)", write: "role(ADMIN)")
  fixed: Int @default(value: 7) @allow(write: false)
  data: JSON @allow(write: "role(ADMIN)")
  open: JSON
  owner: User @createdBy
}
type Closed @allow(read: true, create: "role(ADMIN)") { id: ID! title: String! }
type Entry @allow(read: true, create: "title != 'no'") { id: ID! title: String! }
"#;

struct OrderStage {
    server: Server,
    ann: String,
    _folder: tempfile::TempDir,
}

impl OrderStage {
    fn both() -> [OrderStage; 2] {
        let url = PostgresUrl::parse(&postgres::database()).expect("an address");
        [DatabaseLocation::Memory, DatabaseLocation::Postgres(url)].map(|database| {
            let folder = tempfile::tempdir().expect("a folder");
            let seeds = [
                ("users", json!([{ "login": "ann" }])),
                ("notes", json!([{ "title": "one", "rank": 1, "secret": "abc", "open": { "a": 1 } }])),
            ];
            let seeds = seeds.map(|(name, rows)| (name, rows.to_string()));
            write_application(folder.path(), SCHEMA, &seeds).expect("written");
            tokens::add_issuer(folder.path(), "login").expect("written");
            let config = Config { database, ..Config::default() };
            let server = Server::start(Trefoil::folder(folder.path()), config);
            OrderStage { server, ann: tokens::bearer(&json!({ "login": "ann" })), _folder: folder }
        })
    }

    fn send(&self, credential: Option<&str>, method: &str, path: &str, kind: &str, body: &str) -> Reply {
        let own = credential.map(|credential| ("authorization", credential));
        let accepted = if kind.contains("form") { "text/html" } else { "application/json" };
        let headers: Vec<(&str, &str)> =
            [("accept", accepted), ("content-type", kind)].into_iter().chain(own).collect();
        Client::of(&self.server).send(method, path, &headers, body.as_bytes())
    }

    fn write(&self, credential: Option<&str>, method: &str, path: &str, body: &Value) -> Reply {
        self.send(credential, method, path, "application/json", &body.to_string())
    }
}

#[test]
fn fields_that_may_never_be_set_are_refused_before_what_they_hold() {
    for stage in OrderStage::both() {
        let rank = json!({ "title": "a", "rank": 1 });
        for (method, path, body, signed_in, anonymous) in [
            // Beside other mistakes, in every order of names.
            ("POST", "/notes", json!({ "title": "far too long a title", "rank": 1 }), 403, 401),
            ("POST", "/notes", json!({ "titel": "a", "rank": 1 }), 403, 401),
            ("POST", "/notes", json!({ "rank": "x", "title": 5 }), 403, 401),
            ("POST", "/notes", rank.clone(), 403, 401),
            // Nobody may set it, so no credential would help.
            ("POST", "/notes", json!({ "titel": "a", "fixed": 1 }), 403, 403),
            ("POST", "/notes", json!({ "titel": "a", "ownerId": 1 }), 403, 403),
            ("POST", "/closeds", json!({ "titel": 5 }), 403, 401),
            ("PATCH", "/notes/1", json!({ "titel": 5, "rank": 1 }), 403, 401),
            // Before the record is looked for, also where a patch is merged with it.
            ("PATCH", "/notes/99", json!({ "rank": 1 }), 403, 401),
            ("PATCH", "/notes/99", json!({ "data": { "a": 1 } }), 403, 401),
            ("PATCH", "/notes/99", json!({ "open": { "a": 1 }, "rank": 1 }), 403, 401),
            ("PATCH", "/notes/99", json!({ "open": { "a": 1 }, "titel": 1 }), 400, 400),
            ("PATCH", "/notes/99", json!({ "open": { "a": 1 } }), 404, 404),
            ("PATCH", "/notes?title=one", json!({ "data": { "a": 1 } }), 403, 401),
            // Who overwrites gives back what they were shown: other values cannot be that.
            ("PUT", "/notes/1", json!({ "title": "one", "rank": 1, "secret": null, "fixed": 7 }), 200, 200),
            ("PUT", "/notes/1", json!({ "title": "one" }), 200, 200),
            ("PUT", "/notes/1", json!({ "title": "one", "rank": 2 }), 403, 401),
            ("PUT", "/notes/1", json!({ "title": "one", "rank": 9 }), 403, 401),
            ("PUT", "/notes/1", json!({ "title": "one", "rank": "x" }), 403, 401),
            ("PUT", "/notes/1", json!({ "title": "far too long a title", "rank": "x" }), 403, 401),
            ("PUT", "/notes/1", json!({ "title": "one", "secret": "abc" }), 403, 401),
            ("PUT", "/notes/99", json!({ "title": "one", "secret": "abc" }), 403, 401),
            ("PUT", "/notes/99", json!({ "title": "one", "rank": 1 }), 404, 404),
        ] {
            for (credential, expected) in [(Some(stage.ann.as_str()), signed_in), (None, anonymous)] {
                let found = stage.write(credential, method, path, &body);
                let (asker, text) = (credential.map_or("nobody", |_| "ann"), found.text());
                assert_eq!(found.status, expected, "{asker}: {method} {path} {body}: {text}");
            }
        }
        let named =
            stage.write(Some(&stage.ann), "POST", "/notes", &json!({ "titel": 1, "rank": 1, "data": 1 }));
        let pointers: Vec<Value> = named.json()["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| error["pointer"].clone())
            .collect();
        assert_eq!(pointers, ["#/rank", "#/data"], "{}", named.text());
        let kept = stage.write(None, "GET", "/notes/1", &Value::Null).json();
        assert_eq!(
            (&kept["rank"], &kept["fixed"], &kept["open"]),
            (&json!(1), &json!(7), &Value::Null),
            "{kept}"
        );
    }
}

#[test]
fn forms_with_fields_that_may_never_be_set_are_refused_first() {
    const FORM: &str = "application/x-www-form-urlencoded";
    for stage in OrderStage::both() {
        for (path, body, expected) in [
            ("/notes", "title=a&rank=x", 403),
            ("/notes", "title=far+too+long+a+title&rank=1", 403),
            ("/notes", "title=far+too+long+a+title", 400),
            ("/notes/1", "title=one&rank=x", 403),
            ("/notes/1", "title=far+too+long+a+title&rank=x", 403),
            ("/notes/1", "title=one&rank=1", 303),
        ] {
            let found = stage.send(Some(&stage.ann), "POST", path, FORM, body);
            assert_eq!(found.status, expected, "{path} {body}: {}", found.text());
        }
    }
}

#[test]
fn the_refused_one_of_many_is_named() {
    for stage in OrderStage::both() {
        let one = |title: &str| json!({ "title": title });
        let many = json!([one("a"), one("b"), one("c"), one("no")]);
        let refused = stage.write(Some(&stage.ann), "POST", "/entries", &many);
        let found =
            (refused.status, refused.json()["code"].clone(), refused.json()["errors"][0]["pointer"].clone());
        assert_eq!(found, (403, json!("FORBIDDEN"), json!("#/3")), "{}", refused.text());
        let with_field = json!([{ "title": "a" }, { "title": "b", "rank": 1 }]);
        let refused = stage.write(Some(&stage.ann), "POST", "/notes", &with_field);
        let found = (refused.status, refused.json()["errors"][0]["pointer"].clone());
        assert_eq!(found, (403, json!("#/1/rank")), "{}", refused.text());
        let request = |title: &str| json!({ "method": "POST", "path": "/entries", "body": one(title) });
        let refused =
            stage.write(Some(&stage.ann), "POST", "/_/batch", &json!([request("a"), request("no")]));
        let found = (refused.status, refused.json()["code"].clone(), refused.json()["index"].clone());
        assert_eq!(found, (403, json!("FORBIDDEN"), json!(1)), "{}", refused.text());
        let document = "mutation { createEntries(input: [{ title: \"a\" }, { title: \"no\" }]) { id } }";
        let answer = stage.write(Some(&stage.ann), "POST", "/graphql", &json!({ "query": document })).json();
        assert_eq!(answer["errors"][0]["extensions"]["code"], "FORBIDDEN", "{answer}");
        assert!(answer["errors"][0]["extensions"]["violations"].to_string().contains('1'), "{answer}");
        let kept = stage.write(None, "GET", "/entries", &Value::Null).json();
        assert_eq!(kept, json!([]), "nothing was written");
    }
}

/// Addresses are logged and handed on: nothing in a query is a credential.
#[test]
fn nothing_in_a_query_is_a_credential() {
    for stage in OrderStage::both() {
        let token = stage.ann.trim_start_matches("Bearer ");
        for name in ["access_token", "token", "key", "api_key", "authorization", "Authorization"] {
            let path = format!("/_/me?{name}={token}");
            let told = stage.write(None, "GET", &path, &Value::Null);
            assert!(told.status != 200 || told.json()["kind"] == "anonymous", "{name}: {}", told.text());
            let refused =
                stage.write(None, "POST", &format!("/closeds?{name}={token}"), &json!({ "title": "a" }));
            assert!([400, 401].contains(&refused.status), "{name}: {}", refused.text());
        }
        let told = stage.write(Some(&stage.ann), "GET", "/_/me", &Value::Null).json();
        assert_eq!(told["kind"], "token", "{told}");
    }
}
