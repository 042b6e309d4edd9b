//! Documents meant to exhaust the server: each ends within a second in little memory, while others are served.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Client, Process, Reply};

const MEMORY: u64 = 64 << 20;
/// Far more than any of it takes: a busy machine is no reason to fail, and what grows without bounds takes minutes.
const PATIENCE: Duration = Duration::from_secs(10);

fn nested(depth: usize) -> String {
    let mut text = "{ getAllUsers ".to_owned();
    for _ in 0..depth {
        text += "{ orders { user ";
    }
    text + "{ id }" + &" } }".repeat(depth) + " }"
}

fn aliases(count: usize) -> String {
    let mut text = "{".to_owned();
    for number in 0..count {
        let _ = write!(text, " a{number}: getUserById(id: 1) {{ id }}");
    }
    text + " }"
}

/// Each fragment spreads the next twice: 2^40 fields if anyone counted them one by one.
fn doubling() -> String {
    let mut text = "{ getUserById(id: 1) { ...f0 } }".to_owned();
    for number in 0..40 {
        let next = number + 1;
        let _ = write!(text, " fragment f{number} on User {{ ...f{next} ...f{next} }}");
    }
    text + " fragment f40 on User { id }"
}

/// A fragment that contains itself, in lists that are too dear: nothing is validated before its cost is known.
fn endless() -> String {
    let fragment = "fragment F on User { orders { user { orders { user { name ...F } } } } }";
    format!("{{ getAllUsers {{ ...F }} }} {fragment}")
}

/// Fields with the same key again and again, which a naive overlap check compares pairwise.
fn overlapping() -> String {
    format!("{{ getUserById(id: 1) {{ {} }} }}", "id ".repeat(4_000))
}

fn lists_in_lists() -> String {
    format!("{{ products(orderBy: {}\"name\"{}) {{ id }} }}", "[".repeat(2_000), "]".repeat(2_000))
}

fn deep_variables() -> String {
    let value = "[".repeat(100_000) + &"]".repeat(100_000);
    format!(
        r#"{{"query":"query($o: [String!]) {{ products(orderBy: $o) {{ id }} }}","variables":{{"o":{value}}}}}"#
    )
}

fn body(query: &str) -> String {
    serde_json::json!({ "query": query }).to_string()
}

fn post(client: &mut Client, body: &str) -> Reply {
    client.send("POST", "/graphql", &[("Content-Type", "application/json")], body.as_bytes())
}

#[test]
fn documents_cost_little_and_block_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    // The body limit is raised, so that large documents reach the parser.
    let process =
        Process::start(folder.path(), &["serve", "--database", "memory:", "--limit-body", "32 MiB"]);
    let before = process.peak_memory();
    let stop = AtomicBool::new(false);
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = process.client();
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let answer = client.graphql("{ getUserById(id: 1) { id } }");
                assert_eq!(answer["data"]["getUserById"]["id"], "1");
                assert!(begin.elapsed() < PATIENCE, "a neighbour waited {:?}", begin.elapsed());
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
        let hostile = [
            ("200 deep", body(&nested(100))),
            ("10,000 aliases", body(&aliases(10_000))),
            ("10 MB of fields", body(&format!("{{ {} }}", "a ".repeat(5 << 20)))),
            ("10 MB of comment", body(&format!("#{}\n{{ __typename }}", "x".repeat(10 << 20)))),
            (
                "10 MB in one string",
                body(&format!("{{ getUserById(id: \"{}\") {{ id }} }}", "1".repeat(10 << 20))),
            ),
            ("doubling fragments", body(&doubling())),
            ("a fragment inside itself", body(&endless())),
            ("overlapping fields", body(&overlapping())),
            ("lists in lists", body(&lists_in_lists())),
            ("lists in lists in variables", deep_variables()),
            ("deep braces", body(&"{a".repeat(50_000))),
        ];
        // Several rounds, so that the neighbour meets each of them more than once.
        for (name, body) in hostile.iter().cycle().take(4 * hostile.len()) {
            let mut client = process.client();
            let begin = Instant::now();
            let reply = post(&mut client, body);
            let took = begin.elapsed();
            eprintln!("{name}: {} in {took:?}, {} bytes", reply.status, reply.body.len());
            assert!(matches!(reply.status, 200 | 400), "{name}: {}", reply.status);
            assert!(took < PATIENCE, "{name} took {took:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(served.load(Ordering::Relaxed) > 20, "others were served");
    let grown = process.peak_memory() - before;
    eprintln!("memory grew by {} KiB", grown >> 10);
    assert!(grown < MEMORY, "memory grew by {} KiB", grown >> 10);
}
