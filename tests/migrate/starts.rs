//! Several nodes that start on one PostgreSQL: which one migrates, which ones wait, and which errors they get.

use std::sync::Arc;

use trefoil_sql::migrate::{MigrationReport, postgres};

use super::bench::{connect, on_client};
use super::*;

const OLD: &str = "type User { id: ID! name: String! }";
const NEW: &str =
    "type User { id: ID! name: String! nick: String! @default(value: \"-\") } type Tag { id: ID! }";

fn five_at_once(store: &Store, sdl: &str) -> Vec<MigrationReport> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let nodes: Vec<_> = (0..5)
            .map(|_| {
                let (url, model) = (store.url().to_owned(), Arc::new(model(sdl)));
                tokio::spawn(async move {
                    let mut client = connect(&url).await;
                    let lists = ["items".to_owned()];
                    postgres::migrate_postgres(
                        &mut client,
                        &model,
                        &everything(&model),
                        &lists,
                        MigrationMode::Start,
                    )
                    .await
                })
            })
            .collect();
        let mut reports = Vec::new();
        for node in nodes {
            reports.push(node.await.unwrap().unwrap());
        }
        reports
    })
}

#[test]
fn five_nodes_create_one_store() {
    let store = Store::empty(On::Postgres);
    let reports = five_at_once(&store, OLD);
    assert_eq!(reports.iter().filter(|report| !report.steps.is_empty()).count(), 1, "{reports:?}");
    assert!(reports.iter().all(|report| report.needs_seed && report.is_applied));
    assert_eq!(store.rows("SELECT name FROM trefoil_lists"), ["items"]);
    let before = store.dump();
    assert_eq!(store.start(OLD).unwrap().steps, []);
    assert_eq!(store.dump(), before);
}

#[test]
fn five_nodes_migrate_once() {
    let store = Store::with(On::Postgres, OLD, "INSERT INTO users (name) VALUES ('Ann')");
    let reports = five_at_once(&store, NEW);
    assert_eq!(reports.iter().filter(|report| !report.steps.is_empty()).count(), 1, "{reports:?}");
    assert!(!reports.iter().any(|report| report.needs_seed));
    assert_eq!(store.rows("SELECT name, nick FROM users"), ["Ann|-"]);
}

#[test]
fn seed_is_needed_until_it_is_loaded_once() {
    let store = Store::with(On::Postgres, OLD, "");
    // Seeds that failed gave ids, and left nothing.
    store.run("BEGIN; INSERT INTO users (name) VALUES ('Ann'); ROLLBACK");
    assert!(store.start(OLD).unwrap().needs_seed);
    on_client(store.url(), async |client| postgres::mark_seeded(client).await).unwrap();
    assert!(!store.start(OLD).unwrap().needs_seed);
    // The mark is also made by a start that finds records.
    let store = Store::with(On::Postgres, OLD, "INSERT INTO users (name) VALUES ('Ann')");
    assert!(!store.start(OLD).unwrap().needs_seed);
    store.run("DELETE FROM users");
    assert!(!store.start(OLD).unwrap().needs_seed);
}

#[test]
fn open_transaction_is_named_after_the_lock_timeout() {
    let store = Store::with(On::Postgres, OLD, "");
    let elsewhere = Store::empty(On::Postgres);
    let before = store.dump();
    let impatient = format!(
        "{}{}options=-clock_timeout%3D200",
        store.url(),
        if store.url().contains('?') { "&" } else { "?" }
    );
    let error = on_client(&format!("{impatient}&application_name=node"), async |client| {
        let mut stranger = connect(elsewhere.url()).await;
        let other = stranger.transaction().await.unwrap();
        other
            .batch_execute("SET application_name = 'a stranger'; SELECT pg_advisory_xact_lock(1)")
            .await
            .unwrap();
        let mut operator = connect(store.url()).await;
        let open = operator.transaction().await.unwrap();
        open.batch_execute("SET application_name = 'the operator'; INSERT INTO users (name) VALUES ('Ann')")
            .await
            .unwrap();
        let model = Arc::new(model(NEW));
        let result =
            postgres::migrate_postgres(client, &model, &everything(&model), &[], MigrationMode::Start).await;
        // The connection is good for another try.
        client.batch_execute("SELECT 1").await.unwrap();
        open.rollback().await.unwrap();
        result.unwrap_err()
    });
    assert!(matches!(error, MigrateError::Locked(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("the operator") && text.contains("idle in transaction"), "{text}");
    assert!(!text.contains("a stranger"), "another database has other locks: {text}");
    store.run("SELECT setval('users_id_seq', 1, false); SELECT setval('trefoil_sequence', 1, false)");
    assert_eq!(store.dump(), before);
    assert_eq!(store.start(NEW).unwrap().steps.len(), 2);
}

#[test]
fn start_without_changes_waits_for_no_lock() {
    let store = Store::with(On::Postgres, OLD, "");
    on_client(store.url(), async |client| {
        let mut other = connect(store.url()).await;
        let open = other.transaction().await.unwrap();
        open.batch_execute("INSERT INTO users (name) VALUES ('Ann'); LOCK TABLE users IN ACCESS SHARE MODE")
            .await
            .unwrap();
        client.batch_execute("SET lock_timeout = '5s'").await.unwrap();
        let model = Arc::new(model(OLD));
        let report =
            postgres::migrate_postgres(client, &model, &everything(&model), &[], MigrationMode::Start)
                .await
                .unwrap();
        assert_eq!(report.steps, []);
        open.rollback().await.unwrap();
    });
}
