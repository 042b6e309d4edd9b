//! Subscriptions: a request becomes a stream of answers, the same bytes for all who asked the same.
//!
//! The transports below know nothing of the log, and [`Subscription`] nothing of transports.

pub(crate) mod channel;
pub(crate) mod event;
pub(crate) mod handshake;
pub(crate) mod multipart;
pub(crate) mod operations;
pub(crate) mod protocol;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod socket;
pub(crate) mod sse;
pub(crate) mod stream_response;
pub(crate) mod streams;
pub(crate) mod websocket;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;

use trefoil_engine::changes::WorkFuture;
use trefoil_http::errors::error_log::StreamEnd;
use trefoil_model::error::Error;

use crate::over_http::request::GraphqlRequest;
use crate::reply::{GraphqlReply, RequestContext};
use crate::response_error::ResponseError;
use crate::service::GraphqlService;
use crate::subscribe::channel::{EventBatch, SubscriptionChannel};
use crate::subscribe::request::SubscriptionRequest;

pub use crate::subscribe::event::SubscriptionEvent;
pub use crate::subscribe::registry::{ChannelMap, SubscriptionRegistry};

/// A subscription that has begun: its place in the log is fixed.
pub struct Subscription {
    channel: Arc<SubscriptionChannel>,
    /// Everything up to this number was delivered or was not asked for.
    position: i64,
    last_event_id: Arc<str>,
    /// What is being delivered, and which of it is next.
    events: Option<(Arc<EventBatch>, usize)>,
    /// Kept while waiting, so that whoever stops to wait for a moment finds it again.
    pending_events: Option<WorkFuture<EventBatch>>,
}

/// What comes next.
pub enum SubscriptionStep {
    Event(Arc<SubscriptionEvent>),
    /// It cannot go on: why, for the log, and what its client is told.
    Ended(StreamEnd, Vec<ResponseError>),
}

impl GraphqlService {
    /// Begins at the place that `last` names, or now. The error is the answer to give instead, among it that of an
    /// operation that is no subscription: it was carried out.
    pub async fn subscribe(
        &self,
        asked: GraphqlRequest<'_>,
        manner: RequestContext,
        last: Option<&str>,
    ) -> Result<Subscription, GraphqlReply> {
        let served = self.state.load_full();
        if !served.is_subscription(&asked) {
            return Err(served.execute_request(asked, manner).await);
        }
        let wanted = SubscriptionRequest::new(asked, manner.actor);
        let channel = SubscriptionChannel::join(self, &served, wanted).map_err(GraphqlReply::Rejected)?;
        let feed = served.engine.feed();
        let at = match last {
            Some(id) => feed.number_of_event(id).await,
            None => feed.last_change_number().await,
        };
        let at = at.map_err(subscribe_error)?;
        let id = feed.event_id(at).await.map_err(subscribe_error)?.into();
        Ok(Subscription { channel, position: at, last_event_id: id, events: None, pending_events: None })
    }

    /// The name of the place where a subscription begun now starts.
    pub async fn current_event_id(&self) -> Result<Arc<str>, Error> {
        let served = self.state.load_full();
        let feed = served.engine.feed();
        Ok(feed.event_id(feed.last_change_number().await?).await?.into())
    }
}

fn subscribe_error(error: Error) -> GraphqlReply {
    let is_request = matches!(error, Error::EventId { .. });
    if is_request {
        GraphqlReply::Rejected(vec![ResponseError::from_error(&error)])
    } else {
        GraphqlReply::Failed(error)
    }
}

/// Why a subscription cannot go on under another schema.
fn unfit(failures: &[ResponseError]) -> StreamEnd {
    match failures.iter().find_map(|failure| failure.cause.clone()) {
        Some(cause) => StreamEnd::Failed(Error::Internal { cause }),
        None => {
            let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
            StreamEnd::DoesNotFit(messages.join("; "))
        }
    }
}

impl Subscription {
    /// How far the log has been followed, whether or not anything of it was delivered: what a client comes back with.
    pub fn last_event_id(&self) -> &Arc<str> {
        &self.last_event_id
    }

    /// The same as a number that grows, to compare.
    pub(crate) fn position(&self) -> i64 {
        self.position
    }

    /// Waits for what comes next. May be dropped while waiting and called again; nothing is lost by that.
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
                        return Poll::Ready(SubscriptionStep::Ended(unfit(&failures), failures));
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

    /// The next of what is at hand. Who joined others on their way has had the first of it already.
    fn take_event(&mut self) -> Option<Arc<SubscriptionEvent>> {
        let (events, next) = self.events.as_mut()?;
        while let Some(event) = events.events.get(*next) {
            *next += 1;
            if event.position > self.position {
                (self.position, self.last_event_id) = (event.position, event.id.clone());
                return Some(event.clone());
            }
        }
        if events.until > self.position {
            (self.position, self.last_event_id) = (events.until, events.id.clone());
        }
        self.events = None;
        None
    }

    /// The schema was exchanged: the same request goes on at its place under the new one, if it still fits.
    fn rejoin(&mut self) -> Result<(), Vec<ResponseError>> {
        let face = self.channel.service().clone();
        let served = face.state.load_full();
        self.channel = SubscriptionChannel::join(&face, &served, self.channel.request().clone())?;
        Ok(())
    }
}
