//! Operations bound by name: a list read page by page in every order, and unused arguments.

use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::arguments::warnings::argument_warnings;
use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::error::Error;
use trefoil_model::{SourceFile, ZoneOffsets, parse_schema};

use crate::support::{Client, Server};

const THINGS: &str = "
scalar Long scalar Decimal scalar Date scalar DateTime
enum Colour { RED GREEN }
type Thing {
  id: ID! text: String int: Int float: Float flag: Boolean long: Long decimal: Decimal date: Date moment: DateTime colour: Colour
  made: DateTime! @createdAt version: Int! @version
}
type ThingConnection { edges: [ThingEdge!]! pageInfo: PageInfo! totalCount: Int! }
type ThingEdge { cursor: String! node: Thing! }
type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! endCursor: String }
type Query {
  getAllThings(orderBy: [String!]): [Thing!]!
  things(first: Int, after: String, orderBy: [String!]): ThingConnection!
}
type Mutation {
  createThing(text: String, int: Int, float: Float, flag: Boolean, long: Long, decimal: Decimal, date: Date, moment: DateTime,
    colour: Colour): Thing
}";

/// Ties, nulls, both ends of each type; the ids in the order of each field by itself.
const RECORDS: &str = r#"
text: "a", int: 1, float: 1.5, flag: true, long: 5, decimal: "1.50", date: "2026-01-01", moment: "2026-01-01T00:00:00Z", colour: RED
text: "b", float: 0.1, flag: false, long: "9007199254740993", decimal: "1.5", date: "2025-01-01", moment: "2026-01-01T02:00:00+02:00", colour: GREEN
text: "a", int: 3
int: 1, float: 1e300, flag: true, long: "-9223372036854775808", decimal: "-0.001", date: "0001-01-01", moment: "9999-12-31T23:59:59Z", colour: RED
text: "😀", int: -5, float: -2.5, flag: false, long: "9223372036854775807", decimal: "100000000000000000000000000001", moment: "0001-01-01T00:00:00Z"
text: "ﬀ", int: 0, float: 0, flag: true, long: "9223372036854775806", decimal: "100000000000000000000000000000.5", date: "2026-12-30", colour: RED
"#;

/// Databases limit the number of terms in ORDER BY.
#[test]
fn repeated_sort_field_counts_once() {
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::sample(), config);
    let mut client = Client::of(&server);
    let query = "query($by: [String!]) { products(size: 2, orderBy: $by) { name } }";
    let mut ask = |by: &[&str]| client.graphql_with(query, json!({ "by": by }));
    let once = ask(&["-name"]);
    assert_eq!(once["data"]["products"].as_array().map(Vec::len), Some(2), "{once}");
    assert_eq!(ask(&["-name"; 3_000]), once);
}

