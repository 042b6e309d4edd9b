//! The GraphQL service: the state of the current schema, swapped on reload, and the execution of one request on it.

use std::sync::Arc;

use apollo_compiler::Schema;
use apollo_compiler::executable::OperationType;
use arc_swap::ArcSwap;

use trefoil_config::Config;
use trefoil_engine::{Actor, Engine, IdempotencyKey, SchemaGate};
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::response_cache::ResponseCache;
use trefoil_http::shutdown::Shutdown;

use crate::describe::actor_schema::ActorSchemas;
use crate::document::cache::{DocumentCache, DocumentResult};
use crate::document::parse::{GraphqlSettings, ParsedDocument};
use crate::execute::execution::{ExecutionError, OperationExecution};
use crate::over_http::request::GraphqlRequest;
use crate::plan::roots::{OperationPlan, PlannedRoot, RootAction};
use crate::plan::variables;
use crate::reply::{ExecutedResponse, GraphqlReply, RequestContext};
use crate::response_error::{ResponseError, is_estimate};
use crate::subscribe::stream_context::StreamContext;
use crate::subscribe::{ChannelMap, SubscriptionRegistry};

/// One schema with its document cache and subscription channels. Swapped as a whole on reload.
pub struct GraphqlState {
    /// Documents are planned by it. Whatever runs, runs on behalf of an actor.
    pub(crate) engine: Engine,
    pub(crate) document_cache: DocumentCache,
    pub(crate) settings: GraphqlSettings,
    pub(crate) response_cache: Option<Arc<ResponseCache>>,
    pub(crate) channels: Arc<ChannelMap>,
    /// The schema as actors are told of it.
    pub(crate) actor_schemas: ActorSchemas,
}

/// The GraphQL API of a server; outlives reloads.
#[derive(Clone)]
pub struct GraphqlService {
    pub(crate) state: Arc<ArcSwap<GraphqlState>>,
    /// Entered by every request before it loads `state`.
    pub(crate) gate: SchemaGate,
    pub(crate) graphiql_enabled: bool,
    pub(crate) stream_context: Arc<StreamContext>,
    pub(crate) subscriptions: Arc<SubscriptionRegistry>,
}

impl GraphqlState {
    pub fn new(engine: Engine, config: &Config) -> GraphqlState {
        let settings = GraphqlSettings { limits: config.limits.clone(), introspection: config.introspection };
        GraphqlState {
            engine,
            document_cache: DocumentCache::new(settings.limits.document_cache),
            settings,
            response_cache: None,
            channels: Arc::default(),
            actor_schemas: ActorSchemas::default(),
        }
    }

