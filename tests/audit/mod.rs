//! The audit: what is noted of writes, sign-ins and credentials, who sees it, and how long it is kept, on each kind of store.

mod page;
mod trust;
mod writes;

use std::io::Write as _;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, Reply, command, postgres};

const SCHEMA: &str = r#"
enum Role { EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", manage: "role(ADMIN)", signUp: true)
  @allow(read: true, update: "this == me") {
  id: ID!
  name: String!
  email: String! @unique @email
  role: Role @allow(write: "role(ADMIN)")
}
type Post @allow(read: true, create: "signedIn", update: "signedIn", delete: "signedIn") {
  id: ID!
  title: String! @unique
  text: String
  changed: DateTime! @updatedAt
  author: User @createdBy
  comments: [Comment!]!
  tags: [Tag!]!
}
type Comment @allow(all: true) { id: ID! text: String! post: Post! @reference(onDelete: CASCADE) }
type Remark @allow(all: true) { id: ID! text: String! post: Post @reference(onDelete: SET_NULL) }
type Tag @allow(all: true) { id: ID! name: String! posts: [Post!]! }
type Code @allow(all: true) { id: UUID! name: String! }
type Query { posts: [Post!]! }
type Mutation { createPost(title: String!, text: String): Post updatePost(id: ID!, text: String): Post }
"#;
const USERS: &str = r#"[
  {"id": 1, "name": "Ada Lovelace", "email": "ada@example.org", "role": "ADMIN"},
  {"id": 2, "name": "Bob", "email": "bob@example.org"}
]"#;
/// So that a test does not hash for long.
const CHEAP: &str = "[auth]\npassword-memory = \"64 KiB\"\npassword-rounds = 1\n";
const PASSWORD: &str = "correct horse battery";

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const HTML: (&str, &str) = ("Accept", "text/html");

struct Site {
    folder: TempDir,
    store: Vec<String>,
}

impl Site {
    fn new(store: &[&str], settings: &str) -> Site {
        let site = Site {
            folder: tempfile::tempdir().expect("a folder"),
            store: store.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        site.put("app/graphql/schema.graphqls", SCHEMA);
        site.put("app/seed/users.json", USERS);
        site.put("app/trefoil.toml", &format!("{CHEAP}{settings}"));
        site.must(&["reset", "app", "--yes"]);
        site
    }

    /// One on each kind of store, with more settings of `[auth]`.
    fn both(settings: &str) -> [Site; 2] {
        let url = postgres::database();
        [
            Site::new(&["--database", "sqlite:", "--data", "data"], settings),
            Site::new(&["--database", &url], settings),
        ]
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }

    fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        arguments.iter().copied().chain(self.store.iter().map(String::as_str)).collect()
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut process = command(self.folder.path(), &self.arguments(arguments));
        let process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process.spawn().expect("the binary runs");
        // A command that reads nothing may be gone.
        let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
        child.wait_with_output().expect("the binary ends")
    }

    /// What a command that succeeds prints.
    fn must(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments, "");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn serve(&self) -> Process {
        Process::start_with(self.folder.path(), &self.arguments(&["serve", "app"]), &[])
    }

    fn key(&self, name: &str, more: &[&str]) -> String {
        let made = self.must(&[&["key", "add", name, "app"][..], more].concat());
        format!("Bearer {made}")
    }

    /// The entries, the first first.
    fn entries(&self, more: &[&str]) -> Vec<Value> {
        let printed = self.must(&[&["audit", "app", "--format", "ndjson"][..], more].concat());
        let entries = printed.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        entries.collect::<Vec<Value>>().into_iter().rev().collect()
    }

    /// What is noted from here on, as `actor action type/id vVERSION fields`.
    fn told_since(&self, before: usize) -> Vec<String> {
        self.entries(&[]).iter().skip(before).map(told).collect()
    }

    fn count(&self) -> usize {
        self.entries(&[]).len()
    }

    fn outside(&self, sql: &str) -> String {
        match self.store[1].as_str() {
            "sqlite:" => {
                let connection = rusqlite::Connection::open(self.folder.path().join("data/trefoil.db"));
                let connection = connection.expect("opened");
                connection.busy_timeout(std::time::Duration::from_secs(5)).expect("set");
                connection.execute_batch(sql).expect("ran");
                String::new()
            }
            url => postgres::sql(url, sql),
        }
    }
}

fn told(entry: &Value) -> String {
    let text = |name: &str| match &entry[name] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(fields) => fields.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    };
    let subject =
        if entry["key"].is_null() { format!("{}/{}", text("type"), text("id")) } else { text("key") };
    format!("{} {} {subject} v{} {}", text("actor"), text("action"), text("version"), text("fields"))
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn form(server: &Process, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encode(value)));
    let body = pairs.collect::<Vec<_>>().join("&");
    server.client().send("POST", path, &[&[FORM, HTML], headers].concat(), body.as_bytes())
}

fn get(server: &Process, path: &str, headers: &[(&str, &str)]) -> Reply {
    server.client().send("GET", path, headers, b"")
}

fn token_in(text: &str) -> String {
    let start = text.find("tfl_").unwrap_or_else(|| panic!("no link in {text}"));
    let is_token = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
    text[start..].chars().take_while(is_token).collect()
}

fn cookie_of(reply: &Reply) -> String {
    let line = reply.headers_named("set-cookie").into_iter().find(|line| line.starts_with("trefoil="));
    let line = line.unwrap_or_else(|| panic!("no cookie: {}", reply.text()));
    line.split(';').next().expect("a part").to_owned()
}

/// Gives an account a password by a link, and signs it in.
fn sign_in(site: &Site, server: &Process, login: &str) -> String {
    let link = token_in(&site.must(&["user", "link", login, "app"]));
    let used = form(server, "/_/link", &[], &[("token", &link), ("password", PASSWORD), ("again", PASSWORD)]);
    assert_eq!(used.status, 303, "{}", used.text());
    let reply = form(server, "/_/sign-in", &[], &[("login", login), ("password", PASSWORD)]);
    assert_eq!(reply.status, 303, "{}", reply.text());
    cookie_of(&reply)
}
