//! One WebSocket session of `graphql-transport-ws`, from the first message to the close, in one task.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::request::Parts;
use tokio::time::{Interval, interval_at, timeout};

use trefoil_engine::Actor;
use trefoil_http::authentication::{CredentialWatch, SharedAuthenticator, WatchFailure};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::rate_limit::ClientMeter;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::upgrade::ConnectionUpgrade;

use crate::over_http::request::{self, ParsedRequest, RequestError};
use crate::reply::{GraphqlReply, RequestContext};
use crate::response_error::{ErrorNotes, ResponseError};
use crate::service::GraphqlService;
use crate::subscribe::handshake::{Subprotocol, WebSocketHandshake};
use crate::subscribe::operations::{OutgoingMessage, SocketOperations, StartResult};
use crate::subscribe::protocol::{self, IncomingMessage, SocketClose};
use crate::subscribe::stream_context::StreamContext;
use crate::subscribe::websocket_messages::{MessageSocket, ReceivedMessage, SocketError};

/// The client of a socket.
pub struct SocketClient {
    pub actor: Actor,
    /// For the credential of the first message; `None` in an open application.
    pub authenticator: Option<SharedAuthenticator>,
    /// Of the upgrade, or of the first message.
    pub watch: Option<CredentialWatch>,
    pub request_id: Option<RequestId>,
    pub rate_meter: Option<ClientMeter>,
}

impl<S: Sync> FromRequestParts<S> for SocketClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<SocketClient, Infallible> {
        let extensions = &parts.extensions;
        Ok(SocketClient {
            actor: extensions.get::<ClientInfo>().map(ClientInfo::actor).unwrap_or_default(),
            authenticator: SharedAuthenticator::of_upgrade(parts),
            watch: extensions.get().cloned(),
            request_id: ClientInfo::request_of(extensions).cloned(),
            rate_meter: extensions.get().cloned(),
        })
    }
}

/// Accepts the handshake. The session runs in its own task, which shutdown waits for.
pub fn open(
    service: &GraphqlService,
    handshake: WebSocketHandshake,
    headers: &HeaderMap,
    client: SocketClient,
) -> Result<Response, Problem> {
    let context = service.stream_context.clone();
    cross_origin::check_websocket_origin(headers, &context.config.cors_origins)?;
    let (mut response, subprotocol) = handshake.accept(headers)?;
    let (service, shutdown) = (service.clone(), context.shutdown.clone());
    response.extensions_mut().insert(ConnectionUpgrade::new(move |io| {
        shutdown.clone().spawn(async move {
            let session = async {
                let socket = MessageSocket::new(io, context.config.limits.socket_message).await;
                serve(service, context, socket, subprotocol, client).await;
            };
            tokio::select! {
                () = session => {}
                () = shutdown.wait_for_abort() => {}
            }
        });
    }));
    Ok(response)
}

async fn serve(
    service: GraphqlService,
    context: Arc<StreamContext>,
    socket: MessageSocket,
    subprotocol: Subprotocol,
    client: SocketClient,
) {
    let started = Instant::now();
    let mut session = SocketSession::new(service, context, socket, client);
    let shutdown = session.context.shutdown.clone();
    let end = match subprotocol {
        Subprotocol::GraphqlTransportWs => tokio::select! {
            end = session.run() => end,
            () = shutdown.wait_for_abort() => SessionEnd::Cut,
        },
        Subprotocol::Legacy | Subprotocol::None => SessionEnd::Closed(SocketClose::not_acceptable()),
    };
    session.log_end(&end, started);
    match end {
        SessionEnd::Closed(close) => session.socket.close(&close).await,
        SessionEnd::ClientGone => session.socket.wait_for_close().await,
        SessionEnd::Cut => {}
    }
}

struct SocketSession {
    service: GraphqlService,
    context: Arc<StreamContext>,
    socket: MessageSocket,
    client: SocketClient,
    acknowledged: bool,
    operations: SocketOperations,
    /// Before the client is acknowledged, the deadline for that; afterwards the heartbeat interval.
    timer: Interval,
    /// A ping was sent, and nothing was received since.
    ping_unanswered: bool,
    /// The end of the credential that the session has.
    credential_end: BoxFuture<'static, ()>,
}

enum SessionSignal {
    CredentialEnded,
    Drained,
    Received(ReceivedMessage),
    Outgoing(Arc<str>, OutgoingMessage),
    TimerDue,
}

/// The end of a credential; an anonymous session has none.
fn end_of(watch: Option<CredentialWatch>) -> BoxFuture<'static, ()> {
    match watch {
        Some(watch) => Box::pin(watch.wait_for_end()),
        None => Box::pin(std::future::pending()),
    }
}

