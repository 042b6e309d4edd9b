//! Trefoil as a library: resolvers in Rust for root fields, record fields, interfaces and unions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use trefoil::{Error, ResolverResult, Trefoil, Value};
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Server};

const SCHEMA: &str = r#"
    interface Named { name: String! }
    union Found = Author | Book | Note
    type Author implements Named { id: ID! name: String! books: [Book!]! initials(dot: Boolean! = true): String! }
    type Book implements Named { id: ID! name: String! author: Author! secret: String }
    type Note { text: String! }
    type Query {
      author(id: ID!): Author
      find(text: String!): [Found!]!
      latest: Named
      whoAmI: String
      broken: String
      panics: String
    }
    type Mutation {
      createAuthor(name: String!): Author
      createBook(name: String!, authorId: ID!): Book
      publish(author: String!, titles: [String!]!): Author
    }
"#;

fn record(type_name: &str, object: &Value) -> ResolverResult {
    let id = object.get("id").and_then(Value::as_i64).expect("a record has an id");
    ResolverResult::Record { type_name: type_name.into(), id: id.into() }
}

fn server() -> Server {
    let trefoil = Trefoil::app(App::from_schema("library", SCHEMA))
        .resolver("Author.initials", |call| async move {
            let name = call.parent.get("name").and_then(Value::as_str).unwrap_or_default();
            let dot = call.arguments.get("dot").and_then(Value::as_bool).unwrap_or_default();
            let letters = name.split(' ').filter_map(|word| word.chars().next());
            let text = letters.map(|letter| if dot { format!("{letter}.") } else { letter.to_string() });
            Ok(ResolverResult::Value(text.collect::<String>().into()))
        })
        .resolver("Query.find", |call| async move {
            let wanted = call.arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut found = Vec::new();
            for type_name in ["Author", "Book"] {
                let all = call.engine.list(type_name, Default::default()).await?;
                let fits = |object: &&Value| {
                    object.get("name").and_then(Value::as_str).is_some_and(|name| name.contains(&wanted))
                };
                found.extend(all.iter().filter(fits).map(|object| record(type_name, object)));
            }
            let note = [("__typename", Value::from("Note")), ("text", Value::from(format!("for {wanted}")))];
            found.push(ResolverResult::Value(Value::object(note)));
            Ok(ResolverResult::List(found))
        })
        .resolver("Query.latest", |call| async move {
            let books = call.engine.list("Book", Default::default()).await?;
            Ok(books.last().map_or(ResolverResult::Value(Value::Null), |book| record("Book", book)))
        })
        .resolver("Query.whoAmI", |call| async move {
            Ok(ResolverResult::Value(call.actor.address.map(|address| address.to_string()).into()))
        })
        .resolver("Query.broken", |_| async {
            Err(Error::Resolver { message: "out of ink".into(), code: "INK".into() })
        })
        .resolver("Query.panics", |_| async { panic!("a bug in a resolver") })
        .resolver("Mutation.publish", |call| async move {
            let name = call.arguments.get("author").cloned().unwrap_or(Value::Null);
            let author = call.engine.create("Author", Value::object([("name", name)])).await?;
            let id = author.get("id").cloned().unwrap_or(Value::Null);
            for title in call.arguments.get("titles").and_then(Value::as_list).unwrap_or_default() {
                let book = Value::object([("name", title.clone()), ("authorId", id.clone())]);
                call.engine.create("Book", book).await?;
            }
            Ok(record("Author", &author))
        });
    Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() })
}

