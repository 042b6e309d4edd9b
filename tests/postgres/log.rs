//! The change log of the PostgreSQL store: numbers, batches, pruning, and notifications between nodes.

use std::sync::Arc;
use std::time::Duration;

use trefoil_config::PostgresUrl;
use trefoil_engine::{ChangeKind, LogReadLimits, RecordChange, Store};
use trefoil_model::{Model, RecordTypeId, SourceFile, StoredValue, parse_schema};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::postgres::{PostgresOptions, PostgresStore};

use super::links::{LONG, outside, until};
use crate::support::postgres::database;

const ALL: LogReadLimits = LogReadLimits { changes: 1_000, bytes: 1 << 20 };

const LOGGED: [(RecordTypeId, ChangeKind); 3] = [
    (RecordTypeId(0), ChangeKind::Created),
    (RecordTypeId(0), ChangeKind::Updated),
    (RecordTypeId(0), ChangeKind::Deleted),
];

fn model() -> Arc<Model> {
    model_of("type Book { id: ID! title: String! pages: Int read: Boolean } type Query { books: [Book!]! }")
}

fn model_of(text: &str) -> Arc<Model> {
    let file = SourceFile { name: "schema.graphqls".to_owned(), text: text.to_owned() };
    Arc::new(parse_schema(&[file], &[]).expect("a schema").0)
}

async fn open(url: &str, change: impl FnOnce(&mut PostgresOptions)) -> PostgresStore {
    let mut options = PostgresOptions::for_url(PostgresUrl::parse(url).unwrap());
    change(&mut options);
    let store = PostgresStore::open(options).await.expect("it connects");
    store.migrate(&model(), &LOGGED, &[], MigrationMode::Start).await.expect("tables");
    store
}

