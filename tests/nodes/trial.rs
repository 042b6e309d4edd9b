//! A trial: nodes behind proxies on one database, writers and subscribers on all of them, and faults one after another.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::check::{self, Truth};
use super::followers::{Followers, Seen};
use super::node::Node;
use super::proxy::{Mode, Proxy};
use super::writers::{Fate, Habit, Ledger, Writers};
use crate::power::client::{Client, Verdict};
use crate::power::load::CREATE_USER;
use crate::support::is_long;
use crate::support::postgres::{Cluster, Options};
use serde_json::json;

/// More often than the subscribers' patience ends.
const HEARTBEAT: &[&str] = &["--heartbeat", "1s"];

/// Within this time after a fault has ended, all is well again. A machine that also runs all the other tests is given
/// more; the long trials hold the nodes to their promise.
fn recovery() -> Duration {
    Duration::from_secs(if is_long() { 5 } else { 20 })
}

/// A node, the way clients have to it, and the way it has to its database.
pub struct Site {
    pub node: Node,
    pub front: Proxy,
    pub back: Option<Proxy>,
}

pub struct Trial {
    pub sites: Vec<Site>,
    pub cluster: Option<Cluster>,
    /// Of the database itself, past all proxies.
    pub url: String,
    folder: TempDir,
    probes: usize,
    pub recoveries: Vec<(String, Duration)>,
}

impl Trial {
    pub fn on_postgres(nodes: usize, arguments: &[&str]) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let cluster = Cluster::start(&Options::default());
        let url = cluster.database();
        let sites = (0..nodes).map(|_| Site::on_postgres(folder.path(), &url, arguments)).collect();
        Trial { sites, cluster: Some(cluster), url, folder, probes: 0, recoveries: Vec::new() }.begin()
    }

    /// One node on SQLite: the same trial without a database that can go away.
    pub fn on_sqlite() -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let node = Node::new(folder.path(), HEARTBEAT);
        let site = Site { front: Proxy::to(node.address), back: None, node };
        Trial {
            sites: vec![site],
            cluster: None,
            url: String::new(),
            folder,
            probes: 0,
            recoveries: Vec::new(),
        }
        .begin()
    }

    fn begin(self) -> Trial {
        self.sites.iter().for_each(|site| site.node.launch());
        self.sites.iter().for_each(|site| site.node.wait_until_ready(Duration::from_secs(60)));
        self
    }

    pub fn truth(&self) -> Truth {
        match &self.cluster {
            Some(_) => Truth::on_postgres(&self.url),
            None => Truth::on_sqlite(&self.folder.path().join("trefoil-data/trefoil.db")),
        }
    }

    /// The whole of it: begin, break things, and hold everyone to what was said.
    pub fn run(mut self, each: usize, faults: impl FnOnce(&mut Trial)) {
        let fronts: Vec<SocketAddr> = self.sites.iter().map(|site| site.front.address).collect();
        let followers = Followers::start(&fronts, each);
        let before = self.truth().created.len();
        let writers = Writers::start(&fronts, each, Habit::Keeps);
        // A node that breaks loses its writers to the next one, for good perhaps.
        let at_first = writers.wait_for_each(10, Duration::from_secs(60));
        faults(&mut self);
        self.pause(Duration::from_secs(1));
        let by_node = writers.done();
        let ledger = writers.finish();
        let meanwhile = by_node.iter().sum::<usize>() - at_first.iter().sum::<usize>();
        assert!(meanwhile > 10 * by_node.len(), "too little was written: {at_first:?}, then {by_node:?}");
        let truth = self.truth();
        let expected = truth.created.len() - before;
        followers.wait("all events", Duration::from_secs(30), |seen| seen.names.len() >= expected);
        let seen = followers.finish();
        let mut found = check::writes(&truth, &ledger);
        for (number, seen) in seen.iter().enumerate() {
            let complaints = check::events(&truth, before, seen);
            found.extend(complaints.into_iter().map(|line| format!("subscriber {number}: {line}")));
        }
        let returns: usize = seen.iter().map(|seen| seen.returns).sum();
        let (all, known) = (ledger.users.len(), ledger.acknowledged());
        let summary = format!(
            "{all} writes, {known} acknowledged ({by_node:?}); {} subscribers saw {expected} events and came back \
             {returns} times; well again after {:?}",
            seen.len(),
            self.recoveries
        );
        assert!(returns >= seen.len(), "nobody ever came back: {summary}");
        assert!(found.is_empty(), "{summary}\n{}\n{}", found[..found.len().min(20)].join("\n"), self.logs());
        eprintln!("{summary}");
        notices(truth, before, seen.into_iter().next().expect("a subscriber"), &ledger);
    }

    pub fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// The fault has ended: every node is ready and takes writes again, soon.
    pub fn recovers(&mut self, from: &str) {
        let begin = Instant::now();
        for at in 0..self.sites.len() {
            while !(self.sites[at].node.is_ready() && self.writes(at)) {
                let late = begin.elapsed() > recovery();
                assert!(!late, "node {at} is not well {:?} after {from}:\n{}", begin.elapsed(), self.logs());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.recoveries.push((from.to_owned(), begin.elapsed()));
    }

    /// Whether a node acknowledges a write.
    fn writes(&mut self, at: usize) -> bool {
        self.probes += 1;
        let variables = json!({"name": format!("probe {}", self.probes), "email": ""});
        let client = Client::connect(self.sites[at].node.address);
        let reply = client
            .and_then(|client| client.patient_for(Duration::from_secs(5)))
            .and_then(|mut client| client.graphql(CREATE_USER, variables, None));
        reply.is_ok_and(|reply| matches!(reply.verdict("createUser"), Verdict::Done(_)))
    }

    fn logs(&self) -> String {
        let last = |site: &Site| {
            let log = site.node.log();
            let lines: Vec<&str> = log.lines().collect();
            format!("{}:\n{}", site.node.address, lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        self.sites.iter().map(last).collect::<Vec<_>>().join("\n")
    }
}

/// The verdict is worth something only where it would have been another one with a single thing amiss.
fn notices(mut truth: Truth, before: usize, mut seen: Seen, ledger: &Ledger) {
    let lost = seen.names.remove(seen.names.len() / 2);
    assert!(!check::events(&truth, before, &seen).is_empty(), "nobody missed the event of {lost}");
    let known = |(_, name): &(i64, String)| matches!(ledger.users.get(name), Some(Fate::Acknowledged(_)));
    let at = truth.users.iter().position(known).expect("something was acknowledged");
    let (_, lost) = truth.users.remove(at);
    truth.created.retain(|name| *name != lost);
    assert!(!check::writes(&truth, ledger).is_empty(), "nobody missed {lost}");
}

impl Site {
    pub fn on_postgres(folder: &Path, url: &str, arguments: &[&str]) -> Site {
        let direct = host(url);
        let back = Proxy::to(direct);
        let through = url.replace(&direct.to_string(), &back.address.to_string());
        let arguments = [&["--database", through.as_str()], HEARTBEAT, arguments].concat();
        let node = Node::new(folder, &arguments);
        Site { front: Proxy::to(node.address), back: Some(back), node }
    }

    /// The way to the database, broken and whole.
    pub fn database(&self, mode: Mode) {
        self.back.as_ref().expect("a database elsewhere").set(mode);
    }
}

/// Where the server of a URL listens.
pub fn host(url: &str) -> SocketAddr {
    let host = url.split('@').nth(1).and_then(|rest| rest.split('/').next());
    host.and_then(|host| host.parse().ok()).expect("an address as tests/postgres/cluster gives it")
}
