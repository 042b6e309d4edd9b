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

use crate::document::cache::DocumentCache;
use crate::document::parse::{GraphqlSettings, ParsedDocument};
use crate::execute::run::{ExecutedResponse, Execution, ExecutionError};
use crate::over_http::negotiate::AcceptedTransports;
pub use crate::over_http::request::GraphqlRequest;
use crate::over_http::request::ParsedRequest;
use crate::over_http::response::respond;
use crate::response_error::ResponseError;
use crate::subscribe::streams::StreamContext;
use crate::subscribe::{ChannelMap, SubscriptionRegistry, handshake, stream_response, websocket};

use trefoil_config::Config;
use trefoil_engine::{Actor, Engine, IdempotencyKey, SchemaGate};
use trefoil_http::client::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::idempotency;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::response_cache::{CacheKey as Repeated, ResponseCache};
use trefoil_http::response_headers::RequestId;
use trefoil_http::service::{DirectRoute, HandlerResponse, RequestHandler};
use trefoil_http::shutdown::Shutdown;
use trefoil_model::error::Error;

/// One schema as it is served, with the documents seen so far. Swapped whole on reload.
pub struct GraphqlState {
    engine: Engine,
    document_cache: DocumentCache,
    settings: GraphqlSettings,
    response_cache: Option<Arc<ResponseCache>>,
    channels: ChannelMap,
}

/// The face, whatever schema it serves at the moment.
#[derive(Clone)]
pub struct GraphqlService {
    state: Arc<ArcSwap<GraphqlState>>,
    /// Passed by every request before it takes what is served.
    gate: SchemaGate,
    graphiql_enabled: bool,
    stream_context: Arc<StreamContext>,
    subscriptions: Arc<SubscriptionRegistry>,
}

/// Who asks and how, beside what.
#[derive(Debug, Default)]
pub struct RequestContext {
    pub actor: Actor,
    pub key: Option<IdempotencyKey>,
    /// A GET, or from a page that may only read: it must not change anything.
    pub safe: bool,
}

/// What comes of a request.
pub enum GraphqlReply {
    Executed(ExecutedResponse),
    /// Well-formed, but not executed.
    Rejected(Vec<ResponseError>),
    /// The store could not take it as a whole.
    Failed(Error),
    /// It changes something, and was not posted.
    PostRequired,
}

impl GraphqlReply {
    /// What it leaves in the log; a failure as a whole is logged with the answer that it becomes.
    fn log_causes(&self, scope: LogScope<'_>) {
        match self {
            GraphqlReply::Executed(executed) => executed.causes.iter().for_each(|cause| scope.cause(cause)),
            GraphqlReply::Rejected(failures) => crate::response_error::log_causes(failures, scope),
            GraphqlReply::Failed(_) | GraphqlReply::PostRequired => {}
        }
    }
}

impl GraphqlState {
    pub fn new(engine: Engine, config: &Config) -> GraphqlState {
        let settings = GraphqlSettings { limits: config.limits.clone(), introspection: config.introspection };
        let (documents, channels) =
            (DocumentCache::new(settings.limits.document_cache), ChannelMap::default());
        GraphqlState { engine, document_cache: documents, settings, response_cache: None, channels }
    }

