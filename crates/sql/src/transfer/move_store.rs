//! Moves a store to another place, so that at every moment at most one of the two is live.
//!
//! The target is made whole and marked as arriving, then the source is closed for good, then the target is opened:
//! three commits. Whatever ends the command between them, one more run brings it to its end or begins anew.

use std::path::Path;

use crate::DataLock;
use crate::migrate::quoted;
use crate::transfer::copied_table::Sum;
use crate::transfer::copy::{compare, copy, records, sums};
use crate::transfer::move_record;
use crate::transfer::move_record::{ARRIVING, CAME, MOVED, Passage};
use crate::transfer::partial_file::Partial;
use crate::transfer::restore::{held_in, lock, make_room, refuse_used};
use crate::transfer::store_handle::End;
use crate::transfer::store_metadata::Facts;
use crate::transfer::{Application, Failed, Place, Progress, postgres, sqlite};

/// What to do with a store that the schema has left behind.
fn way_on(command: &str) -> String {
    format!("if it is the right one, see `{command}` before it is moved")
}

#[derive(Debug)]
pub struct Moved {
    pub records: u64,
    pub rows: u64,
    /// All was there already, and only the last step was missing.
    pub finished: bool,
}

/// A side of a move that nobody else can write to. For a file the lock on its folder.
struct Held {
    end: End,
    _lock: Option<DataLock>,
}

pub async fn move_store(
    from: &Place,
    to: &Place,
    application: &Application,
    overwrite: bool,
    progress: &mut dyn Progress,
) -> Result<Moved, Failed> {
    if from.to_string() == to.to_string() {
        return Err(Failed(format!("{from}: the store is there already")));
    }
    let source = hold(from).await?;
    let facts = Facts::of(&source.end).await?;
    let facts = facts.ok_or_else(|| Failed(format!("{from}: there is no store yet")))?;
    if let Some(passage) = Passage::read(&facts.meta, MOVED) {
        return finish(&passage, to).await;
    }
    if facts.meta.contains_key(ARRIVING) {
        return Err(Failed(format!("{from}: a move into this store was not finished")));
    }
    let judged = application.refuse_unfit(&source.end, way_on).await;
    judged.map_err(|failed| failed.while_doing(from))?;
    let passage = Passage::begin(&to.to_string());
    let arriving = Passage { other: from.to_string(), ..passage.clone() };
    let written = match to {
        Place::File(path) => into_file(&source.end, path, &facts, &arriving, overwrite, progress).await,
        Place::Postgres(url) => into_postgres(&source.end, url, &facts, &arriving, overwrite, progress).await,
    };
    let (target, read) = written?;
    move_record::close(&source.end, &facts.shape, &passage).await?;
    source.end.run("COMMIT").await?;
    open(&target.end, &passage.token).await?;
    let (records, rows) = (records(&facts, &read), read.iter().map(|sum| sum.rows).sum());
    Ok(Moved { records, rows, finished: false })
}

/// The source in a transaction that keeps every other writer out, with a number for each of its changes.
async fn hold(place: &Place) -> Result<Held, Failed> {
    match place {
        Place::File(path) => {
            if !path.try_exists().map_err(|error| Failed::at(path, error))? {
                return Err(Failed(format!("{place}: there is no store yet")));
            }
            let lock = lock(path)?;
            let connection = sqlite::open(path)?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(Held { end: End::Sqlite(connection), _lock: Some(lock) })
        }
        Place::Postgres(url) => {
            let client = crate::postgres::alone(url).await.map_err(Failed)?;
            postgres::prepare(&client).await?;
            postgres::keep_servers_out(&client).await?;
            client.batch_execute("BEGIN").await?;
            crate::migrate::postgres::take_turn(&client).await?;
            let end = End::Postgres(client);
            if let (Some(facts), End::Postgres(client)) = (Facts::of(&end).await?, &end) {
                let tables: Vec<String> = facts
                    .shape
                    .table_names()
                    .chain(["trefoil_lists", "trefoil_list_values"])
                    .map(quoted)
                    .collect();
                let sql = format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", tables.join(", "));
                client.batch_execute(&sql).await?;
                postgres::number_changes(client).await?;
            }
            Ok(Held { end, _lock: None })
        }
    }
}

/// Whether what is in the target may go: nothing, what an interrupted move left, or what this very store was moved
/// away from and so holds nothing of its own.
fn may_replace(
    found: Result<Option<Facts>, Failed>,
    source: &Facts,
    overwrite: bool,
    place: &str,
) -> Result<(), Failed> {
    if let Ok(Some(found)) = &found {
        let left = Passage::read(&found.meta, MOVED).map(|passage| passage.token);
        let came_from_there = left.is_some() && left.as_ref() == source.meta.get(CAME);
        if found.meta.contains_key(ARRIVING) || came_from_there {
            return Ok(());
        }
    }
    if overwrite { Ok(()) } else { refuse_used(found, place) }
}

