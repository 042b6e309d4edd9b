//! Notices changes in the application folder by polling it every half second.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Path, time and size of every relevant file. Polled, because notification services miss changes on network and
/// container mounts, and a folder of schema files is small.
#[derive(Debug, PartialEq, Eq, Default)]
struct FolderSnapshot(Vec<(PathBuf, Option<SystemTime>, u64)>);

impl FolderSnapshot {
    fn take(folder: &Path) -> FolderSnapshot {
        let mut snapshot = FolderSnapshot::default();
        snapshot.add_folder(&folder.join("graphql"), 0);
        snapshot.add_folder(&folder.join("views"), 0);
        snapshot.add_file(folder.join("trefoil.toml"));
        snapshot.0.sort();
        snapshot
    }

    /// Takes a snapshot on a thread that may block.
    async fn take_blocking(folder: &Path) -> FolderSnapshot {
        let folder = folder.to_owned();
        tokio::task::spawn_blocking(move || FolderSnapshot::take(&folder)).await.unwrap_or_default()
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) {
        // Deep enough for any schema folder, and an end for circular links.
        if depth > 16 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                self.add_folder(&path, depth + 1);
            } else {
                self.add_file(path);
            }
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        if let Ok(found) = std::fs::metadata(&path) {
            self.0.push((path, found.modified().ok(), found.len()));
        }
    }
}

/// Waits for changes, one after the other.
pub struct FolderWatcher {
    folder: PathBuf,
    last_snapshot: FolderSnapshot,
}

impl FolderWatcher {
    pub fn new(folder: &Path) -> FolderWatcher {
        FolderWatcher { folder: folder.to_owned(), last_snapshot: FolderSnapshot::take(folder) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns when something changed and then stayed the same for one interval, so that half-written files are not
    /// read.
    pub async fn wait_for_change(&mut self) {
        let mut last = FolderSnapshot::take_blocking(&self.folder).await;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = FolderSnapshot::take_blocking(&self.folder).await;
            if now != self.last_snapshot && now == last {
                self.last_snapshot = now;
                return;
            }
            last = now;
        }
    }
}
