//! JSON values from clients: reserved keys, numbers, nesting depth and NUL, on both stores.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use crate::support::{Client, Reply, Server, postgres};

const SCHEMA: &str = "
    scalar JSON
    type Note { id: ID! label: String data: JSON }
    type Query { notes: [Note!]! note(id: ID!): Note }
    type Mutation { createNote(label: String, data: JSON): Note }
";

const CREATE: &str = "mutation ($data: JSON) { createNote(data: $data) { id data } }";

/// Objects whose members are named as serde_json names what it hands over in a way of its own.
const RESERVED: [&str; 5] = [
    r#"{"$serde_json::private::Number":"any text"}"#,
    r#"{"$serde_json::private::Number":"12"}"#,
    r#"{"$serde_json::private::RawValue":"[1]"}"#,
    r#"[{"a":{"$serde_json::private::Number":"1.5"}}]"#,
    r#"{"$serde_json::private::Number":"1","b":2}"#,
];

fn on_both_stores(test: impl Fn(&str, &mut Client)) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("graphql")).expect("a folder");
    std::fs::write(folder.path().join("graphql/schema.graphqls"), SCHEMA).expect("a schema");
    let database = PostgresUrl::parse(&postgres::database()).expect("the URL of a database");
    for (store, database) in
        [("SQLite", DatabaseLocation::Memory), ("PostgreSQL", DatabaseLocation::Postgres(database))]
    {
        let server = Server::start(Trefoil::folder(folder.path()), Config { database, ..Config::default() });
        test(store, &mut Client::of(&server));
    }
}

fn post(client: &mut Client, path: &str, media: &str, body: &str) -> Reply {
    let headers = [("Content-Type", media), ("Accept", "application/json")];
    client.send("POST", path, &headers, body.as_bytes())
}

fn create(client: &mut Client, data: &str) -> Reply {
    let body = format!("{{\"query\": {}, \"variables\": {{\"data\": {data}}}}}", json!(CREATE));
    post(client, "/graphql", "application/json", &body)
}

fn violation(reply: &Reply) -> Value {
    reply.json()["errors"][0]["extensions"]["violations"][0]["code"].clone()
}

#[test]
fn serde_json_reserved_keys_are_ordinary_keys() {
    on_both_stores(|store, client| {
        for (number, data) in RESERVED.iter().enumerate() {
            let made = create(client, data).text();
            assert!(made.contains(&format!("\"data\":{data}")), "{store}: {made}");

            let record = format!("{{\"data\":{data}}}");
            for media in ["application/json", "application/x-ndjson"] {
                let made = post(client, "/notes", media, &record);
                assert!(matches!(made.status, 200 | 201), "{store} {media}: {}", made.text());
            }
            let form: String =
                url::form_urlencoded::Serializer::new(String::new()).append_pair("data", data).finish();
            let made = post(client, "/notes", "application/x-www-form-urlencoded", &form);
            assert!(matches!(made.status, 201 | 303), "{store}: {} {}", made.status, made.text());

            let all = client.send("GET", "/notes", &[("Accept", "application/json")], b"").text();
            assert_eq!(all.matches(&format!("\"data\":{data}")).count(), 4, "{store}: {all}");
            let page =
                client.send("GET", &format!("/notes/{}", 4 * number + 1), &[("Accept", "text/html")], b"");
            assert_eq!(page.status, 200);
            assert!(page.text().contains("$serde_json::private::"), "{store}: {}", page.text());
        }
    });
}

#[test]
fn numbers_are_kept_as_they_were_written() {
    on_both_stores(|store, client| {
        for (given, kept) in [("1.10", "1.10"), ("1E5", "1e+5"), ("1e400", "1e+400"), ("-0.0", "-0.0")] {
            let made = create(client, given).text();
            assert!(made.contains(&format!("\"data\":{kept}}}")), "{store}: {made}");
            let inline = json!({ "query": format!("mutation {{ createNote(data: {given}) {{ data }} }}") });
            let made = post(client, "/graphql", "application/json", &inline.to_string()).text();
            assert!(made.contains(&format!("\"data\":{kept}}}")), "{store}: {made}");
        }
        for wrong in ["01", "1.", "+1", "NaN", "1e"] {
            assert_eq!(create(client, wrong).status, 400, "{store}: {wrong}");
        }
    });
}

#[test]
fn nesting_limit_is_the_same_everywhere() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    on_both_stores(|store, client| {
        let made = create(client, &nested(126)).text();
        assert!(made.contains(&nested(126)), "{store}: {made}");
        let page = client.send("GET", "/notes/1", &[("Accept", "text/html")], b"").text();
        // Laid out over lines, the innermost with the blanks of all the others before it.
        assert!(page.contains(&format!("\n{}[]", "  ".repeat(125))), "{store}: {page}");

        let inline = format!("mutation {{ createNote(data: {}) {{ id }} }}", nested(127));
        let inline = json!({ "query": inline }).to_string();
        let refused = post(client, "/graphql", "application/json", &inline);
        assert_eq!(violation(&refused), "DEPTH", "{store}: {}", refused.text());
        let form = format!("data={}", nested(127));
        let refused = post(client, "/notes", "application/x-www-form-urlencoded", &form);
        assert!(refused.text().contains("more than 126 levels"), "{store}: {}", refused.text());
        let refused = post(client, "/notes", "application/json", &format!("{{\"data\": {}}}", nested(127)));
        assert_eq!(refused.status, 400, "{store}: {}", refused.text());
        assert_eq!(create(client, &nested(127)).status, 400, "{store}");
        assert_eq!(create(client, &nested(5_000)).status, 400, "{store}");
    });
}

#[test]
fn nul_character_is_refused_anywhere_in_json() {
    on_both_stores(|store, client| {
        for data in [r#""a\u0000""#, r#"{"a\u0000": 1}"#, r#"[{"a": ["\u0000"]}]"#] {
            let refused = create(client, data);
            assert_eq!(violation(&refused), "NUL", "{store}: {}", refused.text());
        }
        let made = create(client, r#"{"a": "\\u0000"}"#).text();
        assert!(made.contains(r#"{"a":"\\u0000"}"#), "{store}: {made}");
    });
}