/// How a session ended.
enum SessionEnd {
    Closed(SocketClose),
    ClientGone,
    /// Aborted, because the grace period of a shutdown is over.
    Cut,
}

impl From<SocketError> for SessionEnd {
    fn from(_: SocketError) -> SessionEnd {
        SessionEnd::ClientGone
    }
}

impl From<SocketClose> for SessionEnd {
    fn from(close: SocketClose) -> SessionEnd {
        SessionEnd::Closed(close)
    }
}

impl SocketSession {
    fn new(
        service: GraphqlService,
        context: Arc<StreamContext>,
        socket: MessageSocket,
        client: SocketClient,
    ) -> SocketSession {
        let init_timeout = context.config.limits.socket_init_timeout;
        let timer = interval_at(tokio::time::Instant::now() + init_timeout, init_timeout);
        let operations = SocketOperations::default();
        let credential_end = end_of(client.watch.clone());
        SocketSession {
            credential_end,
            service,
            context,
            socket,
            client,
            acknowledged: false,
            operations,
            timer,
            ping_unanswered: false,
        }
    }

    async fn run(&mut self) -> SessionEnd {
        let mut drained = self.context.shutdown.drain_waiter();
        loop {
            let SocketSession { socket, operations, timer, credential_end, .. } = self;
            // Received messages go first: after a `complete` nothing more may be sent for that operation.
            let signal = tokio::select! {
                biased;
                () = poll_fn(|cx| drained.poll(cx)) => SessionSignal::Drained,
                () = credential_end => SessionSignal::CredentialEnded,
                received = socket.receive() => SessionSignal::Received(received),
                (id, message) = operations.next() => SessionSignal::Outgoing(id, message),
                _ = timer.tick() => SessionSignal::TimerDue,
            };
            if let Err(end) = self.handle_signal(signal).await {
                return end;
            }
        }
    }

    async fn handle_signal(&mut self, signal: SessionSignal) -> Result<(), SessionEnd> {
        match signal {
            SessionSignal::Drained => Err(self.finish_operations().await),
            SessionSignal::CredentialEnded => Err(SocketClose::forbidden().into()),
            SessionSignal::Received(received) => self.handle_received(received).await,
            SessionSignal::Outgoing(id, message) => self.send_outgoing(&id, message).await,
            SessionSignal::TimerDue => self.handle_timer().await,
        }
    }

    async fn finish_operations(&mut self) -> SessionEnd {
        while let Some((id, message)) = self.operations.drain_next().await {
            let sent = match self.queue_outgoing(&id, message).await {
                Ok(()) => self.socket.send().await.map_err(SessionEnd::from),
                Err(end) => Err(end),
            };
            if let Err(end) = sent {
                return end;
            }
        }
        SocketClose::going_away().into()
    }

    async fn handle_received(&mut self, received: ReceivedMessage) -> Result<(), SessionEnd> {
        self.ping_unanswered = false;
        match received {
            ReceivedMessage::Text(text) => self.handle_message(protocol::parse_message(&text)?).await,
            ReceivedMessage::Control => Ok(()),
            ReceivedMessage::Closed => Err(SessionEnd::ClientGone),
            ReceivedMessage::Invalid(close) => Err(close.into()),
        }
    }

    async fn handle_message(&mut self, message: IncomingMessage<'_>) -> Result<(), SessionEnd> {
        match message {
            IncomingMessage::Init(_) if self.acknowledged => Err(SocketClose::too_many_inits().into()),
            IncomingMessage::Init(payload) => {
                self.take_credential(payload).await?;
                self.acknowledge().await
            }
            IncomingMessage::Ping(payload) => Ok(self.send_message(protocol::pong(payload)).await?),
            IncomingMessage::Pong => Ok(()),
            IncomingMessage::Subscribe { .. } if !self.acknowledged => {
                Err(SocketClose::unauthorized().into())
            }
            IncomingMessage::Subscribe { id, .. } if self.operations.contains(&id) => {
                Err(SocketClose::subscriber_exists(&id).into())
            }
            IncomingMessage::Subscribe { id, payload } => {
                self.start_operation(id.into_owned(), payload).await
            }
            IncomingMessage::Complete { id } => {
                self.operations.stop(&id);
                Ok(())
            }
        }
    }

