//! Resolvers written in Rust under rules: they act as who asks, unless they say that they act as the operator.

use serde_json::{Value as Json, json};
use trefoil::{ResolverResult, Trefoil, Value};
use trefoil_config::{Config, DatabaseLocation};

use super::stage::write_application;
use super::tokens;
use crate::support::{Client, Server};

const SCHEMA: &str = r#"
enum Role { EDITOR }
type User @account(login: "login", roles: "role") @allow(read: true) {
  id: ID!
  login: String! @unique
  role: Role @allow(write: false)
}
type Post @allow(read: "published || author == me", create: "author == me", update: "author == me") {
  id: ID!
  title: String!
  text: String @allow(read: "author == me || role(EDITOR)")
  published: Boolean!
  author: User!
  beginning(length: Int! = 3): String
}
type Query {
  first: Post
  all: [Post!]!
  number: Int
  who: String
  secret: String @allow(call: "role(EDITOR)")
  posts: [Post!]!
}
type Mutation { publish(author: ID!, asOperator: Boolean! = false): Post  close(id: ID!): Post }
"#;

fn post(id: i64) -> ResolverResult {
    ResolverResult::Record { type_name: "Post".into(), id: id.into() }
}

fn id_of(record: &Value) -> i64 {
    record.get("id").and_then(Value::as_i64).expect("a record has an id")
}

fn server() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let users = json!([{ "login": "ann", "role": null }, { "login": "eve", "role": "EDITOR" }]);
    let posts = json!([
        { "title": "draft", "text": "hidden", "published": false, "authorId": 1 },
        { "title": "open", "text": "secret", "published": true, "authorId": 1 },
    ]);
    let seeds = [("users", users.to_string()), ("posts", posts.to_string())];
    write_application(folder.path(), SCHEMA, &seeds).expect("written");
    tokens::add_issuer(folder.path(), "login").expect("written");
    let trefoil = Trefoil::folder(folder.path())
        .resolver("Query.first", |_| async { Ok(post(1)) })
        .resolver("Query.all", |call| async move {
            let all = call.engine.list("Post", Default::default()).await?;
            Ok(ResolverResult::List(all.iter().map(|found| post(id_of(found))).collect()))
        })
        .resolver("Query.number", |call| async move {
            let all = call.engine.as_operator().list("Post", Default::default()).await?;
            Ok(ResolverResult::Value(Value::Int(all.len() as i64)))
        })
        .resolver("Query.who", |call| async move {
            let account = call.actor.account().map_or("nobody".to_owned(), |id| id.to_string());
            let team = call.actor.claim("team").and_then(Value::as_str).unwrap_or("none").to_owned();
            Ok(ResolverResult::Value(format!("{account} {} {team}", call.actor.has_role("EDITOR")).into()))
        })
        .resolver("Query.secret", |_| async { Ok(ResolverResult::Value("said".into())) })
        .resolver("Post.beginning", |call| async move {
            let length = call.arguments.get("length").and_then(Value::as_i64).unwrap_or_default();
            let text = call.parent.get("text").and_then(Value::as_str).unwrap_or("-");
            Ok(ResolverResult::Value(text.chars().take(length as usize).collect::<String>().into()))
        })
        .resolver("Mutation.publish", |call| async move {
            let as_operator = call.arguments.get("asOperator").and_then(Value::as_bool) == Some(true);
            let engine = if as_operator { call.engine.as_operator() } else { call.engine.clone() };
            let author = call.arguments.get("author").cloned().unwrap_or(Value::Null);
            let fields =
                [("title", Value::from("new")), ("published", Value::Bool(false)), ("authorId", author)];
            let made = engine.create("Post", Value::object(fields)).await?;
            Ok(post(id_of(&made)))
        })
        .resolver("Mutation.close", |call| async move {
            let id =
                call.arguments.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()).unwrap_or(0);
            call.engine.update("Post", id, Value::object([("published", Value::Bool(false))])).await?;
            Ok(post(id))
        });
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    (Server::start(trefoil, config), folder)
}

