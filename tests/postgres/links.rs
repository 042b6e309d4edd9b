//! PostgreSQL connections that are lost, cut, exhausted or silent, and the errors that callers get.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trefoil_config::PostgresUrl;
use trefoil_engine::Store;
use trefoil_model::error::Error;
use trefoil_sql::postgres::{PgConnection, PostgresOptions, PostgresStore};

use super::hole::Hole;
use crate::support::postgres::{Cluster, Options as ClusterOptions, database, sql};

/// A loaded machine may take long; nothing here is meant to.
pub const LONG: Duration = Duration::from_secs(30);

async fn open(url: &str) -> PostgresStore {
    open_with(url, |_| {}).await
}

async fn open_with(url: &str, change: impl FnOnce(&mut PostgresOptions)) -> PostgresStore {
    let mut options = PostgresOptions::for_url(PostgresUrl::parse(url).unwrap());
    change(&mut options);
    PostgresStore::open(options).await.expect("it connects")
}

async fn number(link: &PgConnection, sql: &str) -> Result<i64, tokio_postgres::Error> {
    let statement = link.prepare(sql).await?;
    Ok(link.client().query_one(&statement, &[]).await?.get(0))
}

/// Whether a statement goes through, on whatever connection there is.
async fn works(store: &PostgresStore) -> bool {
    match store.connections().shared_connection() {
        Ok(link) => number(&link, "SELECT 7::bigint").await.is_ok_and(|seven| seven == 7),
        Err(_) => false,
    }
}

pub async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < LONG, "not within {LONG:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// `sql` waits on the thread it is called on.
pub async fn outside(url: &str, statements: &str) -> String {
    let (url, statements) = (url.to_owned(), statements.to_owned());
    tokio::task::spawn_blocking(move || sql(&url, &statements)).await.unwrap()
}

