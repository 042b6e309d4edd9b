//! PostgreSQL only: locks, lost connections, several nodes at once, and tables altered under a prepared statement.

use std::time::{Duration, Instant};

use super::*;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

impl Bench {
    /// Another node on the same database.
    async fn node(&self) -> Bench {
        let Place::Server(url) = &self.place else { panic!("no server") };
        Bench::at(url, &self.model).await
    }

    /// A node on a database that is migrated already.
    pub(super) async fn at(url: &str, model: &Arc<Model>) -> Bench {
        let options =
            trefoil_sql::postgres::PostgresOptions::for_url(trefoil_config::PostgresUrl::parse(url).unwrap());
        let store = Arc::new(SqlStore::Postgres(Box::new(PostgresStore::open(options).await.unwrap())));
        Bench { store, model: model.clone(), place: Place::Server(url.to_owned()) }
    }

    /// A node of which every connection for single statements has its statements prepared.
    async fn warm_node(&self, look: &Outsider) -> Bench {
        let node = self.node().await;
        let connected = "SELECT count(*) >= 10 FROM pg_stat_activity \
                         WHERE datname = current_database() AND application_name = 'trefoil'";
        look.until(connected, "t").await;
        futures_util::future::join_all((0..64).map(|_| node.user("warm"))).await;
        look.run("DELETE FROM users").await.unwrap();
        node
    }

    fn rename(&self, id: i64, name: &str) -> Operation {
        self.update("User", id, &[("name", text(name))], None)
    }
}

/// Connections of the store that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";

impl Outsider {
    pub(super) async fn until(&self, sql: &str, expected: &str) {
        let begun = Instant::now();
        loop {
            let found = self.run(sql).await.unwrap();
            if found == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{sql} is still {found}, not {expected}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A setting of everyone's, from the next connection on.
    async fn set_for_all(&self, name: &str, value: &str) {
        let database = self.run("SELECT current_database()").await.unwrap();
        self.run(&format!("ALTER DATABASE \"{database}\" SET {name} = '{value}'")).await.unwrap();
    }

    /// One to hold locks, which nobody gives up waiting for from the next connection on, and one to look.
    async fn wait_for_locks(bench: &Bench) -> (Outsider, Outsider) {
        let outsider = bench.outsider().await;
        outsider.set_for_all("lock_timeout", "60s").await;
        (outsider, bench.outsider().await)
    }
}

#[tokio::test]
async fn deadlock_victim_is_retried() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    // The store looks for a deadlock first, but not before there is one.
    outsider.set_for_all("deadlock_timeout", "3s").await;
    let bench = Arc::new(bench.node().await);
    let ids = [bench.user("a").await, bench.user("b").await];
    outsider.run("SET lock_timeout = 0; SET deadlock_timeout = '120s'").await.unwrap();
    outsider.run("BEGIN; UPDATE users SET name = 'x' WHERE id = 2").await.unwrap();
    let write = tokio::spawn({
        let bench = bench.clone();
        async move {
            let both = ids.map(|id| bench.rename(id, "y")).into();
            bench.run(StoreJob { atomic: true, ..bench.job(both) }).await
        }
    });
    look.until(WAITING, "1").await;
    outsider.run("UPDATE users SET name = 'x' WHERE id = 1; COMMIT").await.unwrap();
    let told = write.await.unwrap().unwrap();
    assert!(told.outcomes.values().all(Result::is_ok), "{:?}", told.outcomes);
    let found = bench.outside("SELECT name, \"_version\" FROM users ORDER BY id").await;
    assert_eq!(found, "y|3\ny|3", "after the other's, each once");
}

#[tokio::test]
async fn id_is_never_given_twice_whoever_chooses() {
    let bench = Arc::new(Bench::postgres().await);
    let choosing = (0..4).map(|i| {
        let bench = bench.clone();
        tokio::spawn(async move {
            for n in 0..10 {
                // Close to where the others draw theirs from.
                let id = 3 + 4 * n * 5 + i;
                let operation = Operation::Create {
                    record: bench.record("User").0,
                    id: Some(id.into()),
                    fields: bench.fields("User", &[("name", text("chosen"))]),
                    filled_fields: Vec::new(),
                    selection: bench.select("User", "id"),
                };
                match bench.one(operation).await {
                    Ok((outcome, _)) => assert_eq!(outcome, Outcome::Created { id: id.into(), version: 1 }),
                    // Drawn by someone before: then it is taken, and told so.
                    Err(error) => assert_eq!(complaints(&error), ["id UNIQUE: Id is already taken"]),
                }
            }
        })
    });
    let drawing = (0..4).map(|_| {
        let bench = bench.clone();
        tokio::spawn(async move {
            for _ in 0..25 {
                bench.user("drawn").await;
            }
        })
    });
    for task in choosing.chain(drawing).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(bench.outside("SELECT count(*) FROM users WHERE name = 'drawn'").await, "100");
}

#[tokio::test]
async fn lost_commit_response_is_reported_not_retried() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    let bench = Arc::new(bench.warm_node(&look).await);
    outsider.hold().await;
    let write = tokio::spawn({
        let bench = bench.clone();
        async move { bench.run(bench.job(vec![bench.create("User", &[("name", text("Ada"))], "id")])).await }
    });
    look.until(WAITING, "1").await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
    look.run(kill).await.unwrap();
    let Err(error @ Error::OutcomeUnknown) = write.await.unwrap().map(drop) else { panic!("it is known") };
    assert!(error.to_string().contains("may or may not have been saved"), "{error}");
    outsider.release().await;
    assert_eq!(bench.count("User").await, 0);
}

