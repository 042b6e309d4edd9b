//! Three nodes under load: after `trefoil key revoke` has ended, not one request is answered and not one event told under the
//! key, on any of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::listener::{Heard, Listener, PATIENCE, Socket, Way};
use super::site::StreamSite;
use crate::support::{Client, Process, is_long};

const NODES: usize = 3;

#[test]
fn nothing_passes_a_revocation_on_three_nodes() {
    let site = StreamSite::on_postgres();
    let writer = site.key("writer", &["--role", "AUTHOR"]);
    let nodes: Vec<Process> = (0..NODES).map(|_| site.serve()).collect();
    let load = Load::start(&nodes, &writer);
    let rounds = if is_long() { 25 } else { 2 };
    let (mut events, mut requests) = (0, 0);
    for round in 0..rounds {
        let name = format!("victim-{round}");
        let victim = site.key(&name, &["--role", "EDITOR", "--role", "AUTHOR"]);
        let witness = Follower::start(Way::Events, &nodes[round % NODES], &writer);
        let followers: Vec<Follower> =
            nodes.iter().flat_map(|node| Way::ALL.map(|way| Follower::start(way, node, &victim))).collect();
        let askers: Vec<Asker> = nodes
            .iter()
            .flat_map(|node| [false, true].map(|on_socket| Asker::start(node, &victim, on_socket)))
            .collect();
        for follower in &followers {
            wait("each hears events", || follower.count() >= 3);
        }
        for asker in &askers {
            wait("each is answered", || asker.count() >= 3);
        }
        site.revoke(&name);
        // Whatever begins from now on is after the revocation.
        let (revoked, first_after) = (Instant::now(), load.begun());
        let at_witness = witness.count();
        wait("the load goes on", || witness.count() > at_witness + 20);
        let after = site.sql(&format!(
            "SELECT image->>'title' FROM trefoil_changes WHERE resource = 'Post' AND number > \
             (SELECT number FROM trefoil_changes WHERE resource = 'API keys' AND image->>'id' = '{name}')"
        ));
        let after: Vec<&str> = after.lines().collect();
        assert!(after.len() > 10, "the log has too little after the revocation: {after:?}");
        for follower in followers {
            let (way, heard, end) = follower.finish();
            let (lasted, code) = end.unwrap_or_else(|| panic!("{way:?} goes on after the revocation"));
            assert!(lasted < revoked + Duration::from_secs(5), "{way:?} ended late");
            assert_eq!(code, (way == Way::Socket).then_some(4403), "{way:?}");
            let late: Vec<&String> = heard.iter().filter(|title| after.contains(&title.as_str())).collect();
            assert!(late.is_empty(), "{way:?} told of what the log has after the revocation: {late:?}");
            let late =
                heard.iter().filter_map(|title| number_in(title)).find(|number| *number >= first_after);
            assert_eq!(late, None, "{way:?} told of what was begun after the revocation");
            events += heard.len();
        }
        for asker in askers {
            let answers = asker.finish();
            let late = answers.iter().filter(|answer| answer.is_granted && answer.begun > revoked).count();
            assert_eq!(late, 0, "of {} requests", answers.len());
            assert!(answers.iter().any(|answer| !answer.is_granted), "no request was refused");
            requests += answers.len();
        }
        witness.stop();
    }
    load.finish();
    eprintln!("{rounds} rounds: {events} events and {requests} requests under keys that were revoked");
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn number_in(title: &str) -> Option<usize> {
    title.strip_prefix("post ")?.parse().ok()
}

/// When the last answer came, and its status.
type LastAnswer = (Instant, Option<u16>);

/// Writers on all nodes, who number their posts.
struct Load {
    stop: Arc<AtomicBool>,
    begun: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(nodes: &[Process], credential: &str) -> Load {
        let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let spawn = |node: &Process| {
            let (mut client, stop, begun) = (node.client(), stop.clone(), begun.clone());
            let credential = credential.to_owned();
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = begun.fetch_add(1, Ordering::SeqCst);
                    create(&mut client, &credential, &format!("post {number}"));
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        };
        let threads = nodes.iter().map(spawn).collect();
        Load { stop, begun, threads }
    }

    /// All posts with this number or a higher one are begun later.
    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("writers do not panic"));
    }
}

fn create(client: &mut Client, credential: &str, title: &str) {
    let query = format!("mutation {{ createPost(title: \"{title}\") {{ id }} }}");
    let body = json!({ "query": query }).to_string();
    let headers = [("Authorization", credential), ("Content-Type", "application/json")];
    let reply = client.send("POST", "/graphql", &headers, body.as_bytes());
    assert!(reply.status == 200 && !reply.text().contains("errors"), "{}", reply.text());
}

/// The titles that a stream has told, and when and how it ended.
type StreamRecord = (Vec<String>, Option<(Instant, Option<u16>)>);

/// A client that follows the posts.
struct Follower {
    way: Way,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: JoinHandle<StreamRecord>,
}

impl Follower {
    fn start(way: Way, node: &Process, credential: &str) -> Follower {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut listener = Listener::of_posts(way, node.address, credential).expect("a stream");
        let thread = std::thread::spawn({
            let (stop, count) = (stop.clone(), count.clone());
            move || {
                let mut titles = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match listener.hear() {
                        Heard::Event(text) => {
                            let title =
                                text.split("\"title\":\"").nth(1).and_then(|rest| rest.split('"').next());
                            titles.push(title.expect("a title").to_owned());
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        Heard::Silence => {}
                        Heard::Ended(code) => return (titles, Some((Instant::now(), code))),
                    }
                }
                (titles, None)
            }
        });
        Follower { way, stop, count, thread }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits for its end.
    fn finish(self) -> (Way, Vec<String>, Option<LastAnswer>) {
        let begin = Instant::now();
        while !self.thread.is_finished() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let way = self.way;
        let (titles, end) = self.stop();
        (way, titles, end)
    }

    fn stop(self) -> StreamRecord {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("followers do not panic")
    }
}

struct Answer {
    begun: Instant,
    is_granted: bool,
}

/// A client that asks as fast as it is answered, until it is refused twice.
struct Asker {
    count: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<Answer>>,
}

impl Asker {
    fn start(node: &Process, credential: &str, on_socket: bool) -> Asker {
        let count = Arc::new(AtomicUsize::new(0));
        let (address, credential) = (node.address, credential.to_owned());
        let thread = std::thread::spawn({
            let count = count.clone();
            move || {
                let mut client = Client::to(address);
                let headers = [("authorization", credential.as_str())];
                let mut socket = on_socket.then(|| {
                    let mut socket = Socket::open(address, &headers).expect("a socket");
                    socket.init(&json!({})).expect("acknowledged");
                    socket
                });
                let mut answers: Vec<Answer> = Vec::new();
                while answers.iter().filter(|answer| !answer.is_granted).count() < 2 {
                    let begun = Instant::now();
                    let is_granted = match &mut socket {
                        Some(socket) => socket.answer("1", "{ users { id } }").is_ok(),
                        None => {
                            let accept = ("accept", "application/json");
                            client.send("GET", "/users", &[headers[0], accept], b"").status == 200
                        }
                    };
                    answers.push(Answer { begun, is_granted });
                    count.fetch_add(1, Ordering::Relaxed);
                }
                answers
            }
        });
        Asker { count, thread }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn finish(self) -> Vec<Answer> {
        self.thread.join().expect("askers do not panic")
    }
}
