//! The channel of all subscribers with the same request under one schema: each event is found and encoded once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout, timeout_at};

use trefoil_engine::changes::{ComputationItem, EventAccess, RetryBackoff};
use trefoil_engine::{ChangeBatch, ChangeFeed, Engine, RecordChange};
use trefoil_model::error::{Error, ErrorSource, Result};
use trefoil_model::values::json_text;

use crate::execute::execution::{ExecutionError, OperationExecution};
use crate::reply::ExecutedResponse;
use crate::response_error;
use crate::subscribe::event::{EventBatch, SubscriptionEvent};
use crate::subscribe::registry::SubscriptionRegistry;
use crate::subscribe::request::{PlannedSubscription, SubscriptionRequest};

/// A batch of events is delivered once it is larger than this.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Changes that the filter does not match are skipped without waking subscribers, up to this number …
const MAX_SKIPPED_CHANGES: i64 = 1_024;
/// … or for this long, so that the positions in heartbeats stay recent.
const MAX_SILENCE: Duration = Duration::from_secs(5);

pub struct SubscriptionChannel {
    number: u64,
    key: String,
    /// On behalf of the actor who opened it first. Those who share it are of the same class, or are shown the same.
    engine: Engine,
    /// Subscribers of all classes share it: each judges the events.
    is_common: bool,
    registry: Arc<SubscriptionRegistry>,
    /// The channels that it is one of.
    channels: Arc<ChannelMap>,
    request: SubscriptionRequest,
    planned: PlannedSubscription,
    /// The batch that waits at the end of the log, with its start; later subscribers share it.
    waiting_at_end: Mutex<Option<(i64, Weak<ComputationItem<EventBatch>>)>>,
    /// How many subscribers have begun with changes of the past.
    replay_count: AtomicU64,
}

