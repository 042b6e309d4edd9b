//! Power cuts of a server under concurrent writes: no acknowledged write is ever lost.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::check;
use super::client::{Client, Verdict};
use super::disk::Image;
use super::follower::{self, Followed, Following};
use super::load::{CREATE_USER, Ledger, Load, id};
use super::rig::{self, Behaviour, Cut, Rig};
use super::server::{DATA, Server};
use crate::support::is_long;

/// A server that worked for a while and was then killed, and what its clients knew.
struct Life {
    rig: Arc<Rig>,
    /// When the server was ready: from then on there is a database.
    ready: u64,
    ledger: Ledger,
}

/// What a life may begin with: a disk after a cut, and what was acknowledged before.
type Heritage = (Image, Ledger);

fn live((image, mut ledger): Heritage, name: &str, behaviour: Behaviour, time: Duration) -> Life {
    let rig = Arc::new(Rig::holding(image));
    let mut server = Server::on_simulated_disk(&rig);
    let ready = rig.moment();
    rig.behave(behaviour);
    let following = Following::start(&rig, server.address, std::mem::take(&mut ledger.followed));
    let load = Load::start(&rig, server.address, name);
    load.work(time, 200);
    server.kill();
    let now = load.finish();
    ledger.followed = following.finish();
    assert!(ledger.followed.iter().all(Followed::was_told), "a subscriber was told nothing");
    assert!(now.odd.is_empty(), "{}", now.odd.join("\n"));
    ledger.absorb(now);
    Life { rig, ready, ledger }
}

/// In each life.
const CUTS: usize = 10;

/// How many cuts in all.
fn total() -> usize {
    if is_long() { 200 } else { 20 }
}

/// Ten cuts in one life: the complaints about what each left, and what the last one did.
fn complaints(life: &Life, seed: u64) -> (Vec<String>, Option<Cut>) {
    let (mut found, mut number, mut last) = (Vec::new(), 0, None);
    rig::cuts(&life.rig, life.ready, CUTS, seed, |cut| {
        let restored = cut.restore();
        let database = restored.folder().join(DATA).join("trefoil.db");
        let lines = check::complaints(&database, &life.ledger, cut.moment);
        found.extend(lines.iter().map(|line| format!("cut at {} ({:?}): {line}", cut.moment, cut.surviving)));
        if number % 3 == 0 && lines.is_empty() {
            found.extend(started_again(&restored.folder(), &life.ledger, cut.moment));
        }
        (number, last) = (number + 1, Some(cut));
    });
    (found, last)
}

/// The server itself finds on the disk what its clients were told, and keys still hold.
fn started_again(folder: &Path, ledger: &Ledger, moment: u64) -> Vec<String> {
    let server = Server::on(folder);
    let mut client = server.client();
    let mut found = replays(&mut client, ledger, moment);
    let database = folder.join(DATA).join("trefoil.db");
    for followed in &ledger.followed {
        found.extend(follower::resumed(server.address, &database, followed, moment));
    }
    let served = names(&mut client);
    for user in ledger.users.iter().filter(|user| user.sent <= moment) {
        let times = served.get(&user.name).copied().unwrap_or(0);
        let due = user.key.is_some() || user.fate.by(moment).is_some();
        if times > 1 || due && times == 0 {
            found.push(format!("{} is served {times} times after the cut", user.name));
        }
    }
    found
}

/// Sends every request that had a key again: what was acknowledged gives the same record, the rest is done now.
fn replays(client: &mut Client, ledger: &Ledger, moment: u64) -> Vec<String> {
    let mut found = Vec::new();
    for user in ledger.users.iter().filter(|user| user.sent <= moment) {
        let Some(key) = &user.key else { continue };
        let round = user.name.rsplit(' ').next().expect("names end in a number");
        let variables = json!({"name": user.name, "email": format!("{round}@example.org")});
        let answer = client.graphql(CREATE_USER, variables, Some(key)).expect("the server runs");
        match (answer.verdict("createUser"), user.fate.by(moment)) {
            (Verdict::Done(again), Some(known)) if id(&again) != *known => {
                found.push(format!("{key} made {known}, and after the cut {again}"));
            }
            (Verdict::Done(_), Some(_) | None) => {}
            (Verdict::Unavailable | Verdict::Odd(_), _) => found.push(format!("{key}: {answer:?}")),
        }
    }
    found
}

/// The names of all users, and how often each is there.
pub fn names(client: &mut Client) -> HashMap<String, usize> {
    let answer = client.graphql("{ getAllUsers { name } }", json!({}), None).expect("the server runs");
    let Verdict::Done(Value::Array(users)) = answer.verdict("getAllUsers") else { panic!("{answer:?}") };
    let mut names = HashMap::new();
    for user in users.iter().filter_map(|user| user["name"].as_str()) {
        *names.entry(user.to_owned()).or_default() += 1;
    }
    names
}

fn assert_none(found: &[String], rig: Arc<Rig>) {
    if found.is_empty() {
        return;
    }
    let kept = Arc::into_inner(rig).expect("the writers are done").keep();
    let some = &found[..found.len().min(30)];
    panic!("{} with seed {}, all kept in {}:\n{}", found.len(), rig::seed(), kept.display(), some.join("\n"));
}

/// Several runs, since one killed server shows one order of events; most continue with what the last cut left.
#[test]
fn power_cut_loses_no_acknowledged_write() {
    let mut heritage = Heritage::default();
    for number in 0..total() / CUTS {
        let time = Duration::from_millis(900 + number as u64 % 5 * 200);
        let life = live(heritage, &format!("writer {number}"), Behaviour::Sound, time);
        let (found, last) = complaints(&life, rig::seed().wrapping_add(number as u64));
        assert_none(&found, life.rig);
        let last = last.expect("there are cuts");
        heritage = if number % 4 == 3 {
            Heritage::default()
        } else {
            (last.image, life.ledger.remembered(last.moment))
        };
    }
}

/// The control: if the syncs were missing, the test above would fail.
#[test]
fn disk_that_fakes_syncs_is_noticed() {
    let life = live(Heritage::default(), "writer", Behaviour::Lying, Duration::from_millis(600));
    let (found, _) = complaints(&life, rig::seed());
    let signs = ["lost: ", "damaged", "cannot be read"];
    assert!(found.iter().any(|line| signs.iter().any(|sign| line.contains(sign))), "{found:?}");
}

/// Cuts during the very first start: the server starts on what is left, and serves.
#[test]
fn power_cut_during_the_first_start_still_starts() {
    let rig = Rig::new();
    let mut server = Server::on_simulated_disk(&rig);
    server.kill();
    rig::cuts(&rig, 0, 8, rig::seed(), |cut| {
        let restored = cut.restore();
        let server = Server::on(&restored.folder());
        let mut client = server.client();
        let variables = json!({"name": "Ada", "email": "ada@example.org"});
        let answer = client.graphql(CREATE_USER, variables, None).expect("the server runs");
        assert!(
            matches!(answer.verdict("createUser"), Verdict::Done(_)),
            "cut at {}: {answer:?}",
            cut.moment
        );
    });
}
