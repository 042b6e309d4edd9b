//! Puts a finished file in its place: durably, at once, and never beside a journal that belongs to another.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::{Failed, sqlite};

/// A file that is being written beside the one it is to become. Removed when dropped before it is in place.
pub struct Partial {
    pub path: PathBuf,
    /// Locked, so that what a killed command left is told from what another is writing.
    _file: File,
    is_placed: bool,
}

impl Partial {
    /// `NAME.partial`; what an interrupted command left there goes.
    pub fn beside(path: &Path) -> Result<Partial, Failed> {
        let path = with(path, ".partial");
        let unusable = |error: std::io::Error| Failed::at(&path, error);
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failed::at(&path, "another command is writing this file"));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        file.set_len(0).map_err(unusable)?;
        for suffix in ["-journal", "-wal", "-shm"] {
            remove(&with(&path, suffix))?;
        }
        Ok(Partial { path, _file: file, is_placed: false })
    }

    /// On the disk, and from then on under its own name.
    pub fn place(mut self, path: &Path) -> Result<(), Failed> {
        let failed = |error: std::io::Error| Failed::at(path, error);
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(failed)?;
        fs::rename(&self.path, path).map_err(failed)?;
        self.is_placed = true;
        sync_folder(path)
    }

    /// The same for the file of a store: whoever still has the old one open keeps it from being replaced.
    pub fn replace(self, path: &Path) -> Result<(), Failed> {
        let _held = hold(path)?;
        self.place(path)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_placed {
            for suffix in ["", "-journal", "-wal", "-shm"] {
                // What cannot be removed now goes when the command is run again.
                let _ = fs::remove_file(with(&self.path, suffix));
            }
        }
    }
}

/// Takes the old file for good: its journal is worked in, so that the new file does not find it. A file that is
/// none of SQLite's has no readers, and its journal goes with it.
fn hold(path: &Path) -> Result<Option<Connection>, Failed> {
    if !path.exists() {
        for suffix in ["-wal", "-shm", "-journal"] {
            remove(&with(path, suffix))?;
        }
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
            for suffix in ["-wal", "-shm", "-journal"] {
                remove(&with(path, suffix))?;
            }
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

fn remove(path: &Path) -> Result<(), Failed> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failed::at(path, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub fn sync_folder(of: &Path) -> Result<(), Failed> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| Failed::at(folder, error))
}

/// The same path with something behind its name.
fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
