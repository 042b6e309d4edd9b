//! An import or export killed with SIGKILL at any moment can be run again, as if the first had never started.

use std::hash::{BuildHasher, RandomState};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, Kind, Store, both};
use crate::support::is_long;
use crate::support::postgres::sql;

both![import_is_all_or_nothing, export_file_is_complete_or_absent];

fn kills() -> u32 {
    if is_long() { 10 } else { 3 }
}

/// An application of this many rows, which refer to each other.
fn stream(rows: usize) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let (people, teams) = (rows / 2, rows / 4);
    for i in 1..=teams {
        writeln!(
            text,
            "{{\"resource\":\"teams\",\"record\":{{\"id\":{i},\"title\":\"Team {i}\",\"leadId\":{i}}}}}"
        )
        .unwrap();
    }
    for i in 1..=people {
        let boss = people + 1 - i;
        let fields = format!(
            "\"id\":{i},\"name\":\"Person {i}\",\"nick\":\"p{i}\",\"bossId\":{boss},\"homeId\":{}",
            i % teams + 1
        );
        writeln!(text, "{{\"resource\":\"people\",\"record\":{{{fields}}}}}").unwrap();
    }
    for i in 0..rows - people - teams {
        writeln!(text, "{{\"resource\":\"items\",\"value\":\"value {i}\"}}").unwrap();
    }
    text
}

fn rows() -> usize {
    if is_long() { 60_000 } else { 6_000 }
}

/// Runs a command for some part of a time, then kills it; says whether it was killed before its end.
fn kill_within(mut command: Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let part = RandomState::new().hash_one(child.id()) % 1_000;
    let until = Instant::now() + time * u32::try_from(part).unwrap() / 1_000;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

fn import_is_all_or_nothing(kind: Kind) {
    let bench = Bench::new(kind);
    bench.write("all.ndjson", stream(rows()));
    let (first, begin) = (bench.store(), Instant::now());
    bench.import(&first, &["--from", "all.ndjson"]);
    let time = begin.elapsed();
    // What was filled by the clock differs from import to import.
    bench.write("all.ndjson", bench.all(&first));
    let whole = bench.read("all.ndjson");
    let mut store = bench.store();
    bench.import(&store, &["--from", empty(&bench)]);
    for _ in 0..kills() {
        kill_within(bench.command("import", &store, &["--from", "all.ndjson"]), time);
        let found = bench.all(&store);
        assert!(found.is_empty() || found == whole, "{} of {} bytes came in", found.len(), whole.len());
        if !found.is_empty() {
            store = bench.store();
            bench.import(&store, &["--from", empty(&bench)]);
        }
    }
    import_again(&bench, &store);
    assert_eq!(bench.all(&store), whole);
    // What is there already is not brought in a second time.
    bench.run("import", &store, &["--from", "all.ndjson"]).refused(&["nothing was imported"]);
    assert_eq!(bench.all(&store), whole);
}

/// What a killed import left is cleaned up, and the table is known as an empty one of many pages. Nothing that comes in
/// afterwards would change that before it is committed.
#[test]
fn import_into_a_vacuumed_table_updates_statistics() {
    let bench = Bench::new(Kind::Server);
    let store = bench.store();
    bench.import(&store, &["--from", empty(&bench)]);
    let url = &store.flags[1];
    sql(url, "BEGIN; INSERT INTO people (name) SELECT 'Ann' FROM generate_series(1, 5000); ROLLBACK");
    sql(url, "VACUUM (TRUNCATE false) people");
    let known = "SELECT reltuples >= 3000, relpages > 1 FROM pg_class WHERE oid = 'people'::regclass";
    assert_eq!(sql(url, known), "f|t");
    bench.write("all.ndjson", stream(6_000));
    bench.import(&store, &["--from", "all.ndjson"]);
    assert_eq!(sql(url, "SELECT reltuples > 0 FROM pg_class WHERE oid = 'people'::regclass"), "t");
}

/// PostgreSQL may need a moment to notice that the killed one is gone: until then its rows are in the way, and whoever
/// waits for them gives up and says so.
fn import_again(bench: &Bench, store: &Store) {
    let begin = Instant::now();
    loop {
        let said = bench.run("import", store, &["--from", "all.ndjson"]);
        let is_held = said.err.contains("locked by another program");
        if said.succeeded || !is_held || begin.elapsed() > Duration::from_secs(300) {
            return assert!(said.succeeded, "{}", said.err);
        }
    }
}

/// An import of nothing, which makes the store.
fn empty(bench: &Bench) -> &'static str {
    bench.write("empty.ndjson", "");
    "empty.ndjson"
}

fn export_file_is_complete_or_absent(kind: Kind) {
    let bench = Bench::new(kind);
    bench.write("all.ndjson", stream(rows()));
    let store = bench.store();
    bench.import(&store, &["--from", "all.ndjson"]);
    let whole = bench.all(&store);
    let begin = Instant::now();
    assert!(bench.run("export", &store, &["--to", "measured"]).succeeded);
    let time = begin.elapsed();
    let people = bench.read("measured/people.ndjson");
    bench.write("people.ndjson", "before");
    let mut before = "before".to_owned();
    for round in 0..kills() {
        let folder = format!("out{round}");
        kill_within(bench.command("export", &store, &["--to", &folder]), time);
        if bench.path(&folder).exists() {
            assert_eq!(bench.read(&format!("{folder}/people.ndjson")), people);
        } else {
            assert!(bench.run("export", &store, &["--to", &folder]).succeeded);
        }
        let again = bench.file_store();
        bench.import(&again, &["--from", &folder]);
        assert_eq!(bench.all(&again), whole);
        kill_within(
            bench.command("export", &store, &["--resource", "people", "--to", "people.ndjson"]),
            time,
        );
        let found = bench.read("people.ndjson");
        assert!(found == before || found == people, "{} bytes", found.len());
        before = found;
    }
    assert!(bench.run("export", &store, &["--resource", "people", "--to", "people.ndjson"]).succeeded);
    assert_eq!(bench.read("people.ndjson"), people);
    assert!(!bench.path("people.ndjson.partial").exists());
}
