//! Restores a backup into either database, completely or not at all, with a new epoch of change ids.

use std::fmt::Display;
use std::path::Path;

use tokio_postgres::Client;

use crate::DataLock;
use crate::migrate::postgres::lock_migration;
use crate::postgres::connect_for_maintenance;
use crate::transfer::backup::BackupLabel;
use crate::transfer::close_store::reopen_store;
use crate::transfer::copied_table::TableDigest;
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::{BACKUP_KEY, StoreMetadata};
use crate::transfer::{ExpectedSchema, StoreLocation, TransferError, TransferProgress, postgres, sqlite};

/// The advice for a store that does not fit the schema.
fn advice(command: &str) -> String {
    format!("if it is the right backup, restore it elsewhere (--data, --database) and run `{command}`")
}

#[derive(Debug)]
pub struct RestoreResult {
    pub records: u64,
    pub rows: u64,
    /// Time at which the backup began; `None` if the file is not a backup.
    pub at: Option<String>,
    /// True if it is not the store that was backed up, which may be in use elsewhere.
    pub is_new_store: bool,
    /// The names of its API keys, which are good again even if they were revoked since.
    pub api_keys: Vec<String>,
}

/// Copies the store in `file`, a backup or the file of a store, into `to`. An existing store is not replaced with one
/// that the application could not be served from.
pub async fn restore_store(
    file: &Path,
    to: &StoreLocation,
    application: &ExpectedSchema,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<RestoreResult, TransferError> {
    let source = sqlite::open_read_only(file).or_else(|_| sqlite::open_file(file))?;
    source.execute_batch("BEGIN")?;
    sqlite::check_integrity(&source).map_err(|error| TransferError::for_path(file, error))?;
    let source = StoreHandle::Sqlite(source);
    let metadata =
        StoreMetadata::read(&source).await.map_err(|error| TransferError::for_path(file, error))?;
    let mut metadata =
        metadata.ok_or_else(|| TransferError::for_path(file, "not a backup: the file contains no store"))?;
    let label: Option<BackupLabel> =
        metadata.meta.get(BACKUP_KEY).and_then(|text| serde_json::from_str(text).ok());
    let read = digest_store(&source, &metadata, progress).await?;
    if let Some(label) = &label {
        compare_digests(&label.sums, &read)
            .map_err(|error| TransferError::for_path(file, format!("the backup is damaged: {error}")))?;
    }
    let may_overwrite = match overwrite {
        true => Some(
            application
                .refuse_unfit_store(&source, advice)
                .await
                .map_err(|error| TransferError::for_path(file, error)),
        ),
        false => None,
    };
    let backup_id = metadata.store_id().to_owned();
    metadata.begin_epoch(label.as_ref().map_or(metadata.last_change, |label| label.sure))?;
    match to {
        StoreLocation::File(path) => {
            restore_into_file(&source, path, &mut metadata, &read, may_overwrite, progress).await?
        }
        StoreLocation::Postgres(url) => {
            let client = connect_for_maintenance(url).await.map_err(TransferError)?;
            restore_into_postgres(&source, client, &mut metadata, &read, may_overwrite, progress).await?;
        }
    }
    let (records, rows) = (count_records(&metadata, &read), read.iter().map(|digest| digest.rows).sum());
    let is_new_store = metadata.store_id() != backup_id;
    let api_keys = if metadata.credentials.api_keys { source.api_key_names().await? } else { Vec::new() };
    Ok(RestoreResult { records, rows, at: label.map(|label| label.at), is_new_store, api_keys })
}

async fn restore_into_file(
    source: &StoreHandle,
    path: &Path,
    metadata: &mut StoreMetadata,
    read: &[TableDigest],
    may_overwrite: Option<Result<(), TransferError>>,
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let _lock = lock_data_folder(path)?;
    check_replaceable(read_file_metadata(path).await, metadata, may_overwrite, path.display())?;
    let partial = PartialStoreFile::create_beside(path)?;
    let written = write_file(source, &partial, metadata, read, progress).await;
    written.map_err(|error| error.with_context(path.display()))?;
    partial.replace_store(path)
}

async fn write_file(
    source: &StoreHandle,
    partial: &PartialStoreFile,
    metadata: &StoreMetadata,
    read: &[TableDigest],
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let StoreHandle::Sqlite(connection) = source else {
        return Err(TransferError("a backup is a file".to_owned()));
    };
    let mut target = sqlite::create_file(partial.path())?;
    sqlite::copy_file(connection, &mut target, progress)?;
    drop(target);
    let target = StoreHandle::Sqlite(sqlite::open_exclusive(partial.path())?);
    compare_digests(read, &digest_store(&target, metadata, progress).await?)?;
    reopen_store(&target, &metadata.stored_model).await?;
    target.remove_meta(BACKUP_KEY).await?;
    metadata.write(&target).await?;
    target.end_sessions(metadata.credentials).await?;
    bump_list_versions(&target).await
}

async fn restore_into_postgres(
    source: &StoreHandle,
    client: Client,
    metadata: &mut StoreMetadata,
    read: &[TableDigest],
    may_overwrite: Option<Result<(), TransferError>>,
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let target = begin_replacement(client, |existing| {
        check_replaceable(Ok(existing), metadata, may_overwrite, "the database")
    })
    .await?;
    copy_store(source, &target, metadata, progress).await?;
    compare_digests(read, &digest_store(&target, metadata, progress).await?)?;
    target.end_sessions(metadata.credentials).await?;
    bump_list_versions(&target).await?;
    target.execute_batch("COMMIT").await
}

/// Fails unless the existing store may be replaced; takes over its id counters. `may_overwrite` is `None` without
/// `--overwrite`, else whether the backup fits the application.
fn check_replaceable(
    existing: Result<Option<StoreMetadata>, TransferError>,
    metadata: &mut StoreMetadata,
    may_overwrite: Option<Result<(), TransferError>>,
    location: impl Display,
) -> Result<(), TransferError> {
    metadata.replace_store(existing.as_ref().ok().and_then(Option::as_ref));
    refuse_used(existing, location).or_else(|refused| may_overwrite.unwrap_or(Err(refused)))
}

/// Begins a transaction in which a new store can be created: servers are locked out, and the old store, if `check`
/// allows it, is dropped.
pub async fn begin_replacement(
    client: Client,
    check: impl FnOnce(Option<StoreMetadata>) -> Result<(), TransferError>,
) -> Result<StoreHandle, TransferError> {
    postgres::disable_timeouts(&client).await?;
    postgres::lock_out_servers(&client).await?;
    client.batch_execute("BEGIN").await?;
    lock_migration(&client).await?;
    let store = StoreHandle::Postgres(client);
    let existing = StoreMetadata::read(&store).await?;
    let tables: Option<Vec<String>> =
        existing.as_ref().map(|metadata| metadata.stored_model.table_names().map(str::to_owned).collect());
    check(existing)?;
    if let (Some(tables), StoreHandle::Postgres(client)) = (tables, &store) {
        postgres::drop_store(client, &tables).await?;
    }
    Ok(store)
}

/// The metadata of the store in a file; an error if it cannot be read.
pub async fn read_file_metadata(path: &Path) -> Result<Option<StoreMetadata>, TransferError> {
    if !path.exists() {
        return Ok(None);
    }
    StoreMetadata::read(&StoreHandle::Sqlite(sqlite::open_file(path)?)).await
}

/// Fails if a store has records or cannot be read.
pub fn refuse_used(
    existing: Result<Option<StoreMetadata>, TransferError>,
    location: impl Display,
) -> Result<(), TransferError> {
    let reason = match existing {
        Ok(None) => return Ok(()),
        Ok(Some(metadata)) if !metadata.is_used => return Ok(()),
        Ok(Some(_)) => "a store with records already exists".to_owned(),
        Err(error) => format!("the existing store cannot be read ({error})"),
    };
    Err(TransferError(format!("{location}: {reason}; use --overwrite to replace it")))
}

/// Locks the folder of the file against other commands and servers.
pub fn lock_data_folder(path: &Path) -> Result<DataLock, TransferError> {
    Ok(DataLock::acquire(path.parent().unwrap_or(Path::new(".")))?)
}

/// Raises the versions of all lists: clients may know a later version than that of the backup.
async fn bump_list_versions(store: &StoreHandle) -> Result<(), TransferError> {
    let now = jiff::Timestamp::now().as_microsecond();
    store.execute_batch(&format!(
        "UPDATE \"trefoil_lists\" SET \"version\" = CASE WHEN \"version\" < {now} THEN {now} ELSE \"version\" + 1 END"
    ))
    .await
}
