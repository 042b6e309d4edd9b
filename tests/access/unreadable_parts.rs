//! What is answered of parts that may not be read: a record after it was written, included types, members of an interface.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Server, postgres};

const SCHEMA: &str = r#"
enum Role { ADMIN }
extend schema @allow(all: "role(ADMIN)")
interface Thing { id: ID! title: String! }
type User @account(login: "login") @allow(read: true) { id: ID! login: String! @unique notes: [Note!]! }
type Note implements Thing @allow(read: "owner == me", create: "signedIn", update: "owner == me", updateTo: true) {
  id: ID!
  title: String!
  text: String
  pin: String @allow(read: "role(ADMIN)")
  owner: User!
  secrets: [Secret!]!
}
type Secret implements Thing @allow(read: "role(ADMIN)") { id: ID! title: String! note: Note! }
type Query { things: [Thing!]!  notes: [Note!]!  secrets: [Secret!]!  users: [User!]! }
type Mutation {
  createNote(title: String!, text: String, ownerId: ID!): Note
  updateNote(id: ID!, ownerId: ID): Note
}
"#;

#[test]
fn what_may_not_be_read_is_told_apart_from_what_fails() {
    let postgres = PostgresUrl::parse(&postgres::database()).expect("an address");
    for database in [DatabaseLocation::Memory, DatabaseLocation::Postgres(postgres)] {
        let folder = tempfile::tempdir().expect("a folder");
        let seeds = [
            ("users", json!([{ "login": "ann" }, { "login": "bob" }])),
            ("notes", json!([{ "title": "one", "text": "first", "ownerId": 1 }])),
            ("secrets", json!([{ "title": "secret", "noteId": 1 }])),
        ];
        let seeds = seeds.map(|(name, rows)| (name, rows.to_string()));
        write_application(folder.path(), SCHEMA, &seeds).expect("written");
        tokens::add_issuer(folder.path(), "login").expect("written");
        let config = Config { database, ..Config::default() };
        let server = Server::start(Trefoil::folder(folder.path()), config);
        let [ann, bob] = ["ann", "bob"].map(|login| tokens::bearer(&json!({ "login": login })));
        let admin = tokens::bearer(&json!({ "roles": ["ADMIN"] }));
        let send = |credential: Option<&str>, method: &str, path: &str, body: &str| {
            let headers = [("accept", "application/json"), ("content-type", "application/json")];
            let own = credential.map(|credential| ("authorization", credential));
            let headers: Vec<(&str, &str)> = headers.into_iter().chain(own).collect();
            Client::of(&server).send(method, path, &headers, body.as_bytes())
        };
        let ask = |credential: Option<&str>, document: &str| -> Value {
            send(credential, "POST", "/graphql", &json!({ "query": document }).to_string()).json()
        };
        // The data, and code and path of each error.
        let outline = |answer: &Value| {
            let errors = answer["errors"].as_array().into_iter().flatten();
            let errors = errors.map(|error| json!([error["extensions"]["code"], error["path"]]));
            json!([answer["data"], errors.collect::<Vec<_>>()])
        };

        // A written record that is out of sight: its id, and what is asked of it is refused.
        let create = |directive: &str, selection: &str| {
            let fields = "title: \"two\", text: \"second\", ownerId: 2";
            let document = format!("mutation {directive} {{ note: createNote({fields}) {{ {selection} }} }}");
            outline(&ask(Some(&ann), &document))
        };
        assert_eq!(create("", "__typename id"), json!([{ "note": { "__typename": "Note", "id": "2" } }, []]));
        let hidden = json!([{ "note": { "id": "3", "text": null } }, [["FORBIDDEN", ["note", "text"]]]]);
        assert_eq!(create("", "id text"), hidden);
        let required = json!([{ "note": null }, [["FORBIDDEN", ["note", "title"]]]]);
        assert_eq!(create("", "id title"), required);
        // An error undoes an atomic operation, whether it is known before the write or after it.
        let atomic = json!([{ "note": null }, [["FORBIDDEN", ["note", "text"]]]]);
        assert_eq!(create("@atomic", "id text"), atomic);
        assert_eq!(create("@atomic", "id title"), required);
        let both = |owner: i64, selection: &str| {
            let create = |field: &str, owner: i64, selection: &str| {
                format!("{field}: createNote(title: \"two\", ownerId: {owner}) {{ {selection} }}")
            };
            let (one, two) = (create("one", 1, "id"), create("two", owner, selection));
            outline(&ask(Some(&ann), &format!("mutation @atomic {{ {one} {two} }}")))
        };
        let undone = |path: Value| {
            let errors = json!([["ROLLED_BACK", ["one"]], ["FORBIDDEN", path]]);
            json!([{ "one": null, "two": null }, errors])
        };
        assert_eq!(both(2, "text"), undone(json!(["two", "text"])));
        assert_eq!(both(1, "id pin"), undone(json!(["two", "pin"])));
        assert_eq!(both(2, "text pin")[1].as_array().map(Vec::len), Some(3));
        let given = ask(Some(&ann), "mutation { updateNote(id: 1, ownerId: 2) { id text owner { login } } }");
        let expected = json!([{ "updateNote": null },
            [["FORBIDDEN", ["updateNote", "text"]], ["FORBIDDEN", ["updateNote", "owner"]]]]);
        assert_eq!(outline(&given), expected, "{given}");
        let all = ask(Some(&admin), "{ notes { id } }");
        assert_eq!(all["data"]["notes"].as_array().map(Vec::len), Some(4), "{all}");

        // Members of an interface that may never be read are not there.
        let things = |credential: Option<&str>| outline(&ask(credential, "{ things { __typename id } }"));
        let note = |id: i64| json!({ "__typename": "Note", "id": id.to_string() });
        assert_eq!(things(Some(&bob)), json!([{ "things": (1..=4).map(note).collect::<Vec<_>>() }, []]));
        assert_eq!(things(Some(&ann)), json!([{ "things": [] }, []]));
        assert_eq!(things(Some(&admin))[0]["things"].as_array().map(Vec::len), Some(5));
        assert_eq!(things(None)[1][0][0], "UNAUTHENTICATED");

        // An included type that needs a credential.
        let status = |credential: Option<&str>, path: &str| send(credential, "GET", path, "").status;
        assert_eq!(status(None, "/users"), 200);
        for path in ["/users?include=notes", "/users/1?include=notes", "/users?include=notes.secrets"] {
            assert_eq!(status(None, path), 401, "{path}");
        }
        assert_eq!(status(Some(&bob), "/users?include=notes"), 200);
        assert_eq!(status(Some(&bob), "/users?include=notes.secrets"), 403);
        assert_eq!(status(Some(&admin), "/users?include=notes.secrets"), 200);
    }
}

