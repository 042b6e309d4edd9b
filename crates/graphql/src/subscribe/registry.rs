//! State shared by all subscriptions of a server: the event cache and the counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;

use trefoil_engine::changes::SingleFlightCache;

use crate::subscribe::event::EventBatch;

/// Equal where a batch of events may be given again: the channel, the start of the batch and, where rules may ask records
/// that are not in the log, the end of the log and the number of replays when it was begun.
pub(crate) type EventBatchKey = (u64, i64, Option<(i64, u64)>);

/// One per server; outlives reloads.
pub struct SubscriptionRegistry {
    pub(crate) event_cache: Arc<SingleFlightCache<EventBatchKey, EventBatch>>,
    /// Notified when the schema is swapped.
    pub(crate) schema_swaps: watch::Sender<()>,
    /// Events encoded, each once for all subscribers of its channel.
    pub encoded_events: Counter,
    channel_count: AtomicU64,
    /// How long a filter may read related records: `limits.request-timeout`.
    pub(crate) filter_timeout: Duration,
}

impl SubscriptionRegistry {
    /// Caches up to `cache_bytes` of events for late subscribers.
    pub fn new(cache_bytes: usize, filter_timeout: Duration) -> SubscriptionRegistry {
        SubscriptionRegistry {
            event_cache: SingleFlightCache::new(cache_bytes),
            schema_swaps: watch::Sender::new(()),
            encoded_events: Counter::default(),
            channel_count: AtomicU64::new(0),
            filter_timeout,
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
