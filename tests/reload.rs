//! A schema that changes again and again under requests of every kind: none fails but to try again, and none sees half a change.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Process, postgres};

const RELOADS: usize = 6;
const JSON: [(&str, &str); 2] = [("Accept", "application/json"), ("Content-Type", "application/json")];

/// The same records each time; field and table have other names.
fn schema(number: usize) -> String {
    let renamed = |name: &str| match number.checked_sub(1) {
        Some(before) => format!("@renamedFrom(name: \"{name}{before}\")"),
        None => String::new(),
    };
    format!(
        "type Book{number} @resource(path: \"books\") {} {{ id: ID!  title{number}: String! {} }}\n\
         type Query {{ book{number}s: [Book{number}!]!  book{number}(id: ID!): Book{number} }}\n\
         type Mutation {{ createBook{number}(title{number}: String!): Book{number} }}\n",
        renamed("Book"),
        renamed("title"),
    )
}

fn write(folder: &Path, number: usize) {
    fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
    fs::write(folder.join("app/graphql/schema.graphqls"), schema(number)).expect("written");
}

/// Which schema an answer is of, by the number behind `title`.
fn number_in(text: &str) -> usize {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut numbers = text.split("title").skip(1).filter_map(|rest| digits(rest).parse().ok());
    numbers.next().unwrap_or_else(|| panic!("no title with a number in {text}"))
}

/// One who asks, of the newest schema that anyone has seen; whether it is still served only the answer tells.
struct Asking<'a> {
    client: Client,
    newest: &'a AtomicUsize,
}

impl Asking<'_> {
    /// A document that fits one schema alone is executed under it, or does not fit; nothing else may come of it.
    fn graphql(&mut self, write: impl Fn(usize) -> String) {
        let newest = self.newest.load(Ordering::Relaxed);
        let answer = self.client.graphql(&write(newest));
        match answer.get("errors").and_then(Value::as_array) {
            None => assert!(answer["data"].is_object(), "{answer}"),
            Some(errors) => {
                for error in errors {
                    let code = error["extensions"]["code"].as_str().unwrap_or_default();
                    assert!(["GRAPHQL_VALIDATION_FAILED", "UNAVAILABLE"].contains(&code), "{answer}");
                }
            }
        }
    }

    fn get(&mut self, path: &str, accept: &str) -> String {
        loop {
            let reply = self.client.send("GET", path, &[("Accept", accept)], b"");
            // A request that a reload overtakes is to try again.
            if reply.status != 503 {
                assert_eq!(reply.status, 200, "{path} {accept}: {}", reply.text());
                return reply.text();
            }
        }
    }

    fn create(&mut self) {
        let newest = self.newest.load(Ordering::Relaxed);
        let body = json!({ format!("title{newest}"): "posted" }).to_string();
        let reply = self.client.send("POST", "/books", &JSON, body.as_bytes());
        assert!([201, 400, 422, 503].contains(&reply.status), "{}: {}", reply.status, reply.text());
    }
}

/// Every face in turn: once one has shown a schema, no other shows an older one.
fn compare(asking: &mut Asking<'_>) -> usize {
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(number_in(&asking.get("/books/1", "application/json")));
        let fields = asking.client.graphql("{ __schema { types { fields { name } } } }");
        seen.push(number_in(&fields.to_string()));
        seen.push(number_in(&asking.get("/books/1/edit", "text/html")));
        seen.push(number_in(&asking.get("/graphql/schema.graphqls", "*/*")));
        seen.push(number_in(&asking.get("/openapi.json", "application/json")));
    }
    assert!(seen.is_sorted(), "an older schema after a newer one: {seen:?}");
    let last = seen.last().copied().unwrap_or_default();
    asking.newest.fetch_max(last, Ordering::Relaxed);
    last
}

