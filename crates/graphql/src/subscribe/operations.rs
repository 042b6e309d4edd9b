//! The operations of one WebSocket by their client-chosen ids, all polled within the socket's task.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use trefoil_http::errors::error_log::StreamEnd;
use trefoil_http::monitoring::metrics::OpenSubscription;
use trefoil_model::error::Error;

use crate::response_error::{ErrorNotes, ResponseError};
use crate::subscribe::event::SubscriptionEvent;
use crate::subscribe::protocol::{self, SubscriptionPosition};
use crate::subscribe::{Subscription, SubscriptionStep};

/// The result of starting an operation.
pub enum StartResult {
    Subscribed(Box<Subscription>, OpenSubscription),
    /// The response to a query or a mutation, and what the log is told of its errors.
    Response(Vec<u8>, ErrorNotes),
    Rejected(Vec<ResponseError>),
    /// The credential of the socket is not good any more.
    CredentialEnded,
}

/// A message of an operation to the client.
pub enum OutgoingMessage {
    /// An event with the message prefix of its operation.
    Event(Bytes, Arc<SubscriptionEvent>),
    /// The only response of a query or a mutation; ends the operation.
    Response(Bytes, ErrorNotes),
    /// The operation was rejected.
    Refused(Vec<ResponseError>),
    /// The subscription cannot continue.
    Ended(StreamEnd, Vec<ResponseError>),
    /// The socket cannot continue: its credential is not good any more.
    CredentialEnded,
}

#[derive(Default)]
pub struct SocketOperations {
    operations: Vec<SocketOperation>,
    /// Index of the operation that is polled first: round-robin, so that a busy one does not starve the others.
    next_polled: usize,
}

struct SocketOperation {
    id: Arc<str>,
    state: OperationState,
}

enum OperationState {
    Starting(BoxFuture<'static, StartResult>),
    Subscribed(Box<ActiveSubscription>),
}

struct ActiveSubscription {
    /// The start of each `next` message, up to its payload.
    message_prefix: Bytes,
    subscription: Subscription,
    stream_guard: OpenSubscription,
}

impl SocketOperations {
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    pub fn contains(&self, id: &str) -> bool {
        self.operations.iter().any(|operation| *operation.id == *id)
    }

    pub fn start(&mut self, id: String, work: impl Future<Output = StartResult> + Send + 'static) {
        let work = AssertUnwindSafe(work).catch_unwind().map(|result| {
            result.unwrap_or_else(|_| {
                StartResult::Rejected(vec![ResponseError::from_error(&Error::internal(
                    "a panic on a socket",
                ))])
            })
        });
        // Most clients run one operation at a time.
        self.operations.reserve_exact(1);
        self.operations
            .push(SocketOperation { id: id.into(), state: OperationState::Starting(work.boxed()) });
    }

    /// Ignores an unknown id: the operation may just have ended.
    pub fn stop(&mut self, id: &str) {
        self.operations.retain(|operation| *operation.id != *id);
    }

    /// Waits for the next message of any operation. Cancel-safe.
    pub async fn next(&mut self) -> (Arc<str>, OutgoingMessage) {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The next message, if there is one already.
    pub async fn try_next(&mut self) -> Option<(Arc<str>, OutgoingMessage)> {
        poll_fn(|cx| match self.poll(cx) {
            Poll::Ready(message) => Poll::Ready(Some(message)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// The next message while the server stops; `None` once no response is outstanding. Subscriptions end at once, since
    /// clients resume them elsewhere, but queries and mutations that have started are answered.
    pub async fn drain_next(&mut self) -> Option<(Arc<str>, OutgoingMessage)> {
        poll_fn(|cx| {
            self.end_subscriptions();
            let message = self.poll(cx);
            self.end_subscriptions();
            match message {
                Poll::Ready(message) => Poll::Ready(Some(message)),
                Poll::Pending if self.operations.is_empty() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn end_subscriptions(&mut self) {
        self.operations.retain(|operation| matches!(operation.state, OperationState::Starting(_)));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Arc<str>, OutgoingMessage)> {
        let count = self.operations.len();
        for step in 0..count {
            let index = (self.next_polled + step) % count;
            let Poll::Ready(message) = self.operations[index].poll(cx) else { continue };
            self.next_polled = index + 1;
            let id = match message {
                OutgoingMessage::Event(..) => self.operations[index].id.clone(),
                OutgoingMessage::Response(..)
                | OutgoingMessage::Refused(_)
                | OutgoingMessage::Ended(..)
                | OutgoingMessage::CredentialEnded => self.operations.remove(index).id,
            };
            return Poll::Ready((id, message));
        }
        Poll::Pending
    }

    /// The position of each subscription. Empty while an operation is starting: its position is still unknown, and a
    /// client might use that of another subscription for it.
    pub fn positions(&self) -> Vec<SubscriptionPosition<'_>> {
        if self.operations.iter().any(|operation| matches!(operation.state, OperationState::Starting(_))) {
            return Vec::new();
        }
        let positions = self.operations.iter().filter_map(|SocketOperation { id, state }| match state {
            OperationState::Subscribed(active) => Some(SubscriptionPosition {
                operation_id: id,
                position: active.subscription.position(),
                event_id: active.subscription.last_event_id(),
            }),
            OperationState::Starting(_) => None,
        });
        positions.collect()
    }
}

impl SocketOperation {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OutgoingMessage> {
        loop {
            match &mut self.state {
                OperationState::Starting(work) => match ready!(work.poll_unpin(cx)) {
                    StartResult::Response(body, notes) => {
                        return Poll::Ready(OutgoingMessage::Response(body.into(), notes));
                    }
                    StartResult::Rejected(failures) => {
                        return Poll::Ready(OutgoingMessage::Refused(failures));
                    }
                    StartResult::CredentialEnded => return Poll::Ready(OutgoingMessage::CredentialEnded),
                    StartResult::Subscribed(subscription, stream_guard) => {
                        let message_prefix = protocol::next_prefix(&self.id).into();
                        let subscription = *subscription;
                        let active = ActiveSubscription { message_prefix, subscription, stream_guard };
                        self.state = OperationState::Subscribed(Box::new(active));
                    }
                },
                OperationState::Subscribed(active) => return active.poll(cx),
            }
        }
    }
}

impl ActiveSubscription {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OutgoingMessage> {
        match ready!(self.subscription.poll_next(cx)) {
            SubscriptionStep::Event(event) => {
                self.stream_guard.event_delivered();
                Poll::Ready(OutgoingMessage::Event(self.message_prefix.clone(), event))
            }
            SubscriptionStep::Ended(end, failures) => Poll::Ready(OutgoingMessage::Ended(end, failures)),
        }
    }
}