#[test]
fn cursor_pages_cover_the_list_in_every_order() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("graphql")).unwrap();
    std::fs::write(folder.path().join("graphql/things.graphqls"), THINGS).unwrap();
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::folder(folder.path()), config);
    let mut client = Client::of(&server);
    for fields in RECORDS.trim().lines() {
        let answer = client.graphql(&format!("mutation {{ createThing({fields}) {{ id }} }}"));
        assert_eq!(answer["errors"], Value::Null, "{answer}");
    }
    for (field, wanted) in [
        ("text", [1, 3, 2, 6, 5, 4]),
        ("-text", [5, 6, 2, 1, 3, 4]),
        ("int", [5, 6, 1, 4, 3, 2]),
        ("-int", [3, 1, 4, 6, 5, 2]),
        ("float", [5, 6, 2, 1, 4, 3]),
        ("-float", [4, 1, 2, 6, 5, 3]),
        ("flag", [2, 5, 1, 4, 6, 3]),
        ("-flag", [1, 4, 6, 2, 5, 3]),
        ("long", [4, 1, 2, 6, 5, 3]),
        ("-long", [5, 6, 2, 1, 4, 3]),
        ("decimal", [4, 1, 2, 6, 5, 3]),
        ("-decimal", [5, 6, 1, 2, 4, 3]),
        ("date", [4, 2, 1, 6, 3, 5]),
        ("-date", [6, 1, 2, 4, 3, 5]),
        ("moment", [5, 1, 2, 4, 3, 6]),
        ("-moment", [4, 1, 2, 5, 3, 6]),
        ("colour", [2, 1, 4, 6, 3, 5]),
        ("-colour", [1, 4, 6, 2, 3, 5]),
        ("id", [1, 2, 3, 4, 5, 6]),
        ("-id", [6, 5, 4, 3, 2, 1]),
        ("-version", [1, 2, 3, 4, 5, 6]),
    ] {
        let all = whole(&mut client, &json!([field]));
        assert_eq!(all, wanted, "{field}");
        for order in
            [json!([field]), json!([field, "-id"]), json!([field, "-decimal"]), json!([field, "text"])]
        {
            let all = whole(&mut client, &order);
            for size in [1, 2, 4] {
                assert_eq!(in_pages(&mut client, &order, size), all, "{order} by {size}");
            }
        }
    }
}

fn id(thing: &Value) -> i64 {
    thing["id"].as_str().unwrap().parse().unwrap()
}

fn whole(client: &mut Client, order: &Value) -> Vec<i64> {
    let query = "query($order: [String!]) { getAllThings(orderBy: $order) { id } }";
    let answer = client.graphql_with(query, json!({ "order": order }));
    answer["data"]["getAllThings"].as_array().unwrap().iter().map(id).collect()
}

fn in_pages(client: &mut Client, order: &Value, size: i64) -> Vec<i64> {
    let query = "query($order: [String!], $size: Int, $after: String) {
        things(orderBy: $order, first: $size, after: $after) {
            edges { cursor node { id } } totalCount pageInfo { hasNextPage hasPreviousPage endCursor }
        }
    }";
    let (mut ids, mut after) = (Vec::new(), Value::Null);
    loop {
        let answer = client.graphql_with(query, json!({ "order": order, "size": size, "after": after }));
        let page = &answer["data"]["things"];
        let edges = page["edges"].as_array().unwrap_or_else(|| panic!("{answer}"));
        ids.extend(edges.iter().map(|edge| id(&edge["node"])));
        assert_eq!(page["totalCount"], 6);
        assert_eq!(page["pageInfo"]["hasPreviousPage"], !after.is_null());
        assert_eq!(page["pageInfo"]["endCursor"], edges.last().unwrap()["cursor"]);
        if page["pageInfo"]["hasNextPage"] == false || ids.len() > 6 {
            return ids;
        }
        after = page["pageInfo"]["endCursor"].clone();
    }
}

#[test]
fn unused_arguments_are_reported() {
    let schema = "
        type User { id: ID! name: String orders(latest: Int, first: Int, item: String): [Order!]! }
        type Order { id: ID! user: User item: String }
        input UserWhere { name_like: String name_contains: String and: [UserWhere!] xor: [UserWhere!] }
        input UserInput { id: ID name: String nmae: String clientMutationId: String }
        schema { query: Questions mutation: Orders }
        type Questions { users(where: UserWhere, nme: String, name: String): [User] user(id: ID!, lang: String): User order: Order custom(x: Int): Int }
        type Orders {
            createUser(data: UserInput!): User
            updateUser(input: UserInput!): User
            deleteUser(name: String): Boolean
            createOrder(userId: ID, users: [ID!]): Order
        }";
    let files = [SourceFile { name: "a.graphqls".into(), text: schema.into() }];
    let (model, _) = parse_schema(&files, &[]).unwrap();
    let found = model.locate_warnings(argument_warnings(
        &model,
        &binding::bind_root_fields(&model, &ResolverRegistry::default()),
    ));
    let said: Vec<String> =
        found.iter().map(|doubt| format!("{} {}", &schema[doubt.span.clone()], doubt.message)).collect();
    assert_eq!(
        said,
        [
            "where `where.name_like` of `users` has no effect: User has no field `name_like` to filter by",
            "where `where.xor` of `users` has no effect: User has no field `xor` to filter by",
            "nme `nme` of `users` has no effect: User has no field `nme` to filter by; did you mean `name`?",
            "lang `lang` of `user` has no effect: `lang` does not identify a User; use `id`",
            "data `data.nmae` of `createUser` has no effect: User has no field `nmae` that can be set; did you mean `name`?",
            "input `input.nmae` of `updateUser` has no effect: User has no field `nmae` that can be set; did you mean `name`?",
            "users `users` of `createOrder` has no effect: Order has no field `users` that can be set; did you mean `userId`?",
            "latest `latest` of `orders` has no effect: Order has no field `latest` to filter by",
        ]
    );
    assert!(found[0].render(&files).contains("= help: use the name of a field"));
}

