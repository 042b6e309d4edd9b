//! The temporary file in which a store or backup is written, and how it replaces a file that others may have open.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use trefoil_atomic_files::AtomicReplacement;

use crate::transfer::{TransferError, sqlite};

const JOURNALS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// A temporary file beside the one it will become, without journals of SQLite.
pub struct PartialStoreFile(AtomicReplacement);

impl PartialStoreFile {
    /// Creates `NAME.partial`; the leftover of an interrupted command is deleted.
    pub fn create_beside(path: &Path) -> Result<PartialStoreFile, TransferError> {
        let partial = PartialStoreFile(
            AtomicReplacement::create_file(path).map_err(|error| TransferError::for_path(path, error))?,
        );
        remove_journals(partial.path())?;
        Ok(partial)
    }

    /// Opens the leftover of an interrupted command. `None` if there is none or another command may still write it.
    pub fn open_leftover(path: &Path) -> Result<Option<PartialStoreFile>, TransferError> {
        let leftover =
            AtomicReplacement::open_leftover(path).map_err(|error| TransferError::for_path(path, error))?;
        Ok(leftover.map(PartialStoreFile))
    }

    pub fn path(&self) -> &Path {
        &self.0.partial_path
    }

    /// Syncs the file to disk and renames it to `path`.
    pub fn publish(mut self, path: &Path) -> Result<(), TransferError> {
        self.0.commit().map_err(|error| TransferError::for_path(path, error))
    }

    /// Replaces the file of a store; fails if another program has the old file open.
    pub fn replace_store(self, path: &Path) -> Result<(), TransferError> {
        let _lock = lock_old_file(path)?;
        self.publish(path)
    }
}

impl Drop for PartialStoreFile {
    fn drop(&mut self) {
        // Once it is committed, another command may use the name.
        if self.0.is_committed {
            return;
        }
        for suffix in JOURNALS {
            // A file that cannot be removed now is removed when the command runs again.
            let _ = fs::remove_file(with_suffix(self.path(), suffix));
        }
    }
}

/// Locks the old file and checkpoints its journal, which must not be applied to the new file. A file that is not
/// SQLite's has no readers; its journals are deleted.
fn lock_old_file(path: &Path) -> Result<Option<Connection>, TransferError> {
    if !path.exists() {
        remove_journals(path)?;
        return Ok(None);
    }
    let lock = || -> Result<Connection, TransferError> {
        let connection = sqlite::open_file(path)?;
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
        if mode != "delete" {
            return Err(TransferError::for_path(path, "another program is using this file"));
        }
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(connection)
    };
    match lock() {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if is_sqlite(path) => Err(error),
        Err(_) => {
            remove_journals(path)?;
            Ok(None)
        }
    }
}

/// True unless SQLite says that the file is not a database or is corrupt.
fn is_sqlite(path: &Path) -> bool {
    let result = Connection::open(path)
        .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(())));
    match result {
        Ok(()) => true,
        Err(error) => {
            !matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
        }
    }
}

fn remove_journals(database: &Path) -> Result<(), TransferError> {
    JOURNALS.iter().map(|suffix| with_suffix(database, suffix)).try_for_each(|path| {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(TransferError::for_path(&path, error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    })
}

/// The path with a suffix added to its file name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_are_removed_with_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let journal = folder.path().join("x.partial-journal");
        let create = || {
            let partial = PartialStoreFile::create_beside(&path).unwrap();
            fs::write(&journal, "").unwrap();
            partial
        };
        drop(create());
        assert!(!journal.exists());
        create().publish(&path).unwrap();
        assert!(journal.exists(), "by now another command may have made it");
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        drop(PartialStoreFile::open_leftover(&path).unwrap());
        assert!(!journal.exists());
    }
}
