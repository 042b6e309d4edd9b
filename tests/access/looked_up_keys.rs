//! API keys on PostgreSQL, which is asked about them while their requests are answered already.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Client, Process, command, postgres};

const SCHEMA: &str = r#"
enum Role { EDITOR }
type User @account(login: "name", roles: "role") @allow(read: "this == me") {
  id: ID!
  name: String! @unique
  role: Role @allow(write: false)
}
type Note @allow(read: "signedIn", create: true) { id: ID! text: String! }
"#;
const SEEDS: [(&str, &str); 2] = [
    ("users", r#"[{"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}]"#),
    ("notes", r#"[{"id": 1, "text": "one"}]"#),
];

/// The database finds all accounts but the first at once.
const SLOW_VIEW: &str = "ALTER TABLE users RENAME TO kept_users; \
     CREATE VIEW users AS SELECT * FROM kept_users WHERE id <> 1 OR pg_sleep(12) IS NOT NULL";

/// The database counts how often the notes are read.
const COUNTING_VIEW: &str = "ALTER TABLE notes RENAME TO kept_notes; CREATE SEQUENCE reads; \
     CREATE VIEW notes AS SELECT * FROM kept_notes WHERE nextval('reads') > 0";

/// A server on a database of its own.
struct KeySite {
    folder: TempDir,
    url: String,
    server: Process,
}

impl KeySite {
    fn new() -> KeySite {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        put("app/graphql/a.graphqls", SCHEMA);
        SEEDS.iter().for_each(|(name, text)| put(&format!("app/seed/{name}.json"), text));
        let url = postgres::database();
        let server = Process::start(folder.path(), &["serve", "app", "--database", &url]);
        KeySite { folder, url, server }
    }

    /// The credential of a key, which the server knows from a request on.
    fn known_key(&self, name: &str, account: &[&str]) -> String {
        let add = ["key", "add", name, "app", "--role", "EDITOR", "--database", &self.url];
        let ran = command(self.folder.path(), &[&add, account].concat()).output().expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let key = format!("Bearer {}", String::from_utf8(ran.stdout).expect("UTF-8").trim_end());
        self.time_of_read(&key);
        key
    }

    fn status(&self, key: &str) -> Option<u16> {
        read_notes(&mut self.server.client(), key)
    }

    /// How long a read takes that is answered as it should be.
    fn time_of_read(&self, key: &str) -> Duration {
        let begin = Instant::now();
        assert_eq!(self.status(key), Some(200));
        begin.elapsed()
    }
}

fn read_notes(client: &mut Client, key: &str) -> Option<u16> {
    let headers = [("authorization", key), ("accept", "application/json")];
    // Who reads for a slow account may be cut off by the end of the test.
    client.ask("GET", "/notes", &headers, b"").ok().map(|reply| reply.status)
}

#[test]
fn slow_accounts_delay_nobody_else() {
    let site = KeySite::new();
    let slow = site.known_key("ann", &["--as", "ann"]);
    let (other, plain) = (site.known_key("bob", &["--as", "bob"]), site.known_key("ci", &[]));
    postgres::sql(&site.url, SLOW_VIEW);
    // As many look-ups as may run at once.
    for _ in 0..2 {
        let (mut client, key) = (site.server.client(), slow.clone());
        std::thread::spawn(move || read_notes(&mut client, &key));
        sleep(Duration::from_millis(100));
    }
    let (by_other, by_plain) = std::thread::scope(|scope| {
        let other = scope.spawn(|| site.time_of_read(&other));
        let plain = scope.spawn(|| site.time_of_read(&plain));
        (other.join().expect("an answer"), plain.join().expect("an answer"))
    });
    eprintln!("another account: {by_other:?}; a key without an account: {by_plain:?}");
    assert!(by_plain < Duration::from_secs(4), "a key without an account took {by_plain:?}");
    assert!(by_other < Duration::from_secs(4), "another account took {by_other:?}");
}

#[test]
fn nothing_is_read_for_keys_that_were_refused() {
    let site = KeySite::new();
    let key = site.known_key("ci", &[]);
    postgres::sql(&site.url, COUNTING_VIEW);
    let count = || {
        let count = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM reads";
        postgres::sql(&site.url, count).parse::<u64>().expect("a number")
    };
    let before = count();
    site.time_of_read(&key);
    assert!(count() > before, "the view counts no reads");
    // The command would find fault with the view.
    postgres::sql(&site.url, "DELETE FROM trefoil_api_keys WHERE name = 'ci'");
    // Whoever is refused for the first time may have been read for meanwhile.
    assert_eq!(site.status(&key), Some(401));
    sleep(Duration::from_millis(200));
    let refused = count();
    for _ in 0..5 {
        assert_eq!(site.status(&key), Some(401));
    }
    sleep(Duration::from_millis(200));
    assert_eq!(count(), refused);
}
