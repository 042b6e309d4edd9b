//! Subscriptions: the change log as a stream of responses, encoded once for all subscribers with the same request.
//!
//! The transports know nothing of the change log, and [`Subscription`] knows nothing of transports.

// From a request to shared events: the planned request, the channel of all subscribers with the same request, the
// channels of a server.
pub(crate) mod channel;
pub(crate) mod event;
pub(crate) mod registry;
pub(crate) mod request;

// Long-lived HTTP responses: event streams and multipart bodies.
pub(crate) mod multipart;
pub(crate) mod sse;
pub(crate) mod stream_context;
pub(crate) mod stream_response;

// WebSockets, from the handshake to the operations of one socket.
pub(crate) mod handshake;
pub(crate) mod operations;
pub(crate) mod protocol;
pub(crate) mod websocket_messages;
pub(crate) mod websocket_session;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;

use trefoil_engine::Actor;
use trefoil_engine::changes::{ComputationFuture, EventAccess};
use trefoil_http::errors::error_log::StreamEnd;
use trefoil_model::error::Error;

use crate::over_http::request::GraphqlRequest;
use crate::reply::{GraphqlReply, RequestContext};
use crate::response_error::{ResponseError, is_estimate};
use crate::service::{GraphqlService, GraphqlState};
use crate::subscribe::channel::SubscriptionChannel;
use crate::subscribe::event::EventBatch;
use crate::subscribe::request::SubscriptionRequest;

pub use crate::subscribe::channel::ChannelMap;
pub use crate::subscribe::event::SubscriptionEvent;
pub use crate::subscribe::registry::SubscriptionRegistry;

/// An open subscription, at a position in the change log.
pub struct Subscription {
    service: GraphqlService,
    actor: Actor,
    channel: Arc<SubscriptionChannel>,
    /// Which events of the channel are for the actor; all without it.
    access: Option<EventAccess>,
    /// Number of the last change that was delivered or skipped.
    position: i64,
    last_event_id: Arc<str>,
    /// The batch that is being delivered, and the index of its next event.
    events: Option<(Arc<EventBatch>, usize)>,
    /// Stored between polls, so that a dropped `next` loses nothing.
    pending_events: Option<ComputationFuture<EventBatch>>,
}

/// The next item of a subscription.
pub enum SubscriptionStep {
    Event(Arc<SubscriptionEvent>),
    /// The subscription cannot continue: the reason for the log, and the errors for the client.
    Ended(StreamEnd, Vec<ResponseError>),
}

impl GraphqlService {
    /// Opens a subscription after the event `last_event_id`, or at the current end of the log. `Err` is the reply to
    /// send instead; an operation that is not a subscription is executed, and its reply is returned as `Err` too.
    pub async fn subscribe(
        &self,
        request: GraphqlRequest<'_>,
        context: RequestContext,
        last_event_id: Option<&str>,
    ) -> Result<Subscription, GraphqlReply> {
        let state = self.state.load_full();
        if !state.is_subscription(&request).await {
            return Err(state.execute_request(request, context).await);
        }
        let actor = context.actor;
        let request = SubscriptionRequest::new(request, actor.clone());
        let mut joined = join_channel(self, &state, &request);
        if joined.as_ref().is_err_and(|errors| is_estimate(errors)) && state.engine.measure_relations().await
        {
            joined = join_channel(self, &state, &request);
        }
        let (channel, access) = joined.map_err(GraphqlReply::Rejected)?;
        let feed = state.engine.feed();
        let position = match last_event_id {
            Some(id) => {
                channel.begin_replay();
                feed.number_of_event(id).await
            }
            None => feed.last_change_number().await,
        };
        let position = position.map_err(subscribe_error)?;
        let last_event_id = feed.event_id(position).await.map_err(subscribe_error)?.into();
        let service = self.clone();
        let (events, pending_events) = (None, None);
        Ok(Subscription { service, actor, channel, access, position, last_event_id, events, pending_events })
    }

    /// The id of the last event in the log, after which a new subscription starts.
    pub async fn current_event_id(&self) -> Result<Arc<str>, Error> {
        let state = self.state.load_full();
        let feed = state.engine.feed();
        Ok(feed.event_id(feed.last_change_number().await?).await?.into())
    }
}

