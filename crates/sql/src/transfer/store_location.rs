//! The location of a store, as commands name it.

use std::fmt;
use std::path::{Path, PathBuf};

use trefoil_config::PostgresUrl;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// The SQLite file in a data folder.
    File(PathBuf),
    Postgres(PostgresUrl),
}

/// As an argument of `--to`, without the password.
impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::File(path) => {
                write!(f, "sqlite:{}", absolute_path(path.parent().unwrap_or(path)).display())
            }
            StoreLocation::Postgres(url) => url.fmt(f),
        }
    }
}

/// The absolute path, also of a folder that does not exist.
fn absolute_path(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
