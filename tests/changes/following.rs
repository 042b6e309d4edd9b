//! What subscriptions cost: one encoding for all equal ones, bounded memory, and nothing without subscribers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trefoil_config::{Config, ServerLimits};
use trefoil_graphql::RequestContext;
use trefoil_sql::{SqlStore, SqliteOptions};

use super::{On, Stage, asked, both, end, names, next, until};

both! {
    thousand_subscribers_share_one_encoding,
    late_and_filtered_subscribers_share_encoding,
    clients_share_encoding_unless_resolvers_run,
    no_polling_without_subscribers,
    waiting_for_an_event_is_cancel_safe,
    event_cache_stays_within_its_byte_limit,
    subscriber_too_far_behind_gets_an_error,
    subscribers_wait_while_the_store_is_down,
}

const NAMES: &str = "subscription { userCreated { name } }";

async fn thousand_subscribers_share_one_encoding(on: On) {
    let stage = Arc::new(Stage::new(on).await);
    let mut readers = Vec::new();
    for _ in 0..1_000 {
        let mut subscription = stage.subscribe(NAMES).await;
        readers.push(tokio::spawn(async move { names(&mut subscription, 20).await }));
    }
    assert_eq!(stage.face.state().channels().len(), 1);
    let wanted: Vec<String> = (0..20).map(|number| format!("user {number}")).collect();
    for name in &wanted {
        stage.create(name).await;
    }
    for reader in readers {
        assert_eq!(reader.await.unwrap(), wanted);
    }
    assert_eq!(stage.face.subscriptions().encoded_events.get(), 20);
    until("the channel goes with them", || stage.face.state().channels().is_empty()).await;
}

