//! Conditions of subscriptions on related records: what they mean, and what they cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio::sync::watch;
use trefoil_engine::{
    AuditOrigin, BegunTransaction, BulkTransaction, ChangeFeed, ChangeLog, CredentialStore, DataVersion,
    Engine, IdempotencyKey, JobResult, LogReadLimits, RecordChange, Store, StoreJob,
};
use trefoil_graphql::subscribe::Subscription;
use trefoil_graphql::{GraphqlService, GraphqlState};
use trefoil_model::Model;
use trefoil_model::error::{Error, Result};

use super::{On, Stage, both, next};

both! {
    conditions_reach_related_records,
    related_records_are_read_at_delivery,
    thousand_subscriptions_ask_once,
    own_columns_that_decide_ask_nothing,
    events_wait_while_the_store_is_away,
    too_many_conditions_are_refused,
}

const SCHEMA: &str = r#"
type City { id: ID!  name: String! }
type User { id: ID!  name: String!  city: City  orders: [Order!]! }
type Order { key: String! @key(kind: TEXT)  price: Int  user: User  lines: [Line!]!  tags: [Tag!]! }
type Line { id: UUID!  text: String!  order: Order! @reference(onDelete: CASCADE)  tag: Tag }
type Tag { id: ID!  name: String!  orders: [Order!]! }
"#;

/// Kind and key of the next events.
async fn told(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        let event = next(subscription).await;
        let change = &event["data"]["orderChanged"];
        told.push(format!(
            "{} {}",
            change["kind"].as_str().unwrap(),
            change["order"]["key"].as_str().unwrap()
        ));
    }
    told
}

fn changed(condition: &str) -> String {
    format!("subscription {{ orderChanged(where: {condition}) {{ kind order {{ key }} }} }}")
}

async fn done(stage: &Stage, mutation: &str) -> Json {
    let answer = stage.run(&format!("mutation {{ {mutation} }}")).await;
    assert!(answer["errors"].is_null(), "{answer}");
    answer
}

/// Nothing more comes.
async fn is_silent(subscription: &mut Subscription) -> bool {
    tokio::time::timeout(Duration::from_millis(100), subscription.next()).await.is_err()
}

