//! [`VersionProbe`]: one look at the version of the data for all requests that arrived before it.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::store::{DataVersion, Store};

/// Lets concurrent requests share one look at the data version, if it began after they arrived.
#[derive(Default)]
pub(crate) struct VersionProbe {
    started: AtomicU64,
    last: Mutex<(u64, Option<DataVersion>)>,
}

impl VersionProbe {
    /// The version of the data at some time since this was called.
    pub async fn read(&self, store: &dyn Store) -> Option<DataVersion> {
        let before = self.started.load(Ordering::SeqCst);
        // A store that cannot tell versions, or was not asked yet, is worth no wait.
        if self.last.lock().1.is_some() {
            tokio::task::yield_now().await;
        }
        let mut last = self.last.lock();
        if last.0 <= before {
            let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
            *last = (number, store.data_version());
        }
        last.1
    }
}