async fn late_and_filtered_subscribers_share_encoding(on: On) {
    let stage = Stage::new(on).await;
    let query = "subscription { userCreated(age: 1) { name } }";
    let mut early = stage.subscribe(query).await;
    // It must wait before anything happens: a task may begin too late for that.
    let waits = tokio::time::timeout(Duration::from_millis(1), early.next()).await;
    assert!(waits.is_err(), "nothing has happened");
    // Passed over: it concerns nobody.
    let waiting = tokio::spawn(async move {
        let name = names(&mut early, 1).await;
        (early, name)
    });
    for number in 0..10 {
        stage.create(&format!("other {number}")).await;
    }
    let mut late = stage.subscribe(query).await;
    let joined = tokio::spawn(async move { names(&mut late, 1).await });
    stage.run(r#"mutation { createUser(name: "one", age: 1) { id } }"#).await;
    let (mut early, name) = waiting.await.unwrap();
    assert_eq!((name, joined.await.unwrap()), (vec!["one".to_owned()], vec!["one".to_owned()]));
    stage.run(r#"mutation { createUser(name: "two", age: 1) { id } }"#).await;
    assert_eq!(names(&mut early, 1).await, ["two"]);
    assert_eq!(
        stage.face.subscriptions().encoded_events.get(),
        2,
        "the one who came later waited with the other"
    );
}

async fn clients_share_encoding_unless_resolvers_run(on: On) {
    let stage = Stage::new(on).await;
    let manner = |address: &str| {
        let actor = trefoil::Actor::anonymous(Some(address.parse().unwrap()));
        RequestContext { actor, ..RequestContext::default() }
    };
    let mut open = Vec::new();
    for query in [NAMES, "subscription { userCreated { secret } }"] {
        for address in ["127.0.0.1", "127.0.0.2", "127.0.0.1"] {
            let begun = stage.face.subscribe(asked(query, json!({})), manner(address), None).await;
            open.push(begun.unwrap_or_else(|_| panic!("{query}")));
        }
    }
    assert_eq!(stage.face.state().channels().len(), 3);
    // The order of variables says nothing.
    let query = "subscription($a: Int, $n: String) { userCreated(age: $a, name: $n) { id } }";
    for variables in [json!({ "a": 1, "n": "x" }), json!({ "n": "x", "a": 1 })] {
        open.push(stage.begin(query, variables, None).await.unwrap());
    }
    assert_eq!(stage.face.state().channels().len(), 4);
    drop(open);
    assert!(stage.face.state().channels().is_empty());
}

/// A subscriber that joins a group which is still receiving older events must not get those.
#[tokio::test(flavor = "multi_thread")]
async fn late_subscriber_starts_at_its_own_position() {
    let stage = Stage::new(On::Sqlite).await;
    let mut first = stage.subscribe(NAMES).await;
    let waits = tokio::time::timeout(Duration::from_millis(50), first.next()).await;
    assert!(waits.is_err(), "nothing has happened");
    // Nothing is delivered while a reload is under way, so the first is certainly still waiting for this one.
    let held = stage.feed.begin_reload();
    stage.create("before").await;
    let mut second = stage.subscribe(NAMES).await;
    let waits = tokio::time::timeout(Duration::from_millis(50), second.next()).await;
    assert!(waits.is_err(), "it waits with the first");
    drop(held);
    assert_eq!(names(&mut first, 1).await, ["before"]);
    stage.create("after").await;
    assert_eq!(names(&mut second, 1).await, ["after"]);
    assert_eq!(names(&mut first, 1).await, ["after"]);
}

async fn no_polling_without_subscribers(on: On) {
    let stage = Stage::new(on).await;
    let mut subscription = stage.subscribe(NAMES).await;
    stage.create("Ada").await;
    assert_eq!(names(&mut subscription, 1).await, ["Ada"]);
    assert!(stage.feed.is_watching());
    drop(subscription);
    until("the looking ends", || !stage.feed.is_watching()).await;
    let before = stage.statements();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(stage.statements(), before);
    // And it begins again.
    let mut subscription = stage.subscribe(NAMES).await;
    stage.outside("INSERT INTO \"users\" (name) VALUES ('Bob')").await;
    assert_eq!(names(&mut subscription, 1).await, ["Bob"]);
}

async fn waiting_for_an_event_is_cancel_safe(on: On) {
    let stage = Stage::new(on).await;
    let mut subscription = stage.subscribe(NAMES).await;
    let mut seen = Vec::new();
    for number in 0..30 {
        stage.create(&format!("{number}")).await;
        for _ in 0..3 {
            let pause = Duration::from_micros(200 * (number % 7));
            if let Ok(step) = tokio::time::timeout(pause, subscription.next()).await {
                let trefoil_graphql::subscribe::SubscriptionStep::Event(event) = step else {
                    panic!("it ended")
                };
                seen.push(serde_json::from_slice::<serde_json::Value>(&event.payload).unwrap());
            }
        }
    }
    while seen.len() < 30 {
        seen.push(next(&mut subscription).await);
    }
    let seen: Vec<_> =
        seen.iter().map(|event| event["data"]["userCreated"]["name"].as_str().unwrap()).collect();
    assert_eq!(seen, (0..30).map(|number| number.to_string()).collect::<Vec<_>>());
}

async fn event_cache_stays_within_its_byte_limit(on: On) {
    let limits = ServerLimits { event_cache: 64 << 10, ..ServerLimits::default() };
    let stage = Stage::with(on, SqliteOptions::default(), Config { limits, ..Config::default() }).await;
    let mut open = Vec::new();
    for number in 0..20 {
        open.push(
            stage.subscribe(&format!("subscription {{ userCreated {{ name a{number}: email }} }}")).await,
        );
    }
    let long = "x".repeat(2_000);
    for number in 0..50 {
        stage.create(&format!("{long} {number}")).await;
        for subscription in &mut open {
            next(subscription).await;
            assert!(
                stage.face.subscriptions().bytes() <= 32 << 10,
                "{} bytes of events",
                stage.face.subscriptions().bytes()
            );
            assert!(stage.feed.cached_bytes() <= 32 << 10, "{} bytes of changes", stage.feed.cached_bytes());
        }
    }
    assert!(stage.face.subscriptions().bytes() > 0 && stage.feed.cached_bytes() > 0);
}

async fn subscriber_too_far_behind_gets_an_error(on: On) {
    let options =
        SqliteOptions { keep_changes: 10, keep_changes_for: Duration::ZERO, ..SqliteOptions::default() };
    let limits = ServerLimits { event_cache: 0, ..ServerLimits::default() };
    let stage = Stage::with(on, options, Config { limits, ..Config::default() }).await;
    let mut behind = stage.subscribe(NAMES).await;
    let mut follows = stage.subscribe(NAMES).await;
    let old = behind.last_event_id().to_string();
    let outsider = stage.outsider().await;
    outsider.run("INSERT INTO \"users\" (name) VALUES ('0')").await.unwrap();
    assert_eq!(names(&mut behind, 1).await, ["0"]);
    assert_eq!(names(&mut follows, 1).await, ["0"]);
    let rest: Vec<String> = (1..40).map(|number| number.to_string()).collect();
    for name in &rest {
        outsider.run(&format!("INSERT INTO \"users\" (name) VALUES ('{name}')")).await.unwrap();
    }
    assert_eq!(names(&mut follows, rest.len()).await, rest);
    outsider.run("UPDATE trefoil_changes SET at = '2000-01-01T00:00:00.000000Z'").await.unwrap();
    // The first write of the server's own is followed by a look at what is old.
    stage.create("last").await;
    assert_eq!(names(&mut follows, 1).await, ["last"]);
    if let SqlStore::Postgres(store) = &*stage.store {
        store.prune_now().await.unwrap();
    }
    let forgotten = "SELECT value FROM trefoil_meta WHERE key = 'forgotten'";
    let begun = Instant::now();
    while outsider.run(forgotten).await.unwrap() != "31" {
        assert!(begun.elapsed() < Duration::from_secs(20), "old changes are not removed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(end(&mut behind).await, ["EVENT_ID_EXPIRED"]);
    assert_eq!(stage.refusal(NAMES, Some(&old)).await, ["EVENT_ID_EXPIRED"]);
    let kept = outsider.run("SELECT min(number) FROM trefoil_changes").await.unwrap();
    assert_eq!(kept, "32", "a place and what is kept meet");
    let mut resumed = stage.resume(NAMES, &format!("{}-31", stage.tag().await)).await;
    let first = next(&mut resumed).await;
    assert_eq!(first["extensions"]["eventId"], format!("{}-32", stage.tag().await));
}

async fn subscribers_wait_while_the_store_is_down(on: On) {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let stage = Stage::with(on, options, Config::default()).await;
    let mut flat = stage.subscribe(NAMES).await;
    let mut deep = stage.subscribe("subscription { userCreated { name orders { item } } }").await;
    stage.create("before").await;
    assert_eq!(names(&mut flat, 1).await, ["before"]);
    assert_eq!(names(&mut deep, 1).await, ["before"]);
    let outsider = stage.outsider().await;
    // A table that is not there stands for a store that cannot be read.
    let away = "BEGIN; INSERT INTO \"users\" (name) VALUES ('meanwhile'); \
                ALTER TABLE trefoil_changes RENAME TO hidden; COMMIT";
    outsider.run(away).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(500), deep.next()).await;
    assert!(waits.is_err(), "it neither ends nor tells what it cannot know");
    outsider.run("ALTER TABLE hidden RENAME TO trefoil_changes").await.unwrap();
    assert_eq!(names(&mut deep, 1).await, ["meanwhile"]);
    outsider.run("INSERT INTO \"users\" (name) VALUES ('after')").await.unwrap();
    assert_eq!(names(&mut deep, 1).await, ["after"]);
    assert_eq!(names(&mut flat, 2).await, ["meanwhile", "after"]);
}
