//! Subscriptions: a request becomes a stream of answers, the same bytes for all who asked the same.
//!
//! The transports below know nothing of the log, and [`Subscription`] nothing of transports.

pub mod choice;
pub mod event;
pub mod handshake;
pub mod live;
mod multipart;
mod operations;
mod protocol;
mod socket;
mod sse;
pub mod streams;
pub mod ws;

use std::sync::Arc;

pub use event::Event;

use super::failure::Failure;
use super::request::Asked;
use super::{Face, Manner, Reply, no_subscriptions};

/// A subscription that has begun: its place in the log is fixed.
pub struct Subscription {
    id: Arc<str>,
}

/// What comes next.
pub enum Step {
    Event(Arc<Event>),
    /// It cannot go on: these are the reasons, and it is over.
    Failed(Vec<Failure>),
}

impl Face {
    /// Begins at the place that `last` names, or now. The error is the answer to give instead, among it that of an
    /// operation that is no subscription.
    pub async fn subscribe(
        &self,
        _asked: Asked<'_>,
        _manner: Manner,
        _last: Option<&str>,
    ) -> Result<Subscription, Reply> {
        Err(Reply::Rejected(vec![no_subscriptions()]))
    }
}

impl Subscription {
    /// How far the log has been followed, whether or not anything of it was delivered: what a client comes back with.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Waits for what comes next. May be dropped while waiting and called again; nothing is lost by that.
    pub async fn next(&mut self) -> Step {
        Step::Failed(vec![no_subscriptions()])
    }
}