    /// Caches HTTP responses in `response_cache` for as long as they are exact.
    pub fn with_response_cache(self, response_cache: Arc<ResponseCache>) -> GraphqlState {
        GraphqlState { response_cache: Some(response_cache), ..self }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Executes one request, independent of HTTP.
    pub async fn execute_request(
        &self,
        request: GraphqlRequest<'_>,
        context: RequestContext,
    ) -> GraphqlReply {
        let parsed = self.measured_document(&request.query).await;
        let document = match parsed.as_ref() {
            Ok(document) => document,
            Err(errors) => {
                let engine = context.engine.unwrap_or_else(|| self.engine.for_actor(&context.actor));
                return GraphqlReply::Rejected(self.suggest_names(&engine, errors.clone()));
            }
        };
        let RequestContext { actor, engine, key, safe } = context;
        let engine = engine.unwrap_or_else(|| self.engine.for_actor(&actor));
        match self.execute_document(document, request, (actor, key, safe), &engine).await {
            Ok(reply) => reply,
            Err(ExecutionError::Request(errors)) => {
                GraphqlReply::Rejected(self.suggest_names(&engine, errors))
            }
            Err(ExecutionError::Engine(error)) => GraphqlReply::Failed(error),
        }
    }

    /// Adds the suggestions that depend on who gets the errors.
    pub(crate) fn suggest_names(
        &self,
        engine: &Engine,
        mut errors: Vec<ResponseError>,
    ) -> Vec<ResponseError> {
        if errors.iter().any(|error| error.unknown_name().is_some()) {
            let described = self.actor_schemas.of_actor(engine);
            let whole: &Schema = &engine.model().schema;
            let schema = described.as_ref().map_or(whole, |described| &described.schema);
            for error in &mut errors {
                let hint = error.unknown_name().and_then(|unknown| unknown.hint(schema));
                error.message.extend(hint);
            }
        }
        errors
    }

    /// The open subscription requests; equal requests share one channel.
    pub fn channels(&self) -> &ChannelMap {
        &self.channels
    }

    /// True if the request is a valid subscription.
    pub async fn is_subscription(&self, request: &GraphqlRequest<'_>) -> bool {
        // The text search spares nearly every other request the second look into the document cache.
        request.query.contains("subscription")
            && self.measured_document(&request.query).await.as_ref().as_ref().is_ok_and(|document| {
                let operation = document.operation(request.operation_name.as_deref());
                operation.is_ok_and(|operation| operation.operation_type() == OperationType::Subscription)
            })
    }

    /// The document of a text. If it costs too much only as the lengths of lists are estimated, they are measured.
    async fn measured_document(&self, text: &str) -> Arc<DocumentResult> {
        let parsed = self.document_cache.get_or_parse(text, || self.parse_document(text));
        let is_estimate = parsed.as_ref().as_ref().is_err_and(|errors| is_estimate(errors));
        match is_estimate && self.engine.measure_relations().await {
            true => self.document_cache.get_or_parse(text, || self.parse_document(text)),
            false => parsed,
        }
    }

    pub(crate) fn parse_document(&self, text: &str) -> DocumentResult {
        ParsedDocument::parse(&self.engine, &self.settings, text)
    }

    async fn execute_document(
        &self,
        document: &ParsedDocument,
        request: GraphqlRequest<'_>,
        (actor, key, safe): (Actor, Option<IdempotencyKey>, bool),
        engine: &Engine,
    ) -> Result<GraphqlReply, ExecutionError> {
        let prepared = document.operation(request.operation_name.as_deref())?;
        match prepared.operation_type() {
            OperationType::Query => {}
            OperationType::Mutation if safe => return Ok(GraphqlReply::PostRequired),
            OperationType::Mutation => {}
            OperationType::Subscription => return Err(needs_stream_transport().into()),
        }
        let variables = variables::coerce(engine, &prepared.declared_variables, request.variables)
            .map_err(ExecutionError::Request)?;
        let on_planned = |plan: &OperationPlan| self.document_cache.record_plan(&request.query, plan);
        let mut plan = prepared.plan(engine, &self.settings, &document.executable, &variables, on_planned);
        if plan.as_ref().is_err_and(|error| error.is_estimate) && engine.measure_relations().await {
            plan = prepared.plan(engine, &self.settings, &document.executable, &variables, on_planned);
        }
        let plan = plan?;
        // A repeated query is harmless: only mutations use the key.
        let key = key.filter(|_| prepared.operation_type() == OperationType::Mutation);
        let version_before = if plan.cacheable {
            self.response_cache.as_ref().and_then(|cache| cache.data_version())
        } else {
            None
        };
        let asks = |root: &PlannedRoot| matches!(root.action, RootAction::Introspection { .. });
        let described = match plan.roots.iter().any(asks) {
            true => self.actor_schemas.of_actor(engine),
            false => None,
        };
        let execution = OperationExecution { engine, plan, variables, key, actor, change: None, described };
        let result = execution.run().await;
        // A result that was overtaken by a reload is discarded, except that a committed write is reported.
        let is_committed = prepared.operation_type() == OperationType::Mutation
            && result.as_ref().is_ok_and(|executed| executed.error_free || executed.replayed);
        if !is_committed {
            engine.check_tables()?;
        }
        let executed = result?;
        Ok(GraphqlReply::Executed(ExecutedResponse {
            data_version: version_before.filter(|_| executed.error_free),
            ..executed
        }))
    }
}

fn needs_stream_transport() -> ResponseError {
    let message = "a subscription needs a streaming transport";
    ResponseError::new("SUBSCRIPTION_TRANSPORT", message)
}

impl GraphqlService {
    pub fn new(state: GraphqlState, config: &Config) -> GraphqlService {
        GraphqlService {
            gate: state.engine.feed().gate().clone(),
            state: Arc::new(ArcSwap::from_pointee(state)),
            graphiql_enabled: config.graphiql,
            subscriptions: Arc::new(SubscriptionRegistry::new(
                config.limits.event_cache / 2,
                config.limits.request_timeout,
            )),
            stream_context: Arc::new(StreamContext::new(config, &Metrics::new(), &Shutdown::new())),
        }
    }

    /// Counts subscriptions in `metrics` and ends them on `shutdown`.
    pub fn with_shutdown(
        mut self,
        config: &Config,
        metrics: &Metrics,
        shutdown: &Shutdown,
    ) -> GraphqlService {
        self.stream_context = Arc::new(StreamContext::new(config, metrics, shutdown));
        self
    }

    /// Replaces the state for all later requests. Subscriptions are planned again and go on if they are still valid.
    pub fn swap(&self, state: GraphqlState) {
        self.state.swap(Arc::new(state)).channels.retire();
        self.subscriptions.schema_swapped();
    }

    /// The current state.
    pub fn state(&self) -> Arc<GraphqlState> {
        self.state.load_full()
    }

    /// The event cache and counters of all subscriptions.
    pub fn subscriptions(&self) -> &Arc<SubscriptionRegistry> {
        &self.subscriptions
    }
}