    /// Answers over HTTP are kept here and given again while they are exact.
    pub fn with_response_cache(self, answers: Arc<ResponseCache>) -> GraphqlState {
        GraphqlState { response_cache: Some(answers), ..self }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Answers one request; HTTP has no part in it.
    pub async fn execute_request(&self, asked: GraphqlRequest<'_>, manner: RequestContext) -> GraphqlReply {
        let verdict = self.document_cache.get_or_parse(&asked.query, || self.parse_document(&asked.query));
        let document = match verdict.as_ref() {
            Ok(document) => document,
            Err(failures) => return GraphqlReply::Rejected(failures.clone()),
        };
        match self.execute_document(document, asked, manner).await {
            Ok(reply) => reply,
            Err(ExecutionError::Request(failures)) => GraphqlReply::Rejected(failures),
            Err(ExecutionError::Engine(error)) => GraphqlReply::Failed(error),
        }
    }

    /// Requests that are followed at the moment, each once however many follow it.
    pub fn channels(&self) -> &ChannelMap {
        &self.channels
    }

    /// Whether this asks for a stream of answers. What is wrong in any way is none.
    pub fn is_subscription(&self, asked: &GraphqlRequest<'_>) -> bool {
        // Without the word there is none, and nearly every request is spared the second look.
        asked.query.contains("subscription")
            && self
                .document_cache
                .get_or_parse(&asked.query, || self.parse_document(&asked.query))
                .as_ref()
                .as_ref()
                .is_ok_and(|document| {
                    let found = document.operation(asked.operation_name.as_deref());
                    found.is_ok_and(|prepared| prepared.operation_type() == OperationType::Subscription)
                })
    }

    fn parse_document(&self, text: &str) -> crate::document::cache::DocumentResult {
        ParsedDocument::parse(&self.engine, &self.settings, text)
    }

    async fn execute_document(
        &self,
        document: &ParsedDocument,
        asked: GraphqlRequest<'_>,
        manner: RequestContext,
    ) -> Result<GraphqlReply, ExecutionError> {
        let prepared = document.operation(asked.operation_name.as_deref())?;
        match prepared.operation_type() {
            OperationType::Query => {}
            OperationType::Mutation if manner.safe => return Ok(GraphqlReply::PostRequired),
            OperationType::Mutation => {}
            OperationType::Subscription => return Err(needs_stream_transport().into()),
        }
        let (engine, schema) = (&self.engine, &self.engine.model().schema);
        let variables = crate::plan::variables::coerce(schema, &prepared.declared_variables, asked.variables)
            .map_err(ExecutionError::Request)?;
        let grown =
            |plan: &crate::plan::roots::OperationPlan| self.document_cache.record_plan(&asked.query, plan);
        let plan = prepared.plan(engine, &self.settings, &document.executable, &variables, grown)?;
        let RequestContext { actor, key, .. } = manner;
        // A query may be asked again as often as one likes.
        let key = key.filter(|_| prepared.operation_type() == OperationType::Mutation);
        let before = if plan.cacheable {
            self.response_cache.as_ref().and_then(|answers| answers.data_version())
        } else {
            None
        };
        let execution = Execution { engine, plan, variables, key, actor, image: None };
        let run = execution.run().await;
        // What was overtaken by a reload may be anything; but what is written is written.
        let is_written = prepared.operation_type() == OperationType::Mutation
            && run.as_ref().is_ok_and(|executed| executed.error_free || executed.replayed);
        if !is_written {
            engine.check_tables()?;
        }
        let executed = run?;
        Ok(GraphqlReply::Executed(ExecutedResponse {
            data_version: before.filter(|_| executed.error_free),
            ..executed
        }))
    }
}

fn needs_stream_transport() -> ResponseError {
    let message = "a subscription needs a transport that stays open";
    ResponseError::new("SUBSCRIPTION_TRANSPORT", message)
}

impl GraphqlService {
    pub fn new(served: GraphqlState, config: &Config) -> GraphqlService {
        GraphqlService {
            gate: served.engine.feed().gate().clone(),
            state: Arc::new(ArcSwap::from_pointee(served)),
            graphiql_enabled: config.graphiql,
            subscriptions: Arc::new(SubscriptionRegistry::new(config.limits.event_cache / 2)),
            stream_context: Arc::new(StreamContext::new(config, &Metrics::new(), &Shutdown::new())),
        }
    }

    /// Its subscriptions are counted here, and end when this does.
    pub fn with_shutdown(
        mut self,
        config: &Config,
        metrics: &Metrics,
        shutdown: &Shutdown,
    ) -> GraphqlService {
        self.stream_context = Arc::new(StreamContext::new(config, metrics, shutdown));
        self
    }

