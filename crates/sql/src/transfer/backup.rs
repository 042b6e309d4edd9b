//! Puts a store aside while it is being written: one moment of it, in one SQLite file whichever database it comes from.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::transfer::copied_table::{CHANGES_TABLE, CopiedValue, TableDigest, changes_table};
use crate::transfer::copy::{compare_digests, copy_store, count_records, digest_store, for_each_page};
use crate::transfer::partial_file::PartialStoreFile;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::{BACKUP_KEY, STORE_KEY, StoreMetadata};
use crate::transfer::{StoreLocation, TransferError, TransferProgress, move_record, postgres, sqlite};

/// What a backup says about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackupLabel {
    /// When it was begun.
    pub at: String,
    /// The number of the last change whose number is also the store's. Those behind it had none there yet.
    pub sure: i64,
    pub sums: Vec<TableDigest>,
}

/// A backup that was made and verified.
#[derive(Debug)]
pub struct BackupResult {
    pub path: PathBuf,
    pub records: u64,
    pub rows: u64,
    /// Which store it is of.
    pub store: String,
}

/// Everything that was committed when it began, in the file `to`. A file that is there gives way if it is a backup of
/// the same store.
pub async fn back_up_store(
    from: &StoreLocation,
    to: &Path,
    progress: &mut dyn TransferProgress,
) -> Result<BackupResult, TransferError> {
    let begun = jiff::Timestamp::now().to_string();
    let source = open_snapshot(from).await?;
    let facts = StoreMetadata::read(&source).await?;
    let facts = facts.ok_or_else(|| TransferError(format!("{from}: there is no store yet")))?;
    move_record::refuse_moved_store(|key| Ok(facts.meta.get(key).cloned()))?;
    refuse_other_file(to, facts.store_id())?;
    let partial = PartialStoreFile::create_beside(to)?;
    let written = match source {
        StoreHandle::Sqlite(source) => copy_pages(source, partial.path(), &facts, progress).await,
        StoreHandle::Postgres(_) => copy_rows(source, partial.path(), &facts, progress).await,
    };
    let (file, sums) = written.map_err(|failed| failed.with_context(to.display()))?;
    let label = BackupLabel { at: begun, sure: facts.last_change, sums };
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
    let (records, rows) = (count_records(&facts, &label.sums), label.sums.iter().map(|sum| sum.rows).sum());
    Ok(BackupResult { path: to.to_owned(), records, rows, store: facts.store_id().to_owned() })
}

/// The store in a transaction that sees one moment of it and is in nobody's way.
async fn open_snapshot(from: &StoreLocation) -> Result<StoreHandle, TransferError> {
    match from {
        StoreLocation::File(path) => {
            let connection = sqlite::open_file(path)?;
            connection.execute_batch("BEGIN")?;
            Ok(StoreHandle::Sqlite(connection))
        }
        StoreLocation::Postgres(url) => {
            let client = crate::postgres::connect_for_maintenance(url).await.map_err(TransferError)?;
            postgres::disable_timeouts(&client).await?;
            let end = StoreHandle::Postgres(client);
            if let (StoreHandle::Postgres(client), true) = (&end, end.is_store().await?) {
                postgres::number_changes(client).await?;
            }
            end.execute_batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            Ok(end)
        }
    }
}

/// From SQLite: the file itself, so that what other programs keep in it is there too.
async fn copy_pages(
    source: Connection,
    path: &Path,
    facts: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<(StoreHandle, Vec<TableDigest>), TransferError> {
    let mut target = sqlite::create_file(path)?;
    sqlite::copy_file(&source, &mut target, progress)?;
    drop(target);
    let source = StoreHandle::Sqlite(source);
    let read = digest_store(&source, facts, progress).await?;
    drop(source);
    let file = StoreHandle::Sqlite(sqlite::open_exclusive(path)?);
    let written = digest_store(&file, facts, progress).await?;
    compare_digests(&read, &written)?;
    file.remove_meta(move_record::CAME_KEY).await?;
    Ok((file, written))
}

async fn copy_rows(
    source: StoreHandle,
    path: &Path,
    facts: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<(StoreHandle, Vec<TableDigest>), TransferError> {
    let file = StoreHandle::Sqlite(sqlite::create_file(path)?);
    file.execute_batch("BEGIN").await?;
    let read = copy_store(&source, &file, facts, progress).await?;
    file.execute_batch("COMMIT").await?;
    let mut written = digest_store(&file, facts, progress).await?;
    compare_digests(&read, &written)?;
    if append_unnumbered(&source, &file, facts.last_change).await? {
        written = digest_store(&file, facts, progress).await?;
    }
    drop(file);
    Ok((StoreHandle::Sqlite(sqlite::open_exclusive(path)?), written))
}

/// What was committed since the last numbering has no number yet. In the copy it gets the next ones; the store may give
/// it others, which is why the label says up to where numbers are sure.
async fn append_unnumbered(
    source: &StoreHandle,
    file: &StoreHandle,
    last: i64,
) -> Result<bool, TransferError> {
    let (from, to) =
        (changes_table("sequence", "trefoil_unnumbered"), changes_table("number", CHANGES_TABLE));
    let (mut number, mut sink) = (last, file.open_table_writer(&to).await?);
    for_each_page(source, &from, async |mut rows| {
        for row in &mut rows {
            number += 1;
            row[0] = CopiedValue::Int(number);
        }
        sink.write_rows(&rows).await
    })
    .await?;
    sink.finish().await?;
    Ok(number > last)
}

/// What a backup is of, if the file is one.
pub fn read_label(path: &Path) -> Option<(String, BackupLabel)> {
    let connection = sqlite::open_read_only(path).ok()?;
    let meta = |key: &str| -> Option<String> {
        connection.query_row("SELECT value FROM trefoil_meta WHERE key = ?1", [key], |row| row.get(0)).ok()
    };
    Some((meta(STORE_KEY)?, serde_json::from_str(&meta(BACKUP_KEY)?).ok()?))
}

fn refuse_other_file(path: &Path, store: &str) -> Result<(), TransferError> {
    let what = match read_label(path) {
        Some((of, _)) if of == store => return Ok(()),
        None if !path.exists() => return Ok(()),
        Some(_) => "a backup of another store",
        None => "no backup",
    };
    Err(TransferError::for_path(path, format!("this file is there already and is {what}: name another one")))
}