/// The channel of this request, planned if there is none yet, and which of its events are for the actor.
fn join_channel(
    service: &GraphqlService,
    state: &GraphqlState,
    request: &SubscriptionRequest,
) -> Result<(Arc<SubscriptionChannel>, Option<EventAccess>), Vec<ResponseError>> {
    let channels = &state.channels;
    let engine = state.engine.for_actor(&request.actor);
    let class = engine.access_class();
    if class.is_some()
        && let Some(channel) = channels.get(&request.common_key())
        && let Some(access) = channel.event_access(&engine)
    {
        return Ok((channel, Some(access)));
    }
    let existing =
        channels.get(&request.shared_key(class)).or_else(|| channels.get(&request.actor_key(class)));
    if let Some(channel) = existing {
        return Ok((channel, None));
    }
    let planned = request.plan(&engine, &state.settings, &state.document_cache);
    let planned = planned.map_err(|errors| state.suggest_names(&engine, errors))?;
    let request = request.clone();
    let channel = SubscriptionChannel::add(&service.subscriptions, channels, &engine, request, planned);
    let access = channel.event_access(&engine);
    Ok((channel, access))
}

fn subscribe_error(error: Error) -> GraphqlReply {
    let is_request_error = matches!(error, Error::EventId { .. });
    if is_request_error {
        GraphqlReply::Rejected(vec![ResponseError::from_error(&error)])
    } else {
        GraphqlReply::Failed(error)
    }
}

/// The reason why a subscription is not valid under a new schema.
fn schema_change_end(failures: &[ResponseError]) -> StreamEnd {
    match failures.iter().find_map(|failure| failure.cause.clone()) {
        Some(cause) => StreamEnd::Failed(Error::Internal { cause }),
        None => {
            let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
            StreamEnd::DoesNotFit(messages.join("; "))
        }
    }
}

impl Subscription {
    /// The id of the current position, to which a client can return. It advances over skipped changes too.
    pub fn last_event_id(&self) -> &Arc<str> {
        &self.last_event_id
    }

    /// The same position as a number that only grows.
    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    /// Waits for the next step. Cancel-safe.
    pub async fn next(&mut self) -> SubscriptionStep {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SubscriptionStep> {
        loop {
            if let Some(event) = self.take_event() {
                return Poll::Ready(SubscriptionStep::Event(event));
            }
            let channel = &self.channel;
            let waiting =
                self.pending_events.get_or_insert_with(|| channel.events_after(self.position).wait());
            let outcome = ready!(waiting.poll_unpin(cx));
            self.pending_events = None;
            match outcome {
                Ok(events) => {
                    if events.schema_changed
                        && let Err(failures) = self.rejoin()
                    {
                        return Poll::Ready(SubscriptionStep::Ended(schema_change_end(&failures), failures));
                    }
                    self.events = Some((events, 0));
                }
                Err(error) => {
                    let failures = vec![ResponseError::from_error(&error)];
                    return Poll::Ready(SubscriptionStep::Ended(StreamEnd::Failed(error), failures));
                }
            }
        }
    }

    /// The next event of the current batch. Events at or before `position` are skipped: a shared batch may start earlier.
    fn take_event(&mut self) -> Option<Arc<SubscriptionEvent>> {
        let (events, next) = self.events.as_mut()?;
        while let Some(event) = events.events.get(*next) {
            *next += 1;
            if event.position > self.position {
                (self.position, self.last_event_id) = (event.position, event.id.clone());
                if event.is_for(self.access.as_ref()) {
                    return Some(event.clone());
                }
            }
        }
        if events.until > self.position {
            (self.position, self.last_event_id) = (events.until, events.id.clone());
        }
        self.events = None;
        None
    }

    /// Continues the same request at its position under the new schema, if it is still valid there.
    fn rejoin(&mut self) -> Result<(), Vec<ResponseError>> {
        let state = self.service.state.load_full();
        // The channel may have been opened by another actor.
        let mut request = self.channel.request().clone();
        request.actor = self.actor.clone();
        (self.channel, self.access) = join_channel(&self.service, &state, &request)?;
        Ok(())
    }
}
