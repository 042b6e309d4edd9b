//! What all subscriptions of a server share: the events that are kept, the channels of a schema, and what is counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use crate::subscribe::channel::{Channel, Events};
use trefoil_engine::changes::Shelf;

/// One for a server; outlives reloads.
pub struct Hub {
    /// Encoded events by channel and place.
    pub(crate) shelf: Arc<Shelf<(u64, i64), Events>>,
    /// Told when another schema is served.
    pub(crate) swapped: watch::Sender<()>,
    /// Events that were made, each for all who asked the same.
    pub encoded: Counter,
    channels: AtomicU64,
}

impl Hub {
    /// Keeps so many bytes of events for those who come later.
    pub fn new(bytes: usize) -> Hub {
        Hub {
            shelf: Shelf::new(bytes),
            swapped: watch::Sender::new(()),
            encoded: Counter::default(),
            channels: AtomicU64::new(0),
        }
    }

    /// A number that no other channel has.
    pub(crate) fn number(&self) -> u64 {
        self.channels.fetch_add(1, Ordering::Relaxed)
    }

    /// Another schema is served from now on.
    pub fn swapped(&self) {
        self.swapped.send_replace(());
    }

    /// Bytes of events that are kept.
    pub fn bytes(&self) -> usize {
        self.shelf.bytes()
    }
}

/// The channels of one schema, by what was asked. One goes with its last subscriber.
#[derive(Default)]
pub struct Channels(Mutex<HashMap<String, Weak<Channel>>>);

impl Channels {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Channel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Channel>> {
        self.lock().get(key)?.upgrade()
    }

    /// The channel that is there, when somebody was quicker.
    pub(crate) fn put(&self, channel: Arc<Channel>) -> Arc<Channel> {
        let mut channels = self.lock();
        if let Some(known) = channels.get(channel.key()).and_then(Weak::upgrade) {
            // Dropped only after the lock is free, which its end wants.
            drop(channels);
            return known;
        }
        channels.insert(channel.key().to_owned(), Arc::downgrade(&channel));
        channel
    }

    pub(crate) fn remove(&self, key: &str) {
        let mut channels = self.lock();
        if channels.get(key).is_some_and(|channel| channel.strong_count() == 0) {
            channels.remove(key);
        }
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
