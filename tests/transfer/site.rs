//! An application with every kind of field on SQLite or PostgreSQL, its commands, and what it serves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Client, Process, command, is_long, postgres};

const SCHEMA: &str = r#"
scalar Long scalar Decimal scalar Date scalar DateTime scalar UUID scalar URL scalar Email scalar JSON
enum Status { NEW PAID SENT }
type Place { street: String! city: String floor: Int }
type Author { id: ID!  name: String! @notBlank  email: String! @email @unique  phone: String  mentor: Author
  home: Place  born: Date  score: Float  active: Boolean! @default(value: true)  made: DateTime @createdAt
  changed: DateTime @updatedAt  books: [Book!]  }
type Book { id: ID!  title: String! @length(min: 3, max: 40)  isbn: String! @pattern(regex: "[0-9]{3}-[0-9]{5}")
  price: Decimal! @range(min: 1, max: 90)  pages: Long  token: UUID! @unique  status: Status!  author: Author! @reference(onDelete: CASCADE)
  site: URL  extra: JSON  words: [String!]  tags: [Tag!] }
type Tag { id: ID!  label: String! @unique @length(max: 24)  books: [Book!] }
type Query { authors: [Author]  books: [Book]  tags: [Tag] }
type Mutation { createTag(label: String!): Tag  updateTag(id: ID!, label: String): Tag  deleteTag(id: ID!): Tag }
type Subscription { tagCreated: Tag  tagUpdated: Tag  tagDeleted: Tag  bookCreated: Book }
"#;
const MANIFEST: &str = "name = \"Library\"\n[[list]]\npath = \"/items\"\n";
const SEED: &str = r#"[{"id": 1, "label": "first"}, {"id": 2, "label": "=2\t\\ \"q\" \n line"}]"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

pub const BOTH: [On; 2] = [On::Sqlite, On::Postgres];

impl On {
    pub fn other(self) -> On {
        match self {
            On::Sqlite => On::Postgres,
            On::Postgres => On::Sqlite,
        }
    }
}

/// A folder with the application, and places for stores.
pub struct Site {
    pub folder: TempDir,
}

/// Where a store is, as the command line says it.
#[derive(Debug, Clone)]
pub enum Store {
    /// A folder below the site's.
    Sqlite(String),
    Postgres(String),
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Store {
    pub fn flags(&self) -> Vec<String> {
        match self {
            Store::Sqlite(folder) => {
                vec!["--database".into(), "sqlite:".into(), "--data".into(), folder.clone()]
            }
            Store::Postgres(url) => vec!["--database".into(), url.clone()],
        }
    }

    /// As `--to` takes it.
    pub fn target(&self) -> String {
        match self {
            Store::Sqlite(folder) => format!("sqlite:{folder}"),
            Store::Postgres(url) => url.clone(),
        }
    }
}

impl Site {
    pub fn new() -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        let site = Site { folder };
        site.put("app/graphql/library.graphqls", SCHEMA);
        site.put("app/trefoil.toml", MANIFEST);
        site.put("app/seed/tags.json", SEED);
        site
    }

    pub fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A place where no store is yet.
    pub fn place(&self, on: On, name: &str) -> Store {
        match on {
            On::Sqlite => Store::Sqlite(name.to_owned()),
            On::Postgres => Store::Postgres(postgres::patient_database()),
        }
    }

    /// A store with so many made-up records of each type, values in a list, and changes of all kinds in its log.
    pub fn filled(&self, on: On, name: &str, records: u32) -> Store {
        let store = self.place(on, name);
        self.must(&["seed", "app", "--fake", &records.to_string(), "--seed", "7"], &store);
        let server = self.serve(&store);
        let mut client = server.client();
        for value in ["milk", "Brot\tund\nÄpfel", "\\N", "=1+1", "milk"] {
            assert_eq!(client.send("POST", "/items", &[], value.as_bytes()).status, 201);
        }
        client.send("DELETE", "/items/0", &[], b"");
        let changed = client
            .graphql(r#"mutation { a: updateTag(id: 1, label: "new") { id } b: deleteTag(id: 2) { id } }"#);
        assert!(changed.get("errors").is_none(), "{changed}");
        keyed(&mut client, "kept");
        store
    }

    pub fn arguments<'a>(&self, arguments: &[&'a str], flags: &'a [String]) -> Vec<&'a str> {
        arguments.iter().copied().chain(flags.iter().map(String::as_str)).collect()
    }

    pub fn run(&self, arguments: &[&str], store: &Store) -> Ran {
        let flags = store.flags();
        let output = command(self.folder.path(), &self.arguments(arguments, &flags)).output();
        Ran::of(output.expect("the binary runs"))
    }