#[test]
fn resolvers_run_beside_stored_fields() {
    let server = server();
    let mut client = Client::of(&server);
    let published = client.graphql(
        r#"mutation { publish(author: "Ada King", titles: ["Notes", "Engines"]) { name initials books { name author { initials(dot: false) } } } }"#,
    );
    let books = json!([
        { "name": "Notes", "author": { "initials": "AK" } },
        { "name": "Engines", "author": { "initials": "AK" } }
    ]);
    let author = json!({ "name": "Ada King", "initials": "A.K.", "books": books });
    assert_eq!(published, json!({ "data": { "publish": author } }));

    let found = client.graphql(
        r#"{ find(text: "Ada") { __typename ... on Named { name } ... on Author { books { id } } ... on Note { text } }
             latest { __typename name ... on Book { author { name } } } }"#,
    );
    let found_list = json!([
        { "__typename": "Author", "name": "Ada King", "books": [{ "id": "1" }, { "id": "2" }] },
        { "__typename": "Note", "text": "for Ada" }
    ]);
    let latest = json!({ "__typename": "Book", "name": "Engines", "author": { "name": "Ada King" } });
    assert_eq!(found, json!({ "data": { "find": found_list, "latest": latest } }));
    assert_eq!(client.graphql("{ whoAmI }"), json!({ "data": { "whoAmI": "127.0.0.1" } }));
}