fn unavailable(error: Error) -> String {
    let Error::Unavailable { reason, retry_after } = error else { panic!("{error:?}") };
    assert_eq!(retry_after, Duration::from_secs(1));
    reason
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_override_database_settings() {
    let url = database();
    let name = url.rsplit('/').next().unwrap();
    let odd = format!(
        "ALTER DATABASE {name} SET TimeZone = 'Asia/Tokyo'; ALTER DATABASE {name} SET DateStyle = 'SQL, DMY'; \
         ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'; \
         ALTER DATABASE {name} SET lock_timeout = '3s'"
    );
    outside(&url, &odd).await;
    let store = open(&url).await;
    let own = store.connections().acquire_pooled().await.expect("a connection");
    let link = store.connections().shared_connection().expect("a connection");
    let show = async |link: &PgConnection, name: &str| -> String {
        link.client().query_one(&format!("SHOW {name}"), &[]).await.unwrap().get(0)
    };
    for link in [&*own, &*link] {
        assert_eq!(show(link, "TimeZone").await, "UTC");
        assert_eq!(show(link, "DateStyle").await, "ISO, YMD");
        assert_eq!(show(link, "application_name").await, "trefoil");
        assert_eq!(show(link, "transaction_isolation").await, "read committed");
        assert_eq!(show(link, "lock_timeout").await, "3s", "an operator's own setting stays");
        assert_eq!(show(link, "idle_in_transaction_session_timeout").await, "1min");
    }
    assert_eq!(show(&link, "statement_timeout").await, "30s");
    assert_eq!(show(&own, "statement_timeout").await, "0");
    own.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_are_kept_and_bounded() {
    let store = open(&database()).await;
    let own = store.connections().acquire_pooled().await.unwrap();
    let prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%counted%'";
    for _ in 0..3 {
        number(&own, "SELECT 1::bigint AS counted").await.unwrap();
    }
    assert_eq!(number(&own, prepared).await.unwrap(), 2, "the one that counts is one of them");
    for other in 0..600 {
        own.prepare(&format!("SELECT {other}::bigint AS counted")).await.unwrap();
    }
    let kept = number(&own, prepared).await.unwrap();
    assert!((400..=520).contains(&kept), "{kept}");
    own.forget_statements();
    assert_eq!(number(&own, prepared).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_connections_are_reopened() {
    let url = database();
    let store = open(&url).await;
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                     WHERE datname = current_database() AND application_name = 'trefoil'";
    let all_stand = "SELECT count(*) >= 5 FROM pg_stat_activity \
                     WHERE datname = current_database() AND application_name = 'trefoil'";
    for _ in 0..3 {
        until("four shared connections and the log's", async || outside(&url, all_stand).await == "t").await;
        store.connections().acquire_pooled().await.expect("a connection").release();
        assert_ne!(outside(&url, terminate).await, "0");
        until("statements go through again", async || works(&store).await).await;
        until("a connection of one's own works again", async || {
            match store.connections().acquire_pooled().await {
                Ok(own) => {
                    let works = number(&own, "SELECT 7::bigint").await.is_ok();
                    own.release();
                    works
                }
                Err(_) => false,
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_database_fails_callers_at_once() {
    let cluster = Arc::new(Cluster::start(&ClusterOptions::default()));
    let url = cluster.database();
    let store = open(&url).await;
    store.ping().await.expect("it is there");
    let ask = |what: fn(&Cluster)| {
        let cluster = cluster.clone();
        async move { tokio::task::spawn_blocking(move || what(&cluster)).await.unwrap() }
    };
    for stop in [Cluster::stop, Cluster::kill] {
        ask(stop).await;
        until("it is known to be away", async || store.connections().shared_connection().is_err()).await;
        let begin = Instant::now();
        for _ in 0..1_000 {
            let reason = unavailable(store.connections().shared_connection().err().expect("away"));
            assert_eq!(reason, "cannot connect to the database");
            unavailable(store.connections().acquire_pooled().await.err().expect("away"));
            unavailable(store.ping().await.expect_err("away"));
            unavailable(store.change_log().await.expect_err("away"));
        }
        assert!(begin.elapsed() < LONG, "a thousand callers waited {:?}", begin.elapsed());
        ask(Cluster::again).await;
        until("it is back", async || works(&store).await).await;
        until("it is ready", async || store.ping().await.is_ok()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn start_waits_for_a_starting_database_only() {
    let cluster = Arc::new(Cluster::start(&ClusterOptions::default()));
    let url = cluster.database();
    cluster.stop();
    let later = {
        let cluster = cluster.clone();
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(500));
            cluster.again();
        })
    };
    assert!(works(&open(&url).await).await);
    later.await.unwrap();

    let begin = Instant::now();
    let missing = format!("{url}_missing").replace("postgres@", "postgres:s3cret@");
    let missing = PostgresOptions::for_url(PostgresUrl::parse(&missing).unwrap());
    let error = PostgresStore::open(missing).await.err().expect("no such database");
    assert!(
        error.ends_with("database \"t1_missing\" does not exist") && !error.contains("s3cret"),
        "{error}"
    );
    assert!(begin.elapsed() < Duration::from_secs(9), "what waiting cannot mend is told at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_is_bounded_and_reuses_finished_connections() {
    let url = database();
    let store = open_with(&url, |options| {
        options.pool_size = 2;
        options.acquire_timeout = Duration::from_millis(200);
    })
    .await;
    let links = store.connections();
    let (one, two) = (links.acquire_pooled().await.unwrap(), links.acquire_pooled().await.unwrap());
    let reason = unavailable(links.acquire_pooled().await.err().expect("all are taken"));
    assert_eq!(reason, "all 2 connections to the database were in use for 200ms (database-connections)");
    let pid = number(&one, "SELECT pg_backend_pid()::bigint").await.unwrap();
    one.release();
    let again = links.acquire_pooled().await.unwrap();
    assert_eq!(number(&again, "SELECT pg_backend_pid()::bigint").await.unwrap(), pid, "the same one");

    // Left in the middle of a transaction and of a query: nothing of it may go on, and nobody else may get it.
    again.client().batch_execute("BEGIN; CREATE TABLE left_open (x int)").await.unwrap();
    let left = tokio::time::timeout(
        Duration::from_millis(300),
        again.client().batch_execute("SELECT pg_sleep(600)"),
    );
    assert!(left.await.is_err());
    drop(again);
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    until("the abandoned query is gone", async || outside(&url, &gone).await == "0").await;
    assert_eq!(outside(&url, "SELECT to_regclass('left_open') IS NULL").await, "t");
    let fresh = links.acquire_pooled().await.expect("its place is free");
    assert_ne!(number(&fresh, "SELECT pg_backend_pid()::bigint").await.unwrap(), pid);
    fresh.release();
    two.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_statement_is_not_cut() {
    let store = open(&database()).await;
    let link = store.connections().shared_connection().unwrap();
    let begin = Instant::now();
    link.client().batch_execute("SELECT pg_sleep(9)").await.expect("it comes to its end");
    assert!(begin.elapsed() >= Duration::from_secs(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connection_is_detected_and_reopened() {
    let url = database();
    let hole = Hole::before(&url);
    let store = open(&hole.url(&url)).await;
    let own = store.connections().acquire_pooled().await.unwrap();
    assert!(works(&store).await);
    hole.open();
    let link = store.connections().shared_connection().expect("nobody knows yet");
    let waiting = tokio::spawn(async move { number(&link, "SELECT 8::bigint").await });
    let hanging = tokio::spawn(async move { number(&own, "SELECT 9::bigint").await });
    until("callers are told", async || store.connections().shared_connection().is_err()).await;
    assert!(waiting.await.unwrap().is_err(), "whoever waited is told as well");
    assert!(hanging.await.unwrap().is_err());
    hole.close();
    until("it is back", async || works(&store).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_or_lost_listener_wakes() {
    let url = database();
    let store = open(&url).await;
    assert_eq!(store.poll_interval(), Duration::from_secs(1));
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                     AND datname = current_database()";
    until("it listens", async || outside(&url, listening).await == "1").await;
    let mut stirred = store.commits();
    // The first connection itself may be the news.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stirred.mark_unchanged();
    outside(&url, "NOTIFY trefoil_changes").await;
    tokio::time::timeout(LONG, stirred.changed()).await.expect("woken").unwrap();
    let lose = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                AND datname = current_database()";
    stirred.mark_unchanged();
    assert_eq!(outside(&url, lose).await, "1");
    tokio::time::timeout(LONG, stirred.changed()).await.expect("woken").unwrap();
    until("it listens again", async || outside(&url, listening).await == "1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_needs_no_listener() {
    let url = database();
    let store = open_with(&url, |options| options.notify = false).await;
    assert_eq!(store.poll_interval(), Duration::from_millis(100));
    until("every connection stands", async || {
        outside(
            &url,
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'trefoil' \
                       AND datname = current_database()",
        )
        .await
            == "5"
    })
    .await;
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' \
                     AND datname = current_database()";
    assert_eq!(outside(&url, listening).await, "0");
}