    /// A command that succeeds; gives what it said.
    pub fn must(&self, arguments: &[&str], store: &Store) -> String {
        let ran = self.run(arguments, store);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}: {}", ran.out);
        ran.out
    }

    /// A command that does not; gives the one line that says why.
    pub fn refused(&self, arguments: &[&str], store: &Store) -> String {
        let ran = self.run(arguments, store);
        assert_ne!(ran.code, 0, "{arguments:?}: {}", ran.out);
        assert_eq!((ran.out.as_str(), ran.err.lines().count()), ("", 1), "{arguments:?}: {}", ran.err);
        ran.err.trim_end().to_owned()
    }

    pub fn serve(&self, store: &Store) -> Process {
        let flags = store.flags();
        Process::start(self.folder.path(), &self.arguments(&["serve", "app"], &flags))
    }

    /// Why a server does not start on this store.
    pub fn not_served(&self, store: &Store) -> String {
        let ran = self.run(&["serve", "app", "--port", "0"], store);
        assert_eq!(ran.code, 1, "{}", ran.err);
        ran.err
    }

    /// Everything that the store serves, byte for byte: records, lists and their tags, the log.
    pub fn served(&self, store: &Store) -> Vec<String> {
        let server = self.serve(store);
        contents(server.address)
    }

    /// The names of the files in a folder below the site's.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }
}

impl Ran {
    pub fn of(output: std::process::Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A write under a key; the answer is always the same.
pub fn keyed(client: &mut Client, key: &str) -> Value {
    let body = json!({ "query": "mutation { createTag(label: \"under a key\") { id label } }" }).to_string();
    let headers = [("content-type", "application/json"), ("idempotency-key", &format!("\"{key}\""))];
    client.send("POST", "/graphql", &headers, body.as_bytes()).json()
}

pub fn contents(address: SocketAddr) -> Vec<String> {
    let mut client = Client::to(address);
    let mut found = Vec::new();
    for path in ["/authors", "/books", "/tags"] {
        let reply = client.send("GET", path, &[("accept", "application/x-ndjson")], b"");
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        found.extend(reply.text().lines().map(|line| format!("{path} {line}")));
    }
    let linked = client.graphql("{ books { id tags { id } author { id } } }");
    found.push(linked.to_string());
    let items = client.send("GET", "/items", &[], b"");
    found.push(items.text());
    found.push(format!("etag {}", items.header("etag").expect("a tag")));
    found
}

/// Without the tag of the list, which a restore renews.
pub fn tagless(mut contents: Vec<String>) -> Vec<String> {
    contents.pop().expect("the tag is last");
    contents
}

/// Without what the clock has filled in.
pub fn timeless(contents: Vec<String>) -> Vec<String> {
    contents.into_iter().filter(|line| line.starts_with("/books") || line.starts_with("/tags")).collect()
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub data: String,
}

/// The next so many events of the tags behind an id, or the place where a new follower starts.
pub fn follow(address: SocketAddr, last: Option<&str>, count: usize) -> Result<Vec<Event>, String> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
    let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    write!(
        stream,
        "GET /tags HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n{last}\r\n"
    )
    .expect("sent");
    let mut stream = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    };
    let status = line();
    if !status.contains(" 200 ") {
        while !line().is_empty() {}
        let mut body = String::new();
        let _ = stream.read_to_string(&mut body);
        return Err(body);
    }
    let (mut events, mut event) = (Vec::new(), Event { id: String::new(), data: String::new() });
    let is_refusal = |events: &[Event]| events.first().is_some_and(|first| first.data.contains("EVENT_ID_"));
    while events.len() <= count && !is_refusal(&events) {
        let text = line();
        match text.split_once(": ") {
            Some(("id", id)) => event.id = id.to_owned(),
            Some(("data", data)) => event.data = data.to_owned(),
            Some(_) => {}
            None if text.is_empty() && !event.id.is_empty() => {
                events.push(std::mem::replace(&mut event, Event { id: String::new(), data: String::new() }));
            }
            None => {}
        }
    }
    // A stream that cannot begin where it should says so in its first event.
    match events.first().filter(|first| first.data.contains("EVENT_ID_")) {
        Some(refusal) => Err(refusal.data.clone()),
        None => Ok(events),
    }
}

/// What is in a file, for a moment at which nobody has it open.
pub fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

/// How many trials a test of chances makes.
pub fn trials() -> usize {
    if is_long() { 10 } else { 3 }
}
