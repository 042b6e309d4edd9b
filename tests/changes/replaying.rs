//! Resuming: from any event id, while others write, exactly the missing events arrive, in order and once.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value as Json;
use trefoil_config::{Config, ServerLimits};
use trefoil_sql::SqliteOptions;

use super::{On, Stage, both, next};
use crate::support::is_long;

both! {
    reconnecting_subscribers_miss_nothing,
}

const FLAT: &str = "subscription { userCreated { name } }";
const DEEP: &str = "subscription { userCreated { name orders { item } } }";
const SOME: &str = "subscription { userCreated(age: 1) { name } }";

fn id(event: &Json) -> String {
    event["extensions"]["eventId"].as_str().unwrap().to_owned()
}

fn name(event: &Json) -> String {
    event["data"]["userCreated"]["name"].as_str().unwrap().to_owned()
}

/// Reads up to the event with this name.
async fn read_to(stage: &Stage, query: &str, last: &str, end: &str) -> Vec<(String, String)> {
    let mut subscription = stage.resume(query, last).await;
    let mut events = Vec::new();
    loop {
        let event = next(&mut subscription).await;
        events.push((id(&event), name(&event)));
        if name(&event) == end {
            return events;
        }
    }
}

/// Writers of all kinds at once; each numbers its own.
async fn write(stage: &Arc<Stage>, writers: usize, each: usize) {
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let stage = stage.clone();
        tasks.push(tokio::spawn(async move {
            let outsider = stage.outsider().await;
            for number in 0..each {
                let name = format!("{writer} {number}");
                let age = number % 3;
                if writer % 2 == 0 {
                    let answer = stage
                        .run(&format!("mutation {{ createUser(name: \"{name}\", age: {age}) {{ id }} }}"))
                        .await;
                    assert!(answer["errors"].is_null(), "{answer}");
                } else {
                    let insert = format!("INSERT INTO \"users\" (name, age) VALUES ('{name}', {age})");
                    outsider.run(&insert).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

async fn from_any_place(on: On, starts: Vec<(usize, u8)>, writers: usize, each: usize, cache: usize) {
    let limits = ServerLimits { event_cache: cache, ..ServerLimits::default() };
    let stage =
        Arc::new(Stage::with(on, SqliteOptions::default(), Config { limits, ..Config::default() }).await);
    let begin = stage.subscribe(FLAT).await.last_event_id().to_string();
    let live = tokio::spawn({
        let (stage, begin) = (stage.clone(), begin.clone());
        async move { read_to(&stage, FLAT, &begin, "end").await }
    });
    write(&stage, writers, each).await;
    stage.run(r#"mutation { createUser(name: "end", age: 1) { id } }"#).await;
    let all = live.await.unwrap();

    assert_eq!(all.len(), writers * each + 1, "each once");
    let mut last: HashMap<&str, i64> = HashMap::new();
    for (_, name) in &all[..all.len() - 1] {
        let (writer, number) = name.split_once(' ').unwrap();
        let before = last.insert(writer, number.parse().unwrap());
        assert_eq!(last[writer], before.map_or(0, |before| before + 1), "in the order of each writer");
    }
    let aged =
        |name: &str| name == "end" || name.split(' ').nth(1).unwrap().parse::<usize>().unwrap() % 3 == 1;
    for (start, kind) in starts {
        let start = start % all.len();
        let last = if start == 0 { begin.clone() } else { all[start - 1].0.clone() };
        let rest = &all[start..];
        let (query, wanted): (_, Vec<_>) = match kind % 3 {
            0 => (FLAT, rest.to_vec()),
            1 => (DEEP, rest.to_vec()),
            _ => (SOME, rest.iter().filter(|(_, name)| aged(name)).cloned().collect()),
        };
        assert_eq!(read_to(&stage, query, &last, "end").await, wanted, "from {start} with {query}");
    }
}

#[test]
fn resume_from_any_event_id_is_exactly_once() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let starts = proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12);
    let cache = prop_oneof![Just(0usize), Just(20_000), Just(16 << 20)];
    // The macro `proptest!` would let PROPTEST_CASES decide, and each of these fills two databases.
    let cases = if is_long() { 256 } else { 8 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let run = TestRunner::new(config).run(&(starts, 1usize..6, 1usize..70, cache), |values| {
        let (starts, writers, each, cache) = values;
        for on in [On::Sqlite, On::Postgres] {
            runtime.block_on(from_any_place(on, starts.clone(), writers, each, cache));
        }
        Ok(())
    });
    run.unwrap();
}

/// Clients disconnect and resume from their last event id while others write.
async fn reconnecting_subscribers_miss_nothing(on: On) {
    let stage = Arc::new(Stage::new(on).await);
    let begin = stage.subscribe(FLAT).await.last_event_id().to_string();
    let mut readers = Vec::new();
    for reader in 0..8usize {
        let (stage, mut last) = (stage.clone(), begin.clone());
        readers.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let mut subscription = stage.resume(if reader % 2 == 0 { FLAT } else { DEEP }, &last).await;
                for _ in 0..=(seen.len() * 7 + reader) % 13 {
                    let event = next(&mut subscription).await;
                    last = id(&event);
                    seen.push(name(&event));
                    if seen.last().is_some_and(|name| name == "end") {
                        return seen;
                    }
                }
            }
        }));
    }
    write(&stage, 4, 60).await;
    stage.create("end").await;
    let mut all = Vec::new();
    for reader in readers {
        all.push(reader.await.unwrap());
    }
    assert_eq!(all[0].len(), 241);
    assert!(all.iter().all(|seen| *seen == all[0]), "everyone saw the same, in the same order");
}