#[tokio::test]
async fn lost_connection_retries_uncommitted_work() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    let bench = Arc::new(bench.node().await);
    outsider.hold().await;
    let write = tokio::spawn({
        let bench = bench.clone();
        async move { bench.one(bench.create("User", &[("name", text("Ada"))], "id orders(id)")).await }
    });
    look.until(WAITING, "1").await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND wait_event_type = 'Lock'";
    assert_eq!(look.run(kill).await.unwrap(), "1");
    outsider.release().await;
    write.await.unwrap().unwrap();
    assert_eq!(bench.count("User").await, 1);
}

#[tokio::test]
async fn cancelled_read_stops_its_query() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    let bench = bench.node().await;
    bench.user("Ada").await;
    outsider.run("BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let job = bench.job(vec![bench.list("User", Listing::default(), "id orders(id)")]);
    let cancel = job.cancel_flag.clone();
    let (end, ()) = tokio::join!(bench.store.run(job), async {
        look.until(WAITING, "1").await;
        cancel.cancel();
    });
    assert!(matches!(end, Err(Error::Cancelled)));
    look.until(WAITING, "0").await;
    // The same when nobody is left to set a flag.
    let job = bench.job(vec![bench.list("User", Listing::default(), "id")]);
    tokio::select! {
        _ = bench.store.run(job) => panic!("it cannot end"),
        () = look.until(WAITING, "1") => {}
    }
    look.until(WAITING, "0").await;
    outsider.release().await;
    assert_eq!(bench.count("User").await, 1);
}

#[tokio::test]
async fn cancelled_write_is_all_or_nothing() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    let bench = bench.warm_node(&look).await;
    outsider.hold().await;
    for (name, select) in [("transaction", "id orders(id)"), ("statement", "id")] {
        let job = bench.job(vec![bench.create("User", &[("name", text(name))], select)]);
        tokio::select! {
            _ = bench.store.run(job) => panic!("it cannot end"),
            () = look.until(WAITING, "1") => {}
        }
        if name == "transaction" {
            look.until(WAITING, "0").await;
        }
    }
    outsider.release().await;
    // The transaction went back; the statement that was sent came to its end.
    look.until("SELECT name FROM users", "statement").await;
}

#[tokio::test]
async fn table_change_by_another_node_causes_no_error() {
    let bench = Bench::postgres().await;
    let id = bench.make("User", &[("name", text("Ada")), ("age", int(7))]).await;
    for _ in 0..8 {
        assert_eq!(show(&bench.rows(bench.get("User", id, "age")).await), "7");
        bench.one(bench.update("User", id, &[("age", int(7))], None)).await.unwrap();
    }
    bench.outside("ALTER TABLE users ALTER COLUMN age TYPE bigint").await;
    for _ in 0..8 {
        assert_eq!(show(&bench.rows(bench.get("User", id, "age")).await), "7");
        assert_eq!(show(&bench.rows(bench.get("User", id, "age orders(id)")).await), "7 []");
    }
}

#[tokio::test]
async fn idempotency_key_is_in_use_on_every_node() {
    let bench = Bench::postgres().await;
    let (outsider, look) = Outsider::wait_for_locks(&bench).await;
    let (one, other) = (Arc::new(bench.node().await), bench.node().await);
    let job = |bench: &Bench| StoreJob {
        idempotency_key: key("k", 1),
        ..bench.job(vec![bench.create("User", &[("name", text("Ada"))], "id")])
    };
    outsider.hold().await;
    let first = tokio::spawn({
        let one = one.clone();
        let job = job(&one);
        async move { one.run(job).await }
    });
    look.until(WAITING, "1").await;
    assert!(matches!(other.store.run(job(&other)).await, Err(Error::KeyInUse)));
    outsider.release().await;
    first.await.unwrap().unwrap();
    assert_eq!(other.count("User").await, 1);
}

