//! [`AskedWrites`]: how writes end that are only asked about.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells whether a write was allowed of an engine that only asks, see [`crate::Engine::asking_again`]. It ends as a failure of
/// its own kind, which is passed on as any other.
#[derive(Debug, Clone, Default)]
pub struct AskedWrites(Arc<AtomicBool>);

impl AskedWrites {
    pub(crate) fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a write was allowed since this was called before.
    pub fn take_allowed(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}
