//! Concurrent writers that record, on the disk's clock, when each write was sent and when it was acknowledged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Verdict};
use super::follower::Followed;
use super::rig::Rig;

pub const CREATE_USER: &str =
    "mutation($name: String!, $email: String!) { createUser(name: $name, email: $email) { id name } }";
const CREATE_PRODUCT: &str = "mutation($name: String!) { createProduct(name: $name) { id } }";
const UPDATE_PRODUCT: &str =
    "mutation($id: ID!, $name: String!) { updateProduct(id: $id, name: $name) { id name } }";

const WRITERS: usize = 16;

/// All that the writers asked for and were told.
#[derive(Default)]
pub struct Ledger {
    pub users: Vec<User>,
    pub updates: Vec<Update>,
    /// What subscribers were told.
    pub followed: Vec<Followed>,
    /// Answers that the contract does not allow, and replays that were not the same.
    pub odd: Vec<String>,
}

/// A user that was to be created; moments are lengths of the journal.
pub struct User {
    pub name: String,
    pub key: Option<String>,
    pub sent: u64,
    pub fate: Fate<i64>,
}

/// The `count`th update of a product that one writer alone changes.
pub struct Update {
    pub product: i64,
    pub count: i64,
    pub sent: u64,
    pub fate: Fate<()>,
}

pub enum Fate<T> {
    /// No answer came: either way is right.
    Unknown,
    Refused,
    Acknowledged(u64, T),
}

impl<T> Fate<T> {
    /// What an acknowledgement up to this moment said.
    pub fn by(&self, moment: u64) -> Option<&T> {
        match self {
            Fate::Acknowledged(at, what) if *at <= moment => Some(what),
            Fate::Acknowledged(..) | Fate::Unknown | Fate::Refused => None,
        }
    }
}

impl Ledger {
    /// What is known to a machine that starts again after a cut at `moment`, where time begins anew.
    pub fn remembered(mut self, moment: u64) -> Ledger {
        self.users.retain(|user| user.sent <= moment);
        self.updates.retain(|update| update.sent <= moment);
        self.followed = self.followed.into_iter().map(|followed| followed.remembered(moment)).collect();
        for user in &mut self.users {
            (user.sent, user.fate) =
                (0, user.fate.by(moment).map_or(Fate::Unknown, |id| Fate::Acknowledged(0, *id)));
        }
        for update in &mut self.updates {
            (update.sent, update.fate) =
                (0, update.fate.by(moment).map_or(Fate::Unknown, |()| Fate::Acknowledged(0, ())));
        }
        self
    }

    pub fn absorb(&mut self, other: Ledger) {
        self.users.extend(other.users);
        self.updates.extend(other.updates);
        self.odd.extend(other.odd);
    }
}

/// Writers at work until [`Load::finish`], or until the server is gone.
pub struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Ledger>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
}

impl Load {
    /// `name` begins the names of all it creates.
    pub fn start(rig: &Arc<Rig>, address: SocketAddr, name: &str) -> Load {
        let shared = Arc::new(Shared::default());
        let spawn = |number: usize| {
            let (rig, shared, name) = (rig.clone(), shared.clone(), format!("{name} {number}"));
            std::thread::spawn(move || {
                Writer { rig, shared, address, name, ledger: Ledger::default() }.work()
            })
        };
        Load { writers: (0..WRITERS).map(spawn).collect(), shared }
    }

    /// Creates that were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    /// Creates that were refused so far.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Lets the writers work for this time, and longer on a slow machine until so many creates were acknowledged.
    pub fn work(&self, time: Duration, creates: usize) {
        let begin = Instant::now();
        while begin.elapsed() < time
            || self.acknowledged() < creates && begin.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(
            self.acknowledged() >= creates,
            "only {} creates in {:?}",
            self.acknowledged(),
            begin.elapsed()
        );
    }

    pub fn finish(self) -> Ledger {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut ledger = Ledger::default();
        for writer in self.writers {
            ledger.absorb(writer.join().expect("writers do not panic"));
        }
        ledger
    }
}