impl SubscriptionChannel {
    /// The channel of a planned request, or the one that another subscriber added first.
    pub fn add(
        registry: &Arc<SubscriptionRegistry>,
        channels: &Arc<ChannelMap>,
        engine: &Engine,
        request: SubscriptionRequest,
        planned: PlannedSubscription,
    ) -> Arc<SubscriptionChannel> {
        let class = engine.access_class();
        let is_personal = planned.plan.uses_resolvers;
        let is_common = planned.event_access(engine).is_some();
        let key = match (is_common, is_personal) {
            (true, _) => request.common_key(),
            (false, true) => request.actor_key(class),
            (false, false) => request.shared_key(class),
        };
        let channel = SubscriptionChannel {
            number: registry.next_channel_number(),
            key,
            engine: engine.clone(),
            is_common,
            registry: registry.clone(),
            channels: channels.clone(),
            request,
            planned,
            waiting_at_end: Mutex::default(),
            replay_count: AtomicU64::new(0),
        };
        channels.insert(Arc::new(channel))
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn request(&self) -> &SubscriptionRequest {
        &self.request
    }

    /// What an actor may see of its events, if it is for all classes; `None` if it is for one.
    pub fn event_access(&self, engine: &Engine) -> Option<EventAccess> {
        if self.is_common { self.planned.event_access(engine) } else { None }
    }

    fn feed(&self) -> &ChangeFeed {
        self.engine.feed()
    }

    /// Makes sure that changes of the past are judged anew for who begins with them.
    pub fn begin_replay(&self) {
        self.replay_count.fetch_add(1, Ordering::AcqRel);
    }

    /// True if the rules of the actor judge events, which may ask other records. What they say is asked when an event is
    /// delivered: an earlier answer may be outdated.
    fn is_judged(&self) -> bool {
        self.engine.access_view().is_some() && !self.is_common
    }

    /// The events after `position`. A shared batch may start earlier; the subscriber skips the events before `position`.
    pub fn events_after(self: &Arc<Self>, position: i64) -> Arc<ComputationItem<EventBatch>> {
        let mut waiting_at_end = self.waiting_at_end.lock();
        let waiting = waiting_at_end.as_ref().and_then(|(from, batch)| Some((*from, unfinished(batch)?)));
        let (channel, is_judged, head) = (self.clone(), self.is_judged(), self.feed().known_head());
        // The batch that waits has judged the changes up to the end already.
        if let Some((from, batch)) = &waiting
            && *from <= position
            && (!is_judged || position >= head)
        {
            return batch.clone();
        }
        let judged_at = is_judged.then(|| (head, self.replay_count.load(Ordering::Acquire)));
        let key = (self.number, position, judged_at);
        let batch = self.registry.event_cache.join(key, move || channel.next_events(position));
        if waiting.is_none() && position >= head {
            *waiting_at_end = Some((position, Arc::downgrade(&batch)));
        }
        batch
    }

    /// True if another batch already waits between `start` and `position`, or waits at the end where this one has come:
    /// then this one can end there.
    fn others_wait_ahead(&self, start: i64, position: i64) -> bool {
        let is_at_end = self.is_judged() && position >= self.feed().known_head();
        let waiting_at_end = self.waiting_at_end.lock();
        let is_ahead = |from: i64| start < from && from <= position || is_at_end && from < start;
        waiting_at_end.as_ref().is_some_and(|(from, batch)| is_ahead(*from) && unfinished(batch).is_some())
    }

    /// The next batch, or an empty one with `schema_changed` after a swap.
    async fn next_events(self: Arc<Self>, start: i64) -> Result<Arc<EventBatch>> {
        let mut swapped = self.registry.schema_swaps.subscribe();
        if !self.channels.is_retired() {
            tokio::select! {
                biased;
                _ = swapped.changed() => {}
                events = self.stable_events(start) => return events.map(Arc::new),
            }
        }
        Ok(Arc::new(EventBatch { events: Vec::new(), until: start, id: "".into(), schema_changed: true }))
    }

    /// A batch that no reload interrupted, so that tables and images have one form.
    async fn stable_events(&self, start: i64) -> Result<EventBatch> {
        loop {
            let generation = self.feed().settled_generation().await;
            let events = self.collect_events(start).await?;
            if self.feed().is_current(&generation) {
                return Ok(events);
            }
        }
    }

    async fn collect_events(&self, start: i64) -> Result<EventBatch> {
        let (mut events, mut until, mut bytes) = (Vec::new(), start, 0);
        let mut deadline = None;
        loop {
            let next = self.feed().changes_after(until);
            let range = match deadline {
                None => next.await?,
                Some(deadline) => match timeout_at(deadline, next).await {
                    Ok(range) => range?,
                    Err(_) => break,
                },
            };
            deadline.get_or_insert_with(|| Instant::now() + MAX_SILENCE);
            until = range.until;
            for change in self.matching_changes(&range).await? {
                let event = self.encode_event(&change).await?;
                bytes += event.estimated_bytes();
                events.push(Arc::new(event));
                if bytes > MAX_BATCH_BYTES {
                    until = change.number;
                    break;
                }
            }
            if !events.is_empty()
                || until - start >= MAX_SKIPPED_CHANGES
                || self.others_wait_ahead(start, until)
            {
                break;
            }
        }
        Ok(EventBatch { id: self.feed().event_id(until).await?.into(), events, until, schema_changed: false })
    }

    /// The changes of a batch that the filter matches. Retries while the store is unavailable, so that none is lost.
    async fn matching_changes<'b>(&self, batch: &'b ChangeBatch) -> Result<Vec<Cow<'b, RecordChange>>> {
        if self.is_common {
            return Ok(self.planned.filter.matching_images(batch));
        }
        let limit = self.registry.filter_timeout;
        let mut backoff = RetryBackoff::new("related records for the filter of a subscription");
        loop {
            let matching = self.engine.matching_changes(&self.planned.filter, batch);
            match timeout(limit, matching).await {
                Ok(Err(error)) if may_pass(&error) => backoff.wait(&error).await,
                Ok(result) => {
                    backoff.recovered();
                    return result;
                }
                Err(_) => {
                    let text = format!(
                        "the filter read related records for more than {limit:?} (limits.request-timeout)"
                    );
                    return Err(Error::Limit(text));
                }
            }
        }
    }

    async fn encode_event(&self, change: &RecordChange) -> Result<SubscriptionEvent> {
        let id = self.feed().event_id(change.number).await?;
        let (mut body, causes) = self.execute_change(change).await;
        // JSON that another program stored may contain line breaks, which would end a line of an event stream.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        // Insert `extensions` before the closing brace.
        body.pop();
        body.extend_from_slice(b",\"extensions\":{\"eventId\":");
        json_text::write_text(&mut body, &id);
        body.extend_from_slice(b"}}");
        self.registry.encoded_events.inc();
        let image = self.is_common.then(|| change.image.clone());
        Ok(SubscriptionEvent::new(change.number, id.into(), &body, causes).with_image(image))
    }

    /// The response to one change, and the causes of its errors. Retries while the store is unavailable.
    async fn execute_change(&self, change: &RecordChange) -> (Vec<u8>, Vec<ErrorSource>) {
        let mut backoff = RetryBackoff::new("records for an event");
        loop {
            let engine = self.engine.at_present();
            let execution = OperationExecution {
                engine: &engine,
                plan: self.planned.plan.clone(),
                variables: self.planned.variables.clone(),
                key: None,
                actor: self.request.actor.clone(),
                change: Some(change),
                described: None,
            };
            let failures = match execution.run().await {
                Ok(ExecutedResponse { body, notes, .. }) => {
                    backoff.recovered();
                    return (body, notes.causes);
                }
                Err(ExecutionError::Engine(error)) if may_pass(&error) => {
                    backoff.wait(&error).await;
                    continue;
                }
                Err(error) => Vec::from(error),
            };
            let mut body = b"{\"data\":null,\"errors\":".to_vec();
            response_error::write_errors(&mut body, &failures);
            body.push(b'}');
            return (body, failures.into_iter().filter_map(|failure| failure.cause).collect());
        }
    }
}

/// True if the same read may succeed later.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. } | Error::OutcomeUnknown | Error::Cancelled)
}

/// The work item, unless it is done.
fn unfinished(batch: &Weak<ComputationItem<EventBatch>>) -> Option<Arc<ComputationItem<EventBatch>>> {
    batch.upgrade().filter(|batch| !batch.is_done())
}

impl Drop for SubscriptionChannel {
    fn drop(&mut self) {
        self.channels.remove(&self.key);
    }
}

/// The channels of one schema by request key. A channel is dropped with its last subscriber.
#[derive(Default)]
pub struct ChannelMap {
    by_key: Mutex<HashMap<String, Weak<SubscriptionChannel>>>,
    /// The schema was swapped.
    is_retired: AtomicBool,
}

impl ChannelMap {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<SubscriptionChannel>>> {
        self.by_key.lock()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<SubscriptionChannel>> {
        self.lock().get(key)?.upgrade()
    }

    /// Adds the channel, or returns the one that was added first.
    pub(crate) fn insert(&self, channel: Arc<SubscriptionChannel>) -> Arc<SubscriptionChannel> {
        let mut channels = self.lock();
        if let Some(existing) = channels.get(channel.key()).and_then(Weak::upgrade) {
            // Release the lock before `channel` is dropped: its `Drop` takes the lock.
            drop(channels);
            return existing;
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

    /// Marks the channels as those of a former schema.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
