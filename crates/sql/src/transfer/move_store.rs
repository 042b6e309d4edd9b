//! Moves a store to another place, so that at every moment at most one of the two is live.
//!
//! The target is made whole and marked as arriving, then the source is closed for good, then the target is opened:
//! three commits. Whatever ends the command between them, one more run brings it to its end or begins anew.

use std::path::Path;

use crate::DataLock;
use crate::migrate::quote_name;
use crate::transfer::copied_table::TableDigest;
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store};
use crate::transfer::move_record;
use crate::transfer::move_record::{ARRIVING_KEY, CAME_KEY, MOVED_KEY, MoveRecord};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::restore::{begin_replacement, lock_data_folder, read_file_metadata, refuse_used};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{ExpectedSchema, StoreLocation, TransferError, TransferProgress, postgres, sqlite};

/// What to do with a store that the schema has left behind.
fn way_on(command: &str) -> String {
    format!("if it is the right one, see `{command}` before it is moved")
}

#[derive(Debug)]
pub struct MoveResult {
    pub records: u64,
    pub rows: u64,
    /// All was there already, and only the last step was missing.
    pub finished: bool,
}

/// A side of a move that nobody else can write to. For a file the lock on its folder.
struct LockedStore {
    store: StoreHandle,
    _lock: Option<DataLock>,
}

