//! Commands killed with SIGKILL at random moments and run again end in the right state, never with two live stores.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::gate::{Gate, Stop};
use super::site::{BOTH, On, Ran, Site, Store, tagless, timeless, trials};
use crate::power::chance::Chance;
use crate::support::command;

const RECORDS: u32 = 250;

/// Runs a command and kills it after a part of the time that it takes, or lets it end by itself.
fn kill_in_the_middle(site: &Site, arguments: &[&str], store: &Store, takes: Duration, chance: &mut Chance) {
    let flags = store.flags();
    let mut command = command(site.folder.path(), &site.arguments(arguments, &flags));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    std::thread::sleep(takes * u32::try_from(chance.below(100)).expect("small") / 100);
    // An error means that it is gone already.
    let _ = child.kill();
    child.wait().expect("a child of ours");
}

/// Once more; PostgreSQL may need a moment to notice that the killed one is gone.
fn again(site: &Site, arguments: &[&str], store: &Store) -> Ran {
    let begin = Instant::now();
    loop {
        let ran = site.run(arguments, store);
        let is_held = ran.err.contains("in use by a server or another command");
        if !is_held || begin.elapsed() > Duration::from_secs(30) {
            return ran;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Whether a server would serve what is there.
fn is_live(site: &Site, store: &Store) -> bool {
    let ran = again(site, &["migrate", "app", "--plan"], store);
    ran.code == 0 && !ran.out.contains("The store is empty")
}

#[test]
fn move_at_random_moments() {
    for on in BOTH {
        let site = Site::new();
        let mut from = site.filled(on, "from", RECORDS);
        let mut to = site.place(on.other(), "to");
        let before = site.served(&from);
        let mut takes = Duration::ZERO;
        for _ in 0..2 {
            takes = time(|| drop(site.must(&["move", "app", "--to", &to.target()], &from)));
            std::mem::swap(&mut from, &mut to);
        }
        let mut chance = Chance::new(u64::from(on == On::Sqlite) + 11);
        for _ in 0..trials() {
            let target = to.target();
            let arguments = ["move", "app", "--to", &target];
            kill_in_the_middle(&site, &arguments, &from, takes, &mut chance);
            assert!(!(is_live(&site, &from) && is_live(&site, &to)), "both are live");
            let ran = again(&site, &arguments, &from);
            assert!(ran.code == 0 || ran.err.contains("already"), "{}", ran.err);
            assert_eq!(site.served(&to), before);
            assert!(!is_live(&site, &from));
            std::mem::swap(&mut from, &mut to);
        }
    }
}

/// Killed before, within and after each of its commits: these moments are too short to be hit at random.
#[test]
fn move_between_its_commits() {
    for on in BOTH {
        let site = Site::new();
        let (from, to) = (site.filled(on, "from", 20), site.place(on.other(), "to"));
        let before = site.served(&from);
        let commits = move_through(&site, &from, &to, Stop::Never).commits();
        let back = || site.must(&["move", "app", "--to", &from.target()], &to);
        back();
        let stops = (1..=commits).flat_map(|n| [Stop::Before(n), Stop::Answer(n), Stop::After(n)]);
        let mut seen = std::collections::BTreeSet::new();
        for stop in stops {
            move_through(&site, &from, &to, stop);
            let live = (is_live(&site, &from), is_live(&site, &to));
            assert_ne!(live, (true, true), "both are live after {stop:?}");
            seen.insert(live);
            let ran = again(&site, &["move", "app", "--to", &to.target()], &from);
            assert!(ran.code == 0 || ran.err.contains("already"), "{stop:?}: {}", ran.err);
            assert_eq!(
                ran.out.contains("interrupted move is complete"),
                live == (false, false),
                "{stop:?}: {}",
                ran.out
            );
            assert_eq!(site.served(&to), before, "{stop:?}");
            assert!(!is_live(&site, &from), "{stop:?}");
            back();
        }
        assert_eq!(Vec::from_iter(seen), [(false, false), (false, true), (true, false)], "{on:?}");
    }
}

/// A move that is killed where the gate before its PostgreSQL stops, or comes to its end.
fn move_through(site: &Site, from: &Store, to: &Store, stop: Stop) -> Gate {
    through(site, &["move", "app", "--to", &to.target()], from, stop)
}

/// Any command on a store, with all that is PostgreSQL behind a gate.
fn through(site: &Site, arguments: &[&str], store: &Store, stop: Stop) -> Gate {
    let all: Vec<String> =
        arguments.iter().map(|argument| (*argument).to_owned()).chain(store.flags()).collect();
    let url = all.iter().find(|argument| argument.starts_with("postgres:"));
    let gate = Gate::before(url.expect("a store is on PostgreSQL"), stop);
    let all: Vec<String> = all.iter().map(|argument| gate.through(argument)).collect();
    let arguments: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut command = command(site.folder.path(), &arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    let begin = Instant::now();
    while !gate.is_stopped() && child.try_wait().expect("a child of ours").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{stop:?}: it neither stops nor ends");
        std::thread::sleep(Duration::from_millis(2));
    }
    // An error means that it is gone already.
    let _ = child.kill();
    child.wait().expect("a child of ours");
    gate
}

#[test]
fn backup_at_random_moments() {
    for on in BOTH {
        let site = Site::new();
        let store = site.filled(on, "store", RECORDS);
        let before = site.served(&store);
        let arguments = ["backup", "app", "--to", "aside.db"];
        let takes = time(|| drop(site.must(&arguments, &store)));
        let mut chance = Chance::new(u64::from(on == On::Sqlite) + 21);
        for number in 0..trials() {
            std::fs::remove_file(site.path("aside.db")).expect("it is there");
            kill_in_the_middle(&site, &arguments, &store, takes, &mut chance);
            site.must(&arguments, &store);
            assert!(site.files(".").iter().all(|name| !name.contains(".partial")), "{:?}", site.files("."));
            let restored = site.place(On::Sqlite, &format!("restored-{number}"));
            site.must(&["restore", "aside.db", "app"], &restored);
            assert_eq!(tagless(site.served(&restored)), tagless(before.clone()));
        }
    }
}

#[test]
fn restore_at_random_moments() {
    for on in BOTH {
        let site = Site::new();
        let (store, other) = (site.filled(on, "store", RECORDS), site.filled(On::Sqlite, "other", 20));
        let new = tagless(site.served(&other));
        site.must(&["backup", "app", "--to", "new.db"], &other);
        site.must(&["backup", "app", "--to", "old.db"], &store);
        let old = tagless(site.served(&store));
        let arguments = ["restore", "new.db", "app", "--overwrite"];
        let takes = time(|| drop(site.must(&arguments, &store)));
        let mut chance = Chance::new(u64::from(on == On::Sqlite) + 31);
        for _ in 0..trials() {
            assert_eq!(again(&site, &["restore", "old.db", "app", "--overwrite"], &store).code, 0);
            kill_in_the_middle(&site, &arguments, &store, takes, &mut chance);
            assert_eq!(again(&site, &["migrate", "app", "--plan"], &store).code, 0);
            let found = tagless(site.served(&store));
            assert!(found == old || found == new, "neither the one nor the other");
            let ran = again(&site, &arguments, &store);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert_eq!(tagless(site.served(&store)), new);
        }
    }
}

/// What is served once the killed command is gone for the database too.
fn settled(site: &Site, store: &Store) -> Vec<String> {
    assert_eq!(again(site, &["migrate", "app", "--plan"], store).code, 0);
    site.served(store)
}

/// On PostgreSQL too there is one commit: before it everything is old, after it everything is new.
#[test]
fn reset_before_and_after_its_commit() {
    let site = Site::new();
    let store = site.filled(On::Postgres, "store", 20);
    let fresh = tagless(site.served(&site.place(On::Postgres, "fresh")));
    let commits = through(&site, &["reset", "app", "--yes"], &store, Stop::Never).commits();
    assert_eq!(tagless(site.served(&store)), fresh);
    assert_eq!(commits, 1, "a second one would leave something between them");
    let store = site.filled(On::Postgres, "store", 20);
    let before = tagless(site.served(&store));
    through(&site, &["reset", "app", "--yes"], &store, Stop::Before(1));
    assert_eq!(tagless(settled(&site, &store)), before);
    through(&site, &["reset", "app", "--yes"], &store, Stop::Answer(1));
    assert_eq!(tagless(settled(&site, &store)), fresh);
}

#[test]
fn reset_and_fake_records_at_random_moments() {
    for on in BOTH {
        let site = Site::new();
        let store = site.place(on, "store");
        site.must(&["reset", "app", "--yes"], &store);
        let seeds = tagless(site.served(&store));
        let fake = ["seed", "app", "--fake", "600", "--seed", "9"];
        let fakes_take = time(|| drop(site.must(&fake, &store)));
        let filled = timeless(site.served(&store)).len();
        let reset = ["reset", "app", "--yes"];
        let reset_takes = time(|| drop(site.must(&reset, &store)));
        let mut chance = Chance::new(u64::from(on == On::Sqlite) + 41);
        for _ in 0..trials() {
            kill_in_the_middle(&site, &fake, &store, fakes_take, &mut chance);
            let found = timeless(settled(&site, &store)).len();
            assert!(found == 2 || found == filled, "{found} records are neither none nor all");
            let ran = again(&site, &fake, &store);
            assert_eq!(ran.code, 0, "{}", ran.err);
            let found = tagless(settled(&site, &store));
            kill_in_the_middle(&site, &reset, &store, reset_takes, &mut chance);
            let left = tagless(settled(&site, &store));
            assert!(left == found || left == seeds, "neither the old store nor the new one");
            let ran = again(&site, &reset, &store);
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert_eq!(tagless(site.served(&store)), seeds);
        }
    }
}
