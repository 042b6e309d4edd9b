//! State shared by all subscriptions of a server: the event cache, counters, and the channels of each schema.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use trefoil_engine::changes::SharedWork;

use crate::subscribe::channel::{EventBatch, SubscriptionChannel};

/// One per server; outlives reloads.
pub struct SubscriptionRegistry {
    /// Event batches by channel number and start position.
    pub(crate) event_cache: Arc<SharedWork<(u64, i64), EventBatch>>,
    /// Notified when the schema is swapped.
    pub(crate) schema_swaps: watch::Sender<()>,
    /// Events encoded, each once for all subscribers of its channel.
    pub encoded_events: Counter,
    channel_count: AtomicU64,
}

impl SubscriptionRegistry {
    /// Caches up to `cache_bytes` of events for late subscribers.
    pub fn new(cache_bytes: usize) -> SubscriptionRegistry {
        SubscriptionRegistry {
            event_cache: SharedWork::new(cache_bytes),
            schema_swaps: watch::Sender::new(()),
            encoded_events: Counter::default(),
            channel_count: AtomicU64::new(0),
        }
    }

    /// A new unique channel number.
    pub(crate) fn next_channel_number(&self) -> u64 {
        self.channel_count.fetch_add(1, Ordering::Relaxed)
    }

    /// Wakes all channels of the former schema.
    pub fn schema_swapped(&self) {
        self.schema_swaps.send_replace(());
    }

    /// Bytes of cached events.
    pub fn bytes(&self) -> usize {
        self.event_cache.bytes()
    }
}

/// The channels of one schema by request key. A channel is dropped with its last subscriber.
#[derive(Default)]
pub struct ChannelMap(Mutex<HashMap<String, Weak<SubscriptionChannel>>>);

impl ChannelMap {
    pub(crate) fn get(&self, key: &str) -> Option<Arc<SubscriptionChannel>> {
        self.0.lock().get(key)?.upgrade()
    }

    /// Adds the channel, or returns the one that was added first.
    pub(crate) fn insert(&self, channel: Arc<SubscriptionChannel>) -> Arc<SubscriptionChannel> {
        let mut channels = self.0.lock();
        if let Some(existing) = channels.get(channel.key()).and_then(Weak::upgrade) {
            // Release the lock before `channel` is dropped: its `Drop` takes the lock.
            drop(channels);
            return existing;
        }
        channels.insert(channel.key().to_owned(), Arc::downgrade(&channel));
        channel
    }

    pub(crate) fn remove(&self, key: &str) {
        let mut channels = self.0.lock();
        if channels.get(key).is_some_and(|channel| channel.strong_count() == 0) {
            channels.remove(key);
        }
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
