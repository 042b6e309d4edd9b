//! Tests of the simulated disk itself, with a plain SQLite loop whose safe and unsafe settings are known.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rusqlite::Connection;

use super::chance::Chance;
use super::disk::{Disk, Image, SurvivingWrites};
use super::rig::{self, Rig};

const CHILD: &str = "power::stand_in::child_that_writes_rows";

/// The program under test: this very binary, with one test chosen. It tells each row on standard output as soon as
/// SQLite says it is committed.
#[test]
#[ignore = "runs as the child of the tests below"]
fn child_that_writes_rows() {
    let setting = |name: &str| std::env::var(name).expect("the parent sets it");
    let folder = PathBuf::from(setting("STAND_IN_FOLDER"));
    std::fs::create_dir(&folder).expect("the folder is new");
    let parent = std::fs::File::open(folder.parent().expect("a parent")).expect("a readable folder");
    parent.sync_all().expect("a sound disk");
    let database = open(&folder, &setting("STAND_IN_SYNCHRONOUS"));
    for row in 1..=setting("STAND_IN_ROWS").parse::<i64>().expect("a number") {
        let text = "x".repeat((row as usize * 37) % 3000);
        database.execute("INSERT INTO rows (id, text) VALUES (?1, ?2)", (row, text)).expect("a sound disk");
        writeln!(std::io::stdout().lock(), "\nrow {row}").expect("the parent listens");
    }
    std::io::stdin().read_line(&mut String::new()).expect("the parent closes it");
}

fn open(folder: &Path, synchronous: &str) -> Connection {
    let database = Connection::open(folder.join("rows.db")).expect("a database");
    database.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    database.pragma_update(None, "synchronous", synchronous).expect("a level");
    database.pragma_update(None, "wal_autocheckpoint", 60).expect("a number of pages");
    let tables =
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL); CREATE INDEX texts ON rows (text);";
    database.execute_batch(tables).expect("an empty database");
    database
}

fn start(rig: &Rig, synchronous: &str, rows: usize) -> Child {
    rig.command(std::env::current_exe().expect("this binary"))
        .args([CHILD, "--exact", "--ignored", "--nocapture"])
        .env("STAND_IN_FOLDER", rig.folder().join("data"))
        .env("STAND_IN_SYNCHRONOUS", synchronous)
        .env("STAND_IN_ROWS", rows.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this binary starts")
}

/// Reads acknowledgements, with the disk's clock, until `rows` have come.
fn listen(rig: &Rig, child: &mut Child, rows: usize) -> Vec<(i64, u64)> {
    let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let acknowledged = lines.map_while(Result::ok).filter_map(|line| {
        let row = line.strip_prefix("row ")?.parse().ok()?;
        Some((row, rig.moment()))
    });
    acknowledged.take(rows).collect()
}

/// The first complaint about what a cut left, if any.
fn complaint(folder: &Path, acknowledged: &[(i64, u64)], moment: u64) -> Option<String> {
    let promised = acknowledged.iter().filter(|(_, at)| *at <= moment).map(|(row, _)| *row).max();
    let kept = match kept(folder) {
        Ok(kept) => kept,
        Err(_) if promised.is_none() => return None,
        Err(error) => return Some(error),
    };
    (kept < promised.unwrap_or(0))
        .then(|| format!("row {promised:?} was acknowledged, but only {kept} are there"))
}

/// How many rows are there, without a gap; or what is wrong with the database.
fn kept(folder: &Path) -> Result<i64, String> {
    let path = folder.join("data/rows.db");
    let text = |error: rusqlite::Error| error.to_string();
    let database = Connection::open(path).map_err(text)?;
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(text)?;
    let count = "SELECT count(*), coalesce(max(id), 0) FROM rows";
    let (count, last): (i64, i64) =
        database.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(text)?;
    if verdict != "ok" || count != last {
        return Err(format!("{count} rows up to number {last}: {verdict}"));
    }
    Ok(count)
}

/// Runs the child, kills it in full flight, and tells what is wrong after each of `count` power cuts.
fn complaints(synchronous: &str, count: usize) -> Vec<String> {
    let rig = Rig::new();
    let mut child = start(&rig, synchronous, 1_000_000);
    let acknowledged = listen(&rig, &mut child, 300);
    child.kill().expect("it runs for ever");
    child.wait().expect("it was killed");
    let mut found = Vec::new();
    rig::cuts(&rig, 0, count, rig::seed(), |cut| {
        let complaint = complaint(&cut.restore().folder(), &acknowledged, cut.moment);
        found.extend(complaint.map(|text| format!("cut at {}, {:?}: {text}", cut.moment, cut.surviving)));
    });
    found
}

#[test]
fn sqlite_that_syncs_every_commit_passes() {
    let found = complaints("FULL", 60);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The control: a missing sync that `kill -9` would never show is found.
#[test]
fn sqlite_that_syncs_checkpoints_alone_is_caught() {
    let found = complaints("NORMAL", 20);
    assert!(found.iter().any(|text| text.contains("acknowledged")), "{found:?}");
}

/// The other control: without any sync the database itself breaks, which needs torn and reordered writes.
#[test]
fn sqlite_that_never_syncs_breaks() {
    let found = complaints("OFF", 20);
    assert!(
        found.iter().any(|text| text.contains("malformed") || text.contains("up to number")),
        "{found:?}"
    );
}

/// Nothing bypasses the shim: with nothing lost, the journal gives the folder byte for byte.
#[test]
fn journal_reproduces_the_whole_folder() {
    let rig = Rig::new();
    let mut child = start(&rig, "FULL", 200);
    assert_eq!(listen(&rig, &mut child, 200).len(), 200);
    assert_whole(&rig);
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends by itself");
    assert!(output.status.success());
    assert_whole(&rig);
}

/// Compares the journal's last state with the real folder.
pub fn assert_whole(rig: &Rig) {
    let (journal, mut disk): (_, Disk<'_>) = (rig.journal(), rig.disk());
    journal.records().iter().for_each(|record| disk.apply(record));
    let without_maps = |image: Image| -> BTreeMap<_, _> {
        image.into_iter().filter(|(path, _)| !path.ends_with("-shm")).collect()
    };
    let told = without_maps(disk.cut(SurvivingWrites::Everything, &mut Chance::new(0)));
    let mut real = Image::new();
    gather(&rig.folder(), "", &mut real);
    let real = without_maps(real);
    assert_eq!(told.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
    for (path, bytes) in &real {
        assert!(told[path] == *bytes, "{path} differs from what the journal tells");
    }
}

fn gather(folder: &Path, prefix: &str, into: &mut Image) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("a readable folder");
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            gather(&entry.path(), &format!("{path}/"), into);
            into.insert(path, None);
        } else {
            into.insert(path, Some(std::fs::read(entry.path()).expect("a readable file")));
        }
    }
}
