//! One WebSocket that speaks `graphql-transport-ws`, from its first message to its close, in one task.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use tokio::time::{Interval, interval_at, timeout};

use trefoil_engine::Actor;
use trefoil_http::client::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::rate_limit::ClientMeter;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::upgrade::ConnectionUpgrade;

use crate::over_http::request::{self, ParsedRequest, Unreadable};
use crate::reply::{GraphqlReply, RequestContext};
use crate::response_error::{self, ResponseError};
use crate::service::GraphqlService;
use crate::subscribe::handshake::{Subprotocol, WebSocketHandshake};
use crate::subscribe::operations::{OutgoingMessage, SocketOperations, StartResult};
use crate::subscribe::protocol::{self, IncomingMessage, SocketClose};
use crate::subscribe::socket::{MessageSocket, ReceivedMessage, SocketError};
use crate::subscribe::streams::StreamContext;

/// Who is at the other end.
pub struct SocketClient {
    pub address: Option<IpAddr>,
    pub request_id: Option<RequestId>,
    pub rate_meter: Option<ClientMeter>,
}

impl<S: Sync> FromRequestParts<S> for SocketClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<SocketClient, Infallible> {
        let known = &parts.extensions;
        Ok(SocketClient {
            address: known.get::<ClientInfo>().and_then(|client| client.address),
            request_id: ClientInfo::request_of(known).cloned(),
            rate_meter: known.get().cloned(),
        })
    }
}

/// Answers the request for a socket; what follows runs beside it, and the end of the process waits for it.
pub fn open(
    face: &GraphqlService,
    handshake: WebSocketHandshake,
    headers: &HeaderMap,
    visitor: SocketClient,
) -> Result<Response, Problem> {
    let streams = face.stream_context.clone();
    cross_origin::check_websocket_origin(headers, &streams.config.cors_origins)?;
    let (mut response, subprotocol) = handshake.accept(headers)?;
    let (face, shutdown) = (face.clone(), streams.shutdown.clone());
    response.extensions_mut().insert(ConnectionUpgrade::new(move |line| {
        shutdown.clone().spawn(async move {
            let served = async {
                let socket = MessageSocket::new(line, streams.config.limits.socket_message).await;
                serve(face, streams, socket, subprotocol, visitor).await;
            };
            tokio::select! {
                () = served => {}
                () = shutdown.wait_for_abort() => {}
            }
        });
    }));
    Ok(response)
}

async fn serve(
    face: GraphqlService,
    streams: Arc<StreamContext>,
    socket: MessageSocket,
    subprotocol: Subprotocol,
    visitor: SocketClient,
) {
    let began = Instant::now();
    let mut session = SocketSession::new(face, streams, socket, visitor);
    let shutdown = session.context.shutdown.clone();
    let end = match subprotocol {
        Subprotocol::GraphqlTransportWs => tokio::select! {
            end = session.run() => end,
            () = shutdown.wait_for_abort() => SessionEnd::Cut,
        },
        Subprotocol::Legacy | Subprotocol::None => SessionEnd::Closed(SocketClose::not_acceptable()),
    };
    session.log_end(&end, began);
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
    /// Until the client is acknowledged, when that must have happened; then when the next heartbeat is due.
    timer: Interval,
    /// A ping is on its way, and nothing has come since.
    ping_unanswered: bool,
}

enum SessionSignal {
    Drained,
    Received(ReceivedMessage),
    Outgoing(Arc<str>, OutgoingMessage),
    TimerDue,
}