fn no_request_fails(folder: &Path, arguments: &[&str]) {
    write(folder, 0);
    // The disk of a busy machine may hold up a commit for longer than the usual 30 seconds.
    let process = Process::start(
        folder,
        &[&["serve", "app", "--watch", "--limit-request-timeout", "2m"], arguments].concat(),
    );
    let first = process.client().graphql("mutation { createBook0(title0: \"first\") { id } }");
    assert_eq!(first["data"]["createBook0"]["id"], "1", "{first}");
    let (newest, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let until_the_end = |work: &(dyn Fn(&mut Asking<'_>) + Sync)| {
        let mut asking = Asking { client: process.client(), newest: &newest };
        let mut done = 0;
        while !is_over.load(Ordering::Relaxed) {
            work(&mut asking);
            done += 1;
        }
        assert!(done > RELOADS, "requests were made while the schema changed");
    };
    thread::scope(|scope| {
        let works: [&(dyn Fn(&mut Asking<'_>) + Sync); 7] = [
            &|asking| asking.graphql(|n| format!("{{ book{n}s {{ id title{n} }} }}")),
            &|asking| asking.graphql(|n| format!("{{ book{n}(id: 1) {{ title{n} }} }}")),
            &|asking| {
                asking
                    .graphql(|n| format!("mutation {{ createBook{n}(title{n}: \"made\") {{ title{n} }} }}"));
            },
            &|asking| drop(asking.get("/books/1", "application/json")),
            &|asking| drop(asking.get("/books", "text/html")),
            &|asking| asking.create(),
            &|asking| {
                compare(asking);
            },
        ];
        let ends = StopWhenDropped(&is_over);
        let working = works.map(|work| scope.spawn(move || until_the_end(work)));
        for number in 1..=RELOADS {
            write(folder, number);
            wait_for_reloads(&process, number);
            assert!(working.iter().all(|one| !one.is_finished()), "a request failed, see above");
        }
        drop(ends);
    });
    let mut asking = Asking { client: process.client(), newest: &newest };
    assert_eq!(compare(&mut asking), RELOADS);
    assert!(!process.log().contains("unexpected error"), "{}", process.log());
}

/// Also when a check fails: the others must come to their end.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn wait_for_reloads(process: &Process, number: usize) {
    let begin = Instant::now();
    while process.log().matches("reloaded the schema").count() < number {
        assert!(begin.elapsed() < Duration::from_secs(120), "reload {number}:\n{}", process.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn renames_fail_no_request_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    no_request_fails(folder.path(), &["--data", "data"]);
}

#[test]
fn renames_fail_no_request_on_postgres() {
    let folder = tempfile::tempdir().expect("a folder");
    no_request_fails(folder.path(), &["--database", &postgres::patient_database()]);
}

/// The only thread for requests must not run the migration itself: it would answer nothing until all rows are rewritten.
fn requests_are_answered_during(folder: &Path, arguments: &[&str], fill: impl FnOnce()) {
    let write = |field: &str| {
        let schema = format!(
            "type Row {{ id: ID! {field} }} type Query {{ rows: [Row!]! }} type Mutation {{ deleteRow(id: ID!): Boolean }}"
        );
        fs::create_dir_all(folder.join("app/graphql")).expect("a folder");
        fs::write(folder.join("app/graphql/schema.graphqls"), schema).expect("written");
    };
    write("title: String");
    let arguments = [&["serve", "app", "--watch"], arguments].concat();
    let process = Process::start_with(folder, &arguments, &[("TOKIO_WORKER_THREADS", "1")]);
    fill();
    let mut client = process.client();
    let mut ask = || {
        let begin = Instant::now();
        assert_eq!(client.send("GET", "/health/live", &[], b"").status, 200);
        begin.elapsed()
    };
    let usual = (0..20).map(|_| ask()).max().expect("some");
    write("name: String @renamedFrom(name: \"title\") @unique");
    let begin = Instant::now();
    let mut longest = Duration::ZERO;
    while !process.log().contains("reloaded the schema") {
        longest = longest.max(ask());
        assert!(begin.elapsed() < Duration::from_secs(120), "{}", process.log());
        thread::sleep(Duration::from_millis(2));
    }
    let bound = (usual * 100).min(begin.elapsed() / 3).max(Duration::from_millis(100));
    assert!(longest < bound, "{longest:?}, usually {usual:?}; reloaded in {:?}", begin.elapsed());
}

const MIGRATED_ROWS: usize = 300_000;

#[test]
fn migration_leaves_threads_to_requests_on_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    requests_are_answered_during(folder.path(), &["--data", "data"], || {
        let database = rusqlite::Connection::open(folder.path().join("data/trefoil.db")).expect("a file");
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                   INSERT INTO rows (title) SELECT 'title ' || i FROM n";
        database.execute(sql, [MIGRATED_ROWS as i64]).expect("written");
    });
}

#[test]
fn migration_leaves_threads_to_requests_on_postgres() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = postgres::patient_database();
    requests_are_answered_during(folder.path(), &["--database", &url], || {
        let rows = format!("SELECT 'title ' || i FROM generate_series(1, {MIGRATED_ROWS}) i");
        postgres::sql(&url, &format!("INSERT INTO rows (title) {rows}"));
    });
}
