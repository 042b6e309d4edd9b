//! A search means the same whether a rule hides one of its fields or not: words and their beginnings, in what the caller sees.

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Server, postgres};

/// `RULE` is the rule of a field.
const SCHEMA: &str = r#"
type User @account(login: "login") @allow(read: true) { id: ID! login: String! @unique books(q: String): [Book!]! }
type Book @allow(read: true) {
  id: ID!
  title: String! @search(weight: 2)
  note: String @search RULE
  other: String
  owner: User
}
"#;

const WORDS: [&str; 12] = [
    "mull",
    "üller",
    "MÜLLER",
    "rail",
    "rail hidden",
    "hidden",
    "zzz",
    "line break",
    "it's",
    "*",
    "",
    "mull rail",
];

fn server(rule: &str, database: DatabaseLocation, hides_notes_of_ann: bool) -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let note = |text: &str| if hides_notes_of_ann { Value::Null } else { json!(text) };
    let books = json!([
        { "title": "Müller on rails", "note": note("hidden rails"), "other": "zzz", "ownerId": 1 },
        { "title": "Rails", "note": "Müller, it's a line\nbreak", "other": "zzz", "ownerId": 2 },
        { "title": "Nothing", "note": note("Mu\u{308}ller rail rail"), "ownerId": 1 },
        { "title": "Empty", "note": null, "ownerId": 2 },
    ]);
    let seeds = [("users", json!([{ "login": "ann" }, { "login": "bob" }])), ("books", books)];
    let seeds = seeds.map(|(name, rows)| (name, rows.to_string()));
    write_application(folder.path(), &SCHEMA.replace("RULE", rule), &seeds).expect("written");
    tokens::add_issuer(folder.path(), "login").expect("written");
    let config = Config { database, ..Config::default() };
    (Server::start(Trefoil::folder(folder.path()), config), folder)
}

/// What each search finds, in the order of the list and by rank, over REST and in a list of GraphQL.
fn found(server: &Server, login: &str) -> Vec<Value> {
    let credential = tokens::bearer(&json!({ "login": login }));
    let mut client = Client::of(server);
    let mut ask = |path: &str, body: &str| {
        let headers = [
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("authorization", credential.as_str()),
        ];
        let method = if body.is_empty() { "GET" } else { "POST" };
        client.send(method, path, &headers, body.as_bytes()).json()
    };
    let ids = |rows: &Value| -> Value {
        rows.as_array().into_iter().flatten().map(|row| row["id"].clone()).collect()
    };
    let mut all = Vec::new();
    for words in WORDS {
        let encoded: String = words.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let listed = ids(&ask(&format!("/books?q={encoded}"), ""));
        let ranked = ids(&ask(&format!("/books?q={encoded}&sort=@rank"), ""));
        let document = "query($q: String) { books(q: $q) { id } users { books(q: $q) { id } } }";
        let answer = ask("/graphql", &json!({ "query": document, "variables": { "q": words } }).to_string());
        assert!(answer["errors"].is_null(), "{words}: {answer}");
        all.push(json!([words, listed, ranked, ids(&answer["data"]["books"]), answer["data"]["users"]]));
    }
    all
}

#[test]
fn searches_mean_the_same_beside_rules() {
    let stores = || {
        let url = PostgresUrl::parse(&postgres::database()).expect("an address");
        [DatabaseLocation::Memory, DatabaseLocation::Postgres(url)]
    };
    for (store, (plain, without)) in stores().into_iter().zip(stores().into_iter().zip(stores())) {
        let (ruled, _folder) = server("@allow(read: \"owner != me\")", store, false);
        let (open, _folder) = server("", plain, false);
        let (bare, _folder) = server("", without, true);
        let all = found(&open, "ann");
        assert!(all[0][1] == json!(["1", "2", "3"]) && all[1][1] == json!([]), "{all:?}");
        // A token without an account owns nothing, and `owner != me` is false beside it.
        assert_eq!(found(&ruled, "ann"), found(&bare, "ann"), "the notes of ann are hidden from ann");
        let for_all = server("@allow(read: \"signedIn\")", DatabaseLocation::Memory, false);
        assert_eq!(found(&for_all.0, "ann"), all, "a rule that hides nothing");
    }
}
