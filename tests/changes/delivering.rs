//! Every change of a record gives exactly one event, in order, with the fields that the selection asks for.

use serde_json::json;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_graphql::subscribe::SubscriptionStep;
use trefoil_graphql::{GraphqlService, GraphqlState, RequestContext};

use super::{On, Place, SCHEMA, Stage, asked, both, names, next, silent_until, until};

both! {
    every_kind_of_create_gives_one_event,
    resume_from_zero_replays_all_changes,
    seed_records_make_events,
    update_delete_and_cascade_events,
    links_are_updates_of_both_sides,
    event_columns_are_past_relations_are_current,
    event_keeps_every_kind_of_value,
    resolver_fields_in_events,
    invalid_subscription_is_refused_at_once,
    query_or_mutation_gets_one_response,
    flat_selection_reads_only_the_change_log,
    unknown_or_expired_event_id_is_refused,
}

const NAMES: &str = "subscription { userCreated { name } }";

async fn every_kind_of_create_gives_one_event(on: On) {
    let stage = Stage::new(on).await;
    let mut subscription = stage.subscribe(NAMES).await;
    stage.create("by GraphQL").await;
    let engine = stage.face.state().engine().clone();
    let fields = trefoil::Value::object([("name", trefoil::Value::from("by Rust"))]);
    engine.create("User", fields).await.unwrap();
    let outsider = stage.outsider().await;
    outsider.run("INSERT INTO \"users\" (name) VALUES ('by SQL')").await.unwrap();
    outsider.run("BEGIN; INSERT INTO \"users\" (name) VALUES ('undone'); ROLLBACK").await.unwrap();
    outsider.run("INSERT INTO \"users\" (name) VALUES ('one'), ('two')").await.unwrap();
    assert_eq!(names(&mut subscription, 5).await, ["by GraphQL", "by Rust", "by SQL", "one", "two"]);
    silent_until(&stage, &mut subscription, "last").await;
}

async fn resume_from_zero_replays_all_changes(on: On) {
    let stage = Stage::new(on).await;
    for name in ["a", "b", "c"] {
        stage.create(name).await;
    }
    let mut subscription = stage.resume(NAMES, &format!("{}-0", stage.tag().await)).await;
    assert_eq!(names(&mut subscription, 3).await, ["a", "b", "c"]);
    silent_until(&stage, &mut subscription, "last").await;
}

/// The sample's seed makes users as anyone else does.
async fn seed_records_make_events(on: On) {
    let database = match on {
        On::Sqlite => DatabaseLocation::Memory,
        On::Postgres => {
            DatabaseLocation::Postgres(PostgresUrl::parse(&crate::support::postgres::database()).unwrap())
        }
    };
    let config = Config { database, port: 0, ..Config::default() };
    let running = trefoil::Trefoil::sample().config(config.clone()).start().await.unwrap();
    let face = GraphqlService::new(GraphqlState::new(running.engine.clone(), &config), &config);
    let users = running.engine.list("User", Default::default()).await.unwrap();
    let beginning = running.engine.feed().event_id(0).await.unwrap();
    let asked = asked("subscription { userCreated { id name email } }", json!({}));
    let begun = face.subscribe(asked, RequestContext::default(), Some(&beginning)).await;
    let mut subscription = begun.unwrap_or_else(|_| panic!("it begins"));
    assert!(!users.is_empty());
    for user in users {
        let name = user.get("name").and_then(trefoil::Value::as_str).unwrap().to_owned();
        assert_eq!(names(&mut subscription, 1).await, [name]);
    }
    running.stop().await;
}

async fn links_are_updates_of_both_sides(on: On) {
    let stage = Stage::new(on).await;
    let mut users = stage.subscribe("subscription { userUpdated { name clubs { name } } }").await;
    let mut clubs = stage.subscribe("subscription { clubUpdated { name version } }").await;
    stage.create("Ada").await;
    stage.create("Bob").await;
    let created = stage.run("mutation { createClub(name: \"Chess\", members: [1]) { version } }").await;
    assert_eq!(created["data"]["createClub"]["version"], 1, "{created}");
    assert_eq!(names(&mut users, 1).await, ["Ada"]);
    // Another program adds, moves and removes links, and deletes a record that has one.
    let outsider = stage.outsider().await;
    let links = "\"users_clubs\" (\"userId\", \"clubId\")";
    outsider.run(&format!("INSERT INTO {links} VALUES (2, 1)")).await.unwrap();
    assert_eq!(
        (names(&mut users, 1).await, names(&mut clubs, 1).await),
        (vec!["Bob".into()], vec!["Chess".into()])
    );
    outsider.run("DELETE FROM \"users_clubs\" WHERE \"userId\" = 2").await.unwrap();
    assert_eq!(
        (names(&mut users, 1).await, names(&mut clubs, 1).await),
        (vec!["Bob".into()], vec!["Chess".into()])
    );
    outsider.run("UPDATE \"users_clubs\" SET \"userId\" = 2").await.unwrap();
    assert_eq!(names(&mut users, 2).await, ["Ada", "Bob"]);
    outsider.run("DELETE FROM \"users\" WHERE \"id\" = 2").await.unwrap();
    assert_eq!(names(&mut clubs, 1).await, ["Chess"]);
    let refused = outsider.run("TRUNCATE \"users_clubs\"").await;
    assert!(refused.is_err(), "SQLite has no TRUNCATE, PostgreSQL's trigger refuses it");
}

