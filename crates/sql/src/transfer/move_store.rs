//! Moves a store to another location, so that at most one of the two is live at any time.
//!
//! The move has three commits: the target is complete and marked as arriving, the source is closed, the target is
//! opened. If the command is interrupted in between, running it again finishes the move or starts over.

use std::path::Path;

use trefoil_config::PostgresUrl;

use crate::DataLock;
use crate::migrate::postgres::lock_migration;
use crate::migrate::quote_name;
use crate::move_record::{ARRIVING_KEY, MOVE_TOKEN_KEY, MOVED_KEY, StoreMove};
use crate::postgres::connect_for_maintenance;
use crate::transfer::close_store::{close_store, reopen_store};
use crate::transfer::copied_table::TableDigest;
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::restore::{begin_replacement, lock_data_folder, read_file_metadata, refuse_used};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{ExpectedSchema, StoreLocation, TransferError, TransferProgress, postgres, sqlite};

/// The advice for a store that does not fit the schema.
fn advice(command: &str) -> String {
    format!("if it is the right store, run `{command}` before you move it")
}

#[derive(Debug)]
pub struct MoveResult {
    pub records: u64,
    pub rows: u64,
    /// True if an earlier run had copied everything, and only the last step was missing.
    pub finished: bool,
}

/// One store of a move, with other writers locked out. For a file that includes the lock on its folder.
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
        return Err(TransferError(format!("{from}: the source and the target are the same store")));
    }
    let source = lock_store(from).await?;
    let metadata = StoreMetadata::read(&source.store).await?;
    let metadata = metadata.ok_or_else(|| TransferError(format!("{from}: no store found")))?;
    if let Some(record) = StoreMove::read(&metadata.meta, MOVED_KEY) {
        return finish_move(&record, to).await;
    }
    if metadata.meta.contains_key(ARRIVING_KEY) {
        return Err(TransferError(format!("{from}: a move into this store is incomplete")));
    }
    let fits = application.refuse_unfit_store(&source.store, advice).await;
    fits.map_err(|error| error.with_context(from))?;
    let moved = StoreMove::begin(&to.to_string());
    let arriving = StoreMove { other: from.to_string(), ..moved.clone() };
    let written = match to {
        StoreLocation::File(path) => {
            move_into_file(&source.store, path, &metadata, &arriving, overwrite, progress).await
        }
        StoreLocation::Postgres(url) => {
            move_into_postgres(&source.store, url, &metadata, &arriving, overwrite, progress).await
        }
    };
    let (target, read) = written?;
    close_store(&source.store, &metadata.stored_model, &moved).await?;
    source.store.execute_batch("COMMIT").await?;
    open_target(&target.store, &moved.token).await?;
    let (records, rows) = (count_records(&metadata, &read), read.iter().map(|digest| digest.rows).sum());
    Ok(MoveResult { records, rows, finished: false })
}

/// Opens the source in a transaction that locks out all other writers, and numbers its changes.
async fn lock_store(location: &StoreLocation) -> Result<LockedStore, TransferError> {
    match location {
        StoreLocation::File(path) => {
            if !path.try_exists().map_err(|error| TransferError::for_path(path, error))? {
                return Err(TransferError(format!("{location}: no store found")));
            }
            let lock = lock_data_folder(path)?;
            let connection = sqlite::open_file(path)?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(LockedStore { store: StoreHandle::Sqlite(connection), _lock: Some(lock) })
        }
        StoreLocation::Postgres(url) => {
            let client = connect_for_maintenance(url).await.map_err(TransferError)?;
            postgres::disable_timeouts(&client).await?;
            postgres::lock_out_servers(&client).await?;
            client.batch_execute("BEGIN").await?;
            lock_migration(&client).await?;
            let store = StoreHandle::Postgres(client);
            if let (Some(metadata), StoreHandle::Postgres(client)) =
                (StoreMetadata::read(&store).await?, &store)
            {
                let tables: Vec<String> = metadata
                    .stored_model
                    .table_names()
                    .chain(["trefoil_lists", "trefoil_list_values"])
                    .map(quote_name)
                    .collect();
                let sql = format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", tables.join(", "));
                client.batch_execute(&sql).await?;
                postgres::number_changes(client).await?;
            }
            Ok(LockedStore { store, _lock: None })
        }
    }
}

/// Fails unless the target may be replaced: it is empty, the rest of an interrupted move, or the store that the source
/// was moved from, which has no data of its own.
fn may_replace(
    existing: Result<Option<StoreMetadata>, TransferError>,
    source: &StoreMetadata,
    overwrite: bool,
    location: &str,
) -> Result<(), TransferError> {
    if let Ok(Some(target)) = &existing {
        let token = StoreMove::read(&target.meta, MOVED_KEY).map(|record| record.token);
        let is_origin = token.is_some() && token.as_ref() == source.meta.get(MOVE_TOKEN_KEY);
        if target.meta.contains_key(ARRIVING_KEY) || is_origin {
            return Ok(());
        }
    }
    if overwrite { Ok(()) } else { refuse_used(existing, location) }
}

