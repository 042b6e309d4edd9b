//! Runs `tests/cases/**/*.case`: requests and the answers they must get, added without Rust.
//!
//! A file is one server and the steps that talk to it, in order:
//!
//! ```text
//! # A comment. Without `schema` the sample is served.
//! schema
//!     type User { id: ID! name: String! }
//!     type Query { users: [User!]! }
//! set limits.depth 3
//! manifest
//!     [[list]]
//!     path = "/notes"
//!
//! > GET /graphql?query={users{id}}
//! accept: application/json
//! < 200
//! content-type: application/json*
//! {"data": {"users": []}}
//!
//! > graphql {"id": 1}
//! query($id: ID!) { user(id: $id) { name } }
//! < 200
//! {"data": {"user": null}}
//! ```
//!
//! Every file runs on SQLite and on PostgreSQL. A line `# sqlite only: REASON` keeps it from the latter, and `# row: NAME`
//! above a step says which row of `rows.txt` it shows.
//!
//! `{etag}` in a request's header is the last ETag that was answered, `{event}` the last id of an event. JSON is compared with
//! its key order. `*` in a text stands for anything, and the key `"*"` at the end of an object for any more keys. A stream
//! of events is read until it says what is expected.
//!
//! Beside the steps something can be done, and then the server is a process of its own, on a file or on PostgreSQL:
//!
//! ```text
//! ! outside DROP TABLE users      another program does this to the store
//! ! away                          nothing can be written to the store any more
//! ! prints Someone called         this line, and no other, was printed since the last such line
//! ! stop                          the server is told to end
//! ```

mod apart;
mod rows;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil::config::{Config, Database, PostgresUrl, RateLimit};

use self::apart::Apart;
use crate::support::{Client, Reply, Server, postgres};

/// Where the records of a case are.
enum Kept {
    Sqlite,
    /// A database by its URL.
    Postgres(String),
}

/// Who serves a case: this process, or one of its own where more is done than asking.
enum Host {
    Here(Server),
    Apart(Box<Apart>),
}

#[derive(Default)]
struct Case {
    schema: String,
    manifest: String,
    settings: Vec<(String, String)>,
    steps: Vec<Step>,
}

#[derive(Default)]
struct Step {
    line: usize,
    /// What follows `> `, or `! ` and a deed.
    request: String,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    expected_headers: Vec<(String, String)>,
    expected_body: String,
}

#[test]
fn every_case_gets_its_answers() {
    all("SQLite", |_| Some(Kept::Sqlite));
}

#[test]
fn every_case_gets_the_same_answers_on_postgresql() {
    all("PostgreSQL", |text| {
        let excused = text.lines().find_map(|line| line.strip_prefix("# sqlite only"));
        if let Some(reason) = excused {
            assert!(reason.strip_prefix(": ").is_some_and(|reason| reason.len() > 10), "no reason: {reason}");
            return None;
        }
        Some(Kept::Postgres(postgres::database()))
    });
}

/// Runs every file for whose text there is a store, several at once.
fn all(store: &str, kept: impl Fn(&str) -> Option<Kept> + Sync) {
    let files = files();
    assert!(files.len() >= 10, "{} cases found", files.len());
    let run = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a readable case");
        kept(&text).map_or(Vec::new(), |kept| run(file, &text, &kept))
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(4));
        let parts: Vec<_> =
            parts.map(|part| scope.spawn(|| part.iter().flat_map(run).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "on {store}:\n{}", failures.join("\n\n"));
}

fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), &mut files);
    files
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "case") {
            files.push(path);
        }
    }
}

