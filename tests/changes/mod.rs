//! Subscriptions from the change log to encoded events, without a transport: which events, in which order, how often.

mod delivering;
mod filtering;
mod following;
mod relating;
mod reloading;
mod replaying;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use trefoil_config::{Config, PostgresUrl};
use trefoil_engine::{ChangeFeed, Engine, PlanLimits, ResolverRegistry, binding};
use trefoil_graphql::subscribe::{Subscription, SubscriptionStep};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlService, GraphqlState, RequestContext};
use trefoil_model::{SourceFile, Value, parse_schema};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::{SqlStore, SqliteOptions, postgres};

use crate::support::Outsider;

/// Makes of each `async fn name(on: On)` a test on SQLite and one on PostgreSQL.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                super::$name(crate::changes::On::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                super::$name(crate::changes::On::Postgres).await;
            }
        })+
    };
}
use both;

const SCHEMA: &str = r#"
scalar Decimal
scalar DateTime
scalar Long
enum Colour { RED GREEN }
type Query { users: [User] }
type User {
  id: ID!  name: String!  email: String  age: Int  score: Float  balance: Decimal  big: Long  colour: Colour
  active: Boolean  tags: [String!]  seen: DateTime  secret: String
  boss: User @reference(inverse: "staff")  staff: [User!]!  orders: [Order!]!  clubs: [Club!]!
}
type Club { id: ID!  name: String!  members: [User!]!  version: Int @version }
type Order { id: ID!  item: String!  user: User! @reference(onDelete: CASCADE) }
type Mutation {
  createUser(name: String!, email: String, age: Int, score: Float, balance: Decimal, big: Long, colour: Colour,
    active: Boolean, tags: [String!], seen: DateTime, boss: ID): User
  updateUser(id: ID!, name: String, balance: Decimal): User
  deleteUser(id: ID!): User
  createOrder(item: String!, user: ID!): Order
  createClub(name: String!, members: [ID!]): Club
}
type Subscription {
  userCreated(name: String, age: Int, score: Float, balance: Decimal, big: Long, colour: Colour, active: Boolean,
    seen: DateTime, boss: ID, bossId: ID, id: ID): User!
  userUpdated(name: String): User
  userDeleted(id: ID): User
  orderDeleted: Order
  orderCreated: Order
  clubUpdated: Club
  nothingKnown: User
  counted: Int
  requiredName: User @resolver(name: "User.created")
}
"#;

/// Which kind of store it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Sqlite,
    Postgres,
}

/// Where another program finds the same records.
enum Place {
    Folder(TempDir),
    /// The address of a database on the server that all tests share.
    Server(String),
}

/// A served schema over a store of its own, and nothing of HTTP.
struct Stage {
    face: GraphqlService,
    store: Arc<SqlStore>,
    feed: ChangeFeed,
    config: Config,
    place: Place,
}

fn registry() -> ResolverRegistry {
    let mut registry = ResolverRegistry::default();
    registry.register(
        "User.secret",
        Arc::new(|call| {
            Box::pin(async move {
                let name = call.parent.get("name").and_then(Value::as_str).unwrap_or_default();
                Ok(trefoil::ResolverResult::Value(Value::String(format!("of {name}"))))
            })
        }),
    );
    registry.register(
        "Subscription.counted",
        Arc::new(|_| Box::pin(async { Ok(trefoil::ResolverResult::Value(Value::Int(1))) })),
    );
    registry
}

/// Brings the store to the schema and serves it.
async fn served(store: &SqlStore, feed: &ChangeFeed, schema: &str, config: &Config) -> GraphqlState {
    let file = SourceFile { name: "graphql/test.graphqls".into(), text: schema.into() };
    let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let (model, registry) = (Arc::new(model), registry());
    let bindings = binding::bind_root_fields(&model, &registry);
    let watched = binding::subscribed_changes(&bindings);
    let mode = MigrationMode::Apply { allow_drop: Vec::new() };
    let mode = if store.migrate(&model, &watched, &[], MigrationMode::Start).await.is_ok() {
        MigrationMode::Start
    } else {
        mode
    };
    store.migrate(&model, &watched, &[], mode).await.unwrap();
    GraphqlState::new(Engine::new(model, bindings, registry, feed.clone(), PlanLimits::default()), config)
}

impl Stage {
    async fn new(on: On) -> Stage {
        Stage::with(on, SqliteOptions::default(), Config::default()).await
    }

    /// The same with another schema.
    async fn of_schema(on: On, schema: &str) -> Stage {
        Stage::opened(on, SqliteOptions::default(), Config::default(), schema).await
    }

    /// Of the options PostgreSQL takes how long the log is kept.
    async fn with(on: On, options: SqliteOptions, config: Config) -> Stage {
        Stage::opened(on, options, config, SCHEMA).await
    }