async fn update_delete_and_cascade_events(on: On) {
    let stage = Stage::new(on).await;
    let mut updated = stage.subscribe("subscription { userUpdated { id name balance } }").await;
    let mut deleted = stage.subscribe("subscription { userDeleted { id name } }").await;
    let mut orders = stage.subscribe("subscription { orderDeleted { id item user { id } } }").await;
    stage.create("Ada").await;
    stage.create("Bob").await;
    for item in ["tea", "cup"] {
        stage.run(&format!("mutation {{ createOrder(item: {item:?}, user: 1) {{ id }} }}")).await;
    }
    stage.run(r#"mutation { updateUser(id: 1, balance: "1.50") { id } }"#).await;
    let outsider = stage.outsider().await;
    for id in [1, 2] {
        let rename = format!("UPDATE \"users\" SET name = upper(name) WHERE id = {id}");
        outsider.run(&rename).await.unwrap();
    }
    outsider.run("DELETE FROM \"users\" WHERE id = 1").await.unwrap();
    stage.run("mutation { deleteUser(id: 2) { id } }").await;

    let user =
        |id: &str, name: &str, balance: Option<&str>| json!({ "id": id, "name": name, "balance": balance });
    assert_eq!(next(&mut updated).await["data"]["userUpdated"], user("1", "Ada", Some("1.50")));
    assert_eq!(next(&mut updated).await["data"]["userUpdated"], user("1", "ADA", Some("1.50")));
    assert_eq!(next(&mut updated).await["data"]["userUpdated"], user("2", "BOB", None));
    assert_eq!(next(&mut deleted).await["data"]["userDeleted"], json!({ "id": "1", "name": "ADA" }));
    assert_eq!(next(&mut deleted).await["data"]["userDeleted"], json!({ "id": "2", "name": "BOB" }));
    for (id, item) in [("1", "tea"), ("2", "cup")] {
        // The user is gone, but the order's own column still tells who it was.
        let order = json!({ "id": id, "item": item, "user": { "id": "1" } });
        assert_eq!(next(&mut orders).await["data"]["orderDeleted"], order);
    }
}

async fn event_columns_are_past_relations_are_current(on: On) {
    let stage = Stage::new(on).await;
    stage.create("Boss").await;
    let mut deep = stage
        .subscribe("subscription($no: Boolean = false) { u: userCreated { name boss { name staff { name } } orders { item user { name } } email @include(if: $no) } }")
        .await;
    let last = deep.last_event_id().to_string();
    stage.run(r#"mutation { createUser(name: "Ada", boss: 1, email: "a@b.c") { id } }"#).await;
    let boss = json!({ "name": "Boss", "staff": [{ "name": "Ada" }] });
    let event = next(&mut deep).await;
    assert_eq!(event["data"], json!({ "u": { "name": "Ada", "boss": boss, "orders": [] } }));

    stage.run(r#"mutation { createOrder(item: "tea", user: 2) { id } }"#).await;
    stage.run(r#"mutation { updateUser(id: 2, name: "Renamed") { id } }"#).await;
    let again = "subscription { userCreated { name orders { item user { name } } boss { name } } }";
    let mut later = stage.resume(again, &last).await;
    let orders = json!([{ "item": "tea", "user": { "name": "Renamed" } }]);
    let user = json!({ "name": "Ada", "orders": orders, "boss": { "name": "Boss" } });
    assert_eq!(next(&mut later).await["data"]["userCreated"], user);
}

async fn event_keeps_every_kind_of_value(on: On) {
    let stage = Stage::new(on).await;
    let fields = "name age score balance big colour active tags seen boss { id }";
    let mut subscription = stage.subscribe(&format!("subscription {{ userCreated {{ {fields} }} }}")).await;
    let answer = stage
        .run(&format!(
            r#"mutation {{ createUser(name: "\u0001\"é😀", age: -5, score: 0.1, balance: "12.3400", big: "9223372036854775807",
               colour: RED, active: true, tags: ["a", "\"b\""], seen: "2026-01-02T03:04:05.6+02:00") {{ {fields} }} }}"#
        ))
        .await;
    assert_eq!(next(&mut subscription).await["data"]["userCreated"], answer["data"]["createUser"]);
    // Any JSON will do for a list, and another program may spread it over lines.
    stage.outside("INSERT INTO \"users\" (name, tags) VALUES ('o', '[\"a\",\r\n \"b\"]')").await;
    let spread = subscription.next().await;
    let SubscriptionStep::Event(spread) = spread else { panic!("it ended") };
    assert!(!spread.payload.contains(&b'\n') && !spread.payload.contains(&b'\r'), "{spread:?}");
    let spread: serde_json::Value = serde_json::from_slice(&spread.payload).unwrap();
    assert_eq!(spread["data"]["userCreated"]["tags"], json!(["a", "b"]));
    let whole = stage
        .run(&format!("mutation {{ createUser(name: \"w\", score: 3, active: false) {{ {fields} }} }}"))
        .await;
    assert_eq!(next(&mut subscription).await["data"]["userCreated"], whole["data"]["createUser"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn null_in_a_required_field_nulls_its_parent() {
    let stage = Stage::new(On::Sqlite).await;
    let mut required = stage.subscribe("subscription { userCreated { name score } }").await;
    let mut nullable = stage.subscribe("subscription { requiredName { name score } }").await;
    let outsider = stage.outsider().await;
    outsider.run("INSERT INTO \"users\" (name, score) VALUES (x'00', 1)").await.unwrap();
    outsider.run("INSERT INTO \"users\" (name, score) VALUES ('fine', 2)").await.unwrap();
    let event = next(&mut required).await;
    assert!(event["data"].is_null(), "{event}");
    assert_eq!(event["errors"][0]["path"], json!(["userCreated", "name"]), "{event}");
    let event = next(&mut nullable).await;
    assert_eq!(event["data"], json!({ "requiredName": null }), "{event}");
    assert_eq!(event["errors"][0]["path"], json!(["requiredName", "name"]), "{event}");
    for subscription in [&mut required, &mut nullable] {
        assert_eq!(names(subscription, 1).await, ["fine"]);
    }
}

async fn resolver_fields_in_events(on: On) {
    let stage = Stage::new(on).await;
    let mut subscription = stage.subscribe("subscription { userCreated { secret boss { secret } } }").await;
    stage.create("Ada").await;
    stage.run(r#"mutation { createUser(name: "Bob", boss: 1) { id } }"#).await;
    let user = |own: &str, boss: serde_json::Value| json!({ "secret": own, "boss": boss });
    assert_eq!(next(&mut subscription).await["data"]["userCreated"], user("of Ada", json!(null)));
    let boss = json!({ "secret": "of Ada" });
    assert_eq!(next(&mut subscription).await["data"]["userCreated"], user("of Bob", boss));
}

async fn invalid_subscription_is_refused_at_once(on: On) {
    let stage = Stage::new(on).await;
    for (query, code) in [
        ("subscription { nothingKnown { id } }", "RESOLVER_NOT_FOUND"),
        ("subscription { counted }", "SUBSCRIPTION_UNSUPPORTED"),
        ("subscription { userCreated { nothing } }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { userCreated { id } orderCreated { id } }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription { __typename }", "GRAPHQL_VALIDATION_FAILED"),
        ("subscription($a: Int!) { userCreated(age: $a) { id } }", "BAD_USER_INPUT"),
        ("subscription { userCreated(seen: \"yesterday\") { id } }", "INVALID"),
        ("subscription { userCreated(boss: \"x\") { id } }", "INVALID"),
        ("subscription {", "GRAPHQL_PARSE_FAILED"),
    ] {
        let mut codes = stage.refusal(query, None).await;
        codes.dedup();
        assert_eq!(codes, [code], "{query}");
    }
    assert_eq!(stage.face.state().channels().len(), 0);
}

async fn query_or_mutation_gets_one_response(on: On) {
    let stage = Stage::new(on).await;
    let answer = stage.refusal("mutation { createUser(name: \"Ada\") { id } }", None).await;
    assert_eq!(answer, [r#"{"data":{"createUser":{"id":"1"}}}"#]);
    assert_eq!(stage.refusal("{ users { name } }", None).await, [r#"{"data":{"users":[{"name":"Ada"}]}}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_delivers_events() {
    let store = trefoil_sql::SqlStore::open_sqlite(None, Default::default()).unwrap();
    let place = Place::Folder(tempfile::tempdir().unwrap());
    let stage = Stage::over(store, SCHEMA, Default::default(), place).await;
    let mut subscription = stage.subscribe("subscription { userCreated { name orders { item } } }").await;
    stage.create("Ada").await;
    assert_eq!(names(&mut subscription, 1).await, ["Ada"]);
    // Looking at the log is no write, and wakes nobody to look again.
    let before = stage.statements();
    let rest = tokio::time::timeout(std::time::Duration::from_millis(400), subscription.next()).await;
    assert!(rest.is_err() && stage.statements() - before < 50, "{}", stage.statements() - before);
}

async fn flat_selection_reads_only_the_change_log(on: On) {
    let stage = Stage::new(on).await;
    let mut flat = stage.subscribe("subscription { userCreated { name age boss { id } } }").await;
    let last = flat.last_event_id().to_string();
    for name in ["a", "b", "c"] {
        stage.create(name).await;
    }
    assert_eq!(names(&mut flat, 3).await, ["a", "b", "c"]);
    drop(flat);
    until("nobody looks any more", || !stage.feed.is_watching()).await;
    let query = "subscription { userCreated { name boss { id } } }";
    let mut again = stage.resume(query, &last).await;
    // The changes are still at hand; only where the log stands is asked.
    let before = stage.statements();
    assert_eq!(names(&mut again, 3).await, ["a", "b", "c"]);
    assert!(stage.statements() - before <= 3, "{}", stage.statements() - before);
}

async fn unknown_or_expired_event_id_is_refused(on: On) {
    let stage = Stage::new(on).await;
    stage.create("Ada").await;
    let tag = stage.tag().await;
    for id in ["", "x", "1", "deadbeef-1", &format!("{tag}-2"), &format!("{tag}--1"), &format!("{tag}-01")] {
        assert_eq!(stage.refusal(NAMES, Some(id)).await, ["EVENT_ID_UNKNOWN"], "{id:?}");
    }
    // As a restore to the second change, and one change after it, leave it.
    for name in ["Bob", "Cid"] {
        stage.create(name).await;
    }
    let epochs = json!([{ "tag": tag, "after": 0 }, { "tag": "0badcafe", "after": 2 }]);
    stage.outside(&format!("UPDATE trefoil_meta SET value = '{epochs}' WHERE key = 'epochs'")).await;
    assert_eq!(stage.refusal(NAMES, Some(&format!("{tag}-3"))).await, ["EVENT_ID_UNKNOWN"]);
    let mut subscription = stage.resume(NAMES, &format!("{tag}-2")).await;
    assert_eq!(next(&mut subscription).await["extensions"]["eventId"], "0badcafe-3");
    let mut subscription = stage.resume(NAMES, "0badcafe-2").await;
    assert_eq!(names(&mut subscription, 1).await, ["Cid"]);
    stage.outside("INSERT INTO trefoil_meta VALUES ('forgotten', '3')").await;
    stage.outside("DELETE FROM trefoil_changes").await;
    assert_eq!(stage.refusal(NAMES, Some("0badcafe-2")).await, ["EVENT_ID_EXPIRED"]);
    let mut last = stage.resume(NAMES, "0badcafe-3").await;
    silent_until(&stage, &mut last, "Dan").await;
}

/// SQLite stores any bytes as text. They must delay neither their own event nor any later one.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_does_not_block_later_events() {
    let stage = Stage::new(On::Sqlite).await;
    let mut following = stage.subscribe("subscription { userCreated { id email colour name } }").await;
    let broken = "INSERT INTO \"users\" (name, email, colour) VALUES ('Ada', CAST(x'ff41' AS TEXT), 'RED')";
    stage.outside(broken).await;
    let user = json!({ "id": "1", "email": null, "colour": "RED", "name": "Ada" });
    assert_eq!(next(&mut following).await["data"]["userCreated"], user);
    let broken = "INSERT INTO \"users\" (name) VALUES (CAST(x'41ff' AS TEXT))";
    stage.outside(broken).await;
    let event = next(&mut following).await;
    assert_eq!(event["errors"][0]["path"], json!(["userCreated", "name"]), "{event}");
    silent_until(&stage, &mut following, "fine").await;
}
