//! The schema is replaced while subscriptions run: they continue at their position, or end with the reason.

use std::sync::Arc;

use serde_json::json;

use trefoil_graphql::{GraphqlReply, RequestContext};
use trefoil_model::error::Error;

use super::{On, SCHEMA, Stage, asked, both, end, names, next, served};

both! {
    subscription_continues_under_the_new_schema,
    subscription_that_became_invalid_ends_with_errors,
    renamed_field_and_type_keep_their_changes,
    events_arrive_exactly_once_over_many_reloads,
    request_overtaken_by_a_reload_is_unavailable,
}

impl Stage {
    /// What the server does when the files of the schema change.
    async fn reload(&self, schema: &str) {
        let held = self.feed.begin_reload();
        self.face.swap(served(&self.store, &self.feed, schema, &self.config).await);
        drop(held);
    }
}

const NAMES: &str = "subscription { userCreated { name } }";

async fn subscription_continues_under_the_new_schema(on: On) {
    let stage = Stage::new(on).await;
    let mut subscription = stage.subscribe("subscription { userCreated { name age } }").await;
    stage.create("before").await;
    assert_eq!(names(&mut subscription, 1).await, ["before"]);
    stage.create("not yet read").await;
    let newer = "email: String  nick: String @default(value: \"x\")  age: Int";
    stage.reload(&SCHEMA.replace("email: String  age: Int", newer)).await;
    stage.create("after").await;
    assert_eq!(names(&mut subscription, 2).await, ["not yet read", "after"]);
    let mut newer =
        stage.resume("subscription { userCreated { name nick } }", &format!("{}-0", stage.tag().await)).await;
    let event = next(&mut newer).await;
    assert_eq!(
        event["data"]["userCreated"],
        json!({ "name": "before", "nick": "x" }),
        "the log follows the schema"
    );
}

async fn subscription_that_became_invalid_ends_with_errors(on: On) {
    let stage = Stage::new(on).await;
    let mut gone = stage.subscribe("subscription { userUpdated { email } }").await;
    let mut stays = stage.subscribe(NAMES).await;
    stage.create("read by one").await;
    stage.reload(&SCHEMA.replace("  userUpdated(name: String): User\n", "")).await;
    assert_eq!(end(&mut gone).await, ["GRAPHQL_VALIDATION_FAILED"]);
    assert_eq!(names(&mut stays, 1).await, ["read by one"]);
}

async fn renamed_field_and_type_keep_their_changes(on: On) {
    let stage = Stage::new(on).await;
    let query = "subscription { userCreated { name email } }";
    let mut subscription = stage.subscribe(query).await;
    let start = subscription.last_event_id().to_string();
    stage.run(r#"mutation { createUser(name: "Ada", email: "a@b.c") { id } }"#).await;
    assert_eq!(names(&mut subscription, 1).await, ["Ada"]);
    let renamed = SCHEMA
        .replace(
            "id: ID!  name: String!  email: String ",
            "id: ID!  name: String!  mail: String @renamedFrom(name: \"email\") ",
        )
        .replace("createUser(name: String!, email: String,", "createUser(name: String!, mail: String,");
    stage.reload(&renamed).await;
    assert_eq!(end(&mut subscription).await, ["GRAPHQL_VALIDATION_FAILED"]);
    let mut again = stage.resume("subscription { userCreated { name mail } }", &start).await;
    assert_eq!(next(&mut again).await["data"]["userCreated"], json!({ "name": "Ada", "mail": "a@b.c" }));
}

/// A request that runs longer than a reload waits has plans for tables that no longer exist.
async fn request_overtaken_by_a_reload_is_unavailable(on: On) {
    let stage = Stage::new(on).await;
    let overtaken = stage.face.state();
    let closed = stage.feed.gate().close(std::time::Duration::ZERO).await;
    closed.retire_plans();
    stage.reload(SCHEMA).await;
    drop(closed);
    for query in ["{ users { name } }", "mutation { createUser(name: \"Ada\") { id } }"] {
        let reply = overtaken.execute_request(asked(query, json!({})), RequestContext::default()).await;
        let GraphqlReply::Failed(Error::Unavailable { reason, .. }) = reply else {
            panic!("{query} was answered")
        };
        assert!(reason.contains("try again"), "{reason}");
    }
    stage.create("Ada").await;
    let users = stage.run("{ users { name } }").await;
    assert_eq!(users, json!({ "data": { "users": [{ "name": "Ada" }] } }));
}

/// Reloads, with and without a change of tables, while others write and read.
async fn events_arrive_exactly_once_over_many_reloads(on: On) {
    let stage = Arc::new(Stage::new(on).await);
    let mut readers = Vec::new();
    for query in [NAMES, "subscription { userCreated { name orders { item } } }", NAMES] {
        let mut subscription = stage.subscribe(query).await;
        readers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|name| name != "end") {
                let event = next(&mut subscription).await;
                assert!(event["errors"].is_null(), "{event}");
                seen.push(event["data"]["userCreated"]["name"].as_str().unwrap().to_owned());
            }
            seen
        }));
    }
    let writer = tokio::spawn({
        let stage = stage.clone();
        async move {
            let outsider = stage.outsider().await;
            for number in 0..300 {
                outsider.run(&format!("INSERT INTO \"users\" (name) VALUES ('{number}')")).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    for round in 0..12 {
        // Every other reload brings a new column.
        let (stage, schema) = (stage.clone(), with_more(round / 2));
        tokio::spawn(async move { stage.reload(&schema).await }).await.unwrap();
    }
    writer.await.unwrap();
    stage.create("end").await;
    let mut wanted: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    wanted.push("end".to_owned());
    for reader in readers {
        assert_eq!(reader.await.unwrap(), wanted);
    }
}

/// The schema with so many fields more.
fn with_more(count: usize) -> String {
    let fields: String = (0..count).map(|number| format!("more{number}: String  ")).collect();
    SCHEMA.replace("id: ID!  name: String!", &format!("id: ID!  {fields}name: String!"))
}
