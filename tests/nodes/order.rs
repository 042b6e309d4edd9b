//! The events of a live subscriber when transactions are slow and notifications are lost.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::check::{self, Truth};
use super::followers::Followers;
use super::node::Node;
use super::trial::Trial;
use crate::support::postgres::{database, sql};

const PATIENCE: Duration = Duration::from_secs(20);
/// Connections that listen or tell: all of it goes through one in each node.
const TALK: &str = "query ~ 'LISTEN|NOTIFY' AND query !~ 'pg_stat' AND datname = current_database()";
/// That connection, whatever it did last.
const EARS: &str = "query ~ 'LISTEN|NOTIFY|trefoil_number_changes|trefoil_changes' AND query !~ 'pg_stat' AND datname = current_database()";

/// Two nodes, and one subscriber on each.
struct Pair {
    nodes: [Node; 2],
    followers: Followers,
    url: String,
    before: usize,
    _folder: tempfile::TempDir,
}

impl Pair {
    fn start() -> Pair {
        let (folder, url) = (tempfile::tempdir().unwrap(), database());
        let nodes = [(); 2].map(|()| Node::start(folder.path(), &["--database", &url, "--heartbeat", "1s"]));
        let followers = Followers::start(&[nodes[0].address, nodes[1].address], 1);
        let before = Truth::on_postgres(&url).created.len();
        Pair { nodes, followers, url, before, _folder: folder }
    }

    fn create(&self, node: usize, name: &str) {
        let create = format!(r#"mutation {{ createUser(name: "{name}", email: "") {{ name }} }}"#);
        assert_eq!(self.nodes[node].client().graphql(&create)["data"]["createUser"]["name"], name);
    }

    fn all_see(&self, name: &str) {
        self.followers.wait(name, PATIENCE, |seen| seen.names.iter().any(|seen| seen == name));
    }

    /// Everything was seen once and in the order of the log; gives it.
    fn finish(self) -> Vec<String> {
        let truth = Truth::on_postgres(&self.url);
        for seen in self.followers.finish() {
            let found = check::events(&truth, self.before, &seen);
            assert!(found.is_empty(), "{}", found.join("\n"));
        }
        truth.created[self.before..].to_vec()
    }
}

#[test]
fn slow_transaction_is_never_skipped() {
    let pair = Pair::start();
    let mut slow = Command::new("psql").args(["-Xq", &pair.url]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = slow.stdin.take().unwrap();
    writeln!(input, "BEGIN; INSERT INTO users (name, email) VALUES ('slow', '');").unwrap();
    let begin = Instant::now();
    while sql(
        &pair.url,
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'psql' AND datname = current_database()",
    ) != "1"
    {
        assert!(begin.elapsed() < PATIENCE, "the transaction does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    for number in 0..20 {
        pair.create(number % 2, &format!("quick {number}"));
    }
    // They are not held up by it, and it comes after them once it is there.
    pair.all_see("quick 19");
    writeln!(input, "COMMIT;").unwrap();
    drop(input);
    assert!(slow.wait().unwrap().success());
    pair.all_see("slow");
    pair.create(0, "after");
    pair.all_see("after");
    let order = pair.finish();
    assert_eq!(order[20..], ["slow", "after"]);
}

#[test]
fn lost_notification_only_delays_events() {
    let pair = Pair::start();
    // Another program tells nobody.
    sql(&pair.url, "INSERT INTO users (name, email) VALUES ('untold', '')");
    pair.all_see("untold");
    // And a node that lost its ear hears nothing until it has another one.
    for number in 0..5 {
        let deafen = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {EARS}");
        assert_ne!(sql(&pair.url, &deafen), "0", "nobody listens");
        pair.create(number % 2, &format!("unheard {number}"));
        pair.all_see(&format!("unheard {number}"));
    }
    assert_eq!(pair.finish().len(), 6);
}

#[test]
fn polling_works_without_notifications() {
    Trial::on_postgres(2, &["--database-notify=false"]).run(2, |trial| {
        let talk = sql(&trial.url, &format!("SELECT count(*) FROM pg_stat_activity WHERE {TALK}"));
        assert_eq!(talk, "0", "somebody listens or tells");
        trial.sites[0].node.kill();
        trial.sites[0].node.launch();
        trial.recovers("a killed node");
        trial.pause(Duration::from_secs(1));
    });
}