    /// A credential in the payload replaces that of the upgrade.
    async fn take_credential(&mut self, payload: Option<&str>) -> Result<(), SessionEnd> {
        let Some(authenticator) = &self.client.authenticator else { return Ok(()) };
        let Some(text) = protocol::init_authorization(payload)? else { return Ok(()) };
        let limit = self.context.config.limits.request_timeout;
        let identified = timeout(
            limit,
            CredentialWatch::of_authorization(authenticator, &text, self.client.actor.address),
        );
        match identified.await {
            Ok(Ok(watch)) => {
                let meter = self.client.rate_meter.take();
                self.client.rate_meter = meter.map(|meter| meter.for_actor(&watch.identity));
                self.client.actor.identity = Some(watch.identity.clone());
                self.client.watch = Some(watch.clone());
                self.credential_end = end_of(Some(watch));
                Ok(())
            }
            Ok(Err(WatchFailure::Bad)) => Err(SocketClose::forbidden().into()),
            Ok(Err(WatchFailure::Unknown(problem))) => {
                problem.cause.iter().for_each(|cause| self.scope(None).cause(cause));
                Err(SocketClose::new(1013, problem.detail).into())
            }
            Err(_) => Err(SocketClose::new(1013, "the credential could not be checked in time").into()),
        }
    }

    async fn acknowledge(&mut self) -> Result<(), SessionEnd> {
        // Unknown while the store is unavailable; subscriptions are refused then, too.
        let last_event_id = self.service.current_event_id().await.inspect_err(|error| {
            error.cause().into_iter().for_each(|cause| self.scope(None).cause(cause));
        });
        self.acknowledged = true;
        self.timer = self.context.heartbeat();
        Ok(self.send_message(protocol::connection_ack(last_event_id.ok().as_deref())).await?)
    }

    async fn start_operation(&mut self, id: String, payload: &str) -> Result<(), SessionEnd> {
        let limits = &self.context.config.limits;
        let admitted = self.check_limits().map_err(RequestError::Refused);
        let request = match admitted.and_then(|()| request::parse_request(payload.as_bytes(), limits)) {
            Ok(request) => request.into_owned(),
            Err(RequestError::Malformed(problem)) => {
                return Err(SocketClose::invalid_message(problem.detail).into());
            }
            Err(RequestError::Refused(problem)) => {
                let failure = ResponseError::new(&problem.code, problem.detail);
                return Ok(self.send_message(protocol::error(&id, &[failure])).await?);
            }
        };
        let (service, limit) = (self.service.clone(), limits.request_timeout);
        let (actor, watch) = (self.client.actor.clone(), self.client.watch.clone());
        self.operations.start(id, async move {
            let response = timeout(limit, start_or_execute(service, request, actor, watch)).await;
            response.unwrap_or_else(|_| {
                let message = format!("no response within {limit:?} (limits.request-timeout)");
                StartResult::Rejected(vec![ResponseError::new("TIMEOUT", message)])
            })
        });
        Ok(())
    }

    /// An error if one more operation would exceed a limit.
    fn check_limits(&self) -> Result<(), Problem> {
        let limit = self.context.config.limits.socket_subscriptions;
        if self.operations.len() >= limit {
            let detail = format!(
                "more than {limit} concurrent operations on one socket (limits.socket-subscriptions)"
            );
            return Err(Problem::bad_request("LIMIT_EXCEEDED", detail));
        }
        self.client.rate_meter.as_ref().map_or(Ok(()), ClientMeter::take_request)
    }

    /// Sends a message, together with those of other operations that are ready.
    async fn send_outgoing(&mut self, id: &str, message: OutgoingMessage) -> Result<(), SessionEnd> {
        self.queue_outgoing(id, message).await?;
        while self.socket.has_room()
            && let Some((id, message)) = self.operations.try_next().await
        {
            self.queue_outgoing(&id, message).await?;
        }
        Ok(self.socket.send().await?)
    }

    async fn queue_outgoing(&mut self, id: &str, message: OutgoingMessage) -> Result<(), SessionEnd> {
        self.log(id, &message);
        match message {
            OutgoingMessage::Event(prefix, event) => {
                if let Some(watch) = &mut self.client.watch
                    && !watch.covers_known_changes().await
                {
                    return Err(SocketClose::forbidden().into());
                }
                self.queue_next(&prefix, &event.payload);
            }
            OutgoingMessage::Response(response, _) => {
                self.queue_next(&protocol::next_prefix(id).into(), &response);
                self.queue_message(protocol::complete(id));
            }
            OutgoingMessage::Refused(failures) | OutgoingMessage::Ended(_, failures) => {
                self.queue_message(protocol::error(id, &failures));
            }
            OutgoingMessage::CredentialEnded => return Err(SocketClose::forbidden().into()),
        }
        Ok(())
    }

    fn scope<'s>(&'s self, operation: Option<&'s str>) -> LogScope<'s> {
        LogScope { request: self.client.request_id.as_ref(), operation }
    }