struct Writer {
    rig: Arc<Rig>,
    shared: Arc<Shared>,
    address: SocketAddr,
    name: String,
    ledger: Ledger,
}

impl Writer {
    fn work(mut self) -> Ledger {
        // An error of the connection ends the work: the server was killed.
        if let Ok(mut client) = Client::connect(self.address) {
            let _ = self.write(&mut client);
        }
        self.ledger
    }

    fn write(&mut self, client: &mut Client) -> std::io::Result<()> {
        let mut product = None;
        for round in 1.. {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            match (round % 4, product) {
                (0, Some((id, count))) => product = Some((id, self.update(client, id, count + 1)?)),
                (0, None) => product = self.product(client)?.map(|id| (id, 0)),
                (1 | 2 | 3.., _) => self.create(client, round)?,
            }
        }
        Ok(())
    }

    /// Every third create has a key, and every second of those is sent again after its answer.
    fn create(&mut self, client: &mut Client, round: u64) -> std::io::Result<()> {
        let name = format!("{} {round}", self.name);
        let key = round.is_multiple_of(3).then(|| format!("key of {name}"));
        let variables = json!({"name": name, "email": format!("{round}@example.org")});
        let user = User { name, key: key.clone(), sent: self.rig.moment(), fate: Fate::Unknown };
        self.ledger.users.push(user);
        let fate = match client.graphql(CREATE_USER, variables.clone(), key.as_deref())?.verdict("createUser")
        {
            Verdict::Done(user) => Fate::Acknowledged(self.rig.moment(), id(&user)),
            Verdict::Unavailable => Fate::Refused,
            Verdict::Odd(text) => return self.odd(text),
        };
        let known = fate.by(u64::MAX).copied();
        let counter = if known.is_some() { &self.shared.acknowledged } else { &self.shared.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        self.ledger.users.last_mut().expect("just pushed").fate = fate;
        if let (Some(known), Some(key), 0) = (known, key, round % 2) {
            self.replay(client, variables, &key, known)?;
        }
        Ok(())
    }

    fn replay(
        &mut self,
        client: &mut Client,
        variables: Value,
        key: &str,
        known: i64,
    ) -> std::io::Result<()> {
        match client.graphql(CREATE_USER, variables, Some(key))?.verdict("createUser") {
            Verdict::Done(user) if id(&user) == known => Ok(()),
            Verdict::Done(user) => self.odd(format!("{key} first made {known} and then {user}")),
            Verdict::Unavailable => Ok(()),
            Verdict::Odd(text) => self.odd(text),
        }
    }

    fn product(&mut self, client: &mut Client) -> std::io::Result<Option<i64>> {
        match client.graphql(CREATE_PRODUCT, json!({"name": "0"}), None)?.verdict("createProduct") {
            Verdict::Done(product) => Ok(Some(id(&product))),
            Verdict::Unavailable => Ok(None),
            Verdict::Odd(text) => self.odd(text).map(|()| None),
        }
    }

    fn update(&mut self, client: &mut Client, product: i64, count: i64) -> std::io::Result<i64> {
        self.ledger.updates.push(Update { product, count, sent: self.rig.moment(), fate: Fate::Unknown });
        let variables = json!({"id": product.to_string(), "name": count.to_string()});
        let fate = match client.graphql(UPDATE_PRODUCT, variables, None)?.verdict("updateProduct") {
            Verdict::Done(_) => Fate::Acknowledged(self.rig.moment(), ()),
            Verdict::Unavailable => Fate::Refused,
            Verdict::Odd(text) => return self.odd(text).map(|()| count),
        };
        self.ledger.updates.last_mut().expect("just pushed").fate = fate;
        Ok(count)
    }

    fn odd(&mut self, text: String) -> std::io::Result<()> {
        self.ledger.odd.push(format!("{}: {text}", self.name));
        Ok(())
    }
}

/// The id of a record, which the server writes as text.
pub fn id(record: &Value) -> i64 {
    record["id"].as_str().and_then(|text| text.parse().ok()).expect("an id is an integer in a string")
}