async fn conditions_reach_related_records(on: On) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    let start = stage.subscribe(&changed("{}")).await.last_event_id().to_string();
    for mutation in [
        r#"createCity(input: {name: "Ulm"}) { id } createTags(input: [{name: "red"}, {name: "hot"}]) { id }"#,
        r#"createUsers(input: [{name: "Ada", cityId: 1}, {name: "Bob"}]) { id }"#,
        r#"createOrders(input: [{key: "tea", userId: 1, price: 1, tagIds: [1]}, {key: "cup", userId: 2, price: 9},
             {key: "pot", price: 10}, {key: "gone", userId: 1, tagIds: [2]}]) { key }"#,
        r#"a: createLine(input: {text: "hot", orderId: "tea", tagId: 2}) { id }
           b: createLine(input: {text: "cold", orderId: "tea"}) { id }
           c: createLine(input: {text: "cold", orderId: "gone"}) { id }"#,
        r#"updateOrder(key: "pot", input: {price: 11, userId: 2}) { key }"#,
        r#"deleteOrder(key: "gone") { key }"#,
        // Nobody follows users: what is read of them is as it is now.
        r#"updateUser(id: 2, input: {name: "Bea"}) { id }"#,
    ] {
        done(&stage, mutation).await;
    }
    let (tea, cup, pot, gone) = ("CREATED tea", "CREATED cup", "CREATED pot", "CREATED gone");
    let (changed_pot, deleted) = ("UPDATED pot", "DELETED gone");
    for (condition, wanted) in [
        // The reference is that of the change, also if the record is deleted.
        (r#"{user: {name: "Ada"}}"#, vec![tea, gone, deleted]),
        (r#"{user: {name: "Bob"}}"#, vec![]),
        (r#"{user: {name: "Bea"}}"#, vec![cup, changed_pot]),
        (r#"{user: {city: {name: "Ulm"}}}"#, vec![tea, gone, deleted]),
        (r#"{user: {orders_some: {price_gt: 10}}}"#, vec![cup, changed_pot]),
        (r#"{user: {}}"#, vec![tea, cup, gone, changed_pot, deleted]),
        (r#"{not: {user: {name: "Ada"}}}"#, vec![cup, pot, changed_pot]),
        // A deleted record has no lists.
        (r#"{lines_some: {text: "cold"}}"#, vec![tea]),
        (r#"{lines_some: {tag: {name: "hot"}}}"#, vec![tea]),
        (r#"{lines_some: {tag: {orders_none: {}}}}"#, vec![tea]),
        (r#"{lines_none: {text: "hot"}}"#, vec![cup, pot, gone, changed_pot, deleted]),
        (r#"{lines_every: {text: "cold"}}"#, vec![cup, pot, gone, changed_pot, deleted]),
        (r#"{tags_some: {id_in: [1, 2]}}"#, vec![tea]),
        (r#"{tags_none: {name: "red"}}"#, vec![cup, pot, gone, changed_pot, deleted]),
        // Own columns beside relations.
        (r#"{price_gte: 9, user: {name: "Bea"}}"#, vec![cup, changed_pot]),
        (r#"{or: [{price: 10}, {user: {name: "Ada"}}]}"#, vec![tea, pot, gone, deleted]),
        (r#"{or: [{price: 10}, {tags_some: {}}, {lines_some: {}}]}"#, vec![tea, pot]),
        (
            r#"{not: {or: [{price_null: true}, {and: [{user: {name: "Ada"}}, {lines_some: {text: "hot"}}]}]}}"#,
            vec![cup, pot, changed_pot],
        ),
        (r#"{key: "tea", or: [{user: {name: "x"}}, {not: {user: {name: "x"}}}]}"#, vec![tea]),
    ] {
        let mut subscription = stage.resume(&changed(condition), &start).await;
        assert_eq!(told(&mut subscription, wanted.len()).await, wanted, "{condition}");
        assert!(is_silent(&mut subscription).await, "{condition} gave more");
    }
}

async fn related_records_are_read_at_delivery(on: On) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    done(
        &stage,
        r#"createUsers(input: [{name: "Ada"}, {name: "Bob"}]) { id } createTag(input: {name: "red"}) { id }"#,
    )
    .await;
    let mut adas = stage.subscribe(&changed(r#"{user: {name: "Ada"}}"#)).await;
    let mut reds = stage.subscribe(&changed(r#"{tags_some: {name: "red"}}"#)).await;
    let start = adas.last_event_id().to_string();
    done(&stage, r#"createOrders(input: [{key: "a", userId: 1}, {key: "b", userId: 2}]) { key }"#).await;
    assert_eq!(told(&mut adas, 1).await, ["CREATED a"]);
    assert!(is_silent(&mut reds).await, "it is judged now");
    // A link is an update of both sides.
    done(&stage, r#"updateTag(id: 1, input: {orderIds: ["b"]}) { id }"#).await;
    assert_eq!(told(&mut reds, 1).await, ["UPDATED b"]);
    assert!(is_silent(&mut adas).await);
    done(
        &stage,
        r#"updateUser(id: 2, input: {name: "Ada"}) { id } updateOrder(key: "b", input: {price: 1}) { key }"#,
    )
    .await;
    assert_eq!(told(&mut adas, 1).await, ["UPDATED b"]);
    assert_eq!(told(&mut reds, 1).await, ["UPDATED b"]);
    done(&stage, r#"deleteOrder(key: "b") { key }"#).await;
    assert_eq!(told(&mut adas, 1).await, ["DELETED b"]);
    // Of the record that is gone only the reference is left.
    drop((adas, reds));
    let mut adas = stage.resume(&changed(r#"{user: {name: "Ada"}}"#), &start).await;
    let all = ["CREATED a", "CREATED b", "UPDATED b", "UPDATED b", "DELETED b"];
    assert_eq!(told(&mut adas, all.len()).await, all);
    let mut reds = stage.resume(&changed(r#"{tags_some: {name: "red"}}"#), &start).await;
    assert!(is_silent(&mut reds).await);
    done(&stage, r#"createOrder(input: {key: "c", tagIds: [1]}) { key }"#).await;
    assert_eq!(told(&mut reds, 1).await, ["CREATED c"]);
}

/// The statements that the store runs until each of a thousand subscriptions has three events. Their requests differ, so
/// that none shares its events with another.
async fn statements_of_thousand(stage: &Arc<Stage>, condition: &str, keys: [&str; 3]) -> u64 {
    let mut readers = Vec::new();
    for number in 0..1_000 {
        let query = changed(condition).replacen("subscription", &format!("subscription S{number}"), 1);
        let mut subscription = stage.subscribe(&query).await;
        readers.push(tokio::spawn(async move { told(&mut subscription, 3).await }));
    }
    let before = stage.statements();
    let inputs: Vec<String> = keys.iter().map(|key| format!("{{key: {key:?}, userId: 1}}")).collect();
    done(stage, &format!("createOrders(input: [{}]) {{ key }}", inputs.join(", "))).await;
    for reader in readers {
        assert_eq!(reader.await.unwrap(), keys.map(|key| format!("CREATED {key}")));
    }
    stage.statements() - before
}

async fn thousand_subscriptions_ask_once(on: On) {
    let stage = Arc::new(Stage::of_schema(on, SCHEMA).await);
    done(&stage, r#"createUser(input: {name: "Ada"}) { id }"#).await;
    let own = statements_of_thousand(&stage, "{price_null: true}", ["a", "b", "c"]).await;
    let related = statements_of_thousand(&stage, r#"{user: {name: "Ada"}}"#, ["d", "e", "f"]).await;
    // The log is looked at from time to time, in either case.
    assert!(related <= own + 10, "{related} statements, and {own} without related records");
}

async fn own_columns_that_decide_ask_nothing(on: On) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    let counted = Counted::new(&stage);
    let face = counted.face(&stage).await;
    done(&stage, r#"createUser(input: {name: "Ada"}) { id }"#).await;
    let condition = r#"{or: [{price: 3}, {and: [{price: 2}, {user: {name: "Ada"}}]}]}"#;
    let mut subscription = counted.subscribe(&face, &changed(condition)).await;
    let order = |key: &str, price: i32| {
        format!("createOrder(input: {{key: {key:?}, price: {price}, userId: 1}}) {{ key }}")
    };
    done(&stage, &order("a", 1)).await;
    done(&stage, &order("b", 3)).await;
    assert_eq!(told(&mut subscription, 1).await, ["CREATED b"]);
    assert_eq!(counted.store.runs.load(Ordering::SeqCst), 0);
    done(&stage, &order("c", 2)).await;
    assert_eq!(told(&mut subscription, 1).await, ["CREATED c"]);
    assert_eq!(counted.store.runs.load(Ordering::SeqCst), 1);
}

async fn events_wait_while_the_store_is_away(on: On) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    let counted = Counted::new(&stage);
    let face = counted.face(&stage).await;
    done(&stage, r#"createUser(input: {name: "Ada"}) { id }"#).await;
    let mut subscription = counted.subscribe(&face, &changed(r#"{user: {name: "Ada"}}"#)).await;
    counted.store.is_away.store(true, Ordering::SeqCst);
    done(
        &stage,
        r#"createOrders(input: [{key: "a", userId: 1}, {key: "b"}, {key: "c", userId: 1}]) { key }"#,
    )
    .await;
    for _ in 0..100 {
        assert!(is_silent(&mut subscription).await);
        if counted.store.runs.load(Ordering::SeqCst) >= 2 {
            break;
        }
    }
    assert!(counted.store.runs.load(Ordering::SeqCst) >= 2, "the store is asked again");
    counted.store.is_away.store(false, Ordering::SeqCst);
    assert_eq!(told(&mut subscription, 2).await, ["CREATED a", "CREATED c"]);
    // A failure that does not pass ends the stream; a client that comes again misses nothing.
    let last = subscription.last_event_id().to_string();
    counted.store.is_broken.store(true, Ordering::SeqCst);
    done(&stage, r#"createOrder(input: {key: "d", userId: 1}) { key }"#).await;
    assert_eq!(super::end(&mut subscription).await, ["INTERNAL"]);
    assert_eq!(subscription.last_event_id().to_string(), last);
    counted.store.is_broken.store(false, Ordering::SeqCst);
    let mut again = stage.resume(&changed(r#"{user: {name: "Ada"}}"#), &last).await;
    assert_eq!(told(&mut again, 1).await, ["CREATED d"]);
}

async fn too_many_conditions_are_refused(on: On) {
    let stage = Stage::of_schema(on, SCHEMA).await;
    let many = |condition: &str| {
        let list: Vec<&str> = std::iter::repeat_n(condition, 101).collect();
        changed(&format!("{{or: [{}]}}", list.join(", ")))
    };
    for condition in [r#"{user: {name: "x"}}"#, "{price: 1}"] {
        assert_eq!(stage.refusal(&many(condition), None).await, ["LIMIT_EXCEEDED"], "{condition}");
    }
    for wrong in [r#"{user: {id: "x"}}"#, r#"{lines_some: {id: "x"}}"#] {
        assert_eq!(stage.refusal(&changed(wrong), None).await, ["INVALID"], "{wrong}");
    }
}

/// A store that counts what it runs and can be away.
struct CountedStore {
    inner: Arc<dyn Store>,
    runs: AtomicUsize,
    is_away: AtomicBool,
    is_broken: AtomicBool,
}

struct Counted {
    store: Arc<CountedStore>,
}

impl Counted {
    fn new(stage: &Stage) -> Counted {
        let inner: Arc<dyn Store> = stage.store.clone();
        let (runs, is_away, is_broken) = Default::default();
        Counted { store: Arc::new(CountedStore { inner, runs, is_away, is_broken }) }
    }

    /// The same application over this store.
    async fn face(&self, stage: &Stage) -> GraphqlService {
        let engine = stage.face.state().engine().clone();
        let (model, bindings, registry) =
            (engine.model().clone(), engine.bindings().to_vec(), engine.registry().clone());
        let feed = ChangeFeed::new(self.store.clone());
        let engine = Engine::new(model, bindings, registry, feed, engine.limits().clone());
        GraphqlService::new(GraphqlState::new(engine, &stage.config), &stage.config)
    }

    async fn subscribe(&self, face: &GraphqlService, query: &str) -> Subscription {
        let asked = super::asked(query, serde_json::json!({}));
        face.subscribe(asked, Default::default(), None).await.unwrap_or_else(|_| panic!("{query}"))
    }
}

impl Store for CountedStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.is_away.load(Ordering::SeqCst) {
            let (reason, retry_after) = ("away".to_owned(), Duration::from_millis(1));
            return Box::pin(async move { Err(Error::Unavailable { reason, retry_after }) });
        }
        if self.is_broken.load(Ordering::SeqCst) {
            return Box::pin(async { Err(Error::internal("broken")) });
        }
        self.inner.run(job)
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        self.inner.replay(key)
    }

    fn credentials(&self) -> Option<&dyn CredentialStore> {
        self.inner.credentials()
    }

    fn begin_bulk_write(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        self.inner.begin_bulk_write(model, origin)
    }

    fn begin_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>> {
        self.inner.begin_transaction(key, origin)
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.ping()
    }

    fn data_version(&self) -> Option<DataVersion> {
        self.inner.data_version()
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        self.inner.change_log()
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        self.inner.read_changes(after, until, limits)
    }

    fn commits(&self) -> watch::Receiver<()> {
        self.inner.commits()
    }

    fn poll_interval(&self) -> Duration {
        self.inner.poll_interval()
    }
}
