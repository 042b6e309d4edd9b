//! The "three ways" of every page of the sample: each command is run in a shell, and all of them do the same.

mod forms;

use std::process::Command;

use serde_json::Value;
use trefoil::Trefoil;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Server};

/// How an operation begins that stands in for one that the schema has not.
const NO_OPERATION: &str = "# The schema has no operation for this.";

const RESOURCES: [&str; 5] = ["users", "products", "orders", "customers", "articles"];

/// What stands in "three ways" on a page.
struct Ways {
    graphql: String,
    run: String,
    rest: String,
    page: String,
}

fn page(client: &mut Client, path: &str) -> String {
    let reply = client.send("GET", path, &[("accept", "text/html")], b"");
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

fn ways(client: &mut Client, path: &str) -> Ways {
    ways_on(&page(client, path), path)
}

/// Those of an error, which must have this status.
fn ways_of_error(
    client: &mut Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    status: u16,
) -> Ways {
    let headers: Vec<(&str, &str)> = [&[("accept", "text/html")], headers].concat();
    let reply = client.send(method, path, &headers, b"");
    assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
    ways_on(&reply.text(), path)
}

fn ways_on(html: &str, path: &str) -> Ways {
    let (_, ways) =
        html.split_once("<details class=\"sheet ways\"").unwrap_or_else(|| panic!("{path}: {html}"));
    let (ways, _) = ways.split_once("</details>").expect("an end");
    let run = ways.split_once("<a href=\"").map_or("", |(_, rest)| rest.split('"').next().unwrap_or(""));
    let codes = ways.split("<code>").skip(1).map(|part| part.split("</code>").next().unwrap_or(""));
    let codes: Vec<String> = codes.map(plain).collect();
    let [graphql, rest, page] =
        codes.try_into().unwrap_or_else(|found| panic!("{path}: three, not {found:?}"));
    Ways { graphql, run: plain(run), rest, page }
}

fn plain(html: &str) -> String {
    let table = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    table.iter().fold(html.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// What a shell prints; the status goes to the end.
fn pasted(line: &str) -> (u16, String) {
    let line = line.replacen("curl ", "curl -sS -w '\\n%{http_code}' ", 1);
    let ran = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    assert!(ran.status.success(), "{line}\n{}", String::from_utf8_lossy(&ran.stderr));
    let told = String::from_utf8(ran.stdout).expect("UTF-8");
    let (text, status) = told.rsplit_once('\n').expect("a status");
    (status.parse().expect("a number"), text.to_owned())
}

fn json(line: &str) -> Value {
    let (status, text) = pasted(line);
    assert!((200..300).contains(&status), "{line}\n{status} {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}\n{error}: {text}"))
}

/// The one field of `data`.
fn asked(client: &mut Client, document: &str) -> Value {
    let answer = client.graphql(document);
    assert!(answer.get("errors").is_none(), "{document}\n{answer:#}");
    let data = answer["data"].as_object().expect("data");
    data.values().next().expect("one field").clone()
}

/// A record of GraphQL as REST writes it: a reference is its id.
fn flat(record: &Value) -> Value {
    let fields = record.as_object().expect("a record").iter().map(|(name, value)| match value {
        Value::Object(target) => (format!("{name}Id"), target["id"].clone()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            (if name == "user" { "userId".to_owned() } else { name.clone() }, other.clone())
        }
    });
    fields.collect()
}

fn flat_all(records: &Value) -> Vec<Value> {
    records.as_array().expect("a list").iter().map(flat).collect()
}

fn record(client: &mut Client, path: &str) -> Option<Value> {
    let reply = client.send("GET", path, &[("accept", "application/json")], b"");
    (reply.status == 200).then(|| reply.json())
}

#[test]
fn reads_are_the_same_in_all_three_ways() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    for resource in RESOURCES {
        for path in [format!("/{resource}"), format!("/{resource}?size=2&page=1&q=&nonsense=1")] {
            let ways = ways(client, &path);
            let listed = json(&ways.rest);
            let told = flat_all(&asked(client, &ways.graphql));
            let rows = listed.as_array().expect("a list");
            // Users have no arguments for parts of the list.
            let told = if resource == "users" { &told[..rows.len()] } else { &told[..] };
            assert_eq!(rows, told, "{path}");
            assert!(!rows.is_empty(), "{path}");
            let (status, html) = pasted(&ways.page);
            assert_eq!(status, 200, "{}", ways.page);
            for row in rows {
                let id = row["id"].as_str().expect("an id");
                assert!(html.contains(&format!("/{resource}/{id}")), "{id} is not on {path}");
            }
        }
        let path = format!("/{resource}/1");
        let ways = ways(client, &path);
        assert_eq!(json(&ways.rest), flat(&asked(client, &ways.graphql)), "{path}");
        assert_eq!(pasted(&ways.page).0, 200);
        assert!(ways.run.starts_with("/graphql?query=query%20"), "{}", ways.run);
    }
}

#[test]
fn filters_are_the_same_in_all_three_ways() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    let found = ways(client, "/orders?status=NEW&sort=-quantity&userId=&size=3");
    let listed = json(&found.rest);
    assert_eq!(listed.as_array().expect("a list"), &flat_all(&asked(client, &found.graphql)));
    assert!(found.graphql.contains("status: NEW") && found.graphql.contains("orderBy: [\"-quantity\"]"));
    let found = ways(client, "/products?price.gte=100&name=it%27s");
    assert!(found.graphql.starts_with("# The operation has no argument for: price\n"), "{}", found.graphql);
    assert_eq!(json(&found.rest), serde_json::json!([]));
    assert_eq!(asked(client, &found.graphql), serde_json::json!([]));

    // Pages take a day for a time; the others are told which.
    let found = ways(client, "/orders?placedAt.gte=2000-01-01&placedAt.lte=2999-12-31&size=2");
    assert_eq!(json(&found.rest).as_array().map(Vec::len), Some(2), "{}", found.rest);
    // curl would take this for several addresses.
    let found = ways(client, "/users?q=[1-2]{a,b}");
    assert_eq!((json(&found.rest), pasted(&found.page).0), (serde_json::json!([]), 200), "{}", found.page);

    let nested = ways(client, "/users/1/orders");
    let told = asked(client, &nested.graphql);
    assert_eq!(json(&nested.rest).as_array().expect("a list"), &flat_all(&told["orders"]));
    let one = ways(client, "/users/1/orders/1");
    assert_eq!(json(&one.rest), flat(&asked(client, &one.graphql)));
    let plain = ways(client, "/samples");
    assert_eq!((json(&plain.rest), asked(client, &plain.graphql)), (serde_json::json!([]), "Query".into()));
    assert_eq!(pasted(&plain.page).0, 200);
}

