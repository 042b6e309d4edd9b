//! The operations that run on one socket, each under the id its client gave it, all within the socket's one task.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::response_error::Failure;
use crate::subscribe::event::Event;
use crate::subscribe::protocol;
use crate::subscribe::protocol::Place;
use crate::subscribe::{Step, Subscription};
use trefoil_http::errors::error_log::StreamEnd;
use trefoil_http::monitoring::metrics::Open;
use trefoil_model::error::{Cause, Error};

/// What became of a request.
pub enum Begun {
    Subscribed(Subscription, Open),
    /// A query or a mutation: its one answer, and the causes of what failed in it.
    Answered(Vec<u8>, Vec<Cause>),
    Refused(Vec<Failure>),
}

/// What an operation has to say.
pub enum Said {
    /// With what stands before its payload, which is the same for all events of one operation.
    Event(Bytes, Arc<Event>),
    /// The only answer, and the end.
    Answer(Bytes, Vec<Cause>),
    /// It never began.
    Refused(Vec<Failure>),
    /// It cannot go on.
    Ended(StreamEnd, Vec<Failure>),
}

#[derive(Default)]
pub struct Operations {
    running: Vec<Running>,
    /// Who is asked first: nobody is left waiting because another always has something to say.
    turn: usize,
}

struct Running {
    id: Arc<str>,
    work: Work,
}

enum Work {
    Beginning(BoxFuture<'static, Begun>),
    Following(Following),
}

struct Following {
    /// What stands before the payload of each event.
    head: Bytes,
    subscription: Subscription,
    open: Open,
}

impl Operations {
    pub fn len(&self) -> usize {
        self.running.len()
    }

    pub fn has(&self, id: &str) -> bool {
        self.running.iter().any(|running| *running.id == *id)
    }

    pub fn begin(&mut self, id: String, work: impl Future<Output = Begun> + Send + 'static) {
        let work = AssertUnwindSafe(work).catch_unwind().map(|begun| {
            begun.unwrap_or_else(|_| {
                Begun::Refused(vec![Failure::of(&Error::internal("a panic on a socket"))])
            })
        });
        // Hardly any client has more than one at a time.
        self.running.reserve_exact(1);
        self.running.push(Running { id: id.into(), work: Work::Beginning(work.boxed()) });
    }

    /// An id that is not known may belong to an operation that ended meanwhile: that is no mistake.
    pub fn end(&mut self, id: &str) {
        self.running.retain(|running| *running.id != *id);
    }

    /// Waits until one of them has something to say; its last word ends it. May be dropped while waiting.
    pub async fn next(&mut self) -> (Arc<str>, Said) {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The same without waiting.
    pub async fn ready(&mut self) -> Option<(Arc<str>, Said)> {
        poll_fn(|cx| match self.poll(cx) {
            Poll::Ready(said) => Poll::Ready(Some(said)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// The same while the server stops, until nothing is left to be answered: subscriptions end here and go on elsewhere,
    /// but a mutation that has begun is to be told how it ended.
    pub async fn last(&mut self) -> Option<(Arc<str>, Said)> {
        poll_fn(|cx| {
            self.end_subscriptions();
            let said = self.poll(cx);
            self.end_subscriptions();
            match said {
                Poll::Ready(said) => Poll::Ready(Some(said)),
                Poll::Pending if self.running.is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn end_subscriptions(&mut self) {
        self.running.retain(|running| matches!(running.work, Work::Beginning(_)));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Arc<str>, Said)> {
        let count = self.running.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let Poll::Ready(said) = self.running[at].poll(cx) else { continue };
            self.turn = at + 1;
            let id = match said {
                Said::Event(..) => self.running[at].id.clone(),
                Said::Answer(..) | Said::Refused(_) | Said::Ended(..) => self.running.remove(at).id,
            };
            return Poll::Ready((id, said));
        }
        Poll::Pending
    }

    /// How far each subscription has come. Nothing while one is beginning: a client might take the place of another for
    /// that of this one, which is not among them.
    pub fn places(&self) -> Vec<Place<'_>> {
        if self.running.iter().any(|running| matches!(running.work, Work::Beginning(_))) {
            return Vec::new();
        }
        let places = self.running.iter().filter_map(|Running { id, work }| match work {
            Work::Following(Following { subscription, .. }) => {
                Some(Place { subscription: id, number: subscription.number(), id: subscription.id() })
            }
            Work::Beginning(_) => None,
        });
        places.collect()
    }
}

impl Running {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        loop {
            match &mut self.work {
                Work::Beginning(work) => match std::task::ready!(work.poll_unpin(cx)) {
                    Begun::Answered(answer, causes) => {
                        return Poll::Ready(Said::Answer(answer.into(), causes));
                    }
                    Begun::Refused(failures) => return Poll::Ready(Said::Refused(failures)),
                    Begun::Subscribed(subscription, open) => {
                        let head = protocol::next(&self.id).into();
                        self.work = Work::Following(Following { head, subscription, open });
                    }
                },
                Work::Following(following) => return following.poll(cx),
            }
        }
    }
}

impl Following {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        match std::task::ready!(self.subscription.poll_next(cx)) {
            Step::Event(event) => {
                self.open.delivered();
                Poll::Ready(Said::Event(self.head.clone(), event))
            }
            Step::Ended(end, failures) => Poll::Ready(Said::Ended(end, failures)),
        }
    }
}
