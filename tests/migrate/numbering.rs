//! The change log on PostgreSQL: every change gets one number, none is skipped, and those of a record are in order.

use std::time::Duration;

use super::bench::{connect, on_client};
use super::*;

const SDL: &str = "type User { id: ID! name: String! }";
const NUMBER: &str = "SELECT trefoil_number_changes()";

async fn number(client: &tokio_postgres::Client, sql: &str) -> Option<i64> {
    client.query_one(sql, &[]).await.expect(sql).get(0)
}

#[test]
fn slow_transaction_is_numbered_late_never_skipped() {
    let store = Store::with(On::Postgres, SDL, "");
    on_client(store.url(), async |client| {
        let mut slow = connect(store.url()).await;
        let transaction = slow.transaction().await.unwrap();
        transaction.batch_execute("INSERT INTO users (name) VALUES ('slow')").await.unwrap();
        client.batch_execute("INSERT INTO users (name) VALUES ('quick')").await.unwrap();
        assert_eq!(number(client, NUMBER).await, Some(1));
        assert_eq!(number(client, NUMBER).await, Some(1), "the open transaction holds nothing up");
        transaction.commit().await.unwrap();
        assert_eq!(number(client, NUMBER).await, Some(2));
    });
    let log = "SELECT number, image ->> 'name' FROM trefoil_changes ORDER BY number";
    assert_eq!(store.rows(log), ["1|quick", "2|slow"]);
    assert_eq!(store.rows("SELECT count(*) FROM trefoil_unnumbered"), ["0"]);
}

#[test]
fn rolled_back_change_has_no_number() {
    let store = Store::with(On::Postgres, SDL, "");
    store.run(
        "BEGIN; INSERT INTO users (name) VALUES ('no'); ROLLBACK; INSERT INTO users (name) VALUES ('yes')",
    );
    let log = "SELECT number, record, image ->> 'name' FROM trefoil_changes";
    assert_eq!(store.rows(log), ["1|2|yes"]);
}

#[test]
fn concurrent_numbering_skips_or_waits() {
    let store = Store::with(On::Postgres, SDL, "INSERT INTO users (name) VALUES ('a')");
    on_client(store.url(), async |client| {
        let mut other = connect(store.url()).await;
        let numbering = other.transaction().await.unwrap();
        assert_eq!(number(numbering.client(), NUMBER).await, Some(1));
        assert_eq!(number(client, NUMBER).await, None);
        let url = store.url().to_owned();
        let waiting = tokio::spawn(async move {
            let third = connect(&url).await;
            number(&third, "SELECT trefoil_number_changes(true)").await
        });
        client.batch_execute("INSERT INTO users (name) VALUES ('b')").await.unwrap();
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        for _ in 0..600 {
            if number(client, waits).await == Some(1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(number(client, waits).await, Some(1), "nobody waits");
        numbering.commit().await.unwrap();
        assert_eq!(waiting.await.unwrap(), Some(2));
    });
}

/// Sixteen write the same few records while two number: every change has one number, without a hole, and the
/// versions of a record go up by one in the order of the numbers.
#[test]
fn changes_of_a_record_follow_version_order() {
    const WRITERS: usize = 16;
    const WRITES: usize = 25;
    let store = Store::with(On::Postgres, SDL, "INSERT INTO users (name) VALUES ('a'), ('b'), ('c')");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let url = store.url().to_owned();
                tokio::spawn(async move {
                    let client = connect(&url).await;
                    for write in 0..WRITES {
                        let id = (writer * 7 + write * 5) % 3 + 1;
                        let sql = format!("UPDATE users SET name = '{writer} {write}' WHERE id = {id}");
                        client.batch_execute(&sql).await.unwrap();
                    }
                })
            })
            .collect();
        let numberers: Vec<_> = (0..2)
            .map(|_| {
                let url = store.url().to_owned();
                let all = (3 + WRITERS * WRITES) as i64;
                tokio::spawn(async move {
                    let client = connect(&url).await;
                    for _ in 0..60_000 {
                        if number(&client, NUMBER).await == Some(all) {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    panic!("not every change was numbered");
                })
            })
            .collect();
        for task in writers.into_iter().chain(numberers) {
            task.await.unwrap();
        }
    });
    let all = 3 + WRITERS * WRITES;
    assert_eq!(
        store.rows("SELECT count(*), min(number), max(number) FROM trefoil_changes"),
        [format!("{all}|1|{all}")]
    );
    let out_of_order = "SELECT count(*) FROM (SELECT version, row_number() OVER (PARTITION BY record ORDER BY number) AS place \
                        FROM trefoil_changes) AS c WHERE version <> place";
    assert_eq!(store.rows(out_of_order), ["0"]);
}
