//! All who asked the same under one schema: a change that they follow is found and encoded once for all of them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use trefoil_engine::changes::{MemorySize, WorkItem};
use trefoil_engine::{ChangeFeed, RecordChange};
use trefoil_model::error::{Cause, Error, Result};

use crate::execute::run::{ExecutedResponse, Execution, ExecutionError};
use crate::response_error::{self, ResponseError};
use crate::service::{GraphqlService, GraphqlState};
use crate::subscribe::event::SubscriptionEvent;
use crate::subscribe::registry::SubscriptionRegistry;
use crate::subscribe::request::{PlannedSubscription, SubscriptionRequest};

/// When so many bytes of events are together, they go out before more are made.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Changes that concern nobody here are passed over without waking anyone, until there were so many …
const MAX_SKIPPED_CHANGES: i64 = 1_024;
/// … or so much time has gone by: a place that is told must not grow old.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// How long it waits for a store that cannot be read.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

pub struct SubscriptionChannel {
    number: u64,
    key: String,
    service: GraphqlService,
    state: Arc<GraphqlState>,
    request: SubscriptionRequest,
    planned: PlannedSubscription,
    /// Those who wait at the end of the log, and from where on: whoever comes later waits with them.
    waiting_at_end: Mutex<Option<(i64, Weak<WorkItem<EventBatch>>)>>,
}

/// The events of a part of the log.
pub struct EventBatch {
    pub events: Vec<Arc<SubscriptionEvent>>,
    /// There is nothing else up to here.
    pub until: i64,
    /// The name of that place.
    pub id: Arc<str>,
    /// Another schema is served: what follows is found there.
    pub schema_changed: bool,
}

impl MemorySize for EventBatch {
    fn memory_size(&self) -> usize {
        self.events.iter().map(|event| event.estimated_bytes() + 32).sum()
    }
}

