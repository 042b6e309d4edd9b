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

use crate::over_http::request;
use crate::over_http::request::{Request, Unreadable};
use crate::response_error;
use crate::response_error::Failure;
use crate::subscribe::handshake::{Handshake, Subprotocol};
use crate::subscribe::operations::{Begun, Operations, Said};
use crate::subscribe::protocol;
use crate::subscribe::protocol::{Close, Incoming};
use crate::subscribe::socket::{Broken, Received, Socket};
use crate::subscribe::streams::Streams;
use crate::{Face, Manner, Reply};
use trefoil_engine::Actor;
use trefoil_http::client::Client;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::rate_limit::Meter;
use trefoil_http::response_headers::RequestId;
use trefoil_http::streaming::upgrade::Tunnel;

/// Who is at the other end.
pub struct Visitor {
    pub address: Option<IpAddr>,
    pub request: Option<RequestId>,
    pub meter: Option<Meter>,
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Visitor, Infallible> {
        let known = &parts.extensions;
        Ok(Visitor {
            address: known.get::<Client>().and_then(|client| client.address),
            request: Client::request_of(known).cloned(),
            meter: known.get().cloned(),
        })
    }
}

/// Answers the request for a socket; what follows runs beside it, and the end of the process waits for it.
pub fn open(
    face: &Face,
    handshake: Handshake,
    headers: &HeaderMap,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let streams = face.streams.clone();
    cross_origin::check_socket(headers, &streams.config.cors_origins)?;
    let (mut response, subprotocol) = handshake.accept(headers)?;
    let (face, shutdown) = (face.clone(), streams.shutdown.clone());
    response.extensions_mut().insert(Tunnel::new(move |line| {
        shutdown.clone().spawn(async move {
            let served = async {
                let socket = Socket::new(line, streams.config.limits.socket_message).await;
                serve(face, streams, socket, subprotocol, visitor).await;
            };
            tokio::select! {
                () = served => {}
                () = shutdown.cut() => {}
            }
        });
    }));
    Ok(response)
}

async fn serve(
    face: Face,
    streams: Arc<Streams>,
    socket: Socket,
    subprotocol: Subprotocol,
    visitor: Visitor,
) {
    let began = Instant::now();
    let mut session = Session::new(face, streams, socket, visitor);
    let shutdown = session.streams.shutdown.clone();
    let end = match subprotocol {
        Subprotocol::Transport => tokio::select! {
            end = session.run() => end,
            () = shutdown.cut() => End::Cut,
        },
        Subprotocol::Legacy | Subprotocol::None => End::Closed(Close::not_acceptable()),
    };
    session.tell(&end, began);
    match end {
        End::Closed(close) => session.socket.close(&close).await,
        End::Gone => session.socket.leave().await,
        End::Cut => {}
    }
}

struct Session {
    face: Face,
    streams: Arc<Streams>,
    socket: Socket,
    visitor: Visitor,
    acknowledged: bool,
    operations: Operations,
    /// Until the client is acknowledged, when that must have happened; then when the next heartbeat is due.
    due: Interval,
    /// A ping is on its way, and nothing has come since.
    unanswered: bool,
}

enum Happened {
    Drained,
    Received(Received),
    Said(Arc<str>, Said),
    Due,
}

/// How it came to an end.
enum End {
    Closed(Close),
    Gone,
    /// The time for finishing is over.
    Cut,
}

impl From<Broken> for End {
    fn from(_: Broken) -> End {
        End::Gone
    }
}

impl From<Close> for End {
    fn from(close: Close) -> End {
        End::Closed(close)
    }
}

impl Session {
    fn new(face: Face, streams: Arc<Streams>, socket: Socket, visitor: Visitor) -> Session {
        let wait = streams.config.limits.socket_init_timeout;
        let due = interval_at(tokio::time::Instant::now() + wait, wait);
        let operations = Operations::default();
        Session { face, streams, socket, visitor, acknowledged: false, operations, due, unanswered: false }
    }

