//! Writers on all nodes that record each request and its response, whatever fails meanwhile.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::power::client::{Client, Verdict};
use crate::power::load::{CREATE_USER, id};

/// How long an answer is waited for: longer than the nodes wait for their database.
const PATIENCE: Duration = Duration::from_secs(8);

/// What became of each user that was to be created, by name.
#[derive(Default)]
pub struct Ledger {
    pub users: HashMap<String, Fate>,
    /// Answers that the contract does not allow.
    pub odd: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The answer was lost, or said that nobody knows: there once or not at all.
    Unknown,
    /// There exactly once, under this id.
    Acknowledged(i64),
}

impl Ledger {
    pub fn acknowledged(&self) -> usize {
        self.users.values().filter(|fate| matches!(fate, Fate::Acknowledged(_))).count()
    }
}

pub struct Writers {
    stop: Arc<AtomicBool>,
    done: Arc<Vec<AtomicUsize>>,
    threads: Vec<JoinHandle<Ledger>>,
}

/// How a writer connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Keeps,
    /// A new connection for each request: one that is kept can be closed in the moment it is used, and then nobody
    /// has accepted the request.
    Closes,
}

impl Writers {
    /// `each` writers begin at each address; one that gets no answer goes on to the next address.
    pub fn start(addresses: &[SocketAddr], each: usize, habit: Habit) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let done: Arc<Vec<AtomicUsize>> = Arc::new(addresses.iter().map(|_| AtomicUsize::new(0)).collect());
        let spawn = |number: usize| {
            let (addresses, stop, done) = (addresses.to_vec(), stop.clone(), done.clone());
            let (name, at) = (format!("writer {number}"), number % addresses.len());
            let ledger = Ledger::default();
            let writer = Writer { name, addresses, at, client: None, stop, done, ledger, habit };
            std::thread::spawn(move || writer.work())
        };
        Writers { threads: (0..each * addresses.len()).map(spawn).collect(), done, stop }
    }

    /// How many writes each node has acknowledged so far.
    pub fn done(&self) -> Vec<usize> {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).collect()
    }

    /// Waits until each node has acknowledged `least` writes, and tells how many.
    pub fn wait_for_each(&self, least: usize, limit: Duration) -> Vec<usize> {
        let begin = Instant::now();
        loop {
            let done = self.done();
            if done.iter().all(|&done| done >= least) {
                return done;
            }
            assert!(begin.elapsed() < limit, "too little was written within {limit:?}: {done:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn finish(self) -> Ledger {
        self.stop.store(true, Ordering::Relaxed);
        let mut ledger = Ledger::default();
        for thread in self.threads {
            let part = thread.join().expect("writers do not panic");
            ledger.users.extend(part.users);
            ledger.odd.extend(part.odd);
        }
        ledger
    }
}

struct Writer {
    name: String,
    addresses: Vec<SocketAddr>,
    at: usize,
    client: Option<Client>,
    stop: Arc<AtomicBool>,
    done: Arc<Vec<AtomicUsize>>,
    ledger: Ledger,
    habit: Habit,
}

impl Writer {
    fn work(mut self) -> Ledger {
        for round in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.create(round);
            std::thread::sleep(Duration::from_millis(10));
        }
        self.ledger
    }

    /// Every second one has an Idempotency-Key, and is sent until it is acknowledged, by whichever node.
    fn create(&mut self, round: u64) {
        let name = format!("{} {round}", self.name);
        let key = round.is_multiple_of(2).then(|| name.clone());
        self.ledger.users.insert(name.clone(), Fate::Unknown);
        loop {
            if let Some(known) = self.ask(&name, key.as_deref()) {
                self.ledger.users.insert(name, Fate::Acknowledged(known));
                self.done[self.at].fetch_add(1, Ordering::Relaxed);
                return;
            }
            if key.is_none() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// One request; where no answer comes, the next one goes to another node.
    fn ask(&mut self, name: &str, key: Option<&str>) -> Option<i64> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect()?,
        };
        let variables = json!({"name": name, "email": ""});
        let Ok(reply) = client.graphql(CREATE_USER, variables, key) else {
            self.at = (self.at + 1) % self.addresses.len();
            return None;
        };
        self.client = (self.habit == Habit::Keeps).then_some(client);
        if reply.status == 503 && reply.header("retry-after").is_none() {
            self.ledger.odd.push(format!("{name}: 503 without Retry-After: {}", reply.text()));
        }
        match reply.verdict("createUser") {
            Verdict::Done(user) => Some(id(&user)),
            Verdict::Unavailable => {
                std::thread::sleep(Duration::from_millis(100));
                None
            }
            // The first attempt is still on its way on another node.
            Verdict::Odd(text) if key.is_some() && text.contains("IDEMPOTENCY_KEY_IN_USE") => None,
            Verdict::Odd(text) => {
                self.ledger.odd.push(format!("{name}: {text}"));
                None
            }
        }
    }

    fn connect(&mut self) -> Option<Client> {
        let connected =
            Client::connect(self.addresses[self.at]).and_then(|client| client.patient_for(PATIENCE));
        if connected.is_err() {
            self.at = (self.at + 1) % self.addresses.len();
        }
        connected.ok()
    }
}