/// What is wrong with the answers to one file.
fn run(file: &Path, text: &str, kept: &Kept) -> Vec<String> {
    let case = parse(file, text);
    assert!(!case.steps.is_empty(), "{} has no steps", file.display());
    let folder = tempfile::tempdir().expect("a folder");
    let mut host = serve(&case, folder.path(), kept);
    let mut client = host.client();
    let mut failures = Vec::new();
    let (mut etag, mut event) = (String::new(), String::new());
    for step in &case.steps {
        let place = format!("{}:{}", file.display(), step.line);
        if let Some(deed) = step.request.strip_prefix("! ") {
            failures.extend(host.carry_out(deed).err().map(|why| format!("{place}: {why}")));
            continue;
        }
        let reply = step.send(&mut client, &[("{etag}", &etag), ("{event}", &event)]);
        etag = reply.header("etag").map_or(etag, str::to_owned);
        if reply.header("connection") == Some("close") {
            client = host.client();
        }
        if let Err(why) = step.judge(&reply) {
            let answered = String::from_utf8_lossy(&reply.body);
            failures.push(format!("{place}: {why}\nanswered {} {answered}", reply.status));
        }
        if is_stream(&reply) {
            let ids = reply.text();
            event =
                ids.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default().to_owned();
            client = host.client();
        }
    }
    failures
}

impl Host {
    fn client(&self) -> Client {
        match self {
            Host::Here(server) => Client::of(server),
            Host::Apart(apart) => apart.process.client(),
        }
    }

    fn carry_out(&mut self, deed: &str) -> Result<(), String> {
        match self {
            Host::Here(_) => panic!("`{deed}` to a server in this process"),
            Host::Apart(apart) => apart.carry_out(deed),
        }
    }
}

fn parse(file: &Path, text: &str) -> Case {
    let mut case = Case::default();
    let (mut answering, mut in_manifest) = (false, false);
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        let deed = line.starts_with("! ").then_some(line);
        if let Some(request) = line.strip_prefix("> ").or(deed) {
            answering = false;
            case.steps.push(Step { line: number + 1, request: request.to_owned(), ..Step::default() });
        } else if let Some(step) = case.steps.last_mut() {
            match line.strip_prefix("< ") {
                Some(status) => {
                    answering = true;
                    step.status =
                        status.parse().unwrap_or_else(|_| panic!("{}:{}", file.display(), number + 1));
                }
                None => step.take(line, answering),
            }
        } else if let Some(setting) = line.strip_prefix("set ") {
            let (name, value) = setting.split_once(' ').expect("a setting and its value");
            case.settings.push((name.to_owned(), value.to_owned()));
        } else if let Some(line) = line.strip_prefix("    ") {
            let part = if in_manifest { &mut case.manifest } else { &mut case.schema };
            *part += &format!("{line}\n");
        } else if !line.is_empty() {
            in_manifest = line == "manifest";
            assert!(in_manifest || line == "schema", "{}:{}: {line}", file.display(), number + 1);
        }
    }
    case
}

fn serve(case: &Case, folder: &Path, kept: &Kept) -> Host {
    let app = folder.join("app");
    if !case.schema.is_empty() {
        std::fs::create_dir_all(app.join("graphql")).expect("a folder");
        std::fs::write(app.join("graphql/schema.graphqls"), &case.schema).expect("a schema");
        std::fs::write(app.join("trefoil.toml"), &case.manifest).expect("a manifest");
    }
    if case.steps.iter().any(|step| step.request.starts_with("! ")) {
        assert!(case.settings.is_empty(), "the settings of a process are those of its manifest");
        return Host::Apart(Box::new(Apart::start(folder, kept)));
    }
    let served = if case.schema.is_empty() { Trefoil::sample() } else { Trefoil::folder(app) };
    Host::Here(Server::start(served, config(case, kept)))
}