fn brief(changes: &[RecordChange]) -> Vec<(i64, &str, ChangeKind, String, i64)> {
    changes
        .iter()
        .map(|change| {
            (
                change.number,
                change.type_name.as_str(),
                change.kind,
                change.record_id.to_string(),
                change.version,
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_commit_is_numbered_and_announced() {
    let url = database();
    let store = open(&url, |_| {}).await;
    let log = store.change_log().await.unwrap();
    assert_eq!((log.last_number, log.pruned_until, log.epochs.len()), (0, 0, 1));
    outside(&url, "INSERT INTO books (title, read) VALUES ('One', true)").await;
    outside(&url, "UPDATE books SET pages = 7; DELETE FROM books").await;
    assert_eq!(store.change_log().await.unwrap().last_number, 3);
    let changes = store.read_changes(0, 3, ALL).await.unwrap();
    assert_eq!(
        brief(&changes),
        [
            (1, "Book", ChangeKind::Created, "1".to_owned(), 1),
            (2, "Book", ChangeKind::Updated, "1".to_owned(), 2),
            (3, "Book", ChangeKind::Deleted, "1".to_owned(), 2),
        ]
    );
    let image = &changes[1].image;
    let cell = |name: &str| image.iter().find(|(column, _)| column == name).map(|(_, value)| value.clone());
    assert_eq!(cell("title"), Some(StoredValue::Text("One".to_owned())));
    assert_eq!((cell("pages"), cell("read")), (Some(StoredValue::Int(7)), Some(StoredValue::Int(1))));
    assert_eq!(store.change_log().await.unwrap().epochs, log.epochs);
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_ends_with_the_change_over_a_limit() {
    let url = database();
    let store = open(&url, |_| {}).await;
    outside(&url, "INSERT INTO books (title) SELECT repeat('x', 1000) FROM generate_series(1, 50)").await;
    assert_eq!(store.change_log().await.unwrap().last_number, 50);
    let numbers = async |after, until, changes, bytes| {
        let part = store.read_changes(after, until, LogReadLimits { changes, bytes }).await.unwrap();
        part.iter().map(|change| change.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(10, 14, 1_000, 1 << 20).await, [11, 12, 13, 14]);
    assert_eq!(numbers(10, 50, 2, 1 << 20).await, [11, 12]);
    assert_eq!(numbers(10, 50, 1_000, 2_500).await, [11, 12, 13]);
    assert_eq!(numbers(10, 50, 1_000, 1).await, [11], "at least one");
    assert_eq!(numbers(50, 90, 1_000, 1).await, [0_i64; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_commit_is_numbered_late_never_skipped() {
    let url = database();
    let store = open(&url, |_| {}).await;
    let slow = store.connections().acquire_pooled().await.unwrap();
    slow.client().batch_execute("BEGIN; INSERT INTO books (title) VALUES ('slow')").await.unwrap();
    outside(&url, "INSERT INTO books (title) VALUES ('quick')").await;
    assert_eq!(store.change_log().await.unwrap().last_number, 1);
    slow.client().batch_execute("COMMIT").await.unwrap();
    slow.release();
    assert_eq!(store.change_log().await.unwrap().last_number, 2);
    let changes = store.read_changes(0, 2, ALL).await.unwrap();
    let records: Vec<String> = changes.iter().map(|change| change.record_id.to_string()).collect();
    assert_eq!(records, ["2", "1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_waits_for_numbering_by_another_node() {
    let url = database();
    let (one, other) = (open(&url, |_| {}).await, Arc::new(open(&url, |_| {}).await));
    let held = one.connections().acquire_pooled().await.unwrap();
    outside(&url, "INSERT INTO books (title) VALUES ('One')").await;
    held.client().batch_execute("BEGIN; SELECT trefoil_number_changes()").await.unwrap();
    outside(&url, "INSERT INTO books (title) VALUES ('Two')").await;
    let asking = tokio::spawn({
        let other = other.clone();
        async move { other.change_log().await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!asking.is_finished(), "the first change has a number that nobody can see yet");
    held.client().batch_execute("COMMIT").await.unwrap();
    held.release();
    assert_eq!(asking.await.unwrap().unwrap().last_number, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_backlog_is_numbered_in_steps() {
    let url = database();
    let store = open(&url, |_| {}).await;
    outside(&url, "INSERT INTO books (title) SELECT 'x' FROM generate_series(1, 25000)").await;
    assert_eq!(outside(&url, "SELECT trefoil_number_changes()").await, "10000", "one step");
    assert_eq!(store.change_log().await.unwrap().last_number, 25_000);
    let in_order = "SELECT count(*) FROM trefoil_changes WHERE number = record";
    assert_eq!(outside(&url, in_order).await, "25000");
    // A migration takes all of them as well: no image may stay behind in its old form.
    outside(&url, "INSERT INTO books (title) SELECT 'x' FROM generate_series(1, 25000)").await;
    let more = "type Book { id: ID! title: String! pages: Int read: Boolean more: String } type Query { books: [Book!]! }";
    store.migrate(&model_of(more), &LOGGED, &[], MigrationMode::Start).await.expect("a further column");
    assert_eq!(outside(&url, "SELECT count(*) FROM trefoil_unnumbered").await, "0");
    assert_eq!(store.change_log().await.unwrap().last_number, 50_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_numbered_without_subscribers() {
    let url = database();
    let store = open(&url, |options| options.keep_changes_for = Duration::ZERO).await;
    outside(&url, "INSERT INTO books (title) VALUES ('One'), ('Two')").await;
    store.prune_now().await.unwrap();
    let waiting = "SELECT count(*) FROM trefoil_unnumbered";
    let numbered = "SELECT count(*) FROM trefoil_changes";
    assert_eq!((outside(&url, waiting).await, outside(&url, numbered).await), ("0".into(), "2".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_prepared_statements_are_prepared_again() {
    let url = database();
    let store = open(&url, |_| {}).await;
    // As a pooler does it that gives a session to somebody else.
    let forgetful = "CREATE OR REPLACE FUNCTION trefoil_number_changes(\"wait\" boolean DEFAULT false) RETURNS bigint \
                     LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN 0; END $$";
    outside(&url, forgetful).await;
    for _ in 0..5 {
        assert_eq!(store.change_log().await.unwrap().last_number, 0);
        assert_eq!(brief(&store.read_changes(0, 9, ALL).await.unwrap()), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_runs_on_one_node_at_a_time() {
    let url = database();
    let keeping = |options: &mut PostgresOptions| {
        options.keep_changes = 10;
        options.keep_changes_for = Duration::from_secs(3_600);
    };
    let (one, other) = (open(&url, keeping).await, open(&url, keeping).await);
    outside(&url, "INSERT INTO books (title) SELECT 'x' FROM generate_series(1, 3000)").await;
    assert_eq!(one.change_log().await.unwrap().last_number, 3_000);
    one.prune_now().await.unwrap();
    assert_eq!(one.change_log().await.unwrap().pruned_until, 0, "all are young");

    let old = "UPDATE trefoil_changes SET at = now() - interval '2 hours' WHERE number <> 2500; \
               INSERT INTO trefoil_keys VALUES ('old', '', '', 0), ('new', '', '', 9999999999)";
    outside(&url, old).await;
    let both = tokio::join!(one.prune_now(), other.prune_now());
    both.0.and(both.1).unwrap();
    one.prune_now().await.unwrap();
    let log = other.change_log().await.unwrap();
    assert_eq!((log.pruned_until, log.last_number), (2_499, 3_000), "a young one keeps what comes after it");
    assert_eq!(outside(&url, "SELECT min(number) FROM trefoil_changes").await, "2500");
    assert_eq!(outside(&url, "SELECT key FROM trefoil_keys").await, "new");

    outside(&url, "UPDATE trefoil_changes SET at = now() - interval '2 hours'").await;
    one.prune_now().await.unwrap();
    let log = other.change_log().await.unwrap();
    assert_eq!((log.pruned_until, log.last_number), (2_990, 3_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_plan_changes_nothing() {
    let url = database();
    let options = PostgresOptions::for_url(PostgresUrl::parse(&url).unwrap());
    let store = PostgresStore::open(options).await.unwrap();
    store.migrate(&model(), &[], &[], MigrationMode::Plan).await.expect("a plan");
    drop(store);
    assert_eq!(outside(&url, "SELECT count(*) FROM pg_class WHERE relname LIKE 'trefoil%'").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn seeding_runs_on_one_node_at_a_time() {
    let url = database();
    let (one, other) = (open(&url, |_| {}).await, Arc::new(open(&url, |_| {}).await));
    let turn = one.lock_seeding().await.expect("free");
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.lock_seeding().await.map(drop) }
    });
    let is_waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                      AND datname = current_database()";
    until("the other waits", async || outside(&url, is_waiting).await == "1").await;
    drop(turn);
    tokio::time::timeout(LONG, waiting).await.expect("its turn comes").unwrap().expect("free");
}