async fn into_file(
    source: &End,
    path: &Path,
    facts: &Facts,
    arriving: &Passage,
    overwrite: bool,
    progress: &mut dyn Progress,
) -> Result<(Held, Vec<Sum>), Failed> {
    let lock = lock(path)?;
    may_replace(held_in(path).await, facts, overwrite, &path.display().to_string())?;
    let partial = Partial::beside(path)?;
    let written = write_file(source, &partial, facts, arriving, progress).await;
    let read = written.map_err(|failed| failed.while_doing(path.display()))?;
    partial.replace(path)?;
    Ok((Held { end: End::Sqlite(sqlite::open(path)?), _lock: Some(lock) }, read))
}

async fn write_file(
    source: &End,
    partial: &Partial,
    facts: &Facts,
    arriving: &Passage,
    progress: &mut dyn Progress,
) -> Result<Vec<Sum>, Failed> {
    let read = match source {
        End::Sqlite(connection) => {
            let mut target = sqlite::create(partial.path())?;
            // SQLite copies from no connection that may write; while that one may, nothing changes for another.
            let reader = sqlite::open(Path::new(connection.path().unwrap_or_default()))?;
            reader.execute_batch("BEGIN")?;
            sqlite::copy_file(&reader, &mut target, progress)?;
            sums(source, facts, progress).await?
        }
        End::Postgres(_) => {
            let target = End::Sqlite(sqlite::create(partial.path())?);
            target.run("BEGIN").await?;
            let read = copy(source, &target, facts, progress).await?;
            target.run("COMMIT").await?;
            read
        }
    };
    let target = End::Sqlite(sqlite::alone(partial.path())?);
    compare(&read, &sums(&target, facts, progress).await?)?;
    target.remove_meta(CAME).await?;
    target.put_meta(ARRIVING, &arriving.to_json()).await?;
    if let End::Sqlite(connection) = &target {
        sqlite::check(connection)?;
    }
    Ok(read)
}

async fn into_postgres(
    source: &End,
    url: &trefoil_config::PostgresUrl,
    facts: &Facts,
    arriving: &Passage,
    overwrite: bool,
    progress: &mut dyn Progress,
) -> Result<(Held, Vec<Sum>), Failed> {
    let client = crate::postgres::alone(url).await.map_err(Failed)?;
    let agreed = |found| may_replace(Ok(found), facts, overwrite, &url.to_string());
    let end = make_room(client, agreed).await?;
    let read = copy(source, &end, facts, progress).await?;
    compare(&read, &sums(&end, facts, progress).await?)?;
    end.put_meta(ARRIVING, &arriving.to_json()).await?;
    end.run("COMMIT").await?;
    Ok((Held { end, _lock: None }, read))
}

/// The target is live from here on.
async fn open(target: &End, token: &str) -> Result<(), Failed> {
    target.run("BEGIN").await?;
    target.put_meta(CAME, token).await?;
    target.remove_meta(ARRIVING).await?;
    target.run("COMMIT").await
}

/// The source is closed already: what is left to do is to open the target, if that was not done.
async fn finish(passage: &Passage, to: &Place) -> Result<Moved, Failed> {
    let elsewhere = || Failed(format!("the store was moved to {} on {} already", passage.other, passage.at));
    let (end, _lock) = match to {
        Place::File(path) if path.exists() => (End::Sqlite(sqlite::open(path)?), Some(lock(path)?)),
        Place::File(_) => return Err(elsewhere()),
        Place::Postgres(url) => (End::Postgres(crate::postgres::alone(url).await.map_err(Failed)?), None),
    };
    let facts = Facts::of(&end).await?.ok_or_else(elsewhere)?;
    match Passage::read(&facts.meta, ARRIVING) {
        Some(arriving) if arriving.token == passage.token => open(&end, &passage.token).await?,
        Some(_) | None => return Err(elsewhere()),
    }
    Ok(Moved { records: 0, rows: 0, finished: true })
}

/// Makes a store live again that was moved away. Its changes get ids of a new epoch, since the other one has gone on
/// giving those of the old.
pub async fn undo(place: &Place) -> Result<Passage, Failed> {
    let held = hold(place).await?;
    let facts = Facts::of(&held.end).await?;
    let mut facts = facts.ok_or_else(|| Failed(format!("{place}: there is no store yet")))?;
    let passage = Passage::read(&facts.meta, MOVED);
    let passage = passage.ok_or_else(|| Failed(format!("{place}: this store was not moved away")))?;
    move_record::open_again(&held.end, &facts.shape).await?;
    facts.begin_epoch(facts.last_change)?;
    facts.write(&held.end).await?;
    held.end.run("COMMIT").await?;
    Ok(passage)
}