#[test]
fn resolvers_read_and_write_as_who_asks() {
    let (server, _folder) = server();
    let ann = tokens::bearer(&json!({ "login": "ann", "team": "red" }));
    let eve = tokens::bearer(&json!({ "login": "eve" }));
    let ask = |credential: Option<&str>, document: &str| -> Json {
        let own = credential.map(|credential| ("authorization", credential));
        let kinds = [("accept", "application/json"), ("content-type", "application/json")];
        let headers: Vec<(&str, &str)> = kinds.into_iter().chain(own).collect();
        let body = json!({ "query": document }).to_string();
        Client::of(&server).send("POST", "/graphql", &headers, body.as_bytes()).json()
    };
    let code = |answer: &Json| answer["errors"][0]["extensions"]["code"].clone();

    // Records and fields out of sight stay so, whoever named them, and a parent has what its reader sees.
    let document = "{ all { title text beginning } }";
    let seen = |title: &str, text: Json, beginning: &str| json!({ "title": title, "text": text, "beginning": beginning });
    let open = |text: Json, beginning: &str| seen("open", text, beginning);
    let all = |credential| ask(credential, document)["data"]["all"].clone();
    assert_eq!(all(None), json!([open(Json::Null, "-")]));
    assert_eq!(all(Some(&eve)), json!([open(json!("secret"), "sec")]));
    assert_eq!(all(Some(&ann)), json!([seen("draft", json!("hidden"), "hid"), open(json!("secret"), "sec")]));
    let first = "{ first { title } }";
    assert_eq!(ask(Some(&ann), first)["data"]["first"]["title"], "draft");
    for credential in [None, Some(eve.as_str())] {
        let hidden = ask(credential, first);
        assert_eq!(hidden["data"]["first"], Json::Null, "{hidden}");
        assert!(!hidden.to_string().contains("draft"), "{hidden}");
    }
    // What acts as the operator sees all, and who asks is told to every resolver.
    assert_eq!(ask(None, "{ number who }")["data"], json!({ "number": 2, "who": "nobody false none" }));
    assert_eq!(ask(Some(&ann), "{ who }")["data"]["who"], "1 false red");
    assert_eq!(ask(Some(&eve), "{ who secret }")["data"], json!({ "who": "2 true none", "secret": "said" }));
    assert_eq!(code(&ask(Some(&ann), "{ secret }")), "FORBIDDEN");
    assert_eq!(code(&ask(None, "{ secret }")), "UNAUTHENTICATED");

    // Writes follow the rules, unless the program says otherwise; what came of them is shown as who asks sees it.
    let own = ask(Some(&ann), "mutation { publish(author: 1) { title } }");
    assert_eq!(own["data"]["publish"]["title"], "new", "{own}");
    assert_eq!(code(&ask(Some(&eve), "mutation { publish(author: 1) { title } }")), "FORBIDDEN");
    assert_eq!(code(&ask(None, "mutation { publish(author: 1) { title } }")), "UNAUTHENTICATED");
    let other = ask(Some(&eve), "mutation { publish(author: 1, asOperator: true) { title } }");
    assert_eq!(other["data"]["publish"], Json::Null, "{other}");
    assert_eq!(ask(None, "{ number }")["data"]["number"], 4);
    assert_eq!(code(&ask(Some(&eve), "mutation { close(id: 2) { title } }")), "FORBIDDEN");
    assert_eq!(code(&ask(Some(&eve), "mutation { close(id: 1) { title } }")), "NOT_FOUND");
    let closed = ask(Some(&ann), "mutation { close(id: 2) { title published } }");
    assert_eq!(closed["data"]["close"], json!({ "title": "open", "published": false }), "{closed}");
    assert_eq!(all(None), json!([]));
}
