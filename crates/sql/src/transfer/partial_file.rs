//! The file of a store or a backup in the making, and how it takes the place of one that others may have open.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::transfer::{TransferError, sqlite};

const JOURNALS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// A file that is being written beside the one it is to become, with nothing of SQLite's beside it.
pub struct PartialStoreFile(trefoil_files::AtomicReplacement);

impl PartialStoreFile {
    /// `NAME.partial`; what an interrupted command left there goes.
    pub fn create_beside(path: &Path) -> Result<PartialStoreFile, TransferError> {
        let partial = PartialStoreFile(
            trefoil_files::AtomicReplacement::create_file(path)
                .map_err(|error| TransferError::for_path(path, error))?,
        );
        remove_journals(partial.path())?;
        Ok(partial)
    }

    /// What an interrupted command left there, as it is. None where another may still be writing it.
    pub fn open_leftover(path: &Path) -> Result<Option<PartialStoreFile>, TransferError> {
        let left = trefoil_files::AtomicReplacement::open_leftover(path)
            .map_err(|error| TransferError::for_path(path, error))?;
        Ok(left.map(PartialStoreFile))
    }

    pub fn path(&self) -> &Path {
        &self.0.partial_path
    }

    /// On the disk, and from then on under its own name.
    pub fn publish(mut self, path: &Path) -> Result<(), TransferError> {
        self.0.commit().map_err(|error| TransferError::for_path(path, error))
    }

    /// The same for the file of a store: whoever still has the old one open keeps it from being replaced.
    pub fn replace_store(self, path: &Path) -> Result<(), TransferError> {
        let _held = lock_old_file(path)?;
        self.publish(path)
    }
}

impl Drop for PartialStoreFile {
    fn drop(&mut self) {
        // From then on the name is free for another command.
        if self.0.is_committed {
            return;
        }
        for suffix in JOURNALS {
            // What cannot be removed now goes when the command is run again.
            let _ = fs::remove_file(with_suffix(self.path(), suffix));
        }
    }
}

/// Takes the old file for good: its journal is worked in, so that the new file does not find it. A file that is
/// none of SQLite's has no readers, and its journal goes with it.
fn lock_old_file(path: &Path) -> Result<Option<Connection>, TransferError> {
    if !path.exists() {
        remove_journals(path)?;
        return Ok(None);
    }
    let taken = || -> Result<Connection, TransferError> {
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
    match taken() {
        Ok(connection) => Ok(Some(connection)),
        Err(failed) if is_sqlite(path) => Err(failed),
        Err(_) => {
            remove_journals(path)?;
            Ok(None)
        }
    }
}

/// Whether SQLite can read it at all.
fn is_sqlite(path: &Path) -> bool {
    let looked = Connection::open(path)
        .and_then(|connection| connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(())));
    match looked {
        Ok(()) => true,
        Err(error) => !matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        ),
    }
}

fn remove_journals(of: &Path) -> Result<(), TransferError> {
    JOURNALS.iter().map(|suffix| with_suffix(of, suffix)).try_for_each(|path| match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TransferError::for_path(&path, error))
        }
        Ok(()) | Err(_) => Ok(()),
    })
}

/// The same path with something behind its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_goes_with_its_file_and_with_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let journal = folder.path().join("x.partial-journal");
        let made = || {
            let partial = PartialStoreFile::create_beside(&place).unwrap();
            fs::write(&journal, "").unwrap();
            partial
        };
        drop(made());
        assert!(!journal.exists());
        made().publish(&place).unwrap();
        assert!(journal.exists(), "by now another command may have made it");
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        drop(PartialStoreFile::open_leftover(&place).unwrap());
        assert!(!journal.exists());
    }
}