#[test]
fn create_is_the_same_in_all_three_ways() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    for resource in RESOURCES {
        let path =
            if resource == "orders" { "/orders/new?userId=2".to_owned() } else { format!("/{resource}/new") };
        let ways = ways(client, &path);
        let id = |record: &Value| record["id"].as_str().expect("an id").parse::<i64>().expect("a number");
        let by_rest = json(&ways.rest);
        let (status, told) = pasted(&ways.page);
        assert_eq!(status, 303, "{}\n{told}", ways.page);
        let by_form = record(client, &format!("/{resource}/{}", id(&by_rest) + 1)).expect("made by the form");
        let made = [by_rest, by_form, flat(&asked(client, &ways.graphql))];
        let without_id = |record: &Value| {
            let mut record = record.clone();
            record.as_object_mut().expect("a record").remove("id");
            record
        };
        for other in &made[1..] {
            assert_eq!(without_id(&made[0]), without_id(other), "{resource}");
        }
        assert!(resource != "orders" || made[0]["userId"] == "2", "{}", made[0]);
    }
}

#[test]
fn update_and_delete_are_the_same_in_all_three_ways() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    for resource in RESOURCES {
        let path = format!("/{resource}/1");
        let before = record(client, &path).expect("a record");
        let found = ways(client, &format!("{path}/edit"));
        assert_eq!(json(&found.rest), before, "{resource}: what is in the form changes nothing");
        let (status, told) = pasted(&found.page);
        assert_eq!(status, 303, "{}\n{told}", found.page);
        assert_eq!(record(client, &path).expect("a record"), before, "{}", found.page);
        // Users can only be read: the operation says so, and shows what is in the form.
        assert_eq!(flat(&asked(client, &found.graphql)), before, "{resource}");
        assert_eq!(found.graphql.starts_with(NO_OPERATION), resource == "users", "{}", found.graphql);
        for way in 0..3 {
            let made = json(&ways(client, &format!("/{resource}/new")).rest);
            let path = format!("/{resource}/{}", made["id"].as_str().expect("an id"));
            let found = ways(client, &format!("{path}/delete"));
            match way {
                0 => assert_eq!(pasted(&found.rest).0, 204, "{}", found.rest),
                1 => assert_eq!(pasted(&found.page).0, 303, "{}", found.page),
                _ => drop(asked(client, &found.graphql)),
            }
            let is_gone = way < 2 || resource != "users";
            assert_eq!(record(client, &path).is_none(), is_gone, "{path} by way {way}");
        }
    }
}