#[test]
fn writes_that_set_no_field_are_reported() {
    let schema = "
        type Query { books: [Book!]! garages: [Garage!]! tags: [Tag!]! }
        type Book { id: ID! title: String lines: [Line!]! }
        type Line { id: ID! book: Book! text: String }
        type Garage { id: ID! name: String }
        type Tag { name: String! }
        type Loan { id: ID! until: String }
        input Draft { draft: Boolean }
        input Lines { lines: [LineInput!] }
        input LineInput { text: String }
        type Mutation {
            updateBook(id: ID!, input: Draft!): Book
            createBook(input: Lines!): Book
            createLoan(input: Draft!): Loan
            createGarage: Garage
            newGarage(input: Draft!): Garage
            updateGarage(id: ID!): Garage
        }";
    let files = [SourceFile { name: "a.graphqls".into(), text: schema.into() }];
    let (model, _) = parse_schema(&files, &[]).unwrap();
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let found = argument_warnings(&model, &bindings);
    let empty = found.iter().filter(|warning| warning.label == "sets no field");
    let said: Vec<&str> = empty.map(|warning| warning.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "`updateBook` changes nothing: no argument sets a field of Book",
            "`updateGarage` changes nothing: no argument sets a field of Garage",
        ]
    );
    // A create with an input of which no member is known is left to a resolver.
    let unbound = model.root_fields.iter().zip(&bindings);
    let unbound = unbound.filter(|(_, binding)| matches!(binding, ResolverBinding::Missing(_)));
    let unbound: Vec<&str> = unbound.map(|(root, _)| root.name.as_str()).collect();
    assert_eq!(unbound, ["createLoan", "newGarage"]);
}

#[test]
fn fields_of_pages_that_nothing_answers_are_reported() {
    let schema = "
        type Book { id: ID! title: String }
        type BookPage { items: [Book!]! totalPages: Int! rank: Int number: String nextPage: Int! meta: Meta info: Info }
        type Meta { page: Int size: Int }
        type Info { page: Int other: Int }
        type BookConnection { edges: [BookEdge!]! pageInfo: PageInfo! }
        type BookEdge { cursor: String! node: Book! weight: Int! }
        type PageInfo { hasNextPage: Boolean! totalPages: Int extra: String }
        type Query { books(page: Int): BookPage! allBooks: BookPage! booksConnection(first: Int): BookConnection! }";
    let files = [SourceFile { name: "a.graphqls".into(), text: schema.into() }];
    let (model, _) = parse_schema(&files, &[]).unwrap();
    let mut registry = ResolverRegistry::default();
    let reported = |registry: &ResolverRegistry| -> Vec<String> {
        let bindings = binding::bind_root_fields(&model, registry);
        let found = binding::page_warnings(&model, &bindings, registry);
        found.iter().map(|warning| format!("{}.{}", warning.type_name, warning.field)).collect()
    };
    let all = [
        "BookPage.rank",
        "BookPage.number",
        "BookPage.nextPage",
        "BookPage.info",
        "BookEdge.weight",
        "PageInfo.extra",
    ];
    assert_eq!(reported(&registry), all);
    registry.register("BookPage.rank", Arc::new(|_| Box::pin(async { Err(Error::internal("not called")) })));
    assert_eq!(reported(&registry), all[1..]);
}