pub async fn move_store(
    from: &StoreLocation,
    to: &StoreLocation,
    application: &ExpectedSchema,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<MoveResult, TransferError> {
    if from.to_string() == to.to_string() {
        return Err(TransferError(format!("{from}: the store is there already")));
    }
    let source = lock_store(from).await?;
    let facts = StoreMetadata::read(&source.store).await?;
    let facts = facts.ok_or_else(|| TransferError(format!("{from}: there is no store yet")))?;
    if let Some(passage) = MoveRecord::read(&facts.meta, MOVED_KEY) {
        return finish_move(&passage, to).await;
    }
    if facts.meta.contains_key(ARRIVING_KEY) {
        return Err(TransferError(format!("{from}: a move into this store was not finished")));
    }
    let judged = application.refuse_unfit_store(&source.store, way_on).await;
    judged.map_err(|failed| failed.with_context(from))?;
    let passage = MoveRecord::begin(&to.to_string());
    let arriving = MoveRecord { other: from.to_string(), ..passage.clone() };
    let written = match to {
        StoreLocation::File(path) => {
            move_into_file(&source.store, path, &facts, &arriving, overwrite, progress).await
        }
        StoreLocation::Postgres(url) => {
            move_into_postgres(&source.store, url, &facts, &arriving, overwrite, progress).await
        }
    };
    let (target, read) = written?;
    move_record::close_store(&source.store, &facts.stored_model, &passage).await?;
    source.store.execute_batch("COMMIT").await?;
    open_target(&target.store, &passage.token).await?;
    let (records, rows) = (count_records(&facts, &read), read.iter().map(|sum| sum.rows).sum());
    Ok(MoveResult { records, rows, finished: false })
}

/// The source in a transaction that keeps every other writer out, with a number for each of its changes.
async fn lock_store(place: &StoreLocation) -> Result<LockedStore, TransferError> {
    match place {
        StoreLocation::File(path) => {
            if !path.try_exists().map_err(|error| TransferError::for_path(path, error))? {
                return Err(TransferError(format!("{place}: there is no store yet")));
            }
            let lock = lock_data_folder(path)?;
            let connection = sqlite::open_file(path)?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(LockedStore { store: StoreHandle::Sqlite(connection), _lock: Some(lock) })
        }
        StoreLocation::Postgres(url) => {
            let client = crate::postgres::connect_for_maintenance(url).await.map_err(TransferError)?;
            postgres::disable_timeouts(&client).await?;
            postgres::lock_out_servers(&client).await?;
            client.batch_execute("BEGIN").await?;
            crate::migrate::postgres::lock_migration(&client).await?;
            let end = StoreHandle::Postgres(client);
            if let (Some(facts), StoreHandle::Postgres(client)) = (StoreMetadata::read(&end).await?, &end) {
                let tables: Vec<String> = facts
                    .stored_model
                    .table_names()
                    .chain(["trefoil_lists", "trefoil_list_values"])
                    .map(quote_name)
                    .collect();
                let sql = format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", tables.join(", "));
                client.batch_execute(&sql).await?;
                postgres::number_changes(client).await?;
            }
            Ok(LockedStore { store: end, _lock: None })
        }
    }
}

/// Whether what is in the target may go: nothing, what an interrupted move left, or what this very store was moved
/// away from and so holds nothing of its own.
fn may_replace(
    found: Result<Option<StoreMetadata>, TransferError>,
    source: &StoreMetadata,
    overwrite: bool,
    place: &str,
) -> Result<(), TransferError> {
    if let Ok(Some(found)) = &found {
        let left = MoveRecord::read(&found.meta, MOVED_KEY).map(|passage| passage.token);
        let came_from_there = left.is_some() && left.as_ref() == source.meta.get(CAME_KEY);
        if found.meta.contains_key(ARRIVING_KEY) || came_from_there {
            return Ok(());
        }
    }
    if overwrite { Ok(()) } else { refuse_used(found, place) }
}

async fn move_into_file(
    source: &StoreHandle,
    path: &Path,
    facts: &StoreMetadata,
    arriving: &MoveRecord,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<(LockedStore, Vec<TableDigest>), TransferError> {
    let lock = lock_data_folder(path)?;
    may_replace(read_file_metadata(path).await, facts, overwrite, &path.display().to_string())?;
    let partial = PartialStoreFile::create_beside(path)?;
    let written = write_file(source, &partial, facts, arriving, progress).await;
    let read = written.map_err(|failed| failed.with_context(path.display()))?;
    partial.replace_store(path)?;
    Ok((LockedStore { store: StoreHandle::Sqlite(sqlite::open_file(path)?), _lock: Some(lock) }, read))
}

async fn write_file(
    source: &StoreHandle,
    partial: &PartialStoreFile,
    facts: &StoreMetadata,
    arriving: &MoveRecord,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let read = match source {
        StoreHandle::Sqlite(connection) => {
            let mut target = sqlite::create_file(partial.path())?;
            // SQLite copies from no connection that may write; while that one may, nothing changes for another.
            let reader = sqlite::open_file(Path::new(connection.path().unwrap_or_default()))?;
            reader.execute_batch("BEGIN")?;
            sqlite::copy_file(&reader, &mut target, progress)?;
            digest_store(source, facts, progress).await?
        }
        StoreHandle::Postgres(_) => {
            let target = StoreHandle::Sqlite(sqlite::create_file(partial.path())?);
            target.execute_batch("BEGIN").await?;
            let read = copy_store(source, &target, facts, progress).await?;
            target.execute_batch("COMMIT").await?;
            read
        }
    };
    let target = StoreHandle::Sqlite(sqlite::open_exclusive(partial.path())?);
    compare_digests(&read, &digest_store(&target, facts, progress).await?)?;
    target.remove_meta(CAME_KEY).await?;
    target.put_meta(ARRIVING_KEY, &arriving.to_json()).await?;
    if let StoreHandle::Sqlite(connection) = &target {
        sqlite::check_integrity(connection)?;
    }
    Ok(read)
}

async fn move_into_postgres(
    source: &StoreHandle,
    url: &trefoil_config::PostgresUrl,
    facts: &StoreMetadata,
    arriving: &MoveRecord,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<(LockedStore, Vec<TableDigest>), TransferError> {
    let client = crate::postgres::connect_for_maintenance(url).await.map_err(TransferError)?;
    let agreed = |found| may_replace(Ok(found), facts, overwrite, &url.to_string());
    let end = begin_replacement(client, agreed).await?;
    let read = copy_store(source, &end, facts, progress).await?;
    compare_digests(&read, &digest_store(&end, facts, progress).await?)?;
    end.put_meta(ARRIVING_KEY, &arriving.to_json()).await?;
    end.execute_batch("COMMIT").await?;
    Ok((LockedStore { store: end, _lock: None }, read))
}

/// The target is live from here on.
async fn open_target(target: &StoreHandle, token: &str) -> Result<(), TransferError> {
    target.execute_batch("BEGIN").await?;
    target.put_meta(CAME_KEY, token).await?;
    target.remove_meta(ARRIVING_KEY).await?;
    target.execute_batch("COMMIT").await
}

/// The source is closed already: what is left to do is to open the target, if that was not done.
async fn finish_move(passage: &MoveRecord, to: &StoreLocation) -> Result<MoveResult, TransferError> {
    let elsewhere =
        || TransferError(format!("the store was moved to {} on {} already", passage.other, passage.at));
    let (end, _lock) = match to {
        StoreLocation::File(path) if path.exists() => {
            (StoreHandle::Sqlite(sqlite::open_file(path)?), Some(lock_data_folder(path)?))
        }
        StoreLocation::File(_) => return Err(elsewhere()),
        StoreLocation::Postgres(url) => (
            StoreHandle::Postgres(
                crate::postgres::connect_for_maintenance(url).await.map_err(TransferError)?,
            ),
            None,
        ),
    };
    let facts = StoreMetadata::read(&end).await?.ok_or_else(elsewhere)?;
    match MoveRecord::read(&facts.meta, ARRIVING_KEY) {
        Some(arriving) if arriving.token == passage.token => open_target(&end, &passage.token).await?,
        Some(_) | None => return Err(elsewhere()),
    }
    Ok(MoveResult { records: 0, rows: 0, finished: true })
}

/// Makes a store live again that was moved away. Its changes get ids of a new epoch, since the other one has gone on
/// giving those of the old.
pub async fn undo_move(place: &StoreLocation) -> Result<MoveRecord, TransferError> {
    let held = lock_store(place).await?;
    let facts = StoreMetadata::read(&held.store).await?;
    let mut facts = facts.ok_or_else(|| TransferError(format!("{place}: there is no store yet")))?;
    let passage = MoveRecord::read(&facts.meta, MOVED_KEY);
    let passage = passage.ok_or_else(|| TransferError(format!("{place}: this store was not moved away")))?;
    move_record::reopen_store(&held.store, &facts.stored_model).await?;
    facts.begin_epoch(facts.last_change)?;
    facts.write(&held.store).await?;
    held.store.execute_batch("COMMIT").await?;
    Ok(passage)
}
