//! Notices that the database file was removed or replaced while the server has it open. SQLite would go on writing to the
//! file that it opened, which nobody finds again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trefoil_model::error::{Error, Result};

/// A database file as it was when it was opened.
pub struct FileIdentity {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl FileIdentity {
    pub fn of(path: &Path) -> Result<FileIdentity> {
        let found = device_and_inode(path).map_err(|error| unusable(path, &error.to_string()))?;
        Ok(FileIdentity { path: path.to_owned(), device_and_inode: found })
    }

    /// Fails if the path leads to another file now, or to none.
    pub fn check(&self) -> Result<()> {
        match device_and_inode(&self.path) {
            Ok(found) if found == self.device_and_inode => Ok(()),
            Ok(_) => {
                Err(unusable(&self.path, "it was replaced while the server had it open; restart the server"))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unusable(
                &self.path,
                "it was removed while the server had it open; put it back, or restart the server with a backup",
            )),
            Err(error) => Err(unusable(&self.path, &error.to_string())),
        }
    }
}

fn device_and_inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

fn unusable(path: &Path, why: &str) -> Error {
    let name = path.file_name().unwrap_or_default().display();
    let reason = format!("cannot use the database file {name}: {why}");
    Error::Unavailable { reason, retry_after: Duration::from_secs(5) }
}
