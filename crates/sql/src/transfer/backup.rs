//! Puts a store aside while it is being written: one moment of it, in one SQLite file whichever database it comes from.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::transfer::copied_table::{CHANGES, Datum, Sum, changes};
use crate::transfer::copy::{compare, copy, each_page, records, sums};
use crate::transfer::partial_file::Partial;
use crate::transfer::store_handle::End;
use crate::transfer::store_metadata::{BACKUP, Facts, STORE};
use crate::transfer::{Failed, Place, Progress, move_record, postgres, sqlite};

/// What a backup says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Label {
    /// When it was begun.
    pub at: String,
    /// The number of the last change whose number is also the store's. Those behind it had none there yet.
    pub sure: i64,
    pub sums: Vec<Sum>,
}

/// A backup that was made and verified.
#[derive(Debug)]
pub struct Aside {
    pub path: PathBuf,
    pub records: u64,
    pub rows: u64,
    /// Which store it is of.
    pub store: String,
}

/// Everything that was committed when it began, in the file `to`. A file that is there gives way if it is a backup of
/// the same store.
pub async fn backup(from: &Place, to: &Path, progress: &mut dyn Progress) -> Result<Aside, Failed> {
    let begun = jiff::Timestamp::now().to_string();
    let source = snapshot(from).await?;
    let facts = Facts::of(&source).await?;
    let facts = facts.ok_or_else(|| Failed(format!("{from}: there is no store yet")))?;
    move_record::refuse(|key| Ok(facts.meta.get(key).cloned()))?;
    refuse_foreign(to, facts.store())?;
    let partial = Partial::beside(to)?;
    let written = match source {
        End::Sqlite(source) => pages(source, partial.path(), &facts, progress).await,
        End::Postgres(_) => rows(source, partial.path(), &facts, progress).await,
    };
    let (file, sums) = written.map_err(|failed| failed.while_doing(to.display()))?;
    let label = Label { at: begun, sure: facts.last_change, sums };
    file.put_meta(BACKUP, &serde_json::to_string(&label).map_err(|error| Failed(error.to_string()))?).await?;
    if let End::Sqlite(connection) = &file {
        sqlite::check(connection)?;
    }
    drop(file);
    partial.place(to)?;
    let (records, rows) = (records(&facts, &label.sums), label.sums.iter().map(|sum| sum.rows).sum());
    Ok(Aside { path: to.to_owned(), records, rows, store: facts.store().to_owned() })
}

/// The store in a transaction that sees one moment of it and is in nobody's way.
async fn snapshot(from: &Place) -> Result<End, Failed> {
    match from {
        Place::File(path) => {
            let connection = sqlite::open(path)?;
            connection.execute_batch("BEGIN")?;
            Ok(End::Sqlite(connection))
        }
        Place::Postgres(url) => {
            let client = crate::postgres::alone(url).await.map_err(Failed)?;
            postgres::prepare(&client).await?;
            let end = End::Postgres(client);
            if let (End::Postgres(client), true) = (&end, end.is_store().await?) {
                postgres::number_changes(client).await?;
            }
            end.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            Ok(end)
        }
    }
}

/// From SQLite: the file itself, so that what other programs keep in it is there too.
async fn pages(
    source: Connection,
    path: &Path,
    facts: &Facts,
    progress: &mut dyn Progress,
) -> Result<(End, Vec<Sum>), Failed> {
    let mut target = sqlite::create(path)?;
    sqlite::copy_file(&source, &mut target, progress)?;
    drop(target);
    let source = End::Sqlite(source);
    let read = sums(&source, facts, progress).await?;
    drop(source);
    let file = End::Sqlite(sqlite::alone(path)?);
    let written = sums(&file, facts, progress).await?;
    compare(&read, &written)?;
    file.remove_meta(move_record::CAME).await?;
    Ok((file, written))
}

async fn rows(
    source: End,
    path: &Path,
    facts: &Facts,
    progress: &mut dyn Progress,
) -> Result<(End, Vec<Sum>), Failed> {
    let file = End::Sqlite(sqlite::create(path)?);
    file.run("BEGIN").await?;
    let read = copy(&source, &file, facts, progress).await?;
    file.run("COMMIT").await?;
    let mut written = sums(&file, facts, progress).await?;
    compare(&read, &written)?;
    if append_unnumbered(&source, &file, facts.last_change).await? {
        written = sums(&file, facts, progress).await?;
    }
    drop(file);
    Ok((End::Sqlite(sqlite::alone(path)?), written))
}

/// What was committed since the last numbering has no number yet. In the copy it gets the next ones; the store may give
/// it others, which is why the label says up to where numbers are sure.
async fn append_unnumbered(source: &End, file: &End, last: i64) -> Result<bool, Failed> {
    let (from, to) = (changes("sequence", "trefoil_unnumbered"), changes("number", CHANGES));
    let (mut number, mut sink) = (last, file.begin_writing(&to).await?);
    each_page(source, &from, async |mut rows| {
        for row in &mut rows {
            number += 1;
            row[0] = Datum::Int(number);
        }
        sink.write(&rows).await
    })
    .await?;
    sink.finish().await?;
    Ok(number > last)
}

/// What a backup is of, if the file is one.
pub fn label(path: &Path) -> Option<(String, Label)> {
    let connection = sqlite::open_to_read(path).ok()?;
    let meta = |key: &str| -> Option<String> {
        connection.query_row("SELECT value FROM trefoil_meta WHERE key = ?1", [key], |row| row.get(0)).ok()
    };
    Some((meta(STORE)?, serde_json::from_str(&meta(BACKUP)?).ok()?))
}

fn refuse_foreign(path: &Path, store: &str) -> Result<(), Failed> {
    let what = match label(path) {
        Some((of, _)) if of == store => return Ok(()),
        None if !path.exists() => return Ok(()),
        Some(_) => "a backup of another store",
        None => "no backup",
    };
    Err(Failed::at(path, format!("this file is there already and is {what}: name another one")))
}
