//! Plain lists in the store: order, versions, writes of other programs, and the cost of an index in a long list.

use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_engine::plain_list::{ExpectedVersions, VersionMatch};
use trefoil_engine::{PlainListAction, PlainListOperation, PlainListPosition};

use super::*;
use crate::support::is_long;

both![
    index_finds_its_value_after_removals,
    invalid_index_changes_nothing,
    batched_read_ends_where_the_list_ended,
    external_writes_count_in_the_version,
];

fn on(list: &str, act: PlainListAction) -> Operation {
    Operation::PlainList(PlainListOperation { list: list.into(), action: act })
}

/// How many values a list has that is long next to one of a thousand.
fn long_length() -> i64 {
    if is_long() { 1_000_000 } else { 100_000 }
}

fn append(value: &str) -> Operation {
    on("items", PlainListAction::Append { value: value.into(), expected: None })
}

fn replace(list: &str, index: i64, value: &str, expected: ExpectedVersions) -> Operation {
    on(list, PlainListAction::Replace { index, value: value.into(), expected })
}

fn remove(list: &str, index: i64) -> Operation {
    on(list, PlainListAction::Remove { index, expected: None })
}

fn read(from: Option<PlainListPosition>, bytes: usize) -> Operation {
    on("items", PlainListAction::Read { from, max_bytes: bytes })
}

impl Bench {
    async fn version(&self) -> i64 {
        let (outcome, rows) = self.one(on("items", PlainListAction::ReadVersion)).await.unwrap();
        let Outcome::PlainList { version, remaining: None, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(rows, []);
        version
    }

    async fn values(&self) -> String {
        show(&self.rows(read(None, usize::MAX)).await)
    }
}

async fn index_finds_its_value_after_removals(bench: Bench) {
    let mut expected: Vec<String> = Vec::new();
    let mut chance = 1_u64;
    let mut below = |limit: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 33) as usize % limit
    };
    for step in 0..if is_long() { 2_500 } else { 600 } {
        let value = format!("v{step}");
        match below(10) {
            0..=5 => {
                bench.one(append(&value)).await.unwrap();
                expected.push(value);
            }
            6 if !expected.is_empty() => {
                let index = below(expected.len());
                bench.one(replace("items", index as i64, &value, None)).await.unwrap();
                expected[index] = value;
            }
            _ if !expected.is_empty() => {
                let index = below(expected.len());
                let rows = bench.rows(remove("items", index as i64)).await;
                assert_eq!(show(&rows), expected.remove(index), "step {step}");
            }
            _ => {}
        }
    }
    assert_eq!(bench.values().await, expected.join(" | "));
}

#[tokio::test]
async fn index_finds_its_value_in_memory() {
    index_finds_its_value_after_removals(Bench::in_memory()).await;
}

async fn invalid_index_changes_nothing(bench: Bench) {
    bench.one(append("a")).await.unwrap();
    let before = bench.version().await;
    for index in [-1, 1, i64::MAX, i64::MIN] {
        for operation in [remove("items", index), replace("items", index, "x", None)] {
            let error = bench.one(operation).await.unwrap_err();
            assert_eq!(error.to_string(), format!("index {index} of /items not found"));
        }
    }
    let stale = replace("items", 0, "x", Some(VersionMatch::AnyOf(vec![before - 1, before + 1])));
    assert!(matches!(bench.one(stale).await.unwrap_err(), Error::Stale { .. }));
    assert_eq!((bench.version().await, bench.values().await), (before, "a".into()));
    let held = replace("items", 0, "x", Some(VersionMatch::AnyOf(vec![before - 1, before])));
    assert_eq!(
        bench.one(held).await.unwrap().0,
        Outcome::PlainList { version: before + 1, length: 1, remaining: None }
    );
    assert!(matches!(
        bench.one(on("nothing", PlainListAction::ReadVersion)).await.unwrap_err(),
        Error::NotFound { .. }
    ));
}