/// What the sample has none of: input objects, connections, `where`, embedded values, lists, links, JSON.
const HARDER: &str = r#"
scalar JSON
scalar Long
scalar Decimal
scalar DateTime
scalar UUID
scalar URL
scalar Email
enum Mood { CALM LOUD }
type Address { street: String! @notBlank  mood: Mood!  floors: [Int!] }
type Person @resource(path: "people") {
  id: ID!
  "With 'quotes', $(calls) and `ticks`."
  name: String! @length(min: 20, max: 30) @default(value: "It's \"$(echo me)\" & `co`")
  code: String! @pattern(regex: "[A-Z]{3}") @default(value: "ABC")
  mood: Mood  moods: [Mood!]  tags: [String!]  big: Long  price: Decimal @range(min: 5)
  at: DateTime  key: UUID  site: URL  mail: Email  any: JSON  happy: Boolean!  maybe: Boolean
  home: Address!  homes: [Address!]  boss: Person @reference(inverse: "staff")  staff: [Person]
  courses: [Course]  addedAt: DateTime @createdAt
}
type Course { id: ID! title: String!  people: [Person] }
input AddressInput { street: String! mood: Mood! floors: [Int!] }
input PersonInput {
  name: String code: String mood: Mood moods: [Mood!] tags: [String!] big: Long price: Decimal at: DateTime key: UUID
  site: URL mail: Email any: JSON happy: Boolean! maybe: Boolean home: AddressInput! homes: [AddressInput!] bossId: ID
}
input PersonWhere { price_gte: Decimal  mood: Mood  name_contains: String }
type PersonEdge { node: Person cursor: String! }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type PersonConnection { edges: [PersonEdge!]! pageInfo: PageInfo! }
type Query {
  people(first: Int, after: String, where: PersonWhere, orderBy: [String!]): PersonConnection!
  person(id: ID!): Person
}
type Mutation {
  createPerson(input: PersonInput!): Person!
  updatePerson(id: ID!, input: PersonInput!): Person
  deletePerson(id: ID!): Boolean!
}
"#;

