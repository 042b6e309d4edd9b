//! The routes of the GraphQL API and their handlers.

use std::sync::Arc;

use axum::body::{self, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use trefoil_engine::{Actor, DataVersion, Engine};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::errors::problem::Problem;
use trefoil_http::idempotency;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::response_cache::CacheKey;
use trefoil_http::response_headers::RequestId;
use trefoil_http::routing::RouteTable;
use trefoil_http::service::{DirectRoute, HandlerResponse, RequestHandler};

use crate::describe::{assets, graphiql, graphiql_tabs, schema};
use crate::over_http::json_input;
use crate::over_http::negotiate::AcceptedTransports;
use crate::over_http::request::{self, GraphqlRequest, ParsedRequest};
use crate::over_http::response::respond;
use crate::reply::{GraphqlReply, RequestContext};
use crate::service::{GraphqlService, GraphqlState};
use crate::subscribe::handshake::OptionalHandshake;
use crate::subscribe::stream_response;
use crate::subscribe::websocket_session::{self, SocketClient};

impl GraphqlService {
    /// The handler of `POST /graphql`, which is called without going through the router.
    pub fn direct_handler(&self) -> DirectRoute {
        let service = self.clone();
        let handler: RequestHandler = Arc::new(move |request, client| {
            let service = service.clone();
            HandlerResponse::Pending(Box::pin(
                async move { service.post(request, client).await.into_response() },
            ))
        });
        DirectRoute { method: Method::POST, path: "/graphql", handler }
    }

    async fn post(&self, request: Request, client: ClientInfo) -> Result<Response, Problem> {
        let (Parts { headers, .. }, body) = request.into_parts();
        // If a size or time limit cut the body off, the layers around this handler replace the error by a better one.
        let body = body::to_bytes(body, usize::MAX).await;
        let body = body.map_err(|_| json_input::malformed_request("the body is incomplete"))?;
        let _lease = self.gate.enter().await;
        let state = self.state.load_full();
        let engine = state.engine.for_actor(&client.actor());
        let parts = &[b"graphql", &*body];
        let cache_key = CacheKey::new(engine.access_class(), parts, &headers, &[ACCEPT, CONTENT_TYPE])
            .filter(|_| !headers.contains_key(idempotency::IDEMPOTENCY_KEY));
        respond_cached(&state, cache_key, (&headers, client.data_version), || {
            respond_to_post(self, &state, engine, &client, &headers, &body)
        })
        .await
    }

    pub fn routes(&self) -> RouteTable {
        let routes = RouteTable::default()
            .get("/graphql", handle_get)
            .post("/graphql", handle_post)
            .options("/graphql", handle_options)
            .get("/graphql/schema.graphqls", handle_schema);
        let routes = if self.graphiql_enabled {
            routes.get("/_/graphiql/tabs.json", handle_tabs).get("/_/assets/{name}", assets::respond)
        } else {
            routes
        };
        routes.with_state(self.clone())
    }
}

/// The cached response while it is exact, otherwise the one that `make` returns.
async fn respond_cached<F: Future<Output = Result<Response, Problem>>>(
    state: &GraphqlState,
    cache_key: Option<CacheKey<'_>>,
    (headers, data_version): (&HeaderMap, Option<DataVersion>),
    make: impl FnOnce() -> F,
) -> Result<Response, Problem> {
    let cached = state.response_cache.as_ref().zip(cache_key);
    if let Some((cache, key)) = &cached
        && let Some(response) = cache.find(key, headers, data_version).await
    {
        return Ok(response);
    }
    let response = make().await?;
    match cached {
        Some((cache, key)) => Ok(cache.store(&key, response).await),
        None => Ok(response),
    }
}

async fn handle_post(
    State(service): State<GraphqlService>,
    mut request: Request,
) -> Result<Response, Problem> {
    let client = request.extensions_mut().remove().unwrap_or_default();
    service.post(request, client).await
}

async fn respond_to_post(
    service: &GraphqlService,
    state: &GraphqlState,
    engine: Engine,
    client: &ClientInfo,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Problem> {
    let actor = client.actor();
    let accepted = AcceptedTransports::from_headers(headers)?;
    let ParsedRequest { request, last_event_id } =
        request::parse_post(headers, body, &state.settings.limits)?;
    if state.is_subscription(&request).await {
        let last_event_id = stream_response::last_event_id(headers).or(last_event_id);
        return respond_with_stream(
            service,
            request,
            last_event_id,
            accepted,
            actor,
            client.request.as_ref(),
        )
        .await;
    }
    let transport = accepted.for_response()?;
    let safe = cross_origin::may_only_read(headers, &service.stream_context.config.cors_origins);
    let key = idempotency::idempotency_key(headers, "POST /graphql", body)?;
    match state.execute_request(request, RequestContext { actor, engine: Some(engine), key, safe }).await {
        GraphqlReply::PostRequired => Err(cross_origin::cross_site_problem()),
        reply @ (GraphqlReply::Executed(_) | GraphqlReply::Rejected(_) | GraphqlReply::Failed(_)) => {
            reply.log_causes(LogScope::of(client.request.as_ref()));
            Ok(respond(&state.engine, reply, transport))
        }
    }
}

async fn handle_get(
    State(service): State<GraphqlService>,
    OptionalHandshake(handshake): OptionalHandshake,
    client: SocketClient,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(handshake) = handshake {
        return websocket_session::open(&service, handshake, &headers, client);
    }
    // A browser that follows a link with a query shows the query in GraphiQL, ready to run.
    if service.graphiql_enabled && AcceptHeader::from_headers(&headers).prefers_html() {
        return Ok(graphiql::respond());
    }
    let _lease = service.gate.enter().await;
    let (query, state) = (query.unwrap_or_default(), service.state.load_full());
    let engine = state.engine.for_actor(&client.actor);
    let parts = &[b"graphql?", query.as_bytes()];
    let cache_key = CacheKey::new(engine.access_class(), parts, &headers, &[ACCEPT]);
    respond_cached(&state, cache_key, (&headers, None), || {
        respond_to_query(&service, &state, engine, client, &query, &headers)
    })
    .await
}

async fn respond_to_query(
    service: &GraphqlService,
    state: &GraphqlState,
    engine: Engine,
    client: SocketClient,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let ParsedRequest { request, last_event_id } = request::parse_query(query)?;
    let accepted = AcceptedTransports::from_headers(headers)?;
    let actor = client.actor;
    if state.is_subscription(&request).await {
        let last_event_id = stream_response::last_event_id(headers).or(last_event_id);
        return respond_with_stream(
            service,
            request,
            last_event_id,
            accepted,
            actor,
            client.request_id.as_ref(),
        )
        .await;
    }
    let context = RequestContext { actor, engine: Some(engine), key: None, safe: true };
    let reply = state.execute_request(request, context).await;
    reply.log_causes(LogScope::of(client.request_id.as_ref()));
    Ok(respond(&state.engine, reply, accepted.for_response()?))
}

/// Answers with a subscription as the response body.
async fn respond_with_stream(
    service: &GraphqlService,
    request: GraphqlRequest<'_>,
    last_event_id: Option<String>,
    accepted: AcceptedTransports,
    actor: Actor,
    request_id: Option<&RequestId>,
) -> Result<Response, Problem> {
    let transport = accepted.for_stream()?;
    let context = RequestContext { actor, safe: true, ..RequestContext::default() };
    let result = service.subscribe(request, context, last_event_id.as_deref()).await;
    let result = result.inspect_err(|reply| reply.log_causes(LogScope::of(request_id)));
    match result {
        Ok(subscription) => {
            Ok(stream_response::respond(subscription, transport, &service.stream_context, request_id))
        }
        Err(GraphqlReply::Rejected(errors)) => Ok(stream_response::reject(&errors, transport)),
        // A problem response, whatever the client accepts.
        Err(GraphqlReply::Failed(error)) => Err(error.into()),
        // The schema was swapped in between, and the operation is not a subscription in the new one.
        Err(other @ (GraphqlReply::Executed(_) | GraphqlReply::PostRequired)) => {
            Ok(respond(&service.state().engine, other, accepted.for_response()?))
        }
    }
}

async fn handle_options() -> Response {
    (StatusCode::NO_CONTENT, [(ALLOW, "GET, HEAD, POST, OPTIONS")]).into_response()
}

async fn handle_schema(
    State(service): State<GraphqlService>,
    client: SocketClient,
    headers: HeaderMap,
) -> Response {
    let _lease = service.gate.enter().await;
    let state = service.state.load();
    match state.actor_schemas.of_actor(&state.engine.for_actor(&client.actor)) {
        Some(described) => schema::respond(described.sdl(), &headers),
        None => schema::respond(&state.engine.model().sdl, &headers),
    }
}

async fn handle_tabs(State(service): State<GraphqlService>, client: SocketClient) -> Response {
    let _lease = service.gate.enter().await;
    let tabs = graphiql_tabs::example_tabs(&service.state.load().engine.for_actor(&client.actor));
    ([(CONTENT_TYPE, "application/json; charset=utf-8")], tabs.to_string()).into_response()
}
