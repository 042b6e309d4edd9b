//! The three ways of every form, for schemas with every kind of field: the commands do what the form does.

use trefoil::Trefoil;
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};

use super::{NO_OPERATION, Ways, asked, json, pasted, record, ways, ways_on};
use crate::support::{Client, Server};

fn serving(name: &str, schema: &str) -> Server {
    let trefoil = Trefoil::app(App::from_schema(name, schema));
    Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() })
}

/// The ways on the page that a form leads to which is not taken.
fn sent(client: &mut Client, path: &str, body: &str, status: u16) -> Ways {
    let headers = [("accept", "text/html"), ("content-type", "application/x-www-form-urlencoded")];
    let reply = client.send("POST", path, &headers, body.as_bytes());
    assert_eq!(reply.status, status, "{path} {body}: {}", reply.text());
    ways_on(&reply.text(), path)
}

/// Each way makes a record, or says that the schema has no operation for it. The id of one of them.
fn creates(client: &mut Client, found: &Ways, resource: &str) -> i64 {
    let made = json(&found.rest);
    let id: i64 = made["id"].as_str().expect("an id").parse().expect("a number");
    let (status, told) = pasted(&found.page);
    assert_eq!(status, 303, "{}\n{told}", found.page);
    record(client, &format!("/{resource}/{}", id + 1)).unwrap_or_else(|| panic!("{}", found.page));
    asked(client, &found.graphql);
    let is_made = record(client, &format!("/{resource}/{}", id + 2)).is_some();
    assert_ne!(is_made, found.graphql.starts_with(NO_OPERATION), "{}", found.graphql);
    id
}

/// Each way leaves the record as it is, but for when that was.
fn overwrites(client: &mut Client, found: &Ways, path: &str) {
    let seen = |client: &mut Client| {
        let mut seen = record(client, path).expect("a record");
        seen.as_object_mut().expect("an object").remove("updatedAt");
        seen
    };
    let before = seen(client);
    json(&found.rest);
    assert_eq!(seen(client), before, "{}", found.rest);
    let (status, told) = pasted(&found.page);
    assert_eq!(status, 303, "{}\n{told}", found.page);
    assert_eq!(seen(client), before, "{}", found.page);
    asked(client, &found.graphql);
    assert_eq!(seen(client), before, "{}", found.graphql);
}

/// New, refused, edited, refused once more, deleted. `wrong` is what the form is refused for.
fn every_form(client: &mut Client, resource: &str, wrong: &str) -> i64 {
    let new = ways(client, &format!("/{resource}/new"));
    let id = creates(client, &new, resource);
    let refused = sent(client, &format!("/{resource}"), wrong, 400);
    creates(client, &refused, resource);
    let path = format!("/{resource}/{id}");
    let edited = ways(client, &format!("{path}/edit"));
    overwrites(client, &edited, &path);
    // What was wrong in the form is what is kept.
    let refused = sent(client, &path, wrong, 400);
    json(&refused.rest);
    assert_eq!(pasted(&refused.page).0, 303, "{}", refused.page);
    asked(client, &refused.graphql);
    let last =
        json(&ways(client, &format!("/{resource}/new")).rest)["id"].as_str().expect("an id").to_owned();
    let deleted = ways(client, &format!("/{resource}/{last}/delete"));
    asked(client, &deleted.graphql);
    let is_gone = record(client, &format!("/{resource}/{last}")).is_none();
    assert_ne!(is_gone, deleted.graphql.starts_with(NO_OPERATION), "{}", deleted.graphql);
    if !is_gone {
        assert_eq!(pasted(&deleted.rest).0, 204, "{}", deleted.rest);
    }
    id
}