impl SubscriptionChannel {
    /// The channel for this request, planned when it is the first.
    pub fn join(
        face: &GraphqlService,
        served: &Arc<GraphqlState>,
        wanted: SubscriptionRequest,
    ) -> Result<Arc<SubscriptionChannel>, Vec<ResponseError>> {
        let (key, own) = (wanted.shared_key(), wanted.actor_key());
        let known = served.channels.get(&key).or_else(|| served.channels.get(&own));
        if let Some(channel) = known {
            return Ok(channel);
        }
        let planned = wanted.plan(served)?;
        let channel = SubscriptionChannel {
            number: face.subscriptions.next_channel_number(),
            key: if planned.plan.uses_resolvers { own } else { key },
            service: face.clone(),
            state: served.clone(),
            request: wanted,
            planned,
            waiting_at_end: Mutex::default(),
        };
        Ok(served.channels.insert(Arc::new(channel)))
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn service(&self) -> &GraphqlService {
        &self.service
    }

    pub fn registry(&self) -> &SubscriptionRegistry {
        &self.service.subscriptions
    }

    pub fn request(&self) -> &SubscriptionRequest {
        &self.request
    }

    fn feed(&self) -> &ChangeFeed {
        self.state.engine.feed()
    }

    /// What comes after this place. It may begin before it: who joins others on their way skips what they had.
    pub fn events_after(self: &Arc<Self>, place: i64) -> Arc<WorkItem<EventBatch>> {
        let mut live = self.waiting_at_end.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = live.as_ref().and_then(|(from, flight)| Some((*from, unfinished(flight)?)));
        if let Some((from, flight)) = &waiting
            && *from <= place
        {
            return flight.clone();
        }
        let channel = self.clone();
        let flight =
            self.registry().event_cache.join((self.number, place), move || channel.next_events(place));
        if waiting.is_none() && place >= self.feed().known_head() {
            *live = Some((place, Arc::downgrade(&flight)));
        }
        flight
    }

    /// Whether others already wait further on, so that there is no need to wait beside them.
    fn others_wait_ahead(&self, start: i64, place: i64) -> bool {
        let live = self.waiting_at_end.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_ref()
            .is_some_and(|(from, flight)| start < *from && *from <= place && unfinished(flight).is_some())
    }

    /// The next events, or word that another schema is served.
    async fn next_events(self: Arc<Self>, start: i64) -> Result<Arc<EventBatch>> {
        let mut swapped = self.registry().schema_swaps.subscribe();
        let is_current = Arc::ptr_eq(&self.service.state.load(), &self.state);
        if is_current {
            tokio::select! {
                biased;
                _ = swapped.changed() => {}
                events = self.stable_events(start) => return events.map(Arc::new),
            }
        }
        Ok(Arc::new(EventBatch { events: Vec::new(), until: start, id: "".into(), schema_changed: true }))
    }

    /// Events that no reload came between: tables and images are all of one form.
    async fn stable_events(&self, start: i64) -> Result<EventBatch> {
        loop {
            let settled = self.feed().settled_generation().await;
            let events = self.collect_events(start).await?;
            if self.feed().is_current(&settled) {
                return Ok(events);
            }
        }
    }

    async fn collect_events(&self, start: i64) -> Result<EventBatch> {
        let (mut list, mut until, mut bytes) = (Vec::new(), start, 0);
        let mut deadline = None;
        loop {
            let next = self.feed().changes_after(until);
            let stretch = match deadline {
                None => next.await?,
                Some(deadline) => match timeout_at(deadline, next).await {
                    Ok(stretch) => stretch?,
                    Err(_) => break,
                },
            };
            deadline.get_or_insert_with(|| Instant::now() + MAX_SILENCE);
            until = stretch.until;
            for change in stretch.changes.iter().filter(|change| self.planned.filter.matches(change)) {
                let event = self.encode_event(change).await?;
                bytes += event.estimated_bytes();
                list.push(Arc::new(event));
                if bytes > MAX_BATCH_BYTES {
                    until = change.number;
                    break;
                }
            }
            if !list.is_empty()
                || until - start >= MAX_SKIPPED_CHANGES
                || self.others_wait_ahead(start, until)
            {
                break;
            }
        }
        Ok(EventBatch {
            id: self.feed().event_id(until).await?.into(),
            events: list,
            until,
            schema_changed: false,
        })
    }

    async fn encode_event(&self, change: &RecordChange) -> Result<SubscriptionEvent> {
        let id = self.feed().event_id(change.number).await?;
        let (mut body, causes) = self.execute_change(change).await;
        // JSON that another program stored may be spread over lines, which would end a line of an event stream.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        // Behind what there is, before the closing brace.
        body.pop();
        body.extend_from_slice(b",\"extensions\":{\"eventId\":");
        response_error::write_json_string(&mut body, &id);
        body.extend_from_slice(b"}}");
        self.registry().encoded_events.inc();
        Ok(SubscriptionEvent::new(change.number, id.into(), &body, causes))
    }

    /// The response to one change, and the causes of what failed in it. It waits for as long as the store is away.
    async fn execute_change(&self, change: &RecordChange) -> (Vec<u8>, Vec<Cause>) {
        loop {
            let execution = Execution {
                engine: &self.state.engine,
                plan: self.planned.plan.clone(),
                variables: self.planned.variables.clone(),
                key: None,
                actor: self.request.actor.clone(),
                image: Some(change.image.clone()),
            };
            let failures = match execution.run().await {
                Ok(ExecutedResponse { body, causes, .. }) => return (body, causes),
                Err(ExecutionError::Engine(
                    Error::Unavailable { .. } | Error::OutcomeUnknown | Error::Cancelled,
                )) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(refused) => Vec::from(refused),
            };
            let mut body = b"{\"data\":null,\"errors\":".to_vec();
            response_error::write_errors(&mut body, &failures);
            body.push(b'}');
            return (body, failures.into_iter().filter_map(|failure| failure.cause).collect());
        }
    }
}

/// The flight, while it is under way.
fn unfinished(flight: &Weak<WorkItem<EventBatch>>) -> Option<Arc<WorkItem<EventBatch>>> {
    flight.upgrade().filter(|flight| !flight.is_done())
}

impl Drop for SubscriptionChannel {
    fn drop(&mut self) {
        self.state.channels.remove(&self.key);
    }
}
