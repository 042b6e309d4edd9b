//! Compares a database with the responses acknowledged by a given moment; every difference is one line.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::{Connection, Result};

use super::load::{Fate, Ledger, User};

/// Each complaint about a database after a cut at `moment`, by which nothing that was acknowledged may be missing.
pub fn complaints(database: &Path, ledger: &Ledger, moment: u64) -> Vec<String> {
    let mut found = Vec::new();
    if let Err(error) = examine(database, ledger, moment, &mut found) {
        found.push(format!("the database cannot be read: {error}"));
    }
    found
}

fn examine(database: &Path, ledger: &Ledger, moment: u64, found: &mut Vec<String>) -> Result<()> {
    let database = Connection::open(database)?;
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict != "ok" {
        found.push(format!("the database is damaged: {verdict}"));
    }
    let dangling = database.prepare("PRAGMA foreign_key_check")?.exists([])?;
    if dangling {
        found.push("a reference points nowhere".to_owned());
    }
    users(&database, ledger, moment, found)?;
    updates(&database, ledger, moment, found)?;
    changes(&database, ledger, moment, found)?;
    for followed in &ledger.followed {
        found.extend(followed.complaints(&database, moment)?);
    }
    Ok(())
}

/// Acknowledged: there once, under the id that was told. Otherwise: at most once, and not before it was sent.
fn users(database: &Connection, ledger: &Ledger, moment: u64, found: &mut Vec<String>) -> Result<()> {
    let mut there: HashMap<String, Vec<i64>> = HashMap::new();
    let mut statement = database.prepare("SELECT id, name FROM users")?;
    for row in statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))? {
        let (id, name) = row?;
        there.entry(name).or_default().push(id);
    }
    for user in &ledger.users {
        let ids = there.get(&user.name).map_or(&[][..], Vec::as_slice);
        found.extend(complaint(user, ids, moment));
    }
    Ok(())
}

fn complaint(user: &User, ids: &[i64], moment: u64) -> Option<String> {
    let name = &user.name;
    match (user.fate.by(moment), ids) {
        (Some(id), []) => Some(format!("lost: {name}, acknowledged as {id}")),
        (Some(id), [one]) if one != id => Some(format!("moved: {name}, acknowledged as {id}, is {one}")),
        (_, [_, _, ..]) => Some(format!("doubled: {name} is {ids:?}")),
        (None, [id]) if user.sent > moment => Some(format!("early: {name} is {id} before it was sent")),
        (Some(_), [_]) | (None, [_] | []) => None,
    }
}

/// A product shows its last acknowledged update or a later one, and a version that fits it.
fn updates(database: &Connection, ledger: &Ledger, moment: u64, found: &mut Vec<String>) -> Result<()> {
    let mut products: BTreeMap<i64, Vec<_>> = BTreeMap::new();
    for update in ledger.updates.iter().filter(|update| update.sent <= moment) {
        products.entry(update.product).or_default().push(update);
    }
    for (product, sent) in products {
        let state =
            database.query_row("SELECT name, _version FROM products WHERE id = ?1", [product], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            });
        let Ok((name, version)) = state else {
            found.push(format!("lost: product {product}, acknowledged before its updates were sent"));
            continue;
        };
        let told =
            sent.iter().filter(|update| update.fate.by(moment).is_some()).map(|update| update.count).max();
        let unsure = sent.iter().filter(|update| matches!(update.fate, Fate::Refused)).count() as i64;
        let count: i64 = name.parse().unwrap_or(-1);
        if count < told.unwrap_or(0) || count > sent.len() as i64 {
            found.push(format!("lost: product {product} is at update {count}, acknowledged was {told:?}"));
        }
        // Version 1 is the creation; an update that was refused may or may not count.
        if version > 1 + count || version < 1 + count - unsure {
            found.push(format!("product {product} is at update {count} but at version {version}"));
        }
    }
    Ok(())
}

/// The change log tells the records: each user created once, in the order clients could observe, versions agreeing.
fn changes(database: &Connection, ledger: &Ledger, moment: u64, found: &mut Vec<String>) -> Result<()> {
    const MISMATCHES: &str = "
        SELECT 'user ' || id || ' has ' || count(number) || ' created changes' FROM users
            LEFT JOIN trefoil_changes ON record = users.id AND deed = 'created' AND resource IN ('User', 'users')
            GROUP BY id HAVING count(number) <> 1
        UNION ALL
        SELECT 'change ' || number || ' tells of user ' || record || ', who is not there' FROM trefoil_changes
            WHERE resource IN ('User', 'users') AND deed <> 'deleted' AND record NOT IN (SELECT id FROM users)
        UNION ALL
        SELECT 'user ' || id || ' is at version ' || _version || ', its last change at ' || max(version) FROM users
            JOIN trefoil_changes ON record = users.id AND resource IN ('User', 'users')
            GROUP BY id HAVING max(version) <> _version
        UNION ALL
        SELECT 'change numbers could be given twice: ' || seq FROM sqlite_sequence
            WHERE name = 'trefoil_changes' AND seq < (SELECT max(number) FROM trefoil_changes)";
    let mut statement = database.prepare(MISMATCHES)?;
    for line in statement.query_map([], |row| row.get(0))? {
        found.push(line?);
    }
    order(database, ledger, moment, found)
}

/// A change that was acknowledged before another was sent has the lower number.
fn order(database: &Connection, ledger: &Ledger, moment: u64, found: &mut Vec<String>) -> Result<()> {
    let mut statement = database.prepare(
        "SELECT record, number FROM trefoil_changes WHERE deed = 'created' AND resource IN ('User', 'users')",
    )?;
    let numbers: HashMap<i64, i64> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?;
    let mut spans: Vec<(u64, u64, i64)> = Vec::new();
    for user in &ledger.users {
        if let Fate::Acknowledged(at, id) = &user.fate
            && *at <= moment
            && let Some(number) = numbers.get(id)
        {
            spans.push((user.sent, *at, *number));
        }
    }
    let mut ended = spans.clone();
    ended.sort_unstable_by_key(|(_, at, _)| *at);
    spans.sort_unstable();
    let (mut next, mut highest) = (0, 0);
    for (sent, _, number) in spans {
        while ended[next].1 < sent {
            highest = highest.max(ended[next].2);
            next += 1;
        }
        if number < highest {
            found.push(format!("change {number} was made after {highest} was acknowledged"));
        }
    }
    Ok(())
}
