//! Brings a backup back, into either database: all of it or nothing, and with a new epoch of change ids.

use std::path::Path;

use crate::DataLock;
use crate::transfer::backup::BackupLabel;
use crate::transfer::copied_table::TableDigest;
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::{BACKUP_KEY, StoreMetadata};
use crate::transfer::{
    ExpectedSchema, StoreLocation, TransferError, TransferProgress, move_record, postgres, sqlite,
};

/// What to do with a store that the schema has left behind.
fn way_on(command: &str) -> String {
    format!("if it is the right one, restore it elsewhere (--data, --database) and see `{command}`")
}

#[derive(Debug)]
pub struct RestoreResult {
    pub records: u64,
    pub rows: u64,
    /// When the backup was begun, if it says so.
    pub at: Option<String>,
    /// It is not the store that was put aside: that may live on elsewhere.
    pub is_new_store: bool,
}

/// Puts the store in `file`, a backup or another store's file, into `to`. Nothing gives way to what the application
/// could not be served from.
pub async fn restore_store(
    file: &Path,
    to: &StoreLocation,
    application: &ExpectedSchema,
    overwrite: bool,
    progress: &mut dyn TransferProgress,
) -> Result<RestoreResult, TransferError> {
    let source = sqlite::open_read_only(file).or_else(|_| sqlite::open_file(file))?;
    source.execute_batch("BEGIN")?;
    sqlite::check_integrity(&source).map_err(|failed| TransferError::for_path(file, failed))?;
    let source = StoreHandle::Sqlite(source);
    let facts = StoreMetadata::read(&source).await.map_err(|failed| TransferError::for_path(file, failed))?;
    let mut facts =
        facts.ok_or_else(|| TransferError::for_path(file, "this is no backup: there is no store in it"))?;
    let label: Option<BackupLabel> =
        facts.meta.get(BACKUP_KEY).and_then(|text| serde_json::from_str(text).ok());
    let read = digest_store(&source, &facts, progress).await?;
    if let Some(label) = &label {
        compare_digests(&label.sums, &read)
            .map_err(|failed| TransferError::for_path(file, format!("the backup is damaged: {failed}")))?;
    }
    let verdict = match overwrite {
        true => Some(
            application
                .refuse_unfit_store(&source, way_on)
                .await
                .map_err(|failed| TransferError::for_path(file, failed)),
        ),
        false => None,
    };
    let backed_up = facts.store_id().to_owned();
    facts.begin_epoch(label.as_ref().map_or(facts.last_change, |label| label.sure))?;
    match to {
        StoreLocation::File(path) => {
            restore_into_file(&source, path, &mut facts, &read, verdict, progress).await?
        }
        StoreLocation::Postgres(url) => {
            let client = crate::postgres::connect_for_maintenance(url).await.map_err(TransferError)?;
            restore_into_postgres(&source, client, &mut facts, &read, verdict, progress).await?;
        }
    }
    let (records, rows) = (count_records(&facts, &read), read.iter().map(|sum| sum.rows).sum());
    let is_another = facts.store_id() != backed_up;
    Ok(RestoreResult { records, rows, at: label.map(|label| label.at), is_new_store: is_another })
}

async fn restore_into_file(
    source: &StoreHandle,
    path: &Path,
    facts: &mut StoreMetadata,
    read: &[TableDigest],
    verdict: Option<Result<(), TransferError>>,
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let _lock = lock_data_folder(path)?;
    check_replaceable(read_file_metadata(path).await, facts, verdict, path.display())?;
    let partial = PartialStoreFile::create_beside(path)?;
    let written = write_file(source, &partial, facts, read, progress).await;
    written.map_err(|failed| failed.with_context(path.display()))?;
    partial.replace_store(path)
}