    async fn run(&mut self) -> End {
        let mut drained = self.streams.shutdown.drained();
        loop {
            let Session { socket, operations, due, .. } = self;
            // The client's words go first: after its `complete` nothing more may be sent.
            let happened = tokio::select! {
                biased;
                () = poll_fn(|cx| drained.poll(cx)) => Happened::Drained,
                received = socket.receive() => Happened::Received(received),
                (id, said) = operations.next() => Happened::Said(id, said),
                _ = due.tick() => Happened::Due,
            };
            if let Err(end) = self.react(happened).await {
                return end;
            }
        }
    }

    async fn react(&mut self, happened: Happened) -> Result<(), End> {
        match happened {
            Happened::Drained => Err(self.leave().await),
            Happened::Received(received) => self.hear(received).await,
            Happened::Said(id, said) => Ok(self.say(&id, said).await?),
            Happened::Due => self.beat().await,
        }
    }

    async fn leave(&mut self) -> End {
        while let Some((id, said)) = self.operations.last().await {
            self.put(&id, said);
            if let Err(broken) = self.socket.send().await {
                return broken.into();
            }
        }
        Close::going_away().into()
    }

    async fn hear(&mut self, received: Received) -> Result<(), End> {
        self.unanswered = false;
        match received {
            Received::Text(text) => self.obey(protocol::read(&text)?).await,
            Received::Sign => Ok(()),
            Received::Gone => Err(End::Gone),
            Received::Wrong(close) => Err(close.into()),
        }
    }

    async fn obey(&mut self, message: Incoming<'_>) -> Result<(), End> {
        match message {
            Incoming::Init if self.acknowledged => Err(Close::too_many_inits().into()),
            Incoming::Init => self.acknowledge().await,
            Incoming::Ping(payload) => Ok(self.send(protocol::pong(payload)).await?),
            Incoming::Pong => Ok(()),
            Incoming::Subscribe { .. } if !self.acknowledged => Err(Close::unauthorized().into()),
            Incoming::Subscribe { id, .. } if self.operations.has(&id) => Err(Close::exists(&id).into()),
            Incoming::Subscribe { id, payload } => self.begin(id.into_owned(), payload).await,
            Incoming::Complete { id } => {
                self.operations.end(&id);
                Ok(())
            }
        }
    }

    async fn acknowledge(&mut self) -> Result<(), End> {
        // While the store is away nobody knows; a subscription would be refused, too.
        let place = self.face.place().await.inspect_err(|error| {
            error.cause().into_iter().for_each(|cause| self.scope(None).cause(cause));
        });
        self.acknowledged = true;
        self.due = self.streams.heartbeat();
        Ok(self.send(protocol::ack(place.ok().as_deref())).await?)
    }

    async fn begin(&mut self, id: String, payload: &str) -> Result<(), End> {
        let limits = &self.streams.config.limits;
        let admitted = self.admit().map_err(Unreadable::Refused);
        let request = match admitted.and_then(|()| request::read(payload.as_bytes(), limits)) {
            Ok(request) => request.into_owned(),
            Err(Unreadable::Malformed(problem)) => return Err(Close::invalid(problem.detail).into()),
            Err(Unreadable::Refused(problem)) => {
                let failure = Failure::new(&problem.code, problem.detail);
                return Ok(self.send(protocol::error(&id, &[failure])).await?);
            }
        };
        let (face, limit) = (self.face.clone(), limits.request_timeout);
        let actor = Actor { address: self.visitor.address };
        self.operations.begin(id, async move {
            let answer = timeout(limit, answer(face, request, actor)).await;
            answer.unwrap_or_else(|_| {
                let message = format!("no answer within {limit:?} (limits.request-timeout)");
                Begun::Refused(vec![Failure::new("TIMEOUT", message)])
            })
        });
        Ok(())
    }

    /// Whether one more operation may run here.
    fn admit(&self) -> Result<(), Problem> {
        let most = self.streams.config.limits.socket_subscriptions;
        if self.operations.len() >= most {
            let detail =
                format!("more than {most} operations at once on one socket (limits.socket-subscriptions)");
            return Err(Problem::bad_request("LIMIT_EXCEEDED", detail));
        }
        self.visitor.meter.as_ref().map_or(Ok(()), Meter::take)
    }

