//! The GraphQL face at `/graphql`: documents in, JSON out, straight from the store's rows.

mod describe;
mod document;
mod execute;
mod over_http;
mod plan;
mod resolve;
mod response_error;
pub mod subscribe;

use std::sync::Arc;

use apollo_compiler::executable::OperationType;
use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{self, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use crate::document::cache::Cache;
use crate::document::parse::{Document, Settings};
use crate::execute::run::{Executed, Execution, Refused};
use crate::over_http::negotiate::Accepted;
pub use crate::over_http::request::Asked;
use crate::over_http::request::Request;
use crate::over_http::response::respond;
use crate::response_error::Failure;
use crate::subscribe::streams::Streams;
use crate::subscribe::{Channels, Hub, handshake, stream_response, websocket};

use trefoil_config::Config;
use trefoil_engine::{Actor, Engine, Key, SchemaGate};
use trefoil_http::client::Client;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::idempotency;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::negotiation::accept::Accept;
use trefoil_http::response_cache::{Answers, Asked as Repeated};
use trefoil_http::response_headers::RequestId;
use trefoil_http::service::{Answer, Direct, Handler};
use trefoil_http::shutdown::Shutdown;
use trefoil_model::error::Error;

/// One schema as it is served, with the documents seen so far. Swapped whole on reload.
pub struct Served {
    engine: Engine,
    documents: Cache,
    settings: Settings,
    answers: Option<Arc<Answers>>,
    channels: Channels,
}

/// The face, whatever schema it serves at the moment.
#[derive(Clone)]
pub struct Face {
    served: Arc<ArcSwap<Served>>,
    /// Passed by every request before it takes what is served.
    gate: SchemaGate,
    graphiql: bool,
    streams: Arc<Streams>,
    hub: Arc<Hub>,
}

/// Who asks and how, beside what.
#[derive(Debug, Default)]
pub struct Manner {
    pub actor: Actor,
    pub key: Option<Key>,
    /// A GET, or from a page that may only read: it must not change anything.
    pub safe: bool,
}

/// What comes of a request.
pub enum Reply {
    Executed(Executed),
    /// Well-formed, but not executed.
    Rejected(Vec<Failure>),
    /// The store could not take it as a whole.
    Failed(Error),
    /// It changes something, and was not posted.
    OnlyByPost,
}

impl Reply {
    /// What it leaves in the log; a failure as a whole is logged with the answer that it becomes.
    fn log_causes(&self, scope: LogScope<'_>) {
        match self {
            Reply::Executed(executed) => executed.causes.iter().for_each(|cause| scope.cause(cause)),
            Reply::Rejected(failures) => crate::response_error::log_causes(failures, scope),
            Reply::Failed(_) | Reply::OnlyByPost => {}
        }
    }
}

impl Served {
    pub fn new(engine: Engine, config: &Config) -> Served {
        let settings = Settings { limits: config.limits.clone(), introspection: config.introspection };
        let (documents, channels) = (Cache::new(settings.limits.document_cache), Channels::default());
        Served { engine, documents, settings, answers: None, channels }
    }

    /// Answers over HTTP are kept here and given again while they are exact.
    pub fn reusing(self, answers: Arc<Answers>) -> Served {
        Served { answers: Some(answers), ..self }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Answers one request; HTTP has no part in it.
    pub async fn answer(&self, asked: Asked<'_>, manner: Manner) -> Reply {
        let verdict = self.documents.get(&asked.query, || self.parse(&asked.query));
        let document = match verdict.as_ref() {
            Ok(document) => document,
            Err(failures) => return Reply::Rejected(failures.clone()),
        };
        match self.execute(document, asked, manner).await {
            Ok(reply) => reply,
            Err(Refused::Request(failures)) => Reply::Rejected(failures),
            Err(Refused::Whole(error)) => Reply::Failed(error),
        }
    }

    /// Requests that are followed at the moment, each once however many follow it.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Whether this asks for a stream of answers. What is wrong in any way is none.
    pub fn is_subscription(&self, asked: &Asked<'_>) -> bool {
        // Without the word there is none, and nearly every request is spared the second look.
        asked.query.contains("subscription")
            && self.documents.get(&asked.query, || self.parse(&asked.query)).as_ref().as_ref().is_ok_and(
                |document| {
                    let found = document.operation(asked.operation.as_deref());
                    found.is_ok_and(|prepared| prepared.kind() == OperationType::Subscription)
                },
            )
    }

    fn parse(&self, text: &str) -> crate::document::cache::Verdict {
        Document::parse(&self.engine, &self.settings, text)
    }

    async fn execute(&self, document: &Document, asked: Asked<'_>, manner: Manner) -> Result<Reply, Refused> {
        let prepared = document.operation(asked.operation.as_deref())?;
        match prepared.kind() {
            OperationType::Query => {}
            OperationType::Mutation if manner.safe => return Ok(Reply::OnlyByPost),
            OperationType::Mutation => {}
            OperationType::Subscription => return Err(no_subscriptions().into()),
        }
        let (engine, schema) = (&self.engine, &self.engine.model().schema);
        let variables = crate::plan::variables::coerce(schema, &prepared.declared, asked.variables)
            .map_err(Refused::Request)?;
        let grown = |plan: &crate::plan::roots::Plan| self.documents.planned(&asked.query, plan);
        let plan = prepared.plan(engine, &self.settings, &document.document, &variables, grown)?;
        let Manner { actor, key, .. } = manner;
        // A query may be asked again as often as one likes.
        let key = key.filter(|_| prepared.kind() == OperationType::Mutation);
        let before =
            if plan.repeats { self.answers.as_ref().and_then(|answers| answers.state()) } else { None };
        let execution = Execution { engine, plan, variables, key, actor, image: None };
        let run = execution.run().await;
        // What was overtaken by a reload may be anything; but what is written is written.
        let is_written = prepared.kind() == OperationType::Mutation
            && run.as_ref().is_ok_and(|executed| executed.whole || executed.replayed);
        if !is_written {
            engine.check_tables()?;
        }
        let executed = run?;
        Ok(Reply::Executed(Executed { before: before.filter(|_| executed.whole), ..executed }))
    }
}

fn no_subscriptions() -> Failure {
    let message = "a subscription needs a transport that stays open";
    Failure::new("SUBSCRIPTION_TRANSPORT", message)
}

impl Face {
    pub fn new(served: Served, config: &Config) -> Face {
        Face {
            gate: served.engine.feed().gate().clone(),
            served: Arc::new(ArcSwap::from_pointee(served)),
            graphiql: config.graphiql,
            hub: Arc::new(Hub::new(config.limits.event_cache / 2)),
            streams: Arc::new(Streams::new(config, &Metrics::new(), &Shutdown::new())),
        }
    }

    /// Its subscriptions are counted here, and end when this does.
    pub fn within(mut self, config: &Config, metrics: &Metrics, shutdown: &Shutdown) -> Face {
        self.streams = Arc::new(Streams::new(config, metrics, shutdown));
        self
    }

    /// From the next request on, this is served. Subscriptions go on under it, where they still fit.
    pub fn swap(&self, served: Served) {
        self.served.store(Arc::new(served));
        self.hub.swapped();
    }

    /// What is served at the moment.
    pub fn served(&self) -> Arc<Served> {
        self.served.load_full()
    }

    /// What subscriptions share and how many there are.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// What is posted, for the foundation: past the router.
    pub fn direct(&self) -> Direct {
        let face = self.clone();
        let handler: Handler = Arc::new(move |request, client| {
            let face = face.clone();
            Answer::Soon(Box::pin(async move { face.post(request, client).await.into_response() }))
        });
        Direct { method: Method::POST, path: "/graphql", handler }
    }

    async fn post(&self, request: extract::Request, client: Client) -> Result<Response, Problem> {
        let (Parts { headers, .. }, body) = request.into_parts();
        // The foundation says it better when it is a limit that cut it off.
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|_| crate::over_http::request::malformed("the body ended early"))?;
        let _lease = self.gate.enter().await;
        let served = self.served.load_full();
        let asked = Repeated::new(&[b"graphql", &body], &headers, &[ACCEPT, CONTENT_TYPE])
            .filter(|_| !headers.contains_key(idempotency::HEADER));
        repeated(&served, asked, &headers, || posted(self, &served, &client, &headers, &body)).await
    }

    pub fn router(&self) -> Router {
        let routes = Router::new()
            .route("/graphql", get(read).post(write).options(options))
            .route("/graphql/schema.graphqls", get(sdl));
        let routes = if self.graphiql {
            routes
                .route("/_/graphiql/tabs.json", get(tabs))
                .route("/_/assets/{name}", get(crate::describe::assets::respond))
        } else {
            routes
        };
        routes.with_state(self.clone())
    }
}

/// An answer that was given before to the same request and is still exact, or else one that is made now.
async fn repeated<F: Future<Output = Result<Response, Problem>>>(
    served: &Served,
    asked: Option<Repeated<'_>>,
    headers: &HeaderMap,
    make: impl FnOnce() -> F,
) -> Result<Response, Problem> {
    let kept = served.answers.as_ref().zip(asked);
    if let Some((answers, asked)) = &kept
        && let Some(response) = answers.find(asked, headers).await
    {
        return Ok(response);
    }
    let made = make().await?;
    match kept {
        Some((answers, asked)) => Ok(answers.keep(&asked, made).await),
        None => Ok(made),
    }
}

async fn write(State(face): State<Face>, mut request: extract::Request) -> Result<Response, Problem> {
    let client = request.extensions_mut().remove().unwrap_or_default();
    face.post(request, client).await
}

async fn posted(
    face: &Face,
    served: &Served,
    client: &Client,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Problem> {
    let actor = Actor { address: client.address };
    let accepted = Accepted::of(headers)?;
    let Request { asked, last } = crate::over_http::request::posted(headers, body, &served.settings.limits)?;
    if served.is_subscription(&asked) {
        let last = stream_response::place(headers).or(last);
        return follow(face, asked, last, accepted, actor, client.request.as_ref()).await;
    }
    let wanted = accepted.single()?;
    let safe = cross_origin::may_only_read(headers, &face.streams.config.cors_origins);
    let manner = Manner { actor, key: idempotency::key(headers, "POST /graphql", body)?, safe };
    match served.answer(asked, manner).await {
        Reply::OnlyByPost => Err(cross_origin::cross_site()),
        reply @ (Reply::Executed(_) | Reply::Rejected(_) | Reply::Failed(_)) => {
            reply.log_causes(LogScope::of(client.request.as_ref()));
            Ok(respond(reply, wanted))
        }
    }
}

async fn read(
    State(face): State<Face>,
    handshake::Requested(handshake): handshake::Requested,
    visitor: websocket::Visitor,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(handshake) = handshake {
        return websocket::open(&face, handshake, &headers, visitor);
    }
    // A person who follows a link with a query gets it ready to run, not run.
    if face.graphiql && Accept::of(&headers).prefers_html() {
        return Ok(crate::describe::graphiql::respond());
    }
    let _lease = face.gate.enter().await;
    let (query, served) = (query.unwrap_or_default(), face.served.load_full());
    let asked = Repeated::new(&[b"graphql?", query.as_bytes()], &headers, &[ACCEPT]);
    repeated(&served, asked, &headers, || queried(&face, &served, visitor, &query, &headers)).await
}

async fn queried(
    face: &Face,
    served: &Served,
    visitor: websocket::Visitor,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let Some(Request { asked, last }) = crate::over_http::request::queried(query)? else {
        return Err(crate::over_http::request::missing());
    };
    let accepted = Accepted::of(headers)?;
    let actor = Actor { address: visitor.address };
    if served.is_subscription(&asked) {
        let last = stream_response::place(headers).or(last);
        return follow(face, asked, last, accepted, actor, visitor.request.as_ref()).await;
    }
    let manner = Manner { actor, key: None, safe: true };
    let reply = served.answer(asked, manner).await;
    reply.log_causes(LogScope::of(visitor.request.as_ref()));
    Ok(respond(reply, accepted.single()?))
}

/// A subscription in the body of a response.
async fn follow(
    face: &Face,
    asked: Asked<'_>,
    last: Option<String>,
    accepted: Accepted,
    actor: Actor,
    request: Option<&RequestId>,
) -> Result<Response, Problem> {
    let transport = accepted.stream()?;
    let manner = Manner { actor, key: None, safe: true };
    let begun = face.subscribe(asked, manner, last.as_deref()).await;
    let begun = begun.inspect_err(|reply| reply.log_causes(LogScope::of(request)));
    match begun {
        Ok(subscription) => Ok(stream_response::respond(subscription, transport, &face.streams, request)),
        Err(Reply::Rejected(failures)) => Ok(stream_response::reject(&failures, transport)),
        // Whatever else the client takes: errors of the store have no need of it.
        Err(Reply::Failed(error)) => Err(error.into()),
        // The schema was exchanged a moment ago, and it is no subscription any more.
        Err(other @ (Reply::Executed(_) | Reply::OnlyByPost)) => Ok(respond(other, accepted.single()?)),
    }
}

async fn options() -> Response {
    (StatusCode::NO_CONTENT, [(ALLOW, "GET, HEAD, POST, OPTIONS")]).into_response()
}

async fn sdl(State(face): State<Face>, headers: HeaderMap) -> Response {
    let _lease = face.gate.enter().await;
    crate::describe::schema::respond(&face.served.load().engine.model().sdl, &headers)
}

async fn tabs(State(face): State<Face>) -> Response {
    let _lease = face.gate.enter().await;
    let tabs = crate::describe::tabs::of(&face.served.load().engine);
    ([(CONTENT_TYPE, "application/json; charset=utf-8")], tabs.to_string()).into_response()
}
