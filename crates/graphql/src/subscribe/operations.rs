//! The operations that run on one socket, each under the id its client gave it, all within the socket's one task.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use trefoil_http::errors::error_log::StreamEnd;
use trefoil_http::monitoring::metrics::OpenSubscription;
use trefoil_model::error::{Cause, Error};

use crate::response_error::ResponseError;
use crate::subscribe::event::SubscriptionEvent;
use crate::subscribe::protocol::{self, SubscriptionPosition};
use crate::subscribe::{Subscription, SubscriptionStep};

/// What became of a request.
pub enum StartResult {
    Subscribed(Subscription, OpenSubscription),
    /// A query or a mutation: its one answer, and the causes of what failed in it.
    Response(Vec<u8>, Vec<Cause>),
    Rejected(Vec<ResponseError>),
}

/// What an operation has to say.
pub enum OutgoingMessage {
    /// With what stands before its payload, which is the same for all events of one operation.
    Event(Bytes, Arc<SubscriptionEvent>),
    /// The only answer, and the end.
    Response(Bytes, Vec<Cause>),
    /// It never began.
    Refused(Vec<ResponseError>),
    /// It cannot go on.
    Ended(StreamEnd, Vec<ResponseError>),
}

#[derive(Default)]
pub struct SocketOperations {
    operations: Vec<SocketOperation>,
    /// Who is asked first: nobody is left waiting because another always has something to say.
    next_polled: usize,
}

struct SocketOperation {
    id: Arc<str>,
    state: OperationState,
}

enum OperationState {
    Starting(BoxFuture<'static, StartResult>),
    Subscribed(ActiveSubscription),
}

struct ActiveSubscription {
    /// What stands before the payload of each event.
    message_prefix: Bytes,
    subscription: Subscription,
    stream_guard: OpenSubscription,
}

impl SocketOperations {
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn contains(&self, id: &str) -> bool {
        self.operations.iter().any(|running| *running.id == *id)
    }

    pub fn start(&mut self, id: String, work: impl Future<Output = StartResult> + Send + 'static) {
        let work = AssertUnwindSafe(work).catch_unwind().map(|begun| {
            begun.unwrap_or_else(|_| {
                StartResult::Rejected(vec![ResponseError::from_error(&Error::internal(
                    "a panic on a socket",
                ))])
            })
        });
        // Hardly any client has more than one at a time.
        self.operations.reserve_exact(1);
        self.operations
            .push(SocketOperation { id: id.into(), state: OperationState::Starting(work.boxed()) });
    }

    /// An id that is not known may belong to an operation that ended meanwhile: that is no mistake.
    pub fn stop(&mut self, id: &str) {
        self.operations.retain(|running| *running.id != *id);
    }

    /// Waits until one of them has something to say; its last word ends it. May be dropped while waiting.
    pub async fn next(&mut self) -> (Arc<str>, OutgoingMessage) {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The same without waiting.
    pub async fn try_next(&mut self) -> Option<(Arc<str>, OutgoingMessage)> {
        poll_fn(|cx| match self.poll(cx) {
            Poll::Ready(said) => Poll::Ready(Some(said)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// The same while the server stops, until nothing is left to be answered: subscriptions end here and go on elsewhere,
    /// but a mutation that has begun is to be told how it ended.
    pub async fn drain_next(&mut self) -> Option<(Arc<str>, OutgoingMessage)> {
        poll_fn(|cx| {
            self.end_subscriptions();
            let said = self.poll(cx);
            self.end_subscriptions();
            match said {
                Poll::Ready(said) => Poll::Ready(Some(said)),
                Poll::Pending if self.operations.is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn end_subscriptions(&mut self) {
        self.operations.retain(|running| matches!(running.state, OperationState::Starting(_)));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Arc<str>, OutgoingMessage)> {
        let count = self.operations.len();
        for step in 0..count {
            let at = (self.next_polled + step) % count;
            let Poll::Ready(said) = self.operations[at].poll(cx) else { continue };
            self.next_polled = at + 1;
            let id = match said {
                OutgoingMessage::Event(..) => self.operations[at].id.clone(),
                OutgoingMessage::Response(..) | OutgoingMessage::Refused(_) | OutgoingMessage::Ended(..) => {
                    self.operations.remove(at).id
                }
            };
            return Poll::Ready((id, said));
        }
        Poll::Pending
    }

    /// How far each subscription has come. Nothing while one is beginning: a client might take the place of another for
    /// that of this one, which is not among them.
    pub fn positions(&self) -> Vec<SubscriptionPosition<'_>> {
        if self.operations.iter().any(|running| matches!(running.state, OperationState::Starting(_))) {
            return Vec::new();
        }
        let places = self.operations.iter().filter_map(|SocketOperation { id, state: work }| match work {
            OperationState::Subscribed(ActiveSubscription { subscription, .. }) => {
                Some(SubscriptionPosition {
                    operation_id: id,
                    position: subscription.position(),
                    event_id: subscription.last_event_id(),
                })
            }
            OperationState::Starting(_) => None,
        });
        places.collect()
    }
}

impl SocketOperation {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OutgoingMessage> {
        loop {
            match &mut self.state {
                OperationState::Starting(work) => match std::task::ready!(work.poll_unpin(cx)) {
                    StartResult::Response(answer, causes) => {
                        return Poll::Ready(OutgoingMessage::Response(answer.into(), causes));
                    }
                    StartResult::Rejected(failures) => {
                        return Poll::Ready(OutgoingMessage::Refused(failures));
                    }
                    StartResult::Subscribed(subscription, open) => {
                        let head = protocol::next_prefix(&self.id).into();
                        self.state = OperationState::Subscribed(ActiveSubscription {
                            message_prefix: head,
                            subscription,
                            stream_guard: open,
                        });
                    }
                },
                OperationState::Subscribed(following) => return following.poll(cx),
            }
        }
    }
}

impl ActiveSubscription {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OutgoingMessage> {
        match std::task::ready!(self.subscription.poll_next(cx)) {
            SubscriptionStep::Event(event) => {
                self.stream_guard.event_delivered();
                Poll::Ready(OutgoingMessage::Event(self.message_prefix.clone(), event))
            }
            SubscriptionStep::Ended(end, failures) => Poll::Ready(OutgoingMessage::Ended(end, failures)),
        }
    }
}