async fn write_file(
    source: &StoreHandle,
    partial: &PartialStoreFile,
    facts: &StoreMetadata,
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
    compare_digests(read, &digest_store(&target, facts, progress).await?)?;
    move_record::reopen_store(&target, &facts.stored_model).await?;
    target.remove_meta(BACKUP_KEY).await?;
    facts.write(&target).await?;
    bump_list_versions(&target).await
}

async fn restore_into_postgres(
    source: &StoreHandle,
    client: tokio_postgres::Client,
    facts: &mut StoreMetadata,
    read: &[TableDigest],
    verdict: Option<Result<(), TransferError>>,
    progress: &mut dyn TransferProgress,
) -> Result<(), TransferError> {
    let target =
        begin_replacement(client, |found| check_replaceable(Ok(found), facts, verdict, "the database"))
            .await?;
    copy_store(source, &target, facts, progress).await?;
    compare_digests(read, &digest_store(&target, facts, progress).await?)?;
    bump_list_versions(&target).await?;
    target.execute_batch("COMMIT").await
}

/// Whether what is there may go; if so, what is restored knows which ids were given. There is no verdict where nobody has
/// said that anything may.
fn check_replaceable(
    found: Result<Option<StoreMetadata>, TransferError>,
    facts: &mut StoreMetadata,
    verdict: Option<Result<(), TransferError>>,
    place: impl std::fmt::Display,
) -> Result<(), TransferError> {
    facts.replace_store(found.as_ref().ok().and_then(Option::as_ref));
    refuse_used(found, place).or_else(|refused| verdict.unwrap_or(Err(refused)))
}

/// A transaction on a database in which a new store can be made: no server is there, and the old store, if `agreed`
/// lets it go, is gone once it is committed.
pub async fn begin_replacement(
    client: tokio_postgres::Client,
    agreed: impl FnOnce(Option<StoreMetadata>) -> Result<(), TransferError>,
) -> Result<StoreHandle, TransferError> {
    postgres::disable_timeouts(&client).await?;
    postgres::lock_out_servers(&client).await?;
    client.batch_execute("BEGIN").await?;
    crate::migrate::postgres::lock_migration(&client).await?;
    let end = StoreHandle::Postgres(client);
    let found = StoreMetadata::read(&end).await?;
    let tables: Option<Vec<String>> =
        found.as_ref().map(|facts| facts.stored_model.table_names().map(str::to_owned).collect());
    agreed(found)?;
    if let (Some(tables), StoreHandle::Postgres(client)) = (tables, &end) {
        postgres::drop_store(client, &tables).await?;
    }
    Ok(end)
}

/// What is in the file of a store; an error where that cannot be told.
pub async fn read_file_metadata(path: &Path) -> Result<Option<StoreMetadata>, TransferError> {
    if !path.exists() {
        return Ok(None);
    }
    StoreMetadata::read(&StoreHandle::Sqlite(sqlite::open_file(path)?)).await
}

pub fn refuse_used(
    found: Result<Option<StoreMetadata>, TransferError>,
    place: impl std::fmt::Display,
) -> Result<(), TransferError> {
    let what = match found {
        Ok(None) => return Ok(()),
        Ok(Some(facts)) if !facts.is_used => return Ok(()),
        Ok(Some(_)) => "there is a store with records already".to_owned(),
        Err(failed) => format!("what is there cannot be read ({failed})"),
    };
    Err(TransferError(format!("{place}: {what}; --overwrite replaces it")))
}

/// One command or server at a time.
pub fn lock_data_folder(path: &Path) -> Result<DataLock, TransferError> {
    Ok(DataLock::acquire(path.parent().unwrap_or(Path::new(".")))?)
}

/// A version tells what a list is like, also to those who saw one that is no more.
async fn bump_list_versions(end: &StoreHandle) -> Result<(), TransferError> {
    let now = jiff::Timestamp::now().as_microsecond();
    end.execute_batch(&format!(
        "UPDATE \"trefoil_lists\" SET \"version\" = CASE WHEN \"version\" < {now} THEN {now} ELSE \"version\" + 1 END"
    ))
    .await
}