/// A record that its writer may not read any more: its id, and no place to read it at.
#[test]
fn records_out_of_sight_are_written_without_a_place() {
    let postgres = PostgresUrl::parse(&postgres::database()).expect("an address");
    for database in [DatabaseLocation::Memory, DatabaseLocation::Postgres(postgres)] {
        let folder = tempfile::tempdir().expect("a folder");
        let seeds = [
            ("users", json!([{ "login": "ann" }, { "login": "bob" }])),
            ("notes", json!([{ "title": "one", "ownerId": 1 }, { "title": "two", "ownerId": 1 }])),
        ];
        let seeds = seeds.map(|(name, rows)| (name, rows.to_string()));
        write_application(folder.path(), SCHEMA, &seeds).expect("written");
        tokens::add_issuer(folder.path(), "login").expect("written");
        let config = Config { database, ..Config::default() };
        let server = Server::start(Trefoil::folder(folder.path()), config);
        let ann = tokens::bearer(&json!({ "login": "ann" }));
        let send = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
            let headers = [&[("authorization", ann.as_str())], headers].concat();
            Client::of(&server).send(method, path, &headers, body.as_bytes())
        };
        let json = |method: &str, path: &str, key: &str, body: &Value| {
            let kinds = [("accept", "application/json"), ("content-type", "application/json")];
            let key = (!key.is_empty()).then_some(("idempotency-key", key));
            send(method, path, &kinds.into_iter().chain(key).collect::<Vec<_>>(), &body.to_string())
        };
        let note = |owner: i64| json!({ "title": "new", "text": "hidden", "ownerId": owner });

        let own = json("POST", "/notes", "", &note(1));
        assert_eq!((own.status, own.header("location")), (201, Some("/notes/3")), "{}", own.text());
        // The second answer is the first one again.
        for _ in 0..2 {
            let given = json("POST", "/notes", "k", &note(2));
            assert_eq!((given.status, given.header("location")), (201, None), "{}", given.text());
            assert_eq!(given.json(), json!({ "id": "4" }));
        }
        let selected = json("POST", "/notes?fields=title", "", &note(2));
        assert_eq!((selected.header("location"), selected.json()), (None, json!({ "id": "5" })));
        let many = json("POST", "/notes", "", &json!([note(1), note(2)])).json();
        assert_eq!((&many[0]["title"], &many[1]), (&json!("new"), &json!({ "id": "7" })), "{many}");
        for (method, path, body) in [
            ("PATCH", "/notes/1", json!({ "ownerId": 2 })),
            ("PUT", "/notes/2", json!({ "title": "two", "ownerId": 2 })),
        ] {
            let given = json(method, path, "", &body);
            assert_eq!((given.status, given.header("location")), (200, None), "{method}: {}", given.text());
            assert_eq!(given.json(), json!({ "id": path.trim_start_matches("/notes/") }), "{method}");
        }

        // Forms lead to the list, whose message has no link.
        let form = |path: &str, body: &str| {
            let kind = ("content-type", "application/x-www-form-urlencoded");
            send("POST", path, &[("accept", "text/html"), kind], body)
        };
        for (path, owner, place, flash) in [
            ("/notes", 1, "/notes", "flash=created.notes.8;"),
            ("/notes", 2, "/notes", "flash=created.notes.;"),
            ("/notes/3", 1, "/notes/3", "flash=updated.notes.3;"),
            ("/notes/3", 2, "/notes", "flash=updated.notes.;"),
        ] {
            let done = form(path, &format!("title=form&ownerId={owner}"));
            assert_eq!((done.status, done.header("location")), (303, Some(place)), "{path} {owner}");
            let cookie = done.header("set-cookie").unwrap_or_default();
            assert!(cookie.starts_with(flash), "{path} {owner}: {cookie}");
            let cookie = cookie.split(';').next().unwrap_or_default();
            let next = send("GET", place, &[("accept", "text/html"), ("cookie", cookie)], "");
            let link = next.text().contains("View the new note");
            assert_eq!((next.status, link), (200, path == "/notes" && owner == 1), "{path} {owner}");
        }
    }
}