#[test]
fn forms_of_every_field_kind_have_working_commands() {
    let server = serving("kinds", include_str!("../../e2e/every-kind/graphql/every-kind.graphqls"));
    let client = &mut Client::of(&server);
    // Nobody owns anything yet: the ways say what is missing, and work as soon as it is there.
    let early = ways(client, "/plants/new");
    for text in [&early.rest, &early.page] {
        assert!(
            text.starts_with("# There are no owners yet: create one first and use its id as ownerId.\n"),
            "{text}"
        );
    }
    assert_eq!(pasted(&early.rest).0, 400, "{}", early.rest);
    every_form(client, "owners", "name=+");
    assert_eq!((pasted(&early.rest).0, pasted(&early.page).0), (201, 303), "{}", early.rest);
    every_form(client, "places", "name=+");
    let tag = every_form(client, "tags", "label=");
    let plant = every_form(client, "plants", "title=+&words=a%0Ab&parts.0.size=SMALL&ownerId=99999");
    every_form(client, "notes", "plantId=no");

    // What is chosen is taken, and links stay as they are.
    let owner = every_form(client, "owners", "name=");
    let chosen = ways(
        client,
        &format!("/plants/new?ownerId={owner}&tagIds={tag}&parts.0.name=Leaf&address.street=Mill+Lane"),
    );
    let made = json(&chosen.rest);
    assert_eq!(
        (&made["ownerId"], &made["parts"][0]["name"]),
        (&owner.to_string().into(), &"Leaf".into()),
        "{made}"
    );
    let tags = |client: &mut Client, id: &str| {
        client.graphql(&format!("{{ plant(id: {id}) {{ tags {{ id }} }} }}"))["data"]["plant"]["tags"].clone()
    };
    let made = made["id"].as_str().expect("an id");
    let one = serde_json::json!([{ "id": tag.to_string() }]);
    assert_eq!(tags(client, made), one, "{}", chosen.rest);
    let edited = ways(client, &format!("/plants/{made}/edit"));
    overwrites(client, &edited, &format!("/plants/{made}"));
    assert_eq!(tags(client, made), one, "{}", edited.page);
    let none = sent(client, &format!("/plants/{made}"), "title=+&tagIds=", 400);
    assert_eq!((pasted(&none.page).0, tags(client, made)), (303, serde_json::json!([])), "{}", none.page);

    // Buttons that only change the form, and what is taken or overtaken.
    let more =
        sent(client, "/plants", &format!("-add=parts&title=More&parts.0.name=Root&ownerId={owner}"), 200);
    assert_eq!(json(&more.rest)["parts"][0]["name"], "Root", "{}", more.rest);
    let sought = sent(client, "/plants", "-find=ownerId&-find.ownerId=no+such+owner&title=Sought", 200);
    assert!(sought.rest.starts_with("# ownerId must be the id of one of the owners: "), "{}", sought.rest);
    let place = record(client, "/places/1").expect("a place")["name"].as_str().expect("a name").to_owned();
    let taken = sent(client, "/places", &format!("name={}", place.replace(' ', "+")), 409);
    creates(client, &taken, "places");
    let path = format!("/plants/{plant}");
    let kept = record(client, &path).expect("a plant");
    let overtaken =
        sent(client, &path, &format!("-version=1&title=Mine&ownerId={owner}&amount=1&isRare=false"), 409);
    assert_eq!(json(&overtaken.rest)["title"], "Mine", "{kept}\n{}", overtaken.rest);
    let gone = sent(
        client,
        "/plants/99999",
        &format!("-version=1&title=Mine&ownerId={owner}&amount=1&isRare=false"),
        404,
    );
    creates(client, &gone, "plants");
}

#[test]
fn library_forms_have_working_commands() {
    let server = serving("library", include_str!("../../e2e/harder/graphql/library.graphqls"));
    let client = &mut Client::of(&server);
    every_form(client, "people", "name=+&scores=x");
    every_form(client, "shelves", "nothing=1");
    every_form(client, "books", "name=+&rating=9&shelfIds=99999");
    let made_without = ways(client, "/people/new").graphql;
    assert!(made_without.starts_with("# The operation has no argument for: seen, broken"), "{made_without}");
}

/// Nothing here has a value that its name alone suggests.
const STRICT: &str = r#"
scalar JSON
scalar Decimal
type Lock @resource(path: "locks") {
  id: ID!
  code: String! @pattern(regex: "[A-Z]{3}-[0-9]{4}")
  motto: String! @length(min: 40, max: 60)
  level: Int! @range(min: -9, max: -3)
  share: Decimal! @range(max: 0.5)
  odds: Float! @range(min: 0.1, max: 0.9)
  sizes: [Size!]!
  parts: [Part!]!
  tags: [String!]!
  keys: [String!]! @length(min: 2)
  inside: Inside!
  any: JSON
  twin: Lock @unique
}
enum Size { SMALL LARGE }
type Part { name: String }
type Inside { mark: String! @pattern(regex: "x+y")  odd: String @pattern(regex: "[0-9]{7}") }
type Query { locks: [Lock!]!  lock(id: ID!): Lock }
input InsideInput { mark: String!  odd: String }
input PartInput { name: String }
type Mutation {
  createLock(code: String!, motto: String!, level: Int!, share: Decimal!, odds: Float!, keys: [String!]!, sizes: [Size!]!, parts: [PartInput!]!, tags: [String!]!, inside: InsideInput!, any: JSON): Lock!
  updateLock(id: ID!, code: String, any: JSON): Lock
  deleteLock(id: ID!): Boolean
}
"#;

#[test]
fn example_values_satisfy_validation_rules() {
    let server = serving("strict", STRICT);
    let client = &mut Client::of(&server);
    let id = every_form(client, "locks", "code=abc&level=5");
    // Lists that must be there may be empty.
    let path = format!("/locks/{id}");
    let headers = [("content-type", "application/merge-patch+json")];
    let none = br#"{"sizes":[],"parts":[],"tags":[]}"#;
    assert_eq!(client.send("PATCH", &path, &headers, none).status, 200);
    let edited = ways(client, &format!("{path}/edit"));
    overwrites(client, &edited, &path);
    // What GraphQL has no letters for is left out of it, and is said elsewhere.
    let odd = "any=%7B%22a+b%22%3A1%7D&code=";
    let refused = sent(client, &format!("/locks/{id}"), odd, 400);
    assert!(
        refused
            .graphql
            .starts_with("# Omitted, because they contain names that are not valid in GraphQL: any\n"),
        "{}",
        refused.graphql
    );
    asked(client, &refused.graphql);
    assert_eq!(json(&refused.rest)["any"], serde_json::json!({ "a b": 1 }));
}