fn config(case: &Case, kept: &Kept) -> Config {
    let database = match kept {
        Kept::Sqlite => Database::Memory,
        Kept::Postgres(url) => Database::Postgres(PostgresUrl::read(url).expect("the URL of a database")),
    };
    let mut config = Config { database, ..Config::default() };
    for (name, value) in &case.settings {
        let number = || value.parse().expect("a number");
        match name.as_str() {
            "introspection" => config.introspection = value == "true",
            "cors-origins" => config.cors_origins = value.split(',').map(str::to_owned).collect(),
            "graphiql" => config.graphiql = value == "true",
            "limits.depth" => config.limits.depth = number(),
            "limits.tokens" => config.limits.tokens = number(),
            "limits.aliases" => config.limits.aliases = number(),
            "limits.conditions" => config.limits.conditions = number(),
            "limits.cost" => config.limits.cost = number(),
            "limits.body" => config.limits.body = number(),
            "limits.headers" => config.limits.headers = number(),
            "limits.request-timeout-ms" => {
                config.limits.request_timeout = Duration::from_millis(value.parse().expect("a number"));
            }
            "rate-limit-of-a-minute" => {
                let (requests, period) = (value.parse().expect("a number"), Duration::from_secs(60));
                config.rate_limit = Some(RateLimit { requests, period });
            }
            other => panic!("no case can set {other}"),
        }
    }
    config
}

impl Step {
    fn take(&mut self, line: &str, answering: bool) {
        let (headers, body) = match answering {
            false => (&mut self.headers, &mut self.body),
            true => (&mut self.expected_headers, &mut self.expected_body),
        };
        match header(line) {
            Some(header) if body.is_empty() => headers.push(header),
            _ => *body += &format!("{line}\n"),
        }
    }

    fn send(&self, client: &mut Client, known: &[(&str, &str)]) -> Reply {
        let (method, rest) = self.request.split_once(' ').unwrap_or((&self.request, ""));
        let fill = |value: &str| {
            known.iter().fold(value.to_owned(), |value, (name, known)| value.replace(name, known))
        };
        let filled: Vec<(&str, String)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), fill(value))).collect();
        let mut headers: Vec<(&str, &str)> =
            filled.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = self.body.trim_end();
        if method != "graphql" {
            let begin = Instant::now();
            let late = || begin.elapsed() > Duration::from_secs(20);
            let enough = |reply: &Reply| is_stream(reply) && (self.judge(reply).is_ok() || late());
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

    fn judge(&self, reply: &Reply) -> Result<(), String> {
        if reply.status != self.status {
            return Err(format!("expected status {}", self.status));
        }
        for (name, pattern) in &self.expected_headers {
            match reply.header(name) {
                Some(value) if fits(pattern, value) => {}
                found => return Err(format!("expected {name}: {pattern}, found {found:?}")),
            }
        }
        let expected = self.expected_body.trim();
        match expected.chars().next() {
            None => Ok(()),
            Some('{' | '[') => {
                let wanted: Value = serde_json::from_str(expected).map_err(|error| error.to_string())?;
                let found: Value = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
                compare("", &wanted, &found)
            }
            Some(_) if fits(expected, reply.text().trim()) => Ok(()),
            Some(_) => Err(format!("expected {expected}")),
        }
    }
}

fn is_stream(reply: &Reply) -> bool {
    reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(": ")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// The first difference, with the way to it.
fn compare(at: &str, wanted: &Value, found: &Value) -> Result<(), String> {
    match (wanted, found) {
        (Value::String(pattern), _) if pattern == "*" => Ok(()),
        (Value::String(pattern), Value::String(text)) if fits(pattern, text) => Ok(()),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.try_for_each(|(i, (wanted, found))| compare(&format!("{at}[{i}]"), wanted, found))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            let open = wanted.contains_key("*");
            let keys: Vec<&String> = wanted.keys().filter(|key| *key != "*").collect();
            let theirs: Vec<&String> =
                found.keys().take(if open { keys.len() } else { usize::MAX }).collect();
            if keys != theirs {
                return Err(format!("at {at}: expected the keys {keys:?}, found {theirs:?}"));
            }
            keys.iter().try_for_each(|key| compare(&format!("{at}.{key}"), &wanted[*key], &found[*key]))
        }
        _ if wanted == found => Ok(()),
        _ => Err(format!("at {at}: expected {wanted}, found {found}")),
    }
}

/// `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