async fn move_into_file(
    source: &StoreHandle,
    path: &Path,
    metadata: &StoreMetadata,
    arriving: &StoreMove,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<(LockedStore, Vec<TableDigest>), TransferError> {
    let lock = lock_data_folder(path)?;
    may_replace(read_file_metadata(path).await, metadata, overwrite, &path.display().to_string())?;
    let partial = PartialStoreFile::create_beside(path)?;
    let written = write_file(source, &partial, metadata, arriving, progress).await;
    let read = written.map_err(|error| error.with_context(path.display()))?;
    partial.replace_store(path)?;
    Ok((LockedStore { store: StoreHandle::Sqlite(sqlite::open_file(path)?), _lock: Some(lock) }, read))
}

async fn write_file(
    source: &StoreHandle,
    partial: &PartialStoreFile,
    metadata: &StoreMetadata,
    arriving: &StoreMove,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let read = match source {
        StoreHandle::Sqlite(connection) => {
            let mut target = sqlite::create_file(partial.path())?;
            // SQLite cannot copy from a connection with a write transaction. While that is open, a second one sees the same.
            let reader = sqlite::open_file(Path::new(connection.path().unwrap_or_default()))?;
            reader.execute_batch("BEGIN")?;
            sqlite::copy_file(&reader, &mut target, progress)?;
            digest_store(source, metadata, progress).await?
        }
        StoreHandle::Postgres(_) => {
            let target = StoreHandle::Sqlite(sqlite::create_file(partial.path())?);
            target.execute_batch("BEGIN").await?;
            let read = copy_store(source, &target, metadata, progress).await?;
            target.execute_batch("COMMIT").await?;
            read
        }
    };
    let target = StoreHandle::Sqlite(sqlite::open_exclusive(partial.path())?);
    compare_digests(&read, &digest_store(&target, metadata, progress).await?)?;
    target.remove_meta(MOVE_TOKEN_KEY).await?;
    target.put_meta(ARRIVING_KEY, &arriving.to_json()).await?;
    if let StoreHandle::Sqlite(connection) = &target {
        sqlite::check_integrity(connection)?;
    }
    Ok(read)
}

async fn move_into_postgres(
    source: &StoreHandle,
    url: &PostgresUrl,
    metadata: &StoreMetadata,
    arriving: &StoreMove,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<(LockedStore, Vec<TableDigest>), TransferError> {
    let client = connect_for_maintenance(url).await.map_err(TransferError)?;
    let check = |existing| may_replace(Ok(existing), metadata, overwrite, &url.to_string());
    let store = begin_replacement(client, check).await?;
    let read = copy_store(source, &store, metadata, progress).await?;
    compare_digests(&read, &digest_store(&store, metadata, progress).await?)?;
    store.put_meta(ARRIVING_KEY, &arriving.to_json()).await?;
    store.execute_batch("COMMIT").await?;
    Ok((LockedStore { store, _lock: None }, read))
}

/// Marks the target as live.
async fn open_target(target: &StoreHandle, token: &str) -> Result<(), TransferError> {
    target.execute_batch("BEGIN").await?;
    target.put_meta(MOVE_TOKEN_KEY, token).await?;
    target.remove_meta(ARRIVING_KEY).await?;
    target.execute_batch("COMMIT").await
}

/// Finishes an interrupted move whose source is closed: opens the target, unless that is done too.
async fn finish_move(record: &StoreMove, to: &StoreLocation) -> Result<MoveResult, TransferError> {
    let already_moved =
        || TransferError(format!("the store was already moved to {} on {}", record.other, record.at));
    let (store, _lock) = match to {
        StoreLocation::File(path) if path.exists() => {
            (StoreHandle::Sqlite(sqlite::open_file(path)?), Some(lock_data_folder(path)?))
        }
        StoreLocation::File(_) => return Err(already_moved()),
        StoreLocation::Postgres(url) => {
            (StoreHandle::Postgres(connect_for_maintenance(url).await.map_err(TransferError)?), None)
        }
    };
    let metadata = StoreMetadata::read(&store).await?.ok_or_else(already_moved)?;
    match StoreMove::read(&metadata.meta, ARRIVING_KEY) {
        Some(arriving) if arriving.token == record.token => open_target(&store, &record.token).await?,
        Some(_) | None => return Err(already_moved()),
    }
    Ok(MoveResult { records: 0, rows: 0, finished: true })
}

/// Makes a store live again that was moved away. It begins a new epoch of change ids, because the other store may have
/// used those of the old one since.
pub async fn undo_move(location: &StoreLocation) -> Result<StoreMove, TransferError> {
    let locked = lock_store(location).await?;
    let metadata = StoreMetadata::read(&locked.store).await?;
    let mut metadata = metadata.ok_or_else(|| TransferError(format!("{location}: no store found")))?;
    let record = StoreMove::read(&metadata.meta, MOVED_KEY);
    let record = record.ok_or_else(|| TransferError(format!("{location}: this store was not moved away")))?;
    reopen_store(&locked.store, &metadata.stored_model).await?;
    metadata.begin_epoch(metadata.last_change)?;
    metadata.write(&locked.store).await?;
    locked.store.execute_batch("COMMIT").await?;
    Ok(record)
}
