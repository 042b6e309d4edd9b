//! A full or broken disk under a running server: writes are refused, reads work, and it recovers by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::check;
use super::client::Verdict;
use super::cuts::names;
use super::load::{Fate, Ledger, Load};
use super::rig::{self, Behaviour, EIO, ENOSPC, Rig};
use super::server::{DATA, Server};
use super::stand_in::assert_whole;

/// Long enough that a healthy server answers many times over.
const PHASE: Duration = Duration::from_millis(700);

#[test]
fn full_disk_refuses_only_writes() {
    survive(Behaviour::WritesFail(ENOSPC));
}

#[test]
fn disk_full_for_new_blocks_refuses_only_writes() {
    survive(Behaviour::Full);
}

#[test]
fn write_error_refuses_only_writes() {
    survive(Behaviour::WritesFail(EIO));
}

#[test]
fn sync_error_refuses_only_writes() {
    survive(Behaviour::SyncsFail(EIO));
}

/// Sound, bad, sound again, under load throughout; then every promise is checked, also after power cuts.
fn survive(bad: Behaviour) {
    let rig = Arc::new(Rig::new());
    let mut server = Server::on_simulated_disk(&rig);
    let ready = rig.moment();
    let before = during(&rig, &server, "before");
    rig.behave(bad);
    let meanwhile = while_bad(&rig, &server);
    rig.behave(Behaviour::Sound);
    assert!(heals(&server), "writes did not resume");
    let after = during(&rig, &server, "after");
    assert!(server.is_running(), "the server ended");
    let mut ledger = before;
    let refused = refused_names(&meanwhile);
    for part in [meanwhile, after] {
        ledger.absorb(part);
    }
    assert!(ledger.odd.is_empty(), "{}", ledger.odd.join("\n"));
    let served = names(&mut server.client());
    let ghosts: Vec<_> = refused.iter().filter(|name| served.contains_key(*name)).collect();
    assert!(ghosts.is_empty(), "refused and yet there: {ghosts:?}");
    server.kill();
    assert_whole(&rig);
    let found = complaints(&rig, ready, &ledger);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn during(rig: &Arc<Rig>, server: &Server, name: &str) -> Ledger {
    let load = Load::start(rig, server.address, name);
    load.work(PHASE, 50);
    assert_eq!(load.refused(), 0, "refused on a sound disk");
    load.finish()
}

/// Writers and a reader until something was refused; the reader never is.
fn while_bad(rig: &Arc<Rig>, server: &Server) -> Ledger {
    let load = Load::start(rig, server.address, "meanwhile");
    let (begin, mut client) = (Instant::now(), server.client());
    while begin.elapsed() < PHASE || load.refused() < 20 && begin.elapsed() < Duration::from_secs(30) {
        let answer =
            client.graphql("{ getUserById(id: 1) { name } }", json!({}), None).expect("the server runs");
        assert!(matches!(answer.verdict("getUserById"), Verdict::Done(_)), "a read: {answer:?}");
        assert!(!names(&mut client).is_empty());
        assert_eq!(client.get("/health/live").expect("the server runs").status, 200);
    }
    let counts = (load.acknowledged(), load.refused());
    let ledger = load.finish();
    assert!(ledger.odd.is_empty(), "{}", ledger.odd.join("\n"));
    assert!(counts.1 >= 20, "acknowledged and refused: {counts:?}");
    ledger
}

/// Whether a write succeeds within the time after which a client would try again.
fn heals(server: &Server) -> bool {
    let (begin, mut client) = (Instant::now(), server.client());
    let create = r#"mutation { createUser(name: "healed", email: "") { id } }"#;
    while begin.elapsed() < Duration::from_secs(10) {
        let answer = client.graphql(create, json!({}), None).expect("the server runs");
        if matches!(answer.verdict("createUser"), Verdict::Done(_)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

fn refused_names(ledger: &Ledger) -> Vec<String> {
    let refused = ledger.users.iter().filter(|user| matches!(user.fate, Fate::Refused));
    refused.map(|user| user.name.clone()).collect()
}

fn complaints(rig: &Rig, ready: u64, ledger: &Ledger) -> Vec<String> {
    let mut found = Vec::new();
    rig::cuts(rig, ready, 10, rig::seed(), |cut| {
        let database = cut.restore();
        let database = database.folder().join(DATA).join("trefoil.db");
        let lines = check::complaints(&database, ledger, cut.moment);
        found.extend(
            lines.into_iter().map(|line| format!("cut at {} ({:?}): {line}", cut.moment, cut.surviving)),
        );
    });
    found
}
