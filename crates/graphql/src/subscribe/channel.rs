//! All who asked the same under one schema: a change that they follow is found and encoded once for all of them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::Served;
use crate::execute::run::{Executed, Execution, Refused};
use crate::response_error;
use crate::response_error::Failure;
use crate::subscribe::registry::Hub;
use crate::subscribe::request::{Planned, Wanted};
use crate::subscribe::{Event, Face};
use trefoil_engine::changes::{Flight, Weigh};
use trefoil_engine::{Change, Feed};
use trefoil_model::error::{Cause, Error, Result};

/// When so many bytes of events are together, they go out before more are made.
const LARGEST: usize = 1 << 20;

/// Changes that concern nobody here are passed over without waking anyone, until there were so many …
const QUIET: i64 = 1_024;
/// … or so much time has gone by: a place that is told must not grow old.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// How long it waits for a store that cannot be read.
const PAUSE: Duration = Duration::from_millis(250);

pub struct Channel {
    number: u64,
    key: String,
    face: Face,
    served: Arc<Served>,
    wanted: Wanted,
    planned: Planned,
    /// Those who wait at the end of the log, and from where on: whoever comes later waits with them.
    live: Mutex<Option<(i64, Weak<Flight<Events>>)>>,
}

/// The events of a part of the log.
pub struct Events {
    pub list: Vec<Arc<Event>>,
    /// There is nothing else up to here.
    pub until: i64,
    /// The name of that place.
    pub id: Arc<str>,
    /// Another schema is served: what follows is found there.
    pub is_over: bool,
}

impl Weigh for Events {
    fn weight(&self) -> usize {
        self.list.iter().map(|event| event.weight() + 32).sum()
    }
}

impl Channel {
    /// The channel for this request, planned when it is the first.
    pub fn join(face: &Face, served: &Arc<Served>, wanted: Wanted) -> Result<Arc<Channel>, Vec<Failure>> {
        let (key, own) = (wanted.key(), wanted.own_key());
        let known = served.channels.get(&key).or_else(|| served.channels.get(&own));
        if let Some(channel) = known {
            return Ok(channel);
        }
        let planned = wanted.plan(served)?;
        let channel = Channel {
            number: face.hub.number(),
            key: if planned.plan.live { own } else { key },
            face: face.clone(),
            served: served.clone(),
            wanted,
            planned,
            live: Mutex::default(),
        };
        Ok(served.channels.put(Arc::new(channel)))
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn face(&self) -> &Face {
        &self.face
    }

    pub fn hub(&self) -> &Hub {
        &self.face.hub
    }

    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    fn feed(&self) -> &Feed {
        self.served.engine.feed()
    }

    /// What comes after this place. It may begin before it: who joins others on their way skips what they had.
    pub fn after(self: &Arc<Self>, place: i64) -> Arc<Flight<Events>> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = live.as_ref().and_then(|(from, flight)| Some((*from, running(flight)?)));
        if let Some((from, flight)) = &waiting
            && *from <= place
        {
            return flight.clone();
        }
        let channel = self.clone();
        let flight = self.hub().shelf.join((self.number, place), move || channel.pass(place));
        if waiting.is_none() && place >= self.feed().head() {
            *live = Some((place, Arc::downgrade(&flight)));
        }
        flight
    }

    /// Whether others already wait further on, so that there is no need to wait beside them.
    fn meets(&self, start: i64, place: i64) -> bool {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.as_ref()
            .is_some_and(|(from, flight)| start < *from && *from <= place && running(flight).is_some())
    }

    /// The next events, or word that another schema is served.
    async fn pass(self: Arc<Self>, start: i64) -> Result<Arc<Events>> {
        let mut swapped = self.hub().swapped.subscribe();
        let is_current = Arc::ptr_eq(&self.face.served.load(), &self.served);
        if is_current {
            tokio::select! {
                biased;
                _ = swapped.changed() => {}
                events = self.settled(start) => return events.map(Arc::new),
            }
        }
        Ok(Arc::new(Events { list: Vec::new(), until: start, id: "".into(), is_over: true }))
    }

    /// Events that no reload came between: tables and images are all of one form.
    async fn settled(&self, start: i64) -> Result<Events> {
        loop {
            let settled = self.feed().settled().await;
            let events = self.gather(start).await?;
            if self.feed().is_still(&settled) {
                return Ok(events);
            }
        }
    }

    async fn gather(&self, start: i64) -> Result<Events> {
        let (mut list, mut until, mut bytes) = (Vec::new(), start, 0);
        let mut deadline = None;
        loop {
            let next = self.feed().after(until);
            let stretch = match deadline {
                None => next.await?,
                Some(deadline) => match timeout_at(deadline, next).await {
                    Ok(stretch) => stretch?,
                    Err(_) => break,
                },
            };
            deadline.get_or_insert_with(|| Instant::now() + QUIET_TIME);
            until = stretch.until;
            for change in stretch.changes.iter().filter(|change| self.planned.watch.matches(change)) {
                let event = self.encode(change).await?;
                bytes += event.weight();
                list.push(Arc::new(event));
                if bytes > LARGEST {
                    until = change.number;
                    break;
                }
            }
            if !list.is_empty() || until - start >= QUIET || self.meets(start, until) {
                break;
            }
        }
        Ok(Events { id: self.feed().id(until).await?.into(), list, until, is_over: false })
    }

    async fn encode(&self, change: &Change) -> Result<Event> {
        let id = self.feed().id(change.number).await?;
        let (mut body, causes) = self.execute(change).await;
        // JSON that another program stored may be spread over lines, which would end a line of an event stream.
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        // Behind what there is, before the closing brace.
        body.pop();
        body.extend_from_slice(b",\"extensions\":{\"eventId\":");
        response_error::text(&mut body, &id);
        body.extend_from_slice(b"}}");
        self.hub().encoded.inc();
        Ok(Event::new(change.number, id.into(), &body, causes))
    }

    /// The response to one change, and the causes of what failed in it. It waits for as long as the store is away.
    async fn execute(&self, change: &Change) -> (Vec<u8>, Vec<Cause>) {
        loop {
            let execution = Execution {
                engine: &self.served.engine,
                plan: self.planned.plan.clone(),
                variables: self.planned.variables.clone(),
                key: None,
                actor: self.wanted.actor.clone(),
                image: Some(change.image.clone()),
            };
            let failures = match execution.run().await {
                Ok(Executed { body, causes, .. }) => return (body, causes),
                Err(Refused::Whole(Error::Unavailable { .. } | Error::OutcomeUnknown | Error::Cancelled)) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(refused) => Vec::from(refused),
            };
            let mut body = b"{\"data\":null,\"errors\":".to_vec();
            response_error::write_all(&mut body, &failures);
            body.push(b'}');
            return (body, failures.into_iter().filter_map(|failure| failure.cause).collect());
        }
    }
}

/// The flight, while it is under way.
fn running(flight: &Weak<Flight<Events>>) -> Option<Arc<Flight<Events>>> {
    flight.upgrade().filter(|flight| !flight.is_done())
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.served.channels.remove(&self.key);
    }
}