/// What a resolver does cannot be undone, so such an operation is refused before anything runs.
#[test]
fn atomic_mutations_refuse_resolvers() {
    let server = server();
    let mut client = Client::of(&server);
    for document in [
        r#"mutation @atomic { createAuthor(name: "Ada") { id } publish(author: "Bob", titles: []) { id } }"#,
        r#"mutation @atomic { createAuthor(name: "Ada") { id initials } }"#,
    ] {
        let answer = client.graphql(document);
        assert_eq!(answer["errors"][0]["extensions"]["code"], "ATOMIC_UNSUPPORTED", "{answer:#}");
        assert!(answer.get("data").is_none(), "{answer:#}");
    }
    assert_eq!(client.graphql("{ author(id: 1) { name } }"), json!({ "data": { "author": null } }));
    let done = client.graphql(r#"mutation @atomic { createAuthor(name: "Ada") { id } }"#);
    assert_eq!(done, json!({ "data": { "createAuthor": { "id": "1" } } }));
}

#[test]
fn resolver_error_leaves_sibling_fields_alone() {
    let server = server();
    let mut client = Client::of(&server);
    client.graphql(r#"mutation { publish(author: "Ada", titles: ["Notes"]) { id } }"#);
    let answer = client.graphql("{ broken author(id: 1) { name books { secret } } panics }");
    let author = json!({ "name": "Ada", "books": [{ "secret": null }] });
    assert_eq!(answer["data"], json!({ "broken": null, "author": author, "panics": null }));
    let errors = answer["errors"].as_array().expect("errors");
    let told: Vec<_> = errors.iter().map(|error| (&error["path"], &error["extensions"]["code"])).collect();
    assert_eq!(
        told,
        [(&json!(["broken"]), &json!("INK")), (&json!(["panics"]), &json!("INTERNAL"))],
        "{answer:#}"
    );
    assert_eq!(errors[0]["message"], "out of ink");
    assert!(
        !errors[1]["message"].as_str().expect("a message").contains("bug"),
        "nothing of the inside leaks"
    );
}

#[test]
fn allowed_hosts_can_be_set_in_code() {
    let config = Config {
        database: DatabaseLocation::Memory,
        allowed_hosts: vec!["Shop.Example".into()],
        ..Config::default()
    };
    let server = Server::start(Trefoil::sample(), config);
    let status = |host: &str| Client::to(server.address).send("GET", "/hello", &[("host", host)], b"").status;
    assert_eq!(["shop.example", "localhost", "other.example"].map(status), [200, 200, 421]);
}

const PAGES: &str = r#"
    type Book { id: ID! title: String! }
    type BookConnection { edges: [BookEdge!]! pageInfo: PageInfo! motto: String! }
    type BookEdge { node: Book! cursor: String! rank(from: Int!): Int! }
    type PageInfo { hasNextPage: Boolean! endCursor: String size: Int }
    type BookPage { items: [Book!]! total: Int! legend: String }
    type CreateBookPayload { book: Book message: String! status: String }
    type Query { books(first: Int): BookConnection! allBooks: BookPage! }
    type Mutation { createBook(title: String!): CreateBookPayload! }
"#;

/// The types around records have no records of their own; their parent is the record of an edge or a write, else null.
#[test]
fn resolvers_of_pages_edges_and_payloads_are_called() {
    let text = |value: Value| Ok(ResolverResult::Value(value));
    let title = |value: &Value| value.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    let trefoil = Trefoil::app(App::from_schema("pages", PAGES))
        .resolver("BookConnection.motto", move |call| async move {
            text(if call.parent.is_null() { "read".into() } else { "not null".into() })
        })
        .resolver("BookEdge.rank", move |call| async move {
            let from = call.arguments.get("from").and_then(Value::as_i64).unwrap_or_default();
            text(Value::Int(from + title(&call.parent).len() as i64))
        })
        .resolver("PageInfo.size", move |_| async move { text(Value::Int(7)) })
        .resolver("BookPage.legend", move |_| async move {
            Err(Error::Resolver { message: "no legend".into(), code: "LEGEND".into() })
        })
        .resolver("CreateBookPayload.message", move |call| async move {
            text(format!("made {}", title(&call.parent)).into())
        })
        .resolver("CreateBookPayload.status", move |call| async move {
            text(title(&call.parent).to_uppercase().into())
        });
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let mut client = Client::of(&server);
    let made = client.graphql(r#"mutation { createBook(title: "Ox") { message book { id } loud: status } }"#);
    let payload = json!({ "message": "made Ox", "book": { "id": "1" }, "loud": "OX" });
    assert_eq!(made, json!({ "data": { "createBook": payload } }));
    client.graphql(r#"mutation { createBook(title: "Heron") { status } }"#);
    let listed = client
        .graphql("{ books { motto edges { rank(from: 10) node { title } } pageInfo { size hasNextPage } } }");
    let edges =
        json!([{ "rank": 12, "node": { "title": "Ox" } }, { "rank": 15, "node": { "title": "Heron" } }]);
    let page_info = json!({ "size": 7, "hasNextPage": false });
    assert_eq!(
        listed,
        json!({ "data": { "books": { "motto": "read", "edges": edges, "pageInfo": page_info } } })
    );
    let answer = client.graphql("{ allBooks { total legend items { id } } }");
    let page = json!({ "total": 2, "legend": null, "items": [{ "id": "1" }, { "id": "2" }] });
    assert_eq!(answer["data"], json!({ "allBooks": page }));
    assert_eq!(answer["errors"][0]["path"], json!(["allBooks", "legend"]), "{answer}");
    assert_eq!(answer["errors"][0]["extensions"]["code"], "LEGEND");
}

/// Resolvers inside connections of related records are called for the records of all parents.
#[test]
fn resolvers_inside_related_connections_are_called() {
    const SCHEMA: &str = "
        type Shelf { id: ID! name: String! books(first: Int, last: Int): BookConnection! }
        type Book { id: ID! title: String! shelf: Shelf! length: Int }
        type BookConnection { edges: [BookEdge!]! motto: String! totalCount: Int! pageInfo: PageInfo! }
        type BookEdge { node: Book! rank: Int! }
        type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! }
        type Query { shelves: [Shelf!]! }
        type Mutation { createShelf(name: String!): Shelf! createBook(title: String!, shelfId: ID!): Book! }";
    fn length(value: &Value) -> ResolverResult {
        let title = value.get("title").and_then(Value::as_str).unwrap_or_default();
        ResolverResult::Value(Value::Int(title.len() as i64))
    }
    let trefoil = Trefoil::app(App::from_schema("shelves", SCHEMA))
        .resolver("Book.length", |call| async move { Ok(length(&call.parent)) })
        .resolver("BookEdge.rank", |call| async move { Ok(length(&call.parent)) })
        .resolver("BookConnection.motto", |_| async { Ok(ResolverResult::Value("read".into())) });
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let mut client = Client::of(&server);
    client.graphql(
        r#"mutation { a: createShelf(name: "A") { id } b: createShelf(name: "B") { id }
            c: createBook(title: "Ox", shelfId: 1) { id } d: createBook(title: "Emma", shelfId: 1) { id }
            e: createBook(title: "Persuasion", shelfId: 2) { id } }"#,
    );
    let read = client.graphql(
        "{ shelves { name books(last: 1) { motto totalCount pageInfo { hasPreviousPage }
            edges { rank node { title length } } } } }",
    );
    let shelf = |name: &str, total: i64, title: &str| {
        let length = title.len();
        let edges = json!([{ "rank": length, "node": { "title": title, "length": length } }]);
        let page_info = json!({ "hasPreviousPage": total > 1 });
        json!({ "name": name, "books": { "motto": "read", "totalCount": total, "pageInfo": page_info, "edges": edges } })
    };
    let shelves = json!([shelf("A", 2, "Emma"), shelf("B", 1, "Persuasion")]);
    assert_eq!(read, json!({ "data": { "shelves": shelves } }));
}