async fn batched_read_ends_where_the_list_ended(bench: Bench) {
    for value in ["aaaa", "bbbb", "cccc", "dddd"] {
        bench.one(append(value)).await.unwrap();
    }
    let (outcome, rows) = bench.one(read(None, 10)).await.unwrap();
    assert_eq!(show(&rows), "aaaa | bbbb");
    let Outcome::PlainList { remaining: Some(rest), .. } = outcome else { panic!("{outcome:?}") };
    // What is removed meanwhile is gone, what is appended meanwhile belongs to another reading.
    bench.one(remove("items", 2)).await.unwrap();
    bench.one(append("eeee")).await.unwrap();
    let (outcome, rows) = bench.one(read(Some(rest), 10)).await.unwrap();
    assert_eq!(show(&rows), "dddd");
    assert!(matches!(outcome, Outcome::PlainList { remaining: None, .. }), "{outcome:?}");
}

async fn external_writes_count_in_the_version(bench: Bench) {
    for value in ["a", "b", "c"] {
        bench.one(append(value)).await.unwrap();
    }
    let before = bench.version().await;
    let outsider = bench.outsider().await;
    let list = "(SELECT id FROM trefoil_lists WHERE name = 'items')";
    let run = async |sql: &str| outsider.run(&sql.replace("LIST", list)).await;
    run("DELETE FROM trefoil_list_values WHERE list = LIST AND value = 'a'").await.unwrap();
    run("UPDATE trefoil_list_values SET value = 'B' WHERE list = LIST AND value = 'b'").await.unwrap();
    run("INSERT INTO trefoil_list_values (list, position, value) VALUES (LIST, 1000, 'z')").await.unwrap();
    assert_eq!(bench.version().await, before + 3);
    assert_eq!(show(&bench.rows(remove("items", 2)).await), "z");
    bench.one(append("d")).await.unwrap();
    assert_eq!(bench.values().await, "B | c | d");
    // What would put the counts wrong is refused.
    for sql in [
        "INSERT INTO trefoil_list_values (list, position, value) VALUES (LIST, 1, 'x')",
        "UPDATE trefoil_list_values SET position = 77 WHERE value = 'c'",
        "INSERT INTO trefoil_list_values (list, position, value) VALUES (LIST, 9223372036854775807, 'x')",
        "INSERT INTO trefoil_list_values (list, position, value) VALUES (LIST, 5, NULL)",
    ] {
        assert!(run(sql).await.is_err(), "{sql}");
    }
    if bench.is_sqlite() {
        let sql = "INSERT OR REPLACE INTO trefoil_list_values (list, position, value) VALUES (LIST, 1, 'x')";
        assert!(run(sql).await.is_err());
    }
    assert_eq!(show(&bench.rows(remove("items", 1)).await), "c");
    // Nothing is left of blocks that are empty.
    bench.one(remove("items", 0)).await.unwrap();
    bench.one(remove("items", 0)).await.unwrap();
    let left = outsider.run("SELECT count(*) FROM trefoil_list_counts").await.unwrap();
    assert_eq!((left.as_str(), bench.values().await), ("0", String::new()));
}

/// Counted in steps of SQLite's virtual machine, triggers included: time would depend on other tests.
#[tokio::test]
async fn index_cost_does_not_grow_with_the_list() {
    const TIMES: i64 = 200;
    let bench = Bench::new();
    let lengths = [("items", long_length()), ("samples", 1_000)];
    for (list, length) in lengths {
        let fill = move |connection: &mut rusqlite::Connection| {
            let sql = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2) \
                       INSERT INTO trefoil_list_values (list, position, value) \
                       SELECT (SELECT id FROM trefoil_lists WHERE name = ?1), i, 'value ' || i FROM n";
            connection.execute(sql, (list, length))
        };
        assert_eq!(bench.on_writer(fill).unwrap().unwrap(), length as usize);
    }
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    bench.on_writer(move |connection| connection.progress_handler(1, Some(count))).unwrap().unwrap();
    let mut costs = HashMap::new();
    for (list, length) in lengths {
        for act in ["replace", "remove"] {
            let (steps_before, statements_before) = (steps.load(Ordering::Relaxed), bench.statements());
            for i in 0..TIMES {
                let index = i * 2_654_435_761 % (length - TIMES);
                let operation =
                    if act == "replace" { replace(list, index, "new", None) } else { remove(list, index) };
                bench.one(operation).await.unwrap();
            }
            let (cost, statements) =
                (steps.load(Ordering::Relaxed) - steps_before, bench.statements() - statements_before);
            costs.insert((list, act), (cost / TIMES as u64, statements / TIMES as u64));
        }
    }
    for act in ["replace", "remove"] {
        let ((long, statements), (short, few)) = (costs[&("items", act)], costs[&("samples", act)]);
        assert_eq!(statements, few, "{act}");
        assert!(
            short > 0 && long <= 2 * short,
            "{act}: {long} steps in the long list, {short} in a thousand"
        );
    }
}

