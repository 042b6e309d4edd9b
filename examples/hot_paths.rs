//! Runs one hot path so many times and nothing else, for `bench/instructions` to count.
//!
//! A path that begins with `uuid-` runs on the same users with UUIDs as keys, one with `ruled-` under rules and as an account
//! that sees them all. `nested` creates an order with ten lines,
//! `bare` inserts the same into the same tables without the server.

use std::borrow::Cow;

use trefoil::{Trefoil, Value};
use trefoil_config::Config;
use trefoil_engine::{AccountFacts, Actor, ActorIdentity, ActorPath, Engine};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlState, RequestContext};
use trefoil_model::{RecordId, StoredValue};

const USERS: i64 = 1_000;

/// The users of the sample, with another key.
const UUID_SCHEMA: &str = r#"
type User { id: UUID! name: String! @notBlank email: String @email }
type Query { getAllUsers: [User] getUserById(id: UUID!): User }
type Mutation { createUser(name: String!, email: String): User }
type Subscription { userCreated: User }
scalar UUID
"#;

/// The same users under rules.
const RULED_SCHEMA: &str = r#"
type Person @account(login: "email") @allow(read: true) { id: ID! email: String! @unique }
type User @allow(read: "public || owner == me", create: "signedIn") {
  id: ID! name: String! @notBlank email: String @email public: Boolean! @default(value: true) owner: Person
}
type Query { getAllUsers: [User] getUserById(id: ID!): User }
type Mutation { createUser(name: String!, email: String): User }
type Subscription { userCreated: User }
"#;

const ORDER_SCHEMA: &str = "
type Order { id: ID! item: String! lines: [Line] }
type Line { id: ID! order: Order! text: String! }
";

const LINES: usize = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which path: point, list or create, or one of these after uuid-")?;
    let times: i64 = arguments.next().ok_or("how often")?.parse()?;
    let folder = tempfile::tempdir()?;
    let config = Config { port: 0, data: folder.path().join("data"), ..Config::default() };
    if path == "nested" || path == "bare" {
        return write_orders(&path, times, &folder, config).await;
    }
    let of_schema = |schema: &str| -> std::io::Result<Trefoil> {
        let app = folder.path().join("app");
        std::fs::create_dir_all(app.join("graphql"))?;
        std::fs::write(app.join("graphql/users.graphqls"), schema)?;
        Ok(Trefoil::folder(app))
    };
    let (server, path, key_type) = match path.split_once('-') {
        Some(("uuid", path)) => (of_schema(UUID_SCHEMA)?, path, "UUID!"),
        Some(("ruled", path)) => (of_schema(RULED_SCHEMA)?, path, "ID!"),
        Some(_) | None => (Trefoil::sample(), path.as_str(), "ID!"),
    };
    let running = server.config(config.clone()).start().await?;
    let mut ids = Vec::new();
    for number in 0..USERS {
        let name = format!("User {number}");
        let fields = [("name", Value::from(name)), ("email", Value::from("user@example.org"))];
        let user = running.engine.as_operator().create("User", Value::object(fields)).await?;
        ids.push(user.get("id").cloned().ok_or("a user without an id")?);
    }
    let actor = account(&running.engine);
    let served = GraphqlState::new(running.engine.clone(), &config);
    let point = format!("query ($id: {key_type}) {{ getUserById(id: $id) {{ id name }} }}");
    for number in 0..times {
        let id = &ids[usize::try_from(number % USERS)?];
        let request = request(path, &point, number, id)?;
        let context = RequestContext { actor: actor.clone(), ..RequestContext::default() };
        let answer = served.execute_request(request, context).await;
        let GraphqlReply::Executed(executed) = answer else { return Err("not executed".into()) };
        if !executed.error_free {
            return Err(String::from_utf8_lossy(&executed.body).into_owned().into());
        }
    }
    running.stop().await;
    Ok(())
}

/// An account of the schema that has them, else nobody.
fn account(engine: &Engine) -> Actor {
    let model = engine.model();
    let Some(record) = model.find_record("Person") else { return Actor::default() };
    let path = ActorPath { references: Vec::new(), field: model.record(record).id_field() };
    let account = AccountFacts {
        label: String::new(),
        id: RecordId::Number(1),
        model_hash: model.hash,
        values: vec![(path, StoredValue::Int(1))],
    };
    let identity = ActorIdentity {
        name: "account:1".to_owned(),
        roles: Vec::new(),
        account: Some(account),
        claims: Value::Null,
        expires: None,
    };
    Actor::of_identity(identity)
}

/// Orders with their lines, by the server or without it.
async fn write_orders(
    path: &str,
    times: i64,
    folder: &tempfile::TempDir,
    config: Config,
) -> Result<(), Box<dyn std::error::Error>> {
    let schema = folder.path().join("app/graphql");
    std::fs::create_dir_all(&schema)?;
    std::fs::write(schema.join("orders.graphqls"), ORDER_SCHEMA)?;
    let running = Trefoil::folder(folder.path().join("app")).config(config.clone()).start().await?;
    if path == "bare" {
        running.stop().await;
        let connection = rusqlite::Connection::open(config.data.join("trefoil.db"))?;
        for number in 0..times {
            connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
            connection
                .prepare_cached("INSERT INTO orders (item) VALUES (?1)")?
                .execute([format!("Order {number}")])?;
            let order = connection.last_insert_rowid();
            for line in 0..LINES {
                connection
                    .prepare_cached("INSERT INTO lines (orderId, text) VALUES (?1, ?2)")?
                    .execute((order, format!("Line {line}")))?;
            }
            connection.prepare_cached("COMMIT")?.raw_execute()?;
        }
        return Ok(());
    }
    let served = GraphqlState::new(running.engine.clone(), &config);
    for number in 0..times {
        let line = |line: usize| Value::object([("text", Value::from(format!("Line {line}")))]);
        let lines = Value::object([("create", Value::List((0..LINES).map(line).collect()))]);
        let input = Value::object([("item", Value::from(format!("Order {number}"))), ("lines", lines)]);
        let request = GraphqlRequest {
            query: Cow::Borrowed("mutation ($input: OrderCreate!) { createOrder(input: $input) { id } }"),
            operation_name: None,
            variables: vec![("input".to_owned(), input)],
        };
        let GraphqlReply::Executed(executed) =
            served.execute_request(request, RequestContext::default()).await
        else {
            return Err("not executed".into());
        };
        if !executed.error_free {
            return Err(String::from_utf8_lossy(&executed.body).into_owned().into());
        }
    }
    running.stop().await;
    Ok(())
}

fn request<'a>(path: &str, point: &'a str, number: i64, id: &Value) -> Result<GraphqlRequest<'a>, String> {
    let (query, variables) = match path {
        "point" => (point, vec![("id".to_owned(), id.clone())]),
        "list" => ("{ getAllUsers { id name email } }", Vec::new()),
        "create" => (
            "mutation ($name: String!) { createUser(name: $name, email: \"a@example.org\") { id } }",
            vec![("name".to_owned(), Value::from(format!("New user {number}")))],
        ),
        other => return Err(format!("no path `{other}`")),
    };
    Ok(GraphqlRequest { query: Cow::Borrowed(query), operation_name: None, variables })
}
