//! Nested writes, batches and atomic mutations are whole: killed at any moment, or in each other's way, they happen or they do not.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::postgres::{database, sql};
use crate::support::{Client, Process, is_long};

const SCHEMA: &str = r#"
    type Invoice { id: ID! number: String! @unique lines: [Line] version: Int @version }
    type Line { id: ID! invoice: Invoice! @reference(onDelete: CASCADE) text: String! }
"#;

/// The lines of an invoice that one nested write makes, and of one that a batch makes.
const NESTED_LINES: usize = 8;
const BATCH_LINES: usize = 5;

fn application() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("graphql")).unwrap();
    std::fs::write(folder.path().join("graphql/invoices.graphqls"), SCHEMA).unwrap();
    folder
}

fn serve(folder: &Path, store: &str) -> Process {
    Process::start(
        folder,
        &["serve", ".", "--database", store, "--limit-max-page-size", "100000", "--limit-cost", "100000000"],
    )
}

/// Sends a write; whether it was acknowledged.
fn is_acknowledged(client: &mut Client, path: &str, body: &Value) -> bool {
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
    let reply = client.ask("POST", path, &headers, body.to_string().as_bytes());
    reply.is_ok_and(|reply| reply.status == 200 && reply.json().get("errors").is_none())
}

fn nested_write(number: &str) -> Value {
    let lines: Vec<Value> = (0..NESTED_LINES).map(|line| json!({ "text": line.to_string() })).collect();
    let query = "mutation($input: InvoiceCreate!) { createInvoice(input: $input) { id } }";
    json!({ "query": query, "variables": { "input": { "number": number, "lines": { "create": lines } } } })
}

fn batch(number: &str) -> Value {
    let line = |line: usize| json!({ "method": "POST", "path": "/lines", "body": { "invoiceId": "$0.id", "text": line.to_string() } });
    let first = json!({ "method": "POST", "path": "/invoices", "body": { "number": number } });
    std::iter::once(first).chain((0..BATCH_LINES).map(line)).collect()
}

/// Two invoices, the first `p…` and the last `q…`, with writes that take time between them.
fn atomic_mutation(number: &str) -> Value {
    let lines: Vec<String> = (0..NESTED_LINES).map(|line| format!("{{text: \"{line}\"}}")).collect();
    let lines = format!("lines: {{create: [{}]}}", lines.join(", "));
    let create = |letter: char| {
        format!("{letter}: createInvoice(input: {{number: \"{letter}{number}\", {lines}}}) {{ id }}")
    };
    let (first, last) = (create('p'), create('q'));
    let between = (0..10).map(|i| format!("c{i}: deleteLines(where: {{text: \"none {i}\"}})"));
    let between: Vec<String> = between.collect();
    json!({ "query": format!("mutation @atomic {{ {first} {} {last} }}", between.join(" ")) })
}

/// Writes until the server is gone; the numbers of the invoices that were acknowledged.
fn write_until_killed(address: std::net::SocketAddr, name: &str, acknowledged: &Mutex<Vec<String>>) {
    let Ok(mut client) = Client::connect(address) else { return };
    for count in 0.. {
        let number = format!("{name}-{count}");
        let (kind, path, body) = match count % 3 {
            0 => ('n', "/graphql", nested_write(&format!("n{number}"))),
            1 => ('b', "/_/batch", batch(&format!("b{number}"))),
            _ => ('p', "/graphql", atomic_mutation(&number)),
        };
        if !is_acknowledged(&mut client, path, &body) {
            return;
        }
        acknowledged.lock().unwrap().push(format!("{kind}{number}"));
    }
}