#[test]
fn harder_schema_has_working_commands() {
    let trefoil = Trefoil::app(App::from_schema("harder", HARDER));
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let client = &mut Client::of(&server);
    let found = ways(client, "/people/new");
    let by_rest = json(&found.rest);
    let (status, told) = pasted(&found.page);
    assert_eq!(status, 303, "{}\n{told}", found.page);
    let by_graphql = asked(client, &found.graphql);
    let by_form = record(client, "/people/2").expect("made by the form");
    for name in ["name", "moods", "tags", "big", "price", "at", "any", "happy", "home", "homes"] {
        assert_eq!(by_rest[name], by_form[name], "{name}\n{}", found.page);
        assert_eq!(by_rest[name], by_graphql[name], "{name}\n{}", found.graphql);
        assert!(!by_rest[name].is_null(), "{name}");
    }
    let before = record(client, "/people/1").expect("made by REST");
    let found = ways(client, "/people/1/edit");
    assert_eq!(json(&found.rest), before, "{}", found.rest);
    assert_eq!(pasted(&found.page).0, 303, "{}", found.page);
    assert_eq!(record(client, "/people/1").expect("still there"), before, "{}", found.page);
    assert_eq!(asked(client, &found.graphql)["id"], "1");
    assert_eq!(record(client, "/people/1").expect("still there"), before, "{}", found.graphql);

    let found = ways(client, "/people?price.gte=5&name.contains=me&mood=CALM&sort=-price&size=2");
    let rows = json(&found.rest);
    let edges = asked(client, &found.graphql);
    let ids = |list: &Value, at: &str| -> Vec<Value> {
        list.as_array().expect("a list").iter().map(|row| row.pointer(at).expect("an id").clone()).collect()
    };
    assert!(!found.graphql.contains('#'), "{}", found.graphql);
    assert_eq!(ids(&rows, "/id").len(), 2, "{rows}");
    assert_eq!(ids(&rows, "/id"), ids(&edges["edges"], "/node/id")[..2], "{}", found.graphql);
    let found = ways(client, "/people/3/delete");
    assert_eq!(asked(client, &found.graphql), Value::Bool(true));
    assert_eq!(record(client, "/people/3"), None);
    let courses = ways(client, "/courses");
    assert_eq!(
        (json(&courses.rest), asked(client, &courses.graphql)),
        (serde_json::json!([]), "Query".into())
    );
}

#[test]
fn start_page_has_commands_for_its_first_list() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    let found = ways(client, "/");
    let listed = json(&found.rest);
    assert_eq!(listed.as_array().expect("a list"), &flat_all(&asked(client, &found.graphql)));
    assert!(!listed.as_array().expect("a list").is_empty());
    let (status, html) = pasted(&found.page);
    assert_eq!((status, html.contains("<h1>Products</h1>")), (200, true), "{}", found.page);
    assert!(found.run.starts_with("/graphql?query=query%20"), "{}", found.run);

    let bare = Trefoil::app(App::from_schema("bare", "type Query { version: String }"));
    let server = Server::start(bare, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let client = &mut Client::of(&server);
    let found = ways(client, "/");
    assert_eq!(asked(client, &found.graphql), "Query");
    assert_eq!((json(&found.rest)["openapi"].is_string(), pasted(&found.page).0), (true, 200));
}

#[test]
fn errors_are_the_same_in_all_three_ways() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    let paths = [
        ("/users/999999", 404),
        ("/users/abc", 400),
        ("/users/999999/edit", 404),
        ("/users/999999/orders", 404),
        ("/users/2/orders/1", 404),
        ("/products?page=0&category=it%27s", 400),
        ("/orders?status=no", 400),
        ("/nowhere?[a]={b}", 404),
    ];
    for (path, status) in paths {
        let found = ways_of_error(client, "GET", path, &[], status);
        let (as_json, problem) = pasted(&found.rest);
        let problem: Value = serde_json::from_str(&problem).unwrap_or_else(|_| panic!("{path}: {problem}"));
        assert_eq!((as_json, &problem["status"]), (status, &status.into()), "{}", found.rest);
        let (as_page, html) = pasted(&found.page);
        assert_eq!((as_page, html.starts_with("<!DOCTYPE html>")), (status, true), "{}", found.page);
        asked(client, &found.graphql);
    }
    let found = ways_of_error(client, "POST", "/users/1/edit", &[], 405);
    assert_eq!((pasted(&found.rest).0, pasted(&found.page).0), (405, 405), "{}", found.rest);
    assert_eq!(asked(client, &found.graphql)["id"], "1");
}

