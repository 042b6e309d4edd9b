//! The file of a store or a backup in the making, and how it takes the place of one that others may have open.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::transfer::{Failed, sqlite};

const JOURNALS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// A file that is being written beside the one it is to become, with nothing of SQLite's beside it.
pub struct Partial(trefoil_files::Partial);

impl Partial {
    /// `NAME.partial`; what an interrupted command left there goes.
    pub fn beside(path: &Path) -> Result<Partial, Failed> {
        let partial = Partial(trefoil_files::Partial::file(path).map_err(|error| Failed::at(path, error))?);
        remove_journals(partial.path())?;
        Ok(partial)
    }

    /// What an interrupted command left there, as it is. None where another may still be writing it.
    pub fn left(path: &Path) -> Result<Option<Partial>, Failed> {
        let left = trefoil_files::Partial::left(path).map_err(|error| Failed::at(path, error))?;
        Ok(left.map(Partial))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// On the disk, and from then on under its own name.
    pub fn place(mut self, path: &Path) -> Result<(), Failed> {
        self.0.place().map_err(|error| Failed::at(path, error))
    }

    /// The same for the file of a store: whoever still has the old one open keeps it from being replaced.
    pub fn replace(self, path: &Path) -> Result<(), Failed> {
        let _held = hold(path)?;
        self.place(path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // From then on the name is free for another command.
        if self.0.is_placed {
            return;
        }
        for suffix in JOURNALS {
            // What cannot be removed now goes when the command is run again.
            let _ = fs::remove_file(with(self.path(), suffix));
        }
    }
}

/// Takes the old file for good: its journal is worked in, so that the new file does not find it. A file that is
/// none of SQLite's has no readers, and its journal goes with it.
fn hold(path: &Path) -> Result<Option<Connection>, Failed> {
    if !path.exists() {
        remove_journals(path)?;
        return Ok(None);
    }
    let taken = || -> Result<Connection, Failed> {
        let connection = sqlite::open(path)?;
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
        if mode != "delete" {
            return Err(Failed::at(path, "another program is using this file"));
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

fn remove_journals(of: &Path) -> Result<(), Failed> {
    JOURNALS.iter().map(|suffix| with(of, suffix)).try_for_each(|path| match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failed::at(&path, error)),
        Ok(()) | Err(_) => Ok(()),
    })
}

/// The same path with something behind its name.
fn with(path: &Path, suffix: &str) -> PathBuf {
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
            let partial = Partial::beside(&place).unwrap();
            fs::write(&journal, "").unwrap();
            partial
        };
        drop(made());
        assert!(!journal.exists());
        made().place(&place).unwrap();
        assert!(journal.exists(), "by now another command may have made it");
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        drop(Partial::left(&place).unwrap());
        assert!(!journal.exists());
    }
}
