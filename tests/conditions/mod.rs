//! Conditions, orders and aggregates of generated requests: what the server answers is what an interpreter says that
//! shares no code with it, on both stores, in GraphQL and in REST. Conditions are those of subscriptions, too.
//!
//! `schema` and `rows` make an application, `tree` and `requests` what is asked of it, `graphql_text` and `rest_text` how
//! it is spelt, `interpreter` and `groups` what must be answered.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test that meets what it does not know panics")]

mod changes;
mod exact;
mod graphql_text;
mod groups;
mod interpreter;
mod letters;
mod paths;
mod requests;
mod rest_text;
mod rows;
mod schema;
mod tree;
mod values;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation, Setting, SettingLayers};

use self::interpreter::PlainWorld;
use self::requests::PlainRequest;
use self::rows::PlainData;
use self::schema::PlainSchema;
use self::tree::TreeMaker;
use crate::power::chance::Chance;
use crate::support::{Client, Server, is_long, postgres};

/// The requests that one application is asked.
const REQUESTS: usize = 50;

/// A server on one of the stores.
struct AskedServer {
    store: &'static str,
    client: Client,
    server: Server,
}

#[test]
fn answers_are_those_of_the_interpreter() {
    let seeds = seeds();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(try_application(*seed));
            if !failures.is_empty() {
                break;
            }
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// One for each application: the same at each `./test`, others at each `./test --long`.
fn seeds() -> Vec<u64> {
    if let Ok(seed) = std::env::var("CONDITIONS_SEED") {
        return vec![seed.parse().expect("CONDITIONS_SEED is a number")];
    }
    match is_long() {
        false => (1..=500 / REQUESTS as u64).collect(),
        true => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
            (0..10_000 / REQUESTS as u64).map(|number| now * 1000 + number).collect()
        }
    }
}

/// Everything that is wrong with the answers of one application.
fn try_application(seed: u64) -> Vec<String> {
    let mut chance = Chance::new(seed);
    let schema = PlainSchema::random(&mut chance);
    let data = PlainData::random(&mut chance, &schema);
    let world = PlainWorld { schema: &schema, data: &data };
    let folder = tempfile::tempdir().unwrap();
    let mut servers = serve(&schema, folder.path());
    let written = servers.iter_mut().try_for_each(|server| data.write(&schema, &mut server.client));
    let mut maker = TreeMaker { schema: &schema, chance };
    let mut failures: Vec<String> = written.err().into_iter().collect();
    for _ in 0..if failures.is_empty() { REQUESTS } else { 0 } {
        let request = maker.request();
        let with_variables = maker.chance.percent(50);
        if let Some(failure) = failure(world, &mut servers, &request, with_variables) {
            failures.push(smallest_failure(world, &mut servers, request, with_variables, failure));
        }
        if failures.len() == 3 {
            break;
        }
    }
    let again = format!("CONDITIONS_SEED={seed} cargo test --test tests conditions");
    failures.iter().map(|failure| format!("{failure}\nAgain: {again}\n{}", schema.sdl())).collect()
}

fn serve(schema: &PlainSchema, folder: &Path) -> [AskedServer; 2] {
    let app = folder.join("app");
    std::fs::create_dir_all(app.join("graphql")).unwrap();
    std::fs::write(app.join("graphql/schema.graphqls"), schema.sdl()).unwrap();
    let file = ("SQLite", "sqlite:".to_owned());
    [file, ("PostgreSQL", postgres::database())].map(|(store, database)| {
        let named = |name: &str| Setting::find(name).unwrap();
        let flags = vec![
            (named("database"), database),
            (named("data"), folder.join("data").display().to_string()),
            (named("time-zone"), schema.zone.to_owned()),
            // Both servers take turns: where the machine has much else to do, one of them waits for long.
            (named("limit-header-timeout"), "10m".to_owned()),
            (named("limit-idle-timeout"), "10m".to_owned()),
        ];
        let layers = SettingLayers { flags, variables: Vec::new(), file: &[], folder: Path::new("") };
        let config: Config = layers.resolve().unwrap().config;
        assert!(!matches!(config.database, DatabaseLocation::Memory));
        let server = Server::start(Trefoil::folder(app.clone()), config);
        AskedServer { store, client: Client::of(&server), server }
    })
}

/// What is wrong with the answers to a request, if anything is.
fn failure(
    world: PlainWorld<'_>,
    servers: &mut [AskedServer],
    request: &PlainRequest,
    with_variables: bool,
) -> Option<String> {
    let expected = request.expected(world);
    let path = request.rest(world);
    let document = request.graphql(world, with_variables);
    let mut wrong = String::new();
    for AskedServer { store, client, server } in servers {
        if let Some((type_name, conditions, keys)) = request.subscription(world) {
            let matching = changes::matching_keys(server, type_name, &conditions);
            if matching.as_ref() != Ok(&keys) {
                wrong +=
                    &format!("\n{store}, subscription: {matching:?} instead of {keys:?}\n  for {conditions}");
            }
        }
        if let Some(path) = &path {
            let answer = answered(client, "GET", path, b"");
            if !request.rest_rows(world, &answer).is_some_and(|rows| are_same(&rows, &expected)) {
                wrong += &format!("\n{store}, REST: {answer}\n  for {path}");
            }
        }
        let Some(document) = &document else { continue };
        let body = json!({ "query": document.text, "variables": document.variables });
        let answer = answered(client, "POST", "/graphql", body.to_string().as_bytes());
        if !request.graphql_rows(world, &answer).is_some_and(|rows| are_same(&rows, &expected)) {
            wrong += &format!("\n{store}, GraphQL: {answer}\n  for {} {}", document.text, document.variables);
        }
    }
    let expected = Value::from_iter(expected);
    (!wrong.is_empty()).then(|| format!("Expected {expected}{wrong}\n{request:?}"))
}

/// The JSON of an answer; a text for what is none, so that the seed is told.
fn answered(client: &mut Client, method: &str, path: &str, body: &[u8]) -> Value {
    let headers = [("content-type", "application/json"), ("accept", "application/json")];
    match client.ask(method, path, &headers, body) {
        Ok(reply) => serde_json::from_slice(&reply.body).unwrap_or_else(|_| reply.text().into()),
        Err(error) => error.to_string().into(),
    }
}

/// The failure of the smallest request within this one that still fails.
fn smallest_failure(
    world: PlainWorld<'_>,
    servers: &mut [AskedServer],
    mut request: PlainRequest,
    with_variables: bool,
    mut known: String,
) -> String {
    for _ in 0..100 {
        let smaller = request.smaller().into_iter().find_map(|smaller| {
            let failure = failure(world, servers, &smaller, with_variables)?;
            Some((smaller, failure))
        });
        let Some((smaller, failure)) = smaller else { break };
        (request, known) = (smaller, failure);
    }
    known
}

fn are_same(left: &[Vec<Value>], right: &[Vec<Value>]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| are_same_cells(left, right))
}

/// Numbers are compared by value: `1` is `1.0`.
fn are_same_cells(left: &[Value], right: &[Value]) -> bool {
    let same = |(left, right): (&Value, &Value)| match (left, right) {
        (Value::Array(left), Value::Array(right)) => are_same_cells(left, right),
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        _ => left == right,
    };
    left.len() == right.len() && left.iter().zip(right).all(same)
}
