//! Notices changes in the application folder, or of single files, by polling them every half second.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Path, time and size of every relevant file. Polled, because notification services miss changes on network and
/// container mounts, and a folder of schema files is small.
#[derive(Debug, PartialEq, Eq, Default)]
struct FileSnapshot(Vec<(PathBuf, Option<SystemTime>, u64)>);

impl FileSnapshot {
    fn take(watched: &[WatchedPath]) -> FileSnapshot {
        let mut snapshot = FileSnapshot::default();
        for path in watched {
            match path {
                WatchedPath::Folder(folder) => snapshot.add_folder(folder, 0),
                WatchedPath::File(file) => snapshot.add_file(file.clone()),
            }
        }
        snapshot.0.sort();
        snapshot
    }

    /// Takes a snapshot on a thread that may block.
    async fn take_blocking(watched: &Arc<[WatchedPath]>) -> FileSnapshot {
        let watched = watched.clone();
        tokio::task::spawn_blocking(move || FileSnapshot::take(&watched)).await.unwrap_or_default()
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
pub struct FileWatcher {
    watched: Arc<[WatchedPath]>,
    last_snapshot: FileSnapshot,
}

enum WatchedPath {
    /// With all that is in it.
    Folder(PathBuf),
    File(PathBuf),
}

impl FileWatcher {
    /// Watches what the server reads in an application folder.
    pub fn of_application(folder: &Path) -> FileWatcher {
        FileWatcher::new([
            WatchedPath::Folder(folder.join("graphql")),
            WatchedPath::Folder(folder.join("views")),
            WatchedPath::Folder(folder.join("static")),
            WatchedPath::File(folder.join("trefoil.toml")),
        ])
    }

    pub fn of_files(files: [PathBuf; 2]) -> FileWatcher {
        FileWatcher::new(files.map(WatchedPath::File))
    }

    fn new<const COUNT: usize>(watched: [WatchedPath; COUNT]) -> FileWatcher {
        let watched: Arc<[WatchedPath]> = Arc::new(watched);
        FileWatcher { last_snapshot: FileSnapshot::take(&watched), watched }
    }

    /// Returns when something changed and then stayed the same for one interval, so that half-written files are not
    /// read.
    pub async fn wait_for_change(&mut self) {
        let mut last = FileSnapshot::take_blocking(&self.watched).await;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = FileSnapshot::take_blocking(&self.watched).await;
            if now != self.last_snapshot && now == last {
                self.last_snapshot = now;
                return;
            }
            last = now;
        }
    }
}
