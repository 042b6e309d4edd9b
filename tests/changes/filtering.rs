//! Subscription arguments named like fields filter the events, with the same meaning as in a query.

use serde_json::json;

use super::{On, Stage, both, names};

both! {
    filter_by_every_kind_of_value,
    filter_variable_that_is_absent_filters_nothing,
    filter_agrees_with_queries_on_external_writes,
}

/// Creates users in this order, then one that every test ends with.
const USERS: &[&str] = &[
    r#"name: "plain""#,
    r#"name: "rich", balance: "1.50", big: "9223372036854775807""#,
    r#"name: "round", balance: "2", score: 0.5, age: 7"#,
    r#"name: "red", colour: RED, active: true, boss: 1"#,
    r#"name: "green", colour: GREEN, active: false, boss: 2"#,
    r#"name: "Plain", seen: "2026-01-02T03:04:05Z""#,
];

async fn filter_by_every_kind_of_value(on: On) {
    let stage = Stage::new(on).await;
    let start = stage.subscribe("subscription { userCreated { name } }").await.last_event_id().to_string();
    for fields in USERS {
        let answer = stage.run(&format!("mutation {{ createUser({fields}) {{ id }} }}")).await;
        assert!(answer["errors"].is_null(), "{answer}");
    }
    for (filter, wanted) in [
        (r#"name: "plain""#, vec!["plain"]),
        (r#"balance: "1.5""#, vec!["rich"]),
        (r#"balance: "1.500""#, vec!["rich"]),
        (r#"balance: "2.00""#, vec!["round"]),
        ("balance: null", vec!["plain", "red", "green", "Plain"]),
        (r#"big: "9223372036854775807""#, vec!["rich"]),
        ("score: 0.5", vec!["round"]),
        ("age: 7", vec!["round"]),
        ("age: 7, score: 0.25", vec![]),
        ("colour: GREEN", vec!["green"]),
        ("colour: null, age: null", vec!["plain", "rich", "Plain"]),
        ("active: true", vec!["red"]),
        ("active: false", vec!["green"]),
        ("boss: 1", vec!["red"]),
        ("bossId: 2", vec!["green"]),
        ("boss: null, age: 7", vec!["round"]),
        ("id: 4", vec!["red"]),
        (r#"seen: "2026-01-02T04:04:05+01:00""#, vec!["Plain"]),
    ] {
        // The last one fits none of the filters: it shows that everything before it was judged.
        let mut subscription =
            stage.resume(&format!("subscription {{ userCreated({filter}) {{ name }} }}"), &start).await;
        assert_eq!(names(&mut subscription, wanted.len()).await, wanted, "{filter}");
        let rest = tokio::time::timeout(std::time::Duration::from_millis(20), subscription.next()).await;
        assert!(rest.is_err(), "{filter} gave more");
    }
}

async fn filter_variable_that_is_absent_filters_nothing(on: On) {
    let stage = Stage::new(on).await;
    let query = "subscription($name: String, $age: Int) { userCreated(name: $name, age: $age) { name } }";
    let mut named = stage.begin(query, json!({ "name": "Bob" }), None).await.unwrap();
    let mut ageless = stage.begin(query, json!({ "age": null }), None).await.unwrap();
    let mut all = stage.begin(query, json!({}), None).await.unwrap();
    stage.create("Ada").await;
    stage.run(r#"mutation { createUser(name: "Cid", age: 3) { id } }"#).await;
    stage.create("Bob").await;
    assert_eq!(names(&mut named, 1).await, ["Bob"]);
    assert_eq!(names(&mut ageless, 2).await, ["Ada", "Bob"]);
    assert_eq!(names(&mut all, 3).await, ["Ada", "Cid", "Bob"]);
}

async fn filter_agrees_with_queries_on_external_writes(on: On) {
    let stage = Stage::new(on).await;
    let mut exact = stage.subscribe(r#"subscription { userCreated(balance: "1.5") { name } }"#).await;
    let mut float = stage.subscribe("subscription { userCreated(score: 2.0) { name } }").await;
    // Only SQLite lets anything into any column.
    let odd = if on == On::Sqlite { ", ('odd', 'x', 'y')" } else { "" };
    stage
        .outside(&format!(
            "INSERT INTO \"users\" (name, balance, score) VALUES ('text', '1.50', 2), ('number', 1.5, 2.0){odd};
             INSERT INTO \"users\" (name, balance, score) VALUES ('last', '1.5', 2e0)"
        ))
        .await;
    for subscription in [&mut exact, &mut float] {
        assert_eq!(names(subscription, 3).await, ["text", "number", "last"]);
    }
}
