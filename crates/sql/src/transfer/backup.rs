//! Backs up a store while it is in use: one snapshot of it, always in one SQLite file.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::move_record::{MOVE_TOKEN_KEY, refuse_moved_store};
use crate::postgres::connect_for_maintenance;
use crate::transfer::copied_table::{CHANGES_TABLE, CopiedValue, TableDigest, changes_table};
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store, for_each_page};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::{BACKUP_KEY, STORE_KEY, StoreMetadata};
use crate::transfer::{StoreLocation, TransferError, TransferProgress, postgres, sqlite};

/// The label in the `trefoil_meta` of a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackupLabel {
    /// Time at which the backup began.
    pub at: String,
    /// The last change number that is the same in the store. Changes after it had no number there yet.
    pub sure: i64,
    pub sums: Vec<TableDigest>,
}

/// A finished and verified backup.
#[derive(Debug)]
pub struct BackupResult {
    pub path: PathBuf,
    pub records: u64,
    pub rows: u64,
    /// Id of the store.
    pub store: String,
}

/// Copies everything that is committed at the beginning into the file `to`. An existing file is replaced if it is a
/// backup of the same store.
pub async fn back_up_store(
    from: &StoreLocation,
    to: &Path,
    progress: &mut dyn TransferProgress,
) -> Result<BackupResult, TransferError> {
    let at = jiff::Timestamp::now().to_string();
    let source = open_snapshot(from).await?;
    let metadata = StoreMetadata::read(&source).await?;
    let metadata = metadata.ok_or_else(|| TransferError(format!("{from}: no store found")))?;
    refuse_moved_store(|key| Ok(metadata.meta.get(key).cloned()))?;
    refuse_other_file(to, metadata.store_id())?;
    let partial = PartialStoreFile::create_beside(to)?;
    let written = match source {
        StoreHandle::Sqlite(source) => copy_pages(source, partial.path(), &metadata, progress).await,
        StoreHandle::Postgres(_) => copy_rows(source, partial.path(), &metadata, progress).await,
    };
    let (file, digests) = written.map_err(|error| error.with_context(to.display()))?;
    let label = BackupLabel { at, sure: metadata.last_change, sums: digests };
    file.put_meta(
        BACKUP_KEY,
        &serde_json::to_string(&label).map_err(|error| TransferError(error.to_string()))?,
    )
    .await?;
    if let StoreHandle::Sqlite(connection) = &file {
        sqlite::check_integrity(connection)?;
    }
    drop(file);
    partial.publish(to)?;
    let (records, rows) =
        (count_records(&metadata, &label.sums), label.sums.iter().map(|digest| digest.rows).sum());
    Ok(BackupResult { path: to.to_owned(), records, rows, store: metadata.store_id().to_owned() })
}

/// Opens the store in a transaction that sees one snapshot and blocks no writer.
async fn open_snapshot(from: &StoreLocation) -> Result<StoreHandle, TransferError> {
    match from {
        StoreLocation::File(path) => {
            let connection = sqlite::open_file(path)?;
            connection.execute_batch("BEGIN")?;
            Ok(StoreHandle::Sqlite(connection))
        }
        StoreLocation::Postgres(url) => {
            let client = connect_for_maintenance(url).await.map_err(TransferError)?;
            postgres::disable_timeouts(&client).await?;
            let store = StoreHandle::Postgres(client);
            if let (StoreHandle::Postgres(client), true) = (&store, store.is_store().await?) {
                postgres::number_changes(client).await?;
            }
            store.execute_batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            Ok(store)
        }
    }
}

/// Copies an SQLite file page by page, including the tables of other programs.
async fn copy_pages(
    source: Connection,
    path: &Path,
    metadata: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<(StoreHandle, Vec<TableDigest>), TransferError> {
    let mut target = sqlite::create_file(path)?;
    sqlite::copy_file(&source, &mut target, progress)?;
    drop(target);
    let source = StoreHandle::Sqlite(source);
    let read = digest_store(&source, metadata, progress).await?;
    drop(source);
    let file = StoreHandle::Sqlite(sqlite::open_exclusive(path)?);
    let written = digest_store(&file, metadata, progress).await?;
    compare_digests(&read, &written)?;
    file.remove_meta(MOVE_TOKEN_KEY).await?;
    Ok((file, written))
}

async fn copy_rows(
    source: StoreHandle,
    path: &Path,
    metadata: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<(StoreHandle, Vec<TableDigest>), TransferError> {
    let file = StoreHandle::Sqlite(sqlite::create_file(path)?);
    file.execute_batch("BEGIN").await?;
    let read = copy_store(&source, &file, metadata, progress).await?;
    file.execute_batch("COMMIT").await?;
    let mut written = digest_store(&file, metadata, progress).await?;
    compare_digests(&read, &written)?;
    if append_unnumbered(&source, &file, metadata.last_change).await? {
        written = digest_store(&file, metadata, progress).await?;
    }
    drop(file);
    Ok((StoreHandle::Sqlite(sqlite::open_exclusive(path)?), written))
}

/// Copies the changes that have no number yet, with the next numbers. The store may give them others, which is why the
/// label says up to where numbers are reliable.
async fn append_unnumbered(
    source: &StoreHandle,
    file: &StoreHandle,
    last: i64,
) -> Result<bool, TransferError> {
    let (from, to) =
        (changes_table("sequence", "trefoil_unnumbered"), changes_table("number", CHANGES_TABLE));
    let (mut number, mut writer) = (last, file.open_table_writer(&to).await?);
    for_each_page(source, &from, async |mut rows| {
        for row in &mut rows {
            number += 1;
            row[0] = CopiedValue::Int(number);
        }
        writer.write_rows(&rows).await
    })
    .await?;
    writer.finish().await?;
    Ok(number > last)
}

/// The store id and label of a backup; `None` if the file is not a backup.
pub fn read_label(path: &Path) -> Option<(String, BackupLabel)> {
    let connection = sqlite::open_read_only(path).ok()?;
    let meta = |key: &str| -> Option<String> {
        connection.query_row("SELECT value FROM trefoil_meta WHERE key = ?1", [key], |row| row.get(0)).ok()
    };
    Some((meta(STORE_KEY)?, serde_json::from_str(&meta(BACKUP_KEY)?).ok()?))
}

fn refuse_other_file(path: &Path, store_id: &str) -> Result<(), TransferError> {
    let kind = match read_label(path) {
        Some((id, _)) if id == store_id => return Ok(()),
        None if !path.exists() => return Ok(()),
        Some(_) => "a backup of another store",
        None => "not a backup",
    };
    Err(TransferError::for_path(path, format!("this file already exists and is {kind}: choose another one")))
}
