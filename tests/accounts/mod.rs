//! Accounts: an application whose people sign in, on each kind of store.

mod blocked;
mod guesses;
mod lifetimes;
mod links;
mod managers;
mod moves;
mod nodes;
mod passwords;
mod providers;
mod races;
mod renamed_type;
mod safety;
mod secrets;
mod sessions;
mod sign_ups;
mod signing_in;

use std::io::Write as _;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Process, Reply, command, postgres};

const SCHEMA: &str = r#"
enum Role { EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", if: "!blocked", manage: "role(ADMIN)", signUp: true)
  @allow(read: "this == me || role(EDITOR)", update: "this == me", delete: "role(EDITOR)") {
  id: ID!
  name: String!
  email: String! @unique @email
  role: Role @allow(write: "role(ADMIN)")
  blocked: Boolean! @default(value: false) @allow(write: "role(ADMIN)")
}
type Note @allow(read: "author == me", create: "signedIn", update: "author == me", delete: "author == me") {
  id: ID!
  title: String!
  author: User @createdBy @reference(onDelete: CASCADE)
}
type Query { users: [User!]! notes: [Note!]! me: User }
type Mutation { createNote(title: String!): Note updateUser(id: ID!, blocked: Boolean): User deleteUser(id: ID!): User }
type Subscription { noteCreated: Note }
"#;
const USERS: &str = r#"[
  {"id": 1, "name": "Ada Lovelace", "email": "ada@example.org", "role": "ADMIN"},
  {"id": 2, "name": "Bob", "email": "bob@example.org"}
]"#;
/// So that a test does not hash for long.
const MANIFEST: &str = "[auth]\npassword-memory = \"64 KiB\"\npassword-rounds = 1\n";
const PASSWORD: &str = "correct horse battery";

struct Site {
    folder: TempDir,
    store: Vec<String>,
}

impl Site {
    fn new(store: &[&str], users: &str) -> Site {
        let site = Site {
            folder: tempfile::tempdir().expect("a folder"),
            store: store.iter().map(|flag| (*flag).to_owned()).collect(),
        };
        site.put("app/graphql/schema.graphqls", SCHEMA);
        site.put("app/seed/users.json", users);
        site.put("app/trefoil.toml", MANIFEST);
        site.must(&["reset", "app", "--yes"]);
        site
    }

    /// One on each kind of store.
    fn both() -> [Site; 2] {
        Site::both_with(USERS)
    }

    fn both_with(users: &str) -> [Site; 2] {
        let url = postgres::database();
        [
            Site::new(&["--database", "sqlite:", "--data", "data"], users),
            Site::new(&["--database", &url], users),
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

    /// What a statement says that is run beside the application: a value, or nothing.
    fn sql(&self, statement: &str) -> String {
        match self.store[1].as_str() {
            "sqlite:" => {
                let path = self.folder.path().join("data/trefoil.db");
                let database = rusqlite::Connection::open(path).expect("opened");
                database.busy_timeout(Duration::from_secs(5)).expect("set");
                let mut found = database.prepare(statement).expect("prepared");
                let mut rows = found.query([]).expect("runs");
                let value = rows.next().expect("a row or none").map(|row| row.get_unwrap(0));
                match value {
                    Some(rusqlite::types::Value::Integer(number)) => number.to_string(),
                    Some(rusqlite::types::Value::Text(text)) => text,
                    Some(other) => panic!("{other:?}"),
                    None => String::new(),
                }
            }
            url => postgres::sql(url, statement),
        }
    }

    fn serve(&self) -> Process {
        let arguments = self.arguments(&["serve", "app"]);
        Process::start_with(self.folder.path(), &arguments, &[])
    }

    /// The token of a link that a command prints.
    fn link(&self, login: &str) -> String {
        token_in(&self.must(&["user", "link", login, "app"]))
    }

    /// A server and its accounts with passwords.
    fn serve_people(&self) -> Process {
        let server = self.serve();
        for login in ["ada@example.org", "bob@example.org"] {
            assert_eq!(use_link(&server, &self.link(login), PASSWORD).status, 303);
        }
        server
    }
}

fn token_in(text: &str) -> String {
    let start = text.find("tfl_").unwrap_or_else(|| panic!("no link in {text}"));
    text[start..]
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
        .collect()
}

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const HTML: (&str, &str) = ("Accept", "text/html");

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn form(server: &Process, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encode(value)));
    let body = pairs.collect::<Vec<_>>().join("&");
    server.client().send("POST", path, &[&[FORM, HTML], headers].concat(), body.as_bytes())
}

/// The page without the escapes of slashes.
fn html(reply: &Reply) -> String {
    reply.text().replace("&#x2f;", "/")
}

fn use_link(server: &Process, token: &str, password: &str) -> Reply {
    use_link_from(server, &[], token, password)
}

fn use_link_from(server: &Process, headers: &[(&str, String)], token: &str, password: &str) -> Reply {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    form(server, "/_/link", &headers, &[("token", token), ("password", password), ("again", password)])
}

fn sign_in_as(server: &Process, headers: &[(&str, &str)], login: &str, password: &str) -> Reply {
    form(server, "/_/sign-in", headers, &[("login", login), ("password", password), ("next", "/notes")])
}

/// The cookie that a reply sets, as a browser sends it back.
fn cookie_of(reply: &Reply) -> String {
    let line = reply.headers_named("set-cookie").into_iter().find(|line| line.starts_with("trefoil="));
    let line = line.unwrap_or_else(|| panic!("no cookie: {}", reply.text()));
    line.split(';').next().expect("a part").to_owned()
}

fn sign_in(server: &Process, login: &str) -> String {
    let reply = sign_in_as(server, &[], login, PASSWORD);
    assert_eq!(reply.status, 303, "{}", reply.text());
    cookie_of(&reply)
}

fn get(server: &Process, path: &str, headers: &[(&str, &str)]) -> Reply {
    server.client().send("GET", path, headers, b"")
}

fn me(server: &Process, cookie: &str) -> Value {
    get(server, "/_/me", &[("Cookie", cookie)]).json()
}