    async fn opened(on: On, options: SqliteOptions, config: Config, schema: &str) -> Stage {
        match on {
            On::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let store = SqlStore::open_sqlite(Some(&folder.path().join("trefoil.db")), options).unwrap();
                Stage::over(store, schema, config, Place::Folder(folder)).await
            }
            On::Postgres => {
                let url = crate::support::postgres::database();
                let options = postgres::PostgresOptions {
                    keep_changes: options.keep_changes,
                    keep_changes_for: options.keep_changes_for,
                    ..postgres::PostgresOptions::for_url(PostgresUrl::parse(&url).unwrap())
                };
                let store = SqlStore::open_postgres(options).await.unwrap();
                Stage::over(store, schema, config, Place::Server(url)).await
            }
        }
    }

    async fn over(store: SqlStore, schema: &str, config: Config, place: Place) -> Stage {
        let store = Arc::new(store);
        let feed = ChangeFeed::with_cache_bytes(store.clone(), config.limits.event_cache / 2);
        let face = GraphqlService::new(served(&store, &feed, schema, &config).await, &config);
        Stage { face, store, feed, config, place }
    }

    /// A connection as another program has it.
    async fn outsider(&self) -> Outsider {
        match &self.place {
            Place::Folder(folder) => Outsider::file(&folder.path().join("trefoil.db")),
            Place::Server(url) => Outsider::server(url).await,
        }
    }

    /// Lets another program run statements; gives what they found.
    async fn outside(&self, statements: &str) -> String {
        self.outsider().await.run(statements).await.unwrap()
    }

    /// Statements run so far for requests.
    fn statements(&self) -> u64 {
        match &*self.store {
            SqlStore::Sqlite(store) => store.statement_count(),
            SqlStore::Postgres(store) => store.statement_count(),
        }
    }

    async fn run(&self, query: &str) -> Json {
        let reply =
            self.face.state().execute_request(asked(query, json!({})), RequestContext::default()).await;
        serde_json::from_str(&told(reply)[0]).unwrap()
    }

    async fn create(&self, name: &str) {
        let answer = self.run(&format!("mutation {{ createUser(name: {name:?}) {{ id }} }}")).await;
        assert!(answer["errors"].is_null(), "{answer}");
    }

    async fn begin(
        &self,
        query: &str,
        variables: Json,
        last: Option<&str>,
    ) -> Result<Subscription, Vec<String>> {
        self.face.subscribe(asked(query, variables), RequestContext::default(), last).await.map_err(told)
    }

    async fn subscribe(&self, query: &str) -> Subscription {
        self.begin(query, json!({}), None).await.unwrap()
    }

    async fn resume(&self, query: &str, last: &str) -> Subscription {
        self.begin(query, json!({}), Some(last)).await.unwrap()
    }

    /// The codes of why it does not begin.
    async fn refusal(&self, query: &str, last: Option<&str>) -> Vec<String> {
        self.begin(query, json!({}), last).await.map(|_| ()).unwrap_err()
    }

    /// The tag of the store's first epoch.
    async fn tag(&self) -> String {
        let epochs = self.outside("SELECT value FROM trefoil_meta WHERE key = 'epochs'").await;
        let epochs: Json = serde_json::from_str(&epochs).unwrap();
        epochs[0]["tag"].as_str().unwrap().to_owned()
    }
}

fn asked(query: &str, variables: Json) -> GraphqlRequest<'static> {
    let Value::Object(variables) = Value::from(variables) else { panic!("variables are an object") };
    GraphqlRequest { query: query.to_owned().into(), operation_name: None, variables }
}

/// The codes of the failures in it.
fn told(reply: GraphqlReply) -> Vec<String> {
    match reply {
        GraphqlReply::Rejected(failures) => failures.into_iter().map(|failure| failure.code.into()).collect(),
        GraphqlReply::Failed(error) => vec![error.code().to_owned()],
        GraphqlReply::Executed(executed) => vec![String::from_utf8(executed.body).unwrap()],
        GraphqlReply::PostRequired => vec!["ONLY_BY_POST".to_owned()],
    }
}

/// The next event; generous, because machines are busy at times.
async fn next(subscription: &mut Subscription) -> Json {
    match tokio::time::timeout(Duration::from_secs(20), subscription.next()).await {
        Ok(SubscriptionStep::Event(event)) => {
            let json: Json = serde_json::from_slice(&event.payload).unwrap();
            assert_eq!(json["extensions"]["eventId"], *event.id);
            assert_eq!(subscription.last_event_id(), &event.id);
            json
        }
        Ok(SubscriptionStep::Ended(_, failures)) => panic!("{failures:?}"),
        Err(_) => panic!("no event came"),
    }
}

/// The codes it ends with.
async fn end(subscription: &mut Subscription) -> Vec<String> {
    match tokio::time::timeout(Duration::from_secs(20), subscription.next()).await {
        Ok(SubscriptionStep::Ended(_, failures)) => {
            failures.into_iter().map(|failure| failure.code.into()).collect()
        }
        Ok(SubscriptionStep::Event(event)) => panic!("{event:?}"),
        Err(_) => panic!("it did not end"),
    }
}

/// What `name` is in the next events.
async fn names(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        let event = next(subscription).await;
        let (_, record) = event["data"].as_object().unwrap().iter().next().unwrap();
        names.push(record["name"].as_str().unwrap_or_else(|| panic!("{event}")).to_owned());
    }
    names
}

/// Nothing more comes before the next change, which is made here.
async fn silent_until(stage: &Stage, subscription: &mut Subscription, marker: &str) {
    stage.create(marker).await;
    assert_eq!(names(subscription, 1).await, [marker]);
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}
