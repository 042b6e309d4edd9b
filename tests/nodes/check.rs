//! Compares the responses to writers and the events of subscribers with the database; every difference is one line.

use std::collections::HashMap;
use std::path::Path;

use super::followers::Seen;
use super::writers::{Fate, Ledger};
use crate::support::postgres::sql;

/// The users in a database, and the log of their creation, in order.
pub struct Truth {
    pub users: Vec<(i64, String)>,
    pub created: Vec<String>,
}

const USERS: &str = "SELECT id, name FROM users";

impl Truth {
    pub fn on_postgres(url: &str) -> Truth {
        let users = sql(url, &format!("SELECT json_build_array(id, name) FROM ({USERS}) AS u"));
        let users = users.lines().map(|line| serde_json::from_str(line).expect("an id and a name")).collect();
        // Numbers are given when somebody asks.
        let created = sql(
            url,
            "SELECT trefoil_number_changes(); SELECT to_json(image->>'name') FROM trefoil_changes
             WHERE resource IN ('User', 'users') AND deed = 'created' ORDER BY number",
        );
        let names = created.lines().filter(|line| line.starts_with('"'));
        Truth { users, created: names.map(|line| serde_json::from_str(line).expect("a name")).collect() }
    }

    pub fn on_sqlite(database: &Path) -> Truth {
        let database = rusqlite::Connection::open(database).expect("a database");
        let mut users = database.prepare(USERS).expect("a table of users");
        let users = users.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("readable");
        let mut created = database
            .prepare(
                "SELECT json_extract(image, '$.name') FROM trefoil_changes
                 WHERE resource IN ('User', 'users') AND deed = 'created' ORDER BY number",
            )
            .expect("a log");
        let created = created.query_map([], |row| row.get(0)).expect("readable");
        Truth { users: users.map(Result::unwrap).collect(), created: created.map(Result::unwrap).collect() }
    }
}

/// Acknowledged: there once, under the id that was told. Unknown: at most once. And the log tells of each once.
pub fn writes(truth: &Truth, ledger: &Ledger) -> Vec<String> {
    let mut there: HashMap<&str, Vec<i64>> = HashMap::new();
    for (id, name) in &truth.users {
        there.entry(name).or_default().push(*id);
    }
    let mut found: Vec<String> = ledger.odd.clone();
    for (name, fate) in &ledger.users {
        let ids = there.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        match (fate, ids) {
            (Fate::Acknowledged(id), []) => found.push(format!("lost: {name}, acknowledged as {id}")),
            (Fate::Acknowledged(id), [one]) if one != id => {
                found.push(format!("moved: {name}, acknowledged as {id}, is {one}"));
            }
            (_, [_, _, ..]) => found.push(format!("doubled: {name} is {ids:?}")),
            (Fate::Acknowledged(_), [_]) | (Fate::Unknown, [_] | []) => {}
        }
    }
    let mut told: HashMap<&str, usize> = HashMap::new();
    for name in &truth.created {
        *told.entry(name).or_default() += 1;
    }
    for (name, ids) in &there {
        let times = told.remove(name).unwrap_or(0);
        if times != ids.len() {
            found.push(format!("{name} is there {} times and the log tells of {times}", ids.len()));
        }
    }
    found.extend(told.keys().map(|name| format!("the log tells of {name}, who is not there")));
    found
}

/// A subscriber that began after `before` creations has seen each later one once, in the order of the log.
pub fn events(truth: &Truth, before: usize, seen: &Seen) -> Vec<String> {
    let mut found = seen.odd.clone();
    let expected = &truth.created[before..];
    if let Some(at) =
        (0..expected.len().max(seen.names.len())).find(|&at| expected.get(at) != seen.names.get(at))
    {
        found.push(format!(
            "event {at} is {:?} where the log has {:?}; {} events for {} changes",
            seen.names.get(at),
            expected.get(at),
            seen.names.len(),
            expected.len()
        ));
    }
    found
}

#[test]
fn checker_notices_every_loss_and_duplicate() {
    let name = |id: i64| format!("user {id}");
    let truth =
        || Truth { users: (1..=9).map(|id| (id, name(id))).collect(), created: (1..=9).map(name).collect() };
    let ledger = |fate: fn(i64) -> Fate| Ledger {
        users: (1..=9).map(|id| (name(id), fate(id))).collect(),
        odd: Vec::new(),
    };
    let told = ledger(Fate::Acknowledged);
    assert!(writes(&truth(), &told).is_empty());
    assert!(writes(&truth(), &ledger(|_| Fate::Unknown)).is_empty());
    let with = |change: fn(&mut Truth)| {
        let mut truth = truth();
        change(&mut truth);
        writes(&truth, &told).len()
    };
    assert_eq!(with(|truth| drop((truth.users.pop(), truth.created.pop()))), 1, "a write was lost");
    assert_eq!(with(|truth| drop(truth.created.pop())), 1, "a write left no change");
    assert_eq!(with(|truth| truth.created.push("user 3".into())), 1, "a change without a write");
    assert_eq!(with(|truth| truth.users.push((10, "user 3".into()))), 2, "a write was done twice");
    assert_eq!(with(|truth| truth.users[2].0 = 33), 1, "another id was told");

    let seen = |names: Vec<String>| events(&truth(), 2, &Seen { names, ..Seen::default() }).len();
    let all: Vec<String> = (3..=9).map(name).collect();
    assert_eq!(seen(all.clone()), 0);
    assert_eq!(seen(all[..6].to_vec()), 1, "the last one is missing");
    assert_eq!(seen([&all[..3], &all[4..]].concat()), 1, "one is missing");
    assert_eq!(seen([&all[..3], &all[2..]].concat()), 1, "one came twice");
    assert_eq!(seen([&all[..2], &all[3..4], &all[2..3], &all[4..]].concat()), 1, "two changed places");
}