    /// Logs the causes of errors in a message, and the end of a subscription.
    fn log(&self, id: &str, message: &OutgoingMessage) {
        let scope = self.scope(Some(id));
        match message {
            OutgoingMessage::Event(_, event) => event.log_causes(scope),
            OutgoingMessage::Response(_, notes) => self.log_notes(notes, scope),
            OutgoingMessage::Refused(failures) => self.log_notes(&ErrorNotes::of(failures), scope),
            OutgoingMessage::Ended(end, _) => scope.stream_ended("websocket", end),
            OutgoingMessage::CredentialEnded => {}
        }
    }

    fn log_notes(&self, notes: &ErrorNotes, scope: LogScope<'_>) {
        notes.log_causes(scope);
        scope.refused(&notes.refusals);
        self.context.metrics.count_refusals(&notes.refusals);
    }

    fn queue_next(&mut self, prefix: &Bytes, payload: &Bytes) {
        self.socket.queue_text([prefix, payload, &Bytes::from_static(protocol::NEXT_SUFFIX)]);
    }

    fn queue_message(&mut self, message: Vec<u8>) {
        self.socket.queue_text([&message.into(), &Bytes::new(), &Bytes::new()]);
    }

    async fn send_message(&mut self, message: Vec<u8>) -> Result<(), SocketError> {
        self.queue_message(message);
        self.socket.send().await
    }

    /// Sends a ping, or ends the session if nothing was received for a whole interval.
    async fn handle_timer(&mut self) -> Result<(), SessionEnd> {
        let config = &self.context.config;
        if !self.acknowledged {
            let limit = config.limits.socket_init_timeout;
            let reason = format!("Connection initialisation timeout: {limit:?} (limits.socket-init-timeout)");
            return Err(SocketClose::new(4408, reason).into());
        }
        if self.ping_unanswered {
            let reason = format!("no pong within {:?} (heartbeat)", config.heartbeat);
            return Err(SocketClose::new(4408, reason).into());
        }
        self.ping_unanswered = true;
        let ping = protocol::ping(&self.operations.positions());
        Ok(self.send_message(ping).await?)
    }

    /// A log line of its own: that of the request was written at the upgrade.
    fn log_end(&self, end: &SessionEnd, started: Instant) {
        let ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let request_id = self.client.request_id.as_ref().map(RequestId::as_str);
        let client = self.client.actor.address.map(tracing::field::display);
        match end {
            SessionEnd::Closed(SocketClose { code, reason }) => {
                tracing::info!(ms, code, reason, request_id, client, "socket closed");
            }
            SessionEnd::ClientGone => tracing::info!(ms, request_id, client, "socket closed by the client"),
            SessionEnd::Cut => {
                let reason = "the server is stopping and the socket did not close in time";
                tracing::warn!(ms, reason, request_id, client, "socket aborted");
            }
        }
    }
}

async fn start_or_execute(
    service: GraphqlService,
    ParsedRequest { request, last_event_id }: ParsedRequest<'static>,
    mut actor: Actor,
    watch: Option<CredentialWatch>,
) -> StartResult {
    // As every request of its own would be: the socket may be open for days.
    if let Some(watch) = watch {
        match watch.renewed().await {
            // The rights that the socket began with are what its streams are watched for.
            Ok(renewed) if renewed.identity != watch.identity => return StartResult::CredentialEnded,
            Ok(renewed) => actor.identity = Some(renewed.identity),
            Err(WatchFailure::Bad) => return StartResult::CredentialEnded,
            Err(WatchFailure::Unknown(problem)) => {
                let failure = ResponseError::new(&problem.code, problem.detail);
                let cause = problem.cause;
                return StartResult::Rejected(vec![ResponseError { cause, ..failure }]);
            }
        }
    }
    let context = RequestContext { actor, ..RequestContext::default() };
    let _lease = service.gate.enter().await;
    let state = service.state.load_full();
    let reply = if state.is_subscription(&request).await {
        match service.subscribe(request, context, last_event_id.as_deref()).await {
            Ok(subscription) => {
                return StartResult::Subscribed(
                    Box::new(subscription),
                    service.stream_context.metrics.subscription_opened("websocket"),
                );
            }
            Err(reply) => reply,
        }
    } else {
        state.execute_request(request, context).await
    };
    match reply {
        GraphqlReply::Executed(executed) => StartResult::Response(executed.body, executed.notes),
        GraphqlReply::Rejected(failures) => StartResult::Rejected(failures),
        GraphqlReply::Failed(error) => StartResult::Rejected(vec![ResponseError::from_error(&error)]),
        GraphqlReply::PostRequired => StartResult::Rejected(vec![ResponseError::new(
            "METHOD_NOT_ALLOWED",
            "use POST for this operation",
        )]),
    }
}
