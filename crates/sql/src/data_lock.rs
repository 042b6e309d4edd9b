//! The lock on a data folder: a file lock on `trefoil.lock`, which the system releases when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use trefoil_model::error::{Error, Result};

/// Exclusive use of a data folder, until dropped.
#[derive(Debug)]
pub struct DataLock {
    _file: File,
}

impl DataLock {
    /// Locks the folder, or fails if another process has it.
    pub fn acquire(folder: &Path) -> Result<DataLock> {
        DataLock::try_acquire(folder)?.ok_or_else(|| Error::Unavailable {
            reason: format!("another server or command is using the data folder {}", folder.display()),
            retry_after: Duration::from_secs(5),
        })
    }

    /// Locks the folder; `None` if another process has it.
    pub fn try_acquire(folder: &Path) -> Result<Option<DataLock>> {
        let path = folder.join("trefoil.lock");
        let unusable = |error: std::io::Error| Error::Unavailable {
            reason: format!("cannot use the data folder: {}: {error}", path.display()),
            retry_after: Duration::from_secs(5),
        };
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DataLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DataLock;

    #[test]
    fn folder_lock_is_exclusive() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataLock::acquire(folder.path()).expect("the folder is free");
        let refused = DataLock::acquire(folder.path()).expect_err("refused").to_string();
        assert!(refused.starts_with("another server or command is using"), "{refused}");
        drop(first);
        DataLock::acquire(folder.path()).expect("the folder is free");
    }

    #[test]
    fn missing_folder_is_named() {
        let refused =
            DataLock::acquire(std::path::Path::new("/nowhere/at/all")).expect_err("refused").to_string();
        assert!(refused.contains("/nowhere/at/all"), "{refused}");
    }
}
