//! What all subscriptions of a server share: the events that are kept, the channels of a schema, and what is counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use trefoil_engine::changes::SharedWork;

use crate::subscribe::channel::{EventBatch, SubscriptionChannel};

/// One for a server; outlives reloads.
pub struct SubscriptionRegistry {
    /// Encoded events by channel and place.
    pub(crate) event_cache: Arc<SharedWork<(u64, i64), EventBatch>>,
    /// Told when another schema is served.
    pub(crate) schema_swaps: watch::Sender<()>,
    /// Events that were made, each for all who asked the same.
    pub encoded_events: Counter,
    channel_count: AtomicU64,
}

impl SubscriptionRegistry {
    /// Keeps so many bytes of events for those who come later.
    pub fn new(bytes: usize) -> SubscriptionRegistry {
        SubscriptionRegistry {
            event_cache: SharedWork::new(bytes),
            schema_swaps: watch::Sender::new(()),
            encoded_events: Counter::default(),
            channel_count: AtomicU64::new(0),
        }
    }

    /// A number that no other channel has.
    pub(crate) fn next_channel_number(&self) -> u64 {
        self.channel_count.fetch_add(1, Ordering::Relaxed)
    }

    /// Another schema is served from now on.
    pub fn schema_swapped(&self) {
        self.schema_swaps.send_replace(());
    }

    /// Bytes of events that are kept.
    pub fn bytes(&self) -> usize {
        self.event_cache.bytes()
    }
}

/// The channels of one schema, by what was asked. One goes with its last subscriber.
#[derive(Default)]
pub struct ChannelMap(Mutex<HashMap<String, Weak<SubscriptionChannel>>>);

impl ChannelMap {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<SubscriptionChannel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<SubscriptionChannel>> {
        self.lock().get(key)?.upgrade()
    }

    /// The channel that is there, when somebody was quicker.
    pub(crate) fn insert(&self, channel: Arc<SubscriptionChannel>) -> Arc<SubscriptionChannel> {
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
