//! Serves the application of a case file and sends its requests, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, Setting, SettingLayers};

use super::apart::Apart;
use super::file::{CaseFile, CaseStep};
use super::judge::judge;
use crate::support::{Client, Reply, Server};

/// Where the records of a case are.
pub enum CaseStore {
    Sqlite,
    /// A database by its URL.
    Postgres(String),
}

/// Who serves a case: this process, or one of its own where more is done than asking.
enum CaseServer {
    Here(Box<Server>),
    Apart(Box<Apart>),
}

/// What came of one step: nothing of a deed that went well.
pub enum StepResult {
    Done,
    Failed(String),
    Answered(Reply),
}

/// Takes all steps of a case; one result each.
pub fn take_steps(case: &CaseFile, store: &CaseStore) -> Vec<StepResult> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = serve(case, folder.path(), store);
    let mut client = server.client();
    let mut results = Vec::new();
    let (mut etag, mut event) = (String::new(), String::new());
    for step in &case.steps {
        if let Some(deed) = step.request.strip_prefix("! ") {
            results.push(server.carry_out(deed).err().map_or(StepResult::Done, StepResult::Failed));
            continue;
        }
        let reply = send(step, &mut client, &[("{etag}", &etag), ("{event}", &event)]);
        etag = reply.header("etag").map_or(etag, str::to_owned);
        if reply.header("connection") == Some("close") {
            client = server.client();
        }
        if is_stream(&reply) {
            let ids = reply.text();
            event =
                ids.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default().to_owned();
            client = server.client();
        }
        results.push(StepResult::Answered(reply));
    }
    results
}

impl CaseServer {
    fn client(&self) -> Client {
        match self {
            CaseServer::Here(server) => Client::of(server),
            CaseServer::Apart(apart) => apart.process.client(),
        }
    }

    fn carry_out(&mut self, deed: &str) -> Result<(), String> {
        match self {
            CaseServer::Here(_) => panic!("`{deed}` to a server in this process"),
            CaseServer::Apart(apart) => apart.carry_out(deed),
        }
    }
}

fn serve(case: &CaseFile, folder: &Path, store: &CaseStore) -> CaseServer {
    let app = folder.join("app");
    if !case.schema.is_empty() {
        std::fs::create_dir_all(app.join("graphql")).expect("a folder");
        std::fs::write(app.join("graphql/schema.graphqls"), &case.schema).expect("a schema");
        std::fs::write(app.join("trefoil.toml"), &case.manifest).expect("a manifest");
    }
    if case.steps.iter().any(CaseStep::is_deed) {
        return CaseServer::Apart(Box::new(Apart::start(folder, store, &case.settings)));
    }
    let served = if case.schema.is_empty() { Trefoil::sample() } else { Trefoil::folder(app) };
    CaseServer::Here(Box::new(Server::start(served, config(case, store))))
}

/// The settings of a case as if they were flags.
fn config(case: &CaseFile, store: &CaseStore) -> Config {
    let named = |name: &str| Setting::find(name).unwrap_or_else(|| panic!("there is no setting `{name}`"));
    let database = match store {
        CaseStore::Sqlite => "memory:".to_owned(),
        CaseStore::Postgres(url) => url.clone(),
    };
    let mut flags = vec![(named("database"), database)];
    flags.extend(case.settings.iter().map(|(name, value)| (named(name), value.clone())));
    let layers = SettingLayers { flags, variables: Vec::new(), file: &[], folder: Path::new("") };
    layers.resolve().unwrap_or_else(|mistakes| panic!("{}", mistakes.join("\n"))).config
}

fn send(step: &CaseStep, client: &mut Client, known: &[(&str, &str)]) -> Reply {
    let (method, rest) = step.request.split_once(' ').unwrap_or((&step.request, ""));
    let fill =
        |value: &str| known.iter().fold(value.to_owned(), |value, (name, known)| value.replace(name, known));
    let filled: Vec<(&str, String)> =
        step.headers.iter().map(|(name, value)| (name.as_str(), fill(value))).collect();
    let mut headers: Vec<(&str, &str)> = filled.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let body = step.body.trim_end();
    if method != "graphql" {
        let begin = Instant::now();
        let late = || begin.elapsed() > Duration::from_secs(20);
        let enough = |reply: &Reply| is_stream(reply) && (judge(step, reply).is_ok() || late());
        return client.send_until(method, rest, &headers, body.as_bytes(), enough);
    }
    let variables: Value =
        if rest.is_empty() { json!({}) } else { serde_json::from_str(rest).expect("JSON") };
    headers.push(("content-type", "application/json"));
    if !headers.iter().any(|(name, _)| *name == "accept") {
        headers.push(("accept", "application/graphql-response+json"));
    }
    let body = json!({ "query": body, "variables": variables }).to_string();
    client.send("POST", "/graphql", &headers, body.as_bytes())
}

fn is_stream(reply: &Reply) -> bool {
    reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
}