    /// What others have to say at the same moment goes out with it.
    async fn say(&mut self, id: &str, said: Said) -> Result<(), Broken> {
        self.put(id, said);
        while self.socket.has_room()
            && let Some((id, said)) = self.operations.ready().await
        {
            self.put(&id, said);
        }
        self.socket.send().await
    }

    fn put(&mut self, id: &str, said: Said) {
        self.log(id, &said);
        match said {
            Said::Event(head, event) => self.next(&head, &event.payload),
            Said::Answer(answer, _) => {
                self.next(&protocol::next(id).into(), &answer);
                self.message(protocol::complete(id));
            }
            Said::Refused(failures) | Said::Ended(_, failures) => {
                self.message(protocol::error(id, &failures));
            }
        }
    }

    fn scope<'s>(&'s self, operation: Option<&'s str>) -> LogScope<'s> {
        LogScope { request: self.visitor.request.as_ref(), operation }
    }

    /// What an operation leaves in the log.
    fn log(&self, id: &str, said: &Said) {
        let scope = self.scope(Some(id));
        match said {
            Said::Event(_, event) => event.log_causes(scope),
            Said::Answer(_, causes) => causes.iter().for_each(|cause| scope.cause(cause)),
            Said::Refused(failures) => response_error::log_causes(failures, scope),
            Said::Ended(end, _) => scope.stream_ended("websocket", end),
        }
    }

    fn next(&mut self, head: &Bytes, payload: &Bytes) {
        self.socket.text([head, payload, &Bytes::from_static(protocol::NEXT_END)]);
    }

    fn message(&mut self, message: Vec<u8>) {
        self.socket.text([&message.into(), &Bytes::new(), &Bytes::new()]);
    }

    async fn send(&mut self, message: Vec<u8>) -> Result<(), Broken> {
        self.message(message);
        self.socket.send().await
    }

    /// A client that lets a whole interval pass without any word is not there.
    async fn beat(&mut self) -> Result<(), End> {
        let config = &self.streams.config;
        if !self.acknowledged {
            let limit = config.limits.socket_init_timeout;
            let reason = format!("Connection initialisation timeout: {limit:?} (limits.socket-init-timeout)");
            return Err(Close::new(4408, reason).into());
        }
        if self.unanswered {
            let reason = format!("no pong within {:?} (heartbeat)", config.heartbeat);
            return Err(Close::new(4408, reason).into());
        }
        self.unanswered = true;
        let ping = protocol::ping(&self.operations.places());
        Ok(self.send(ping).await?)
    }

    /// The request's own log line was written when it became a socket.
    fn tell(&self, end: &End, began: Instant) {
        let ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        let request_id = self.visitor.request.as_ref().map(RequestId::as_str);
        let client = self.visitor.address.map(tracing::field::display);
        match end {
            End::Closed(Close { code, reason }) => {
                tracing::info!(ms, code, reason, request_id, client, "socket closed");
            }
            End::Gone => tracing::info!(ms, request_id, client, "socket ended by the client"),
            End::Cut => {
                let reason = "the server is stopping, and the socket did not finish in time";
                tracing::warn!(ms, reason, request_id, client, "socket cut");
            }
        }
    }
}

async fn answer(face: Face, Request { asked, last }: Request<'static>, actor: Actor) -> Begun {
    let manner = Manner { actor, key: None, safe: false };
    let _lease = face.gate.enter().await;
    let served = face.served.load_full();
    let reply = if served.is_subscription(&asked) {
        match face.subscribe(asked, manner, last.as_deref()).await {
            Ok(subscription) => {
                return Begun::Subscribed(subscription, face.streams.metrics.subscribed("websocket"));
            }
            Err(reply) => reply,
        }
    } else {
        served.answer(asked, manner).await
    };
    match reply {
        Reply::Executed(executed) => Begun::Answered(executed.body, executed.causes),
        Reply::Rejected(failures) => Begun::Refused(failures),
        Reply::Failed(error) => Begun::Refused(vec![Failure::of(&error)]),
        Reply::OnlyByPost => Begun::Refused(vec![Failure::new("METHOD_NOT_ALLOWED", "it must be posted")]),
    }
}