/// The long list is put together with its triggers asleep, as they would leave it. Nobody but the test tidies up.
fn fill() -> String {
    let last = long_length() - 1;
    format!(
        "ALTER TABLE trefoil_lists SET (autovacuum_enabled = false);
    ALTER TABLE trefoil_list_values SET (autovacuum_enabled = false);
    ALTER TABLE trefoil_list_counts SET (autovacuum_enabled = false);
    SET session_replication_role = replica;
    INSERT INTO trefoil_list_values (list, position, value)
      SELECT id, i, 'value ' || i FROM trefoil_lists,
      generate_series(0, CASE name WHEN 'items' THEN {last} ELSE 999 END) AS i;
    INSERT INTO trefoil_list_counts (list, level, block, count)
      SELECT list, level, position >> CAST(6 * level AS int), count(*)
      FROM trefoil_list_values, generate_series(1, 3) AS level GROUP BY 1, 2, 3 ORDER BY 1, min(position), 2;
    UPDATE trefoil_lists SET (length, next) =
      (SELECT count(*), max(position) + 1 FROM trefoil_list_values WHERE list = id);
    SET session_replication_role = DEFAULT;
    VACUUM ANALYZE trefoil_lists, trefoil_list_values, trefoil_list_counts"
    )
}

/// A database with a long list and a short one, and nobody in it but one who looks.
struct Measured {
    url: String,
    model: Arc<Model>,
    look: Outsider,
}

impl Measured {
    async fn new() -> Measured {
        let bench = Bench::postgres().await;
        let filling = bench.outsider().await;
        for statement in fill().split(';') {
            filling.run(statement).await.unwrap();
        }
        let Bench { model, place: super::Place::Server(url), .. } = bench else { panic!("no server") };
        drop(filling);
        let look = Outsider::server(&url).await;
        Measured { url, model, look }
    }

    /// How many pages of the lists the server has looked at. A session has told all that it did once it is gone.
    async fn pages(&self) -> i64 {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        self.look.until(others, "0").await;
        let pages = "SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) \
                     FROM pg_statio_user_tables WHERE relname LIKE 'trefoil_list%'";
        self.look.run(pages).await.unwrap().parse().unwrap()
    }

    /// The pages for one write, triggers included: the mean of many, at indexes all over the list.
    async fn cost(&self, length: i64, write: impl Fn(i64) -> Operation) -> i64 {
        const TIMES: i64 = 200;
        let before = self.pages().await;
        let node = Bench::at(&self.url, &self.model).await;
        for i in 0..TIMES {
            node.one(write(i * 2_654_435_761 % (length - TIMES))).await.unwrap();
        }
        drop(node);
        (self.pages().await - before) / TIMES
    }
}

#[tokio::test]
async fn index_cost_does_not_grow_with_the_list_on_postgres() {
    let measured = Measured::new().await;
    let mut costs = Vec::new();
    for (list, length) in [("items", long_length()), ("samples", 1_000)] {
        let put = measured.cost(length, |index| replace(list, index, "new", None)).await;
        let delete = measured.cost(length, |index| remove(list, index)).await;
        costs.push([put, delete]);
    }
    for (act, (long, short)) in ["PUT", "DELETE"].iter().zip(costs[0].into_iter().zip(costs[1])) {
        assert!(
            short > 0 && long <= 2 * short,
            "{act}: {long} pages in the long list, {short} in a thousand"
        );
    }
}
