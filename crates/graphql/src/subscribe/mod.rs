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

pub use crate::subscribe::event::Event;

use crate::over_http::request::Asked;
use crate::response_error::Failure;
use crate::subscribe::channel::{Channel, Events};
pub use crate::subscribe::registry::{Channels, Hub};
use crate::subscribe::request::Wanted;
use crate::{Face, Manner, Reply};
use trefoil_engine::changes::Waiting;
use trefoil_http::errors::error_log::StreamEnd;
use trefoil_model::error::Error;

/// A subscription that has begun: its place in the log is fixed.
pub struct Subscription {
    channel: Arc<Channel>,
    /// Everything up to this number was delivered or was not asked for.
    at: i64,
    id: Arc<str>,
    /// What is being delivered, and which of it is next.
    events: Option<(Arc<Events>, usize)>,
    /// Kept while waiting, so that whoever stops to wait for a moment finds it again.
    waiting: Option<Waiting<Events>>,
}

/// What comes next.
pub enum Step {
    Event(Arc<Event>),
    /// It cannot go on: why, for the log, and what its client is told.
    Ended(StreamEnd, Vec<Failure>),
}

impl Face {
    /// Begins at the place that `last` names, or now. The error is the answer to give instead, among it that of an
    /// operation that is no subscription: it was carried out.
    pub async fn subscribe(
        &self,
        asked: Asked<'_>,
        manner: Manner,
        last: Option<&str>,
    ) -> Result<Subscription, Reply> {
        let served = self.served.load_full();
        if !served.is_subscription(&asked) {
            return Err(served.answer(asked, manner).await);
        }
        let wanted = Wanted::new(asked, manner.actor);
        let channel = Channel::join(self, &served, wanted).map_err(Reply::Rejected)?;
        let feed = served.engine.feed();
        let at = match last {
            Some(id) => feed.place(id).await,
            None => feed.now().await,
        };
        let at = at.map_err(refused)?;
        let id = feed.id(at).await.map_err(refused)?.into();
        Ok(Subscription { channel, at, id, events: None, waiting: None })
    }

    /// The name of the place where a subscription begun now starts.
    pub async fn place(&self) -> Result<Arc<str>, Error> {
        let served = self.served.load_full();
        let feed = served.engine.feed();
        Ok(feed.id(feed.now().await?).await?.into())
    }
}

fn refused(error: Error) -> Reply {
    let is_request = matches!(error, Error::EventId { .. });
    if is_request { Reply::Rejected(vec![Failure::of(&error)]) } else { Reply::Failed(error) }
}

/// Why a subscription cannot go on under another schema.
fn unfit(failures: &[Failure]) -> StreamEnd {
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
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The same as a number that grows, to compare.
    pub(crate) fn number(&self) -> i64 {
        self.at
    }

    /// Waits for what comes next. May be dropped while waiting and called again; nothing is lost by that.
    pub async fn next(&mut self) -> Step {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        loop {
            if let Some(event) = self.take() {
                return Poll::Ready(Step::Event(event));
            }
            let channel = &self.channel;
            let waiting = self.waiting.get_or_insert_with(|| channel.after(self.at).done());
            let outcome = ready!(waiting.poll_unpin(cx));
            self.waiting = None;
            match outcome {
                Ok(events) => {
                    if events.is_over
                        && let Err(failures) = self.move_on()
                    {
                        return Poll::Ready(Step::Ended(unfit(&failures), failures));
                    }
                    self.events = Some((events, 0));
                }
                Err(error) => {
                    let failures = vec![Failure::of(&error)];
                    return Poll::Ready(Step::Ended(StreamEnd::Failed(error), failures));
                }
            }
        }
    }

    /// The next of what is at hand. Who joined others on their way has had the first of it already.
    fn take(&mut self) -> Option<Arc<Event>> {
        let (events, next) = self.events.as_mut()?;
        while let Some(event) = events.list.get(*next) {
            *next += 1;
            if event.number > self.at {
                (self.at, self.id) = (event.number, event.id.clone());
                return Some(event.clone());
            }
        }
        if events.until > self.at {
            (self.at, self.id) = (events.until, events.id.clone());
        }
        self.events = None;
        None
    }

    /// The schema was exchanged: the same request goes on at its place under the new one, if it still fits.
    fn move_on(&mut self) -> Result<(), Vec<Failure>> {
        let face = self.channel.face().clone();
        let served = face.served.load_full();
        self.channel = Channel::join(&face, &served, self.channel.wanted().clone())?;
        Ok(())
    }
}