/// What is not there has no resolver called for it.
#[test]
fn resolvers_of_missing_records_are_not_called() {
    let schema = r#"
        type Book { id: ID! title: String! }
        type BookConnection { edges: [BookEdge!]! pageInfo: PageInfo! }
        type BookEdge { node: Book! rank: Int! }
        type PageInfo { hasNextPage: Boolean! }
        type DeleteBookPayload { book: Book message: String! }
        type Query { books(first: Int): BookConnection! }
        type Mutation { createBook(title: String!): Book! deleteBook(id: ID!): DeleteBookPayload }
    "#;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = |calls: &Arc<AtomicUsize>, value: Value| {
        let calls = calls.clone();
        move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            let value = value.clone();
            async move { Ok(ResolverResult::Value(value)) }
        }
    };
    let trefoil = Trefoil::app(App::from_schema("missing", schema))
        .resolver("BookEdge.rank", counted(&calls, Value::Int(1)))
        .resolver("DeleteBookPayload.message", counted(&calls, "gone".into()));
    let server = Server::start(trefoil, Config { database: DatabaseLocation::Memory, ..Config::default() });
    let mut client = Client::of(&server);
    let (list, delete) =
        ("{ books { edges { rank } } }", "mutation { deleteBook(id: 1) { message book { title } } }");
    assert_eq!(client.graphql(list), json!({ "data": { "books": { "edges": [] } } }));
    let refused = client.graphql(delete);
    assert_eq!(refused["errors"][0]["extensions"]["code"], "NOT_FOUND", "{refused}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    client.graphql(r#"mutation { createBook(title: "Ox") { id } }"#);
    assert_eq!(client.graphql(list), json!({ "data": { "books": { "edges": [{ "rank": 1 }] } } }));
    let payload = json!({ "message": "gone", "book": { "title": "Ox" } });
    assert_eq!(client.graphql(delete), json!({ "data": { "deleteBook": payload } }));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn resolvers_of_unknown_fields_are_refused() {
    let known = |name: &str| {
        let trefoil = Trefoil::app(App::from_schema("pages", PAGES))
            .resolver(name, |_| async { Ok(ResolverResult::Value(Value::Null)) });
        let config = Config { database: DatabaseLocation::Memory, port: 0, ..Config::default() };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            trefoil.config(config).start().await.map(drop).map_err(|error| error.to_string())
        })
    };
    for name in ["BookEdge.rank", "Query.books"] {
        assert_eq!(known(name), Ok(()), "{name}");
    }
    for name in ["BookEdge.rang", "Query.book", "Boat.name", "books"] {
        let refused = known(name).expect_err(name);
        assert!(refused.contains(&format!("a resolver is registered for `{name}`")), "{refused}");
    }
}