#[test]
fn cross_site_form_error_has_working_commands() {
    let server = Server::sample();
    let client = &mut Client::of(&server);
    let forged = [("sec-fetch-site", "cross-site")];
    let found = ways_of_error(client, "POST", "/products", &forged, 403);
    let made = json(&found.rest)["id"].as_str().expect("an id").to_owned();
    assert_eq!(pasted(&found.page).0, 303, "{}", found.page);
    let found = ways_of_error(client, "POST", &format!("/products/{made}/delete"), &forged, 403);
    assert_eq!(pasted(&found.rest).0, 204, "{}", found.rest);
    // What would have been written is not known: nothing made up takes its place.
    let found = ways_of_error(client, "POST", "/products/1", &forged, 403);
    assert_eq!(json(&found.rest), flat(&asked(client, &found.graphql)));
}

#[test]
fn graphiql_links_are_absent_when_disabled() {
    let config = Config { database: DatabaseLocation::Memory, graphiql: false, ..Config::default() };
    let server = Server::start(Trefoil::sample(), config);
    let client = &mut Client::of(&server);
    let missing = client.send("GET", "/users/999999", &[("accept", "text/html")], b"").text();
    for html in [page(client, "/"), page(client, "/users"), page(client, "/users/new"), missing] {
        assert!(html.contains("<summary>Three ways to "), "{html}");
        assert!(!html.contains("GraphiQL") && !html.contains("href=\"/graphql\""), "{html}");
    }
}

#[test]
fn unique_values_differ_between_the_ways() {
    let schema = "scalar UUID scalar Date scalar Decimal
        type Member {
          id: ID!  email: String! @unique @email  nick: String! @unique
          number: Int! @unique  key: UUID! @unique  born: Date! @unique  share: Decimal! @unique
        }
        type Query { members: [Member!]! }
        type Mutation { createMember(email: String!, nick: String!, number: Int!, key: UUID!, born: Date!, share: Decimal!): Member! }";
    let trefoil = Trefoil::app(App::from_schema("members", schema));
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let client = &mut Client::of(&server);
    // Who comes back to the page later can paste as well.
    for visit in 1..=2 {
        let found = ways(client, "/members/new");
        asked(client, &found.graphql);
        json(&found.rest);
        let (status, told) = pasted(&found.page);
        assert_eq!(status, 303, "{}\n{told}", found.page);
        assert_eq!(json(&ways(client, "/members").rest).as_array().map(Vec::len), Some(3 * visit));
    }
}

/// Also where the key has another name or none, and where an operation needs what a page does not have.
#[test]
fn examples_fit_other_keys() {
    let schema = "
        type Pet { petId: ID! name: String! note: Note }
        type Note { text: String! }
        type Query {
          petsByName(name: String!): [Pet!]!
          pets: [Pet!]!
          petNamed(name: String!): Pet
          pet(petId: ID!): Pet
          notes: [Note!]!
        }
        type Mutation {
          createPetOf(owner: String!, name: String!): Pet!
          createPet(name: String!): Pet!
          createNote(text: String!): Note!
        }";
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(App::from_schema("pets", schema)), config);
    let client = &mut Client::of(&server);
    let made =
        client.graphql(r#"mutation { createPet(name: "Rex") { petId } createNote(text: "one") { text } }"#);
    assert_eq!(made["data"]["createPet"]["petId"], "1", "{made}");
    for (path, root) in
        [("/pets", "pets"), ("/pets/1", "pet"), ("/pets/new", "createPet"), ("/notes", "notes")]
    {
        let document = ways(client, path).graphql;
        let answer = client.graphql(&document);
        assert!(answer.get("errors").is_none(), "{path}: {document}\n{answer:#}");
        assert!(answer["data"].get(root).is_some(), "{path}: {document}");
    }
    let tabs = client.send("GET", "/_/graphiql/tabs.json", &[], b"").json();
    let tabs: Vec<String> =
        tabs.as_array().expect("tabs").iter().map(|tab| tab["query"].to_string()).collect();
    let words = tabs.concat().replace("\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["notes { text }", "pet(petId: \\\"1\\\") { petId name }"] {
        assert!(words.contains(part), "{words}");
    }
}