/// As a client would: again, as often as it is told that nothing was done because others were at it for too long.
async fn patiently(node: &Bench, operation: impl Fn() -> Operation) {
    loop {
        match node.run(node.job(vec![operation()])).await {
            Ok(mut told) => {
                told.outcomes.remove(&0).unwrap().unwrap();
                return;
            }
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn concurrent_nodes_append_to_one_list() {
    use trefoil_engine::{PlainListAction, PlainListOperation};
    let bench = Bench::postgres().await;
    let nodes = [Arc::new(bench.node().await), Arc::new(bench.node().await)];
    let on = |act| Operation::PlainList(PlainListOperation { list: "items".into(), action: act });
    let tasks = (0..8).map(|i| {
        let node = nodes[i % 2].clone();
        tokio::spawn(async move {
            for n in 0..20 {
                let value = format!("{i}-{n}");
                patiently(&node, || on(PlainListAction::Append { value: value.clone(), expected: None }))
                    .await;
                if n % 4 == 3 {
                    patiently(&node, || on(PlainListAction::Remove { index: 0, expected: None })).await;
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let rows = bench.rows(on(PlainListAction::Read { from: None, max_bytes: usize::MAX })).await;
    assert_eq!(rows.len(), 8 * 20 - 8 * 5);
    for i in 0..8 {
        let own = rows.iter().map(ReadRow::to_string).filter(|value| value.starts_with(&format!("{i}-")));
        let own: Vec<i64> = own.map(|value| value[2..].parse().unwrap()).collect();
        assert!(own.is_sorted(), "{own:?}");
    }
    assert_eq!(
        show(&bench.rows(on(PlainListAction::Remove { index: 119, expected: None })).await),
        rows[119].to_string()
    );
}

#[tokio::test]
async fn value_too_long_for_an_index_is_refused() {
    let bench = Bench::postgres().await;
    let fields = [("name", text("A")), ("email", text(&unlike_itself(9_000)))];
    let error = bench.one(bench.create("User", &fields, "id")).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)) && error.violations()[0].code == "TOO_LONG", "{error:?}");
    assert_eq!(bench.count("User").await, 0);
}

/// A text that nothing could compress.
fn unlike_itself(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + (state >> 40) as u8 % 90)
    };
    (0..length).map(|_| next()).collect()
}

/// The query plan of a list if its table were too long for a sequential scan.
#[tokio::test]
async fn lists_are_read_by_index() {
    use trefoil_engine::ListSlice;
    use trefoil_sql::statements::compile::{Program, compile_plan};
    use trefoil_sql::statements::dialect::Dialect;
    let bench = Bench::postgres().await;
    let outsider = bench.outsider().await;
    outsider
        .run(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan",
        )
        .await
        .unwrap();
    let way = async |operation: Operation, values: &str| {
        let plan = Plan::prove(
            &bench.model,
            &PlanLimits::default(),
            &Authority::operator(),
            operation,
            &jiff::Timestamp::UNIX_EPOCH.into(),
        )
        .unwrap();
        let program = compile_plan(Dialect::Postgres, &bench.model, &plan).unwrap();
        let Program::List { level, .. } = program else { panic!("no list") };
        let sql = format!(
            "PREPARE s AS {}; EXPLAIN (COSTS off) EXECUTE s({values}); DEALLOCATE s",
            level.statement.sql
        );
        outsider.run(&sql).await.unwrap()
    };
    let first = |order: &[&str]| Listing {
        sort_keys: bench.order("User", order),
        slice: ListSlice::First { first: 5, after: None },
        ..Listing::default()
    };
    let by_name = way(bench.list("User", first(&["name"]), "id"), "6, 0").await;
    assert!(by_name.contains("users_name_index") && !by_name.contains("Sort"), "{by_name}");
    // Also where the plan is made for all values alike: a common one must not decide how a rare one is found.
    let named = vec![bench.condition("User", "name", "eq", text("A"))];
    let named = Listing { conditions: named, ..first(&[]) };
    let named = way(bench.list("User", named, "id"), "'A', 6, 0").await;
    assert!(named.contains("users_name_index") && !named.contains("Sort"), "{named}");
    let by_id = way(bench.list("User", first(&[]), "id"), "6, 0").await;
    assert!(by_id.contains("Index") && !by_id.contains("Sort"), "{by_id}");
    let conditions =
        vec![bench.condition("User", "balance", "in", Value::List(vec![text("1.50"), text("2")]))];
    let unique =
        way(bench.list("User", Listing { conditions, ..Listing::default() }, "id"), "'{1.50,2}'").await;
    assert!(unique.contains("users_balance_unique"), "{unique}");
}

/// Takes its time with the first row.
struct Slow {
    rows: usize,
}

impl RowSink for Slow {
    fn row(&mut self, _: usize, _: &dyn Row) {
        if self.rows == 0 {
            std::thread::sleep(Duration::from_secs(9));
        }
        self.rows += 1;
    }
    fn finish_plan(&mut self, _: usize, outcome: Result<Outcome>) {
        outcome.unwrap();
    }
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }
    fn reset(&mut self) {
        panic!("the list is read again");
    }
}

/// The server has sent everything by then and waits; its keep-alive is queued behind rows that nobody reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reader_is_not_a_lost_connection() {
    let bench = Bench::postgres().await;
    let many = "INSERT INTO users (name, price) SELECT repeat('x', 500), 0 FROM generate_series(1, 3000)";
    bench.outside(many).await;
    let job = bench.job(vec![bench.list("User", Listing::default(), "name")]);
    let done = bench.store.run(StoreJob { sink: Box::new(Slow { rows: 0 }), ..job }).await;
    let Ok(JobResult::Completed(answer)) = done else { panic!("the connection was closed") };
    let any: Box<dyn std::any::Any> = answer;
    assert_eq!(any.downcast::<Slow>().unwrap().rows, 3_000);
}