    /// From the next request on, this is served. Subscriptions go on under it, where they still fit.
    pub fn swap(&self, served: GraphqlState) {
        self.state.store(Arc::new(served));
        self.subscriptions.schema_swapped();
    }

    /// What is served at the moment.
    pub fn state(&self) -> Arc<GraphqlState> {
        self.state.load_full()
    }

    /// What subscriptions share and how many there are.
    pub fn subscriptions(&self) -> &Arc<SubscriptionRegistry> {
        &self.subscriptions
    }

    /// What is posted, for the foundation: past the router.
    pub fn direct_handler(&self) -> DirectRoute {
        let face = self.clone();
        let handler: RequestHandler = Arc::new(move |request, client| {
            let face = face.clone();
            HandlerResponse::Pending(Box::pin(
                async move { face.post(request, client).await.into_response() },
            ))
        });
        DirectRoute { method: Method::POST, path: "/graphql", handler }
    }

    async fn post(&self, request: extract::Request, client: ClientInfo) -> Result<Response, Problem> {
        let (Parts { headers, .. }, body) = request.into_parts();
        // The foundation says it better when it is a limit that cut it off.
        let body = axum::body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|_| crate::over_http::request::malformed_request("the body ended early"))?;
        let _lease = self.gate.enter().await;
        let served = self.state.load_full();
        let asked = Repeated::new(&[b"graphql", &body], &headers, &[ACCEPT, CONTENT_TYPE])
            .filter(|_| !headers.contains_key(idempotency::IDEMPOTENCY_KEY));
        respond_cached(&served, asked, &headers, || respond_to_post(self, &served, &client, &headers, &body))
            .await
    }

    pub fn router(&self) -> Router {
        let routes = Router::new()
            .route("/graphql", get(handle_get).post(handle_post).options(handle_options))
            .route("/graphql/schema.graphqls", get(handle_schema));
        let routes = if self.graphiql_enabled {
            routes
                .route("/_/graphiql/tabs.json", get(handle_tabs))
                .route("/_/assets/{name}", get(crate::describe::assets::respond))
        } else {
            routes
        };
        routes.with_state(self.clone())
    }
}

/// An answer that was given before to the same request and is still exact, or else one that is made now.
async fn respond_cached<F: Future<Output = Result<Response, Problem>>>(
    served: &GraphqlState,
    asked: Option<Repeated<'_>>,
    headers: &HeaderMap,
    make: impl FnOnce() -> F,
) -> Result<Response, Problem> {
    let kept = served.response_cache.as_ref().zip(asked);
    if let Some((answers, asked)) = &kept
        && let Some(response) = answers.find(asked, headers).await
    {
        return Ok(response);
    }
    let made = make().await?;
    match kept {
        Some((answers, asked)) => Ok(answers.store(&asked, made).await),
        None => Ok(made),
    }
}

async fn handle_post(
    State(face): State<GraphqlService>,
    mut request: extract::Request,
) -> Result<Response, Problem> {
    let client = request.extensions_mut().remove().unwrap_or_default();
    face.post(request, client).await
}