/// How it came to an end.
enum SessionEnd {
    Closed(SocketClose),
    ClientGone,
    /// The time for finishing is over.
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
        face: GraphqlService,
        streams: Arc<StreamContext>,
        socket: MessageSocket,
        visitor: SocketClient,
    ) -> SocketSession {
        let wait = streams.config.limits.socket_init_timeout;
        let due = interval_at(tokio::time::Instant::now() + wait, wait);
        let operations = SocketOperations::default();
        SocketSession {
            service: face,
            context: streams,
            socket,
            client: visitor,
            acknowledged: false,
            operations,
            timer: due,
            ping_unanswered: false,
        }
    }

    async fn run(&mut self) -> SessionEnd {
        let mut drained = self.context.shutdown.drain_waiter();
        loop {
            let SocketSession { socket, operations, timer: due, .. } = self;
            // The client's words go first: after its `complete` nothing more may be sent.
            let happened = tokio::select! {
                biased;
                () = poll_fn(|cx| drained.poll(cx)) => SessionSignal::Drained,
                received = socket.receive() => SessionSignal::Received(received),
                (id, said) = operations.next() => SessionSignal::Outgoing(id, said),
                _ = due.tick() => SessionSignal::TimerDue,
            };
            if let Err(end) = self.handle_signal(happened).await {
                return end;
            }
        }
    }

    async fn handle_signal(&mut self, happened: SessionSignal) -> Result<(), SessionEnd> {
        match happened {
            SessionSignal::Drained => Err(self.finish_operations().await),
            SessionSignal::Received(received) => self.handle_received(received).await,
            SessionSignal::Outgoing(id, said) => Ok(self.send_outgoing(&id, said).await?),
            SessionSignal::TimerDue => self.handle_timer().await,
        }
    }

    async fn finish_operations(&mut self) -> SessionEnd {
        while let Some((id, said)) = self.operations.drain_next().await {
            self.queue_outgoing(&id, said);
            if let Err(broken) = self.socket.send().await {
                return broken.into();
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
            IncomingMessage::Init if self.acknowledged => Err(SocketClose::too_many_inits().into()),
            IncomingMessage::Init => self.acknowledge().await,
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

    async fn acknowledge(&mut self) -> Result<(), SessionEnd> {
        // While the store is away nobody knows; a subscription would be refused, too.
        let place = self.service.current_event_id().await.inspect_err(|error| {
            error.cause().into_iter().for_each(|cause| self.scope(None).cause(cause));
        });
        self.acknowledged = true;
        self.timer = self.context.heartbeat();
        Ok(self.send_message(protocol::connection_ack(place.ok().as_deref())).await?)
    }

    async fn start_operation(&mut self, id: String, payload: &str) -> Result<(), SessionEnd> {
        let limits = &self.context.config.limits;
        let admitted = self.check_limits().map_err(Unreadable::Refused);
        let request = match admitted.and_then(|()| request::parse_request(payload.as_bytes(), limits)) {
            Ok(request) => request.into_owned(),
            Err(Unreadable::Malformed(problem)) => {
                return Err(SocketClose::invalid_message(problem.detail).into());
            }
            Err(Unreadable::Refused(problem)) => {
                let failure = ResponseError::new(&problem.code, problem.detail);
                return Ok(self.send_message(protocol::error(&id, &[failure])).await?);
            }
        };
        let (face, limit) = (self.service.clone(), limits.request_timeout);
        let actor = Actor { address: self.client.address };
        self.operations.start(id, async move {
            let answer = timeout(limit, start_or_execute(face, request, actor)).await;
            answer.unwrap_or_else(|_| {
                let message = format!("no answer within {limit:?} (limits.request-timeout)");
                StartResult::Rejected(vec![ResponseError::new("TIMEOUT", message)])
            })
        });
        Ok(())
    }

    /// Whether one more operation may run here.
    fn check_limits(&self) -> Result<(), Problem> {
        let most = self.context.config.limits.socket_subscriptions;
        if self.operations.len() >= most {
            let detail =
                format!("more than {most} operations at once on one socket (limits.socket-subscriptions)");
            return Err(Problem::bad_request("LIMIT_EXCEEDED", detail));
        }
        self.client.rate_meter.as_ref().map_or(Ok(()), ClientMeter::take_request)
    }

    /// What others have to say at the same moment goes out with it.
    async fn send_outgoing(&mut self, id: &str, said: OutgoingMessage) -> Result<(), SocketError> {
        self.queue_outgoing(id, said);
        while self.socket.has_room()
            && let Some((id, said)) = self.operations.try_next().await
        {
            self.queue_outgoing(&id, said);
        }
        self.socket.send().await
    }

    fn queue_outgoing(&mut self, id: &str, said: OutgoingMessage) {
        self.log(id, &said);
        match said {
            OutgoingMessage::Event(head, event) => self.queue_next(&head, &event.payload),
            OutgoingMessage::Response(answer, _) => {
                self.queue_next(&protocol::next_prefix(id).into(), &answer);
                self.queue_message(protocol::complete(id));
            }
            OutgoingMessage::Refused(failures) | OutgoingMessage::Ended(_, failures) => {
                self.queue_message(protocol::error(id, &failures));
            }
        }
    }

    fn scope<'s>(&'s self, operation: Option<&'s str>) -> LogScope<'s> {
        LogScope { request: self.client.request_id.as_ref(), operation }
    }

    /// What an operation leaves in the log.
    fn log(&self, id: &str, said: &OutgoingMessage) {
        let scope = self.scope(Some(id));
        match said {
            OutgoingMessage::Event(_, event) => event.log_causes(scope),
            OutgoingMessage::Response(_, causes) => causes.iter().for_each(|cause| scope.cause(cause)),
            OutgoingMessage::Refused(failures) => response_error::log_causes(failures, scope),
            OutgoingMessage::Ended(end, _) => scope.stream_ended("websocket", end),
        }
    }

    fn queue_next(&mut self, head: &Bytes, payload: &Bytes) {
        self.socket.queue_text([head, payload, &Bytes::from_static(protocol::NEXT_SUFFIX)]);
    }

    fn queue_message(&mut self, message: Vec<u8>) {
        self.socket.queue_text([&message.into(), &Bytes::new(), &Bytes::new()]);
    }

    async fn send_message(&mut self, message: Vec<u8>) -> Result<(), SocketError> {
        self.queue_message(message);
        self.socket.send().await
    }

    /// A client that lets a whole interval pass without any word is not there.
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

    /// The request's own log line was written when it became a socket.
    fn log_end(&self, end: &SessionEnd, began: Instant) {
        let ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let request_id = self.client.request_id.as_ref().map(RequestId::as_str);
        let client = self.client.address.map(tracing::field::display);
        match end {
            SessionEnd::Closed(SocketClose { code, reason }) => {
                tracing::info!(ms, code, reason, request_id, client, "socket closed");
            }
            SessionEnd::ClientGone => tracing::info!(ms, request_id, client, "socket ended by the client"),
            SessionEnd::Cut => {
                let reason = "the server is stopping, and the socket did not finish in time";
                tracing::warn!(ms, reason, request_id, client, "socket cut");
            }
        }
    }
}

async fn start_or_execute(
    face: GraphqlService,
    ParsedRequest { request: asked, last_event_id: last }: ParsedRequest<'static>,
    actor: Actor,
) -> StartResult {
    let manner = RequestContext { actor, key: None, safe: false };
    let _lease = face.gate.enter().await;
    let served = face.state.load_full();
    let reply = if served.is_subscription(&asked) {
        match face.subscribe(asked, manner, last.as_deref()).await {
            Ok(subscription) => {
                return StartResult::Subscribed(
                    subscription,
                    face.stream_context.metrics.subscription_opened("websocket"),
                );
            }
            Err(reply) => reply,
        }
    } else {
        served.execute_request(asked, manner).await
    };
    match reply {
        GraphqlReply::Executed(executed) => StartResult::Response(executed.body, executed.causes),
        GraphqlReply::Rejected(failures) => StartResult::Rejected(failures),
        GraphqlReply::Failed(error) => StartResult::Rejected(vec![ResponseError::from_error(&error)]),
        GraphqlReply::PostRequired => {
            StartResult::Rejected(vec![ResponseError::new("METHOD_NOT_ALLOWED", "it must be posted")])
        }
    }
}