/// Every invoice has all of its lines, and none that was acknowledged is missing; the number of invoices and lines.
fn check_whole(process: &Process, acknowledged: &[String]) -> (usize, usize) {
    let answer = process.client().graphql("{ invoices(first: 100000) { number lines { id } } }");
    let invoices = answer["data"]["invoices"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let mut lines = 0;
    let mut numbers = std::collections::HashSet::new();
    for invoice in invoices {
        let number = invoice["number"].as_str().unwrap();
        let found = invoice["lines"].as_array().unwrap().len();
        let expected = if number.starts_with('b') { BATCH_LINES } else { NESTED_LINES };
        assert_eq!(found, expected, "{number} is not whole");
        lines += found;
        numbers.insert(number.to_owned());
    }
    let others = |from: char, to: char| {
        let of_one = numbers.iter().filter_map(move |number| number.strip_prefix(from));
        of_one.map(move |number| format!("{to}{number}"))
    };
    for number in others('p', 'q').chain(others('q', 'p')) {
        assert!(numbers.contains(&number), "an atomic mutation is half done: {number} is missing");
    }
    for number in acknowledged {
        assert!(numbers.contains(number), "{number} was acknowledged and is gone");
    }
    (invoices.len(), lines)
}

fn killed_writes_are_whole(store: &str, count_events: impl Fn(&Path) -> (usize, usize)) {
    let folder = application();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let rounds = if is_long() { 30 } else { 4 };
    for round in 0..rounds {
        let process = serve(folder.path(), store);
        check_whole(&process, &acknowledged.lock().unwrap());
        let address = process.address;
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let acknowledged = acknowledged.clone();
                std::thread::spawn(move || {
                    write_until_killed(address, &format!("{round}-{writer}"), &acknowledged);
                })
            })
            .collect();
        let wait = 100 + uuid::Uuid::new_v4().as_u128() % 400;
        std::thread::sleep(Duration::from_millis(u64::try_from(wait).unwrap()));
        process.signal("KILL");
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    }
    let process = serve(folder.path(), store);
    let acknowledged = acknowledged.lock().unwrap();
    assert!(!acknowledged.is_empty(), "nothing was written before the kills");
    let (invoices, lines) = check_whole(&process, &acknowledged);
    // Numbers are given to the last changes after the start.
    let mut events = count_events(folder.path());
    for _ in 0..50 {
        if events == (invoices, lines) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        events = count_events(folder.path());
    }
    assert_eq!(events, (invoices, lines), "there is an event for each record, and for nothing else");
}

#[test]
fn killed_writes_are_whole_on_sqlite() {
    killed_writes_are_whole("sqlite:", |folder| {
        let connection = rusqlite::Connection::open(folder.join("trefoil-data/trefoil.db")).unwrap();
        let count = |resource: &str| {
            let sql = format!("SELECT count(*) FROM trefoil_changes WHERE resource = '{resource}'");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize
        };
        (count("Invoice"), count("Line"))
    });
}

#[test]
fn killed_writes_are_whole_on_postgres() {
    let url = database();
    killed_writes_are_whole(&url, |_| {
        let count = |resource: &str| {
            let tables =
                "(SELECT resource FROM trefoil_changes UNION ALL SELECT resource FROM trefoil_unnumbered)";
            let found =
                sql(&url, &format!("SELECT count(*) FROM {tables} AS c WHERE resource = '{resource}'"));
            found.parse().unwrap()
        };
        (count("Invoice"), count("Line"))
    });
}

/// Two clients that change the same two records in opposite order: each change is made to both records or to none.
#[test]
fn opposite_writes_wait_or_are_refused_whole() {
    let (folder, url) = (application(), database());
    let process = serve(folder.path(), &url);
    let mut client = process.client();
    client.graphql(r#"mutation { a: createInvoice(input: {number: "1"}) { id } b: createInvoice(input: {number: "2"}) { id } }"#);
    let done = Arc::new(AtomicUsize::new(0));
    let rounds = if is_long() { 100 } else { 8 };
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (mut client, done) = (process.client(), done.clone());
            std::thread::spawn(move || {
                let order = if writer % 2 == 0 { [1, 2] } else { [2, 1] };
                for round in 0..rounds {
                    let number = |id: usize| format!("{id}/{writer}/{round}");
                    let (path, body) = if writer < 2 {
                        let field = |id: usize| format!("u{id}: updateInvoice(id: {id}, input: {{number: \"{}\"}}) {{ id }}", number(id));
                        let query = format!("mutation @atomic {{ {} {} }}", field(order[0]), field(order[1]));
                        ("/graphql", json!({ "query": query }))
                    } else {
                        let item = |id: usize| json!({ "method": "PATCH", "path": format!("/invoices/{id}"), "body": { "number": number(id) } });
                        ("/_/batch", json!([item(order[0]), item(order[1])]))
                    };
                    let headers = [("Content-Type", "application/json"), ("Accept", "application/json")];
                    let reply = client.send("POST", path, &headers, body.to_string().as_bytes());
                    match reply.status {
                        200 if reply.json().get("errors").is_none() => done.fetch_add(1, Ordering::Relaxed),
                        503 => {
                            assert!(reply.header("retry-after").is_some(), "{}", reply.text());
                            0
                        }
                        other => panic!("{other} {}", reply.text()),
                    };
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let versions = process.client().graphql("{ invoices { version } }");
    let expected = 1 + done.load(Ordering::Relaxed);
    assert_eq!(versions["data"]["invoices"], json!([{ "version": expected }, { "version": expected }]));
    assert!(expected > rounds, "most writes succeed: {expected}");
}