async fn respond_to_post(
    face: &GraphqlService,
    served: &GraphqlState,
    client: &ClientInfo,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Problem> {
    let actor = Actor { address: client.address };
    let accepted = AcceptedTransports::from_headers(headers)?;
    let ParsedRequest { request: asked, last_event_id: last } =
        crate::over_http::request::parse_post(headers, body, &served.settings.limits)?;
    if served.is_subscription(&asked) {
        let last = stream_response::last_event_id(headers).or(last);
        return respond_with_stream(face, asked, last, accepted, actor, client.request.as_ref()).await;
    }
    let wanted = accepted.for_response()?;
    let safe = cross_origin::may_only_read(headers, &face.stream_context.config.cors_origins);
    let manner =
        RequestContext { actor, key: idempotency::idempotency_key(headers, "POST /graphql", body)?, safe };
    match served.execute_request(asked, manner).await {
        GraphqlReply::PostRequired => Err(cross_origin::cross_site_problem()),
        reply @ (GraphqlReply::Executed(_) | GraphqlReply::Rejected(_) | GraphqlReply::Failed(_)) => {
            reply.log_causes(LogScope::of(client.request.as_ref()));
            Ok(respond(reply, wanted))
        }
    }
}

async fn handle_get(
    State(face): State<GraphqlService>,
    handshake::OptionalHandshake(handshake): handshake::OptionalHandshake,
    visitor: websocket::SocketClient,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(handshake) = handshake {
        return websocket::open(&face, handshake, &headers, visitor);
    }
    // A person who follows a link with a query gets it ready to run, not run.
    if face.graphiql_enabled && AcceptHeader::from_headers(&headers).prefers_html() {
        return Ok(crate::describe::graphiql::respond());
    }
    let _lease = face.gate.enter().await;
    let (query, served) = (query.unwrap_or_default(), face.state.load_full());
    let asked = Repeated::new(&[b"graphql?", query.as_bytes()], &headers, &[ACCEPT]);
    respond_cached(&served, asked, &headers, || respond_to_query(&face, &served, visitor, &query, &headers))
        .await
}

async fn respond_to_query(
    face: &GraphqlService,
    served: &GraphqlState,
    visitor: websocket::SocketClient,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let Some(ParsedRequest { request: asked, last_event_id: last }) =
        crate::over_http::request::parse_query(query)?
    else {
        return Err(crate::over_http::request::missing_query());
    };
    let accepted = AcceptedTransports::from_headers(headers)?;
    let actor = Actor { address: visitor.address };
    if served.is_subscription(&asked) {
        let last = stream_response::last_event_id(headers).or(last);
        return respond_with_stream(face, asked, last, accepted, actor, visitor.request_id.as_ref()).await;
    }
    let manner = RequestContext { actor, key: None, safe: true };
    let reply = served.execute_request(asked, manner).await;
    reply.log_causes(LogScope::of(visitor.request_id.as_ref()));
    Ok(respond(reply, accepted.for_response()?))
}

/// A subscription in the body of a response.
async fn respond_with_stream(
    face: &GraphqlService,
    asked: GraphqlRequest<'_>,
    last: Option<String>,
    accepted: AcceptedTransports,
    actor: Actor,
    request: Option<&RequestId>,
) -> Result<Response, Problem> {
    let transport = accepted.for_stream()?;
    let manner = RequestContext { actor, key: None, safe: true };
    let begun = face.subscribe(asked, manner, last.as_deref()).await;
    let begun = begun.inspect_err(|reply| reply.log_causes(LogScope::of(request)));
    match begun {
        Ok(subscription) => {
            Ok(stream_response::respond(subscription, transport, &face.stream_context, request))
        }
        Err(GraphqlReply::Rejected(failures)) => Ok(stream_response::reject(&failures, transport)),
        // Whatever else the client takes: errors of the store have no need of it.
        Err(GraphqlReply::Failed(error)) => Err(error.into()),
        // The schema was exchanged a moment ago, and it is no subscription any more.
        Err(other @ (GraphqlReply::Executed(_) | GraphqlReply::PostRequired)) => {
            Ok(respond(other, accepted.for_response()?))
        }
    }
}

async fn handle_options() -> Response {
    (StatusCode::NO_CONTENT, [(ALLOW, "GET, HEAD, POST, OPTIONS")]).into_response()
}

async fn handle_schema(State(face): State<GraphqlService>, headers: HeaderMap) -> Response {
    let _lease = face.gate.enter().await;
    crate::describe::schema::respond(&face.state.load().engine.model().sdl, &headers)
}

async fn handle_tabs(State(face): State<GraphqlService>) -> Response {
    let _lease = face.gate.enter().await;
    let tabs = crate::describe::tabs::example_tabs(&face.state.load().engine);
    ([(CONTENT_TYPE, "application/json; charset=utf-8")], tabs.to_string()).into_response()
}
