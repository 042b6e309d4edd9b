//! Notices that files of the application folder changed, by looking every half second.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PAUSE: Duration = Duration::from_millis(500);

/// Name, time and size of every file that counts. Polled, because notification services miss changes on network
/// and container mounts, and a folder of schema files is small.
#[derive(Debug, PartialEq, Eq, Default)]
struct Trace(Vec<(PathBuf, Option<SystemTime>, u64)>);

impl Trace {
    fn of(folder: &Path) -> Trace {
        let mut trace = Trace::default();
        trace.add(&folder.join("graphql"), 0);
        trace.add(&folder.join("views"), 0);
        trace.note(folder.join("trefoil.toml"));
        trace.0.sort();
        trace
    }

    /// The same, on a thread that may wait for the disk.
    async fn taken(folder: &Path) -> Trace {
        let folder = folder.to_owned();
        tokio::task::spawn_blocking(move || Trace::of(&folder)).await.unwrap_or_default()
    }

    fn add(&mut self, folder: &Path, depth: usize) {
        // Deep enough for any schema folder, and an end for links in circles.
        if depth > 16 {
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                self.add(&path, depth + 1);
            } else {
                self.note(path);
            }
        }
    }

    fn note(&mut self, path: PathBuf) {
        if let Ok(found) = std::fs::metadata(&path) {
            self.0.push((path, found.modified().ok(), found.len()));
        }
    }
}

/// Waits for changes, one after the other.
pub struct Watch {
    folder: PathBuf,
    seen: Trace,
}

impl Watch {
    pub fn new(folder: &Path) -> Watch {
        Watch { folder: folder.to_owned(), seen: Trace::of(folder) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns when something changed and then held still for one look, so that a file half written is not read.
    pub async fn changed(&mut self) {
        let mut last = Trace::taken(&self.folder).await;
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = Trace::taken(&self.folder).await;
            if now != self.seen && now == last {
                self.seen = now;
                return;
            }
            last = now;
        }
    }
}