/// Required times that no argument sets: all of one request are the same, and those of the last change change.
#[test]
fn filled_times_are_those_of_the_request() {
    let schema = "
        scalar DateTime
        type Note {
          id: ID! text: String! createdAt: DateTime! updatedAt: DateTime! made: DateTime @createdAt changed: DateTime @updatedAt
        }
        type Query { notes: [Note!]! }
        type Mutation { createNote(text: String!): Note! updateNote(id: ID!, text: String): Note! }";
    let app = trefoil_application::App::from_schema("notes", schema);
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let server = Server::start(Trefoil::app(app), config);
    let mut client = Client::of(&server);
    let times = "{ createdAt updatedAt made changed }";
    let made = client.graphql(&format!(
        "mutation {{ a: createNote(text: \"a\") {times} b: createNote(text: \"b\") {times} }}"
    ));
    let first = made["data"]["a"]["made"].clone();
    let all_equal = json!({ "createdAt": first, "updatedAt": first, "made": first, "changed": first });
    assert_eq!(made["data"], json!({ "a": all_equal, "b": all_equal }));
    let changed = client.graphql(&format!("mutation {{ updateNote(id: 1, text: \"c\") {times} }}"));
    let changed = &changed["data"]["updateNote"];
    assert_eq!((&changed["createdAt"], &changed["made"]), (&first, &first));
    assert_ne!(changed["updatedAt"], first);
    assert_eq!(changed["updatedAt"], changed["changed"]);
    let unchanged = client.graphql(&format!("mutation {{ updateNote(id: 1) {times} }}"));
    assert_eq!(unchanged["data"]["updateNote"], *changed, "nothing was changed");
}

/// In a zone that is far from UTC, and has no summer time.
#[test]
fn times_without_a_zone_are_filled_with_those_of_the_clocks() {
    const SCHEMA: &str = "
scalar LocalDateTime scalar Date
type Visit { id: ID! title: String! createdAt: LocalDateTime! postedAt: LocalDateTime! addedOn: Date! changedAt: LocalDateTime @updatedAt }
type Mutation { createVisit(title: String!): Visit! }
type Query { visits: [Visit!]! }";
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("graphql")).unwrap();
    std::fs::write(folder.path().join("graphql/a.graphqls"), SCHEMA).unwrap();
    let time_zone = ZoneOffsets::load("Pacific/Kiritimati").unwrap();
    let config = Config { database: DatabaseLocation::Memory, time_zone, ..Config::default() };
    let server = Server::start(Trefoil::folder(folder.path()), config);
    let fields = "createdAt postedAt changedAt addedOn";
    let answer =
        Client::of(&server).graphql(&format!("mutation {{ createVisit(title: \"a\") {{ {fields} }} }}"));
    let visit = &answer["data"]["createVisit"];
    let clock = Timestamp::now().checked_add(SignedDuration::from_hours(14)).unwrap();
    let clock = Offset::UTC.to_datetime(clock);
    for field in ["createdAt", "postedAt", "changedAt"] {
        let text = visit[field].as_str().unwrap_or_default();
        assert!(text.len() >= 19 && !text.contains(['Z', '+']), "{answer}");
        let since = clock.duration_since(text.parse::<DateTime>().unwrap());
        assert!(since.abs() < SignedDuration::from_mins(2), "{field}: {text} at {clock}");
    }
    let day = visit["createdAt"].as_str().unwrap_or_default().get(..10);
    assert_eq!(visit["addedOn"].as_str(), day, "{answer}");
}
