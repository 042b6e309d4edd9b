//! The service around the router: request ids, logging, limits, CORS, CSRF, compression and error bodies.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONNECTION, CONTENT_TYPE, ORIGIN};
use http::{HeaderValue, Method, StatusCode};
use http_body::Body as _;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;

use trefoil_config::Config;

use crate::assets::is_asset_path;
use crate::authentication::{ClientAuthenticator, LoggedActor, RequestAuthenticator, WatchedBody};
use crate::client_info::ClientInfo;
use crate::cross_origin::LoggedOrigins;
use crate::errors::error_log::LogScope;
use crate::errors::problem::Problem;
use crate::errors::render::{FormatPolicy, render_error};
use crate::host_check::AllowedHosts;
use crate::monitoring::access_log::{AccessLog, LoggedBody, LoggedRoute, MatchedRoute};
use crate::monitoring::health::is_probe;
use crate::monitoring::metrics::Metrics;
use crate::monitoring::refusals::RequestRefusals;
use crate::protected_mode::ProtectedMode;
use crate::rate_limit::{ClientMeter, ClientRateLimiter, RateAllowance, RateClient};
use crate::request_limits::{self, ConnectionInfo};
use crate::response_headers::{self, RequestId};
use crate::shutdown::Shutdown;
use crate::{compression, cross_origin, etags};

pub use crate::errors::render::{ErrorContext, ErrorPageRenderer};

/// The owner of a path that the router does not list, such as a resource of the schema.
#[derive(Debug, Clone)]
pub struct RouteInfo {
    /// The label of the route in metrics.
    pub route: Cow<'static, str>,
    pub format_policy: FormatPolicy,
    /// Whether everybody may have it, so that no credential is looked at.
    pub is_public: bool,
}

/// Finds the owner of a path.
pub type RouteLookup = Arc<dyn Fn(&str) -> Option<RouteInfo> + Send + Sync>;

/// Handles a request; every failure is part of the response.
pub type RequestHandler = Arc<dyn Fn(Request, ClientInfo) -> HandlerResponse + Send + Sync>;

/// A response, or a future of one. Ready responses are not boxed: the box costs more than a short text response.
pub enum HandlerResponse {
    Ready(Response),
    Pending(BoxFuture<'static, Response>),
}

impl HandlerResponse {
    async fn resolve(self) -> Response {
        match self {
            HandlerResponse::Ready(response) => response,
            HandlerResponse::Pending(response) => response.await,
        }
    }
}

/// A method and exact path requested so often that it bypasses the router. Where other sites may only read, its handler
/// must tell reads from writes itself.
pub struct DirectRoute {
    pub method: Method,
    pub path: &'static str,
    pub handler: RequestHandler,
}

/// Everything the service needs from the crates built on it.
pub struct ServiceHandlers {
    pub route_lookup: RouteLookup,
    pub error_page: ErrorPageRenderer,
    /// Handles every path that [`RouteLookup`] knows.
    pub route_handler: RequestHandler,
    pub direct_routes: Vec<DirectRoute>,
    pub hosts: AllowedHosts,
    pub protected_mode: ProtectedMode,
    pub authenticator: Arc<dyn ClientAuthenticator>,
}

struct ServiceState {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    rate_limiter: Option<Arc<ClientRateLimiter>>,
    handlers: ServiceHandlers,
    authenticator: RequestAuthenticator,
    cors: Option<CorsLayer>,
    logged_origins: LoggedOrigins,
    /// Wrapped in the CSRF check.
    router: Router,
}

/// The complete HTTP service; a cheap clone.
#[derive(Clone)]
pub struct HttpService(Arc<ServiceState>);

/// Wraps the router. The layers from the outside in: request id, log, metrics, headers, error bodies and compression;
/// the host check; CORS; limits (malformed heads, draining, rate, size, time, panics); CSRF; the routes.
pub fn build_service(
    router: Router,
    handlers: ServiceHandlers,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> HttpService {
    let router = router.layer(DefaultBodyLimit::disable()).layer(from_fn(record_matched_route));
    let checked_in_handler =
        handlers.direct_routes.iter().map(|direct| (direct.method.clone(), direct.path)).collect();
    let authenticator = RequestAuthenticator::new(handlers.authenticator.clone());
    HttpService(Arc::new(ServiceState {
        authenticator,
        config: config.clone(),
        metrics: Arc::new(metrics.clone()),
        shutdown: shutdown.clone(),
        rate_limiter: config.rate_limit.and_then(ClientRateLimiter::new).map(Arc::new),
        handlers,
        cors: cross_origin::cors_layer(&config.cors_origins),
        logged_origins: LoggedOrigins::default(),
        router: cross_origin::refuse_forged_writes(router, &config.cors_origins, checked_in_handler),
    }))
}

async fn record_matched_route(request: Request, next: Next) -> Response {
    if let (Some(matched), Some(path)) =
        (request.extensions().get::<MatchedRoute>(), request.extensions().get::<MatchedPath>())
    {
        matched.set(path);
    }
    next.run(request).await
}

impl HttpService {
    pub async fn handle(
        &self,
        mut request: Request,
        connection: ConnectionInfo,
    ) -> http::Response<LoggedBody> {
        let state = &self.0;
        let id = RequestId::from_headers(request.headers());
        let trusted = &state.config.trusted_proxies;
        let mut client = ClientInfo::from_request(Some(connection.peer.ip()), request.headers(), trusted);
        client.request = Some(id.clone());
        let mut error_context = ErrorContext::from_request(&request, &client);
        let encodings = compression::AcceptedEncodings::from_headers(request.headers());
        let dispatch = state.dispatch(&request);
        let route = match &dispatch {
            Dispatch::Resource(owner) => {
                error_context.format_policy = Some(owner.format_policy);
                LoggedRoute::Known(owner.route.clone())
            }
            Dispatch::Direct(direct) => LoggedRoute::Known(direct.path.into()),
            Dispatch::Router(matched) => {
                request.extensions_mut().insert(matched.clone());
                LoggedRoute::Matched(matched.clone())
            }
        };
        let mut access_log =
            AccessLog::new(&request, connection.received_at, route, &id, &client, &state.metrics);
        let mut response = state.apply_cors(request, client, connection, dispatch).await;
        access_log.actor = response.extensions_mut().remove::<LoggedActor>().map(|LoggedActor(actor)| actor);
        let response = compression::compress_response(response, encodings).await;
        let mut response = state.render_problem(response, &error_context, &id);
        access_log.refusals = response.extensions_mut().remove::<RequestRefusals>();
        let status = response.status();
        etags::mark_encoded_tag(response.headers_mut());
        response_headers::complete_headers(response.headers_mut(), status, &id);
        let is_anonymous = access_log.actor.is_none();
        state.handlers.protected_mode.complete_headers(response.headers_mut(), status, is_anonymous);
        if state.shutdown.is_draining() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| access_log.attach_body(status, body))
    }
}

/// The handler of a request.
enum Dispatch<'f> {
    Resource(RouteInfo),
    Direct(&'f DirectRoute),
    Router(MatchedRoute),
}

fn has_no_body(response: &Response) -> bool {
    response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE)
}

/// Adds OPTIONS to the `Allow` header of the router's 405 responses, and answers OPTIONS requests with that list.
fn answer_options(mut response: Response, asks_for_methods: bool) -> Response {
    let is_own = response.extensions().get::<Problem>().is_none();
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || !is_own {
        return response;
    }
    let listed = response.headers().get(ALLOW).and_then(|allow| allow.to_str().ok()).unwrap_or_default();
    let others = listed.split(',').map(str::trim).filter(|method| !["", "OPTIONS"].contains(method));
    let allow = others.chain(["OPTIONS"]).collect::<Vec<_>>().join(", ");
    let allow = HeaderValue::from_str(&allow).expect("methods are visible ASCII");
    if asks_for_methods {
        return (StatusCode::NO_CONTENT, [(ALLOW, allow)]).into_response();
    }
    response.headers_mut().insert(ALLOW, allow);
    response
}

impl ServiceState {
    fn dispatch(&self, request: &Request) -> Dispatch<'_> {
        let (method, path) = (request.method(), request.uri().path());
        if let Some(direct) =
            self.handlers.direct_routes.iter().find(|route| route.path == path && route.method == method)
        {
            return Dispatch::Direct(direct);
        }
        match (self.handlers.route_lookup)(path) {
            Some(owner) => Dispatch::Resource(owner),
            None => Dispatch::Router(MatchedRoute::default()),
        }
    }

    /// The host check and CORS. CORS headers go on refusals too, so that pages of allowed origins can read them.
    async fn apply_cors(
        &self,
        request: Request,
        client: ClientInfo,
        connection: ConnectionInfo,
        dispatch: Dispatch<'_>,
    ) -> Response {
        // A malformed request has no host to check.
        let request_id = client.request.as_ref();
        let host = match connection.refusal {
            None => self.handlers.hosts.check(&request, request_id),
            Some(_) => Ok(()),
        };
        if let Err(problem) = host {
            return problem.into_response();
        }
        self.logged_origins.log_unreadable(&request, &self.config.cors_origins, request_id);
        // The CORS layer takes every OPTIONS request for a preflight.
        let is_plain = request.method() == Method::OPTIONS
            && !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let Some(cors) = self.cors.as_ref().filter(|_| !is_plain) else {
            return self.apply_limits(request, client, connection, dispatch).await;
        };
        let mut guarded = Some((client, connection, dispatch));
        let service = service_fn(|request| {
            let (client, connection, dispatch) = guarded.take().expect("a request is answered once");
            async move { Ok::<_, Infallible>(self.apply_limits(request, client, connection, dispatch).await) }
        });
        // Boxed, like all rare branches: the future of a connection is as large as its largest branch.
        match Box::pin(cors.layer(service).oneshot(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn apply_limits(
        &self,
        mut request: Request,
        client: ClientInfo,
        mut connection: ConnectionInfo,
        dispatch: Dispatch<'_>,
    ) -> Response {
        if let Some(problem) = connection.refusal.take() {
            return problem.into_response();
        }
        let is_probe = is_probe(request.uri().path());
        if self.shutdown.is_draining() && !is_probe {
            return Problem::unavailable("shutting down", Duration::from_secs(1)).into_response();
        }
        let taken = if is_probe { None } else { self.check_rate_limit(&mut request, &client) };
        let (allowance, verdict) = taken.unzip();
        let mut response = match verdict.unwrap_or(Ok(())) {
            Ok(()) => {
                // Boxed: an open application does not come here, and a request with a credential has more to do.
                let run = |request| async move {
                    if self.needs_no_credential(&request, &dispatch) {
                        return self.run_handler(request, client, dispatch).await;
                    }
                    Box::pin(self.run_authenticated(request, client, dispatch)).await
                };
                request_limits::run_limited(&self.config.limits, &connection, request, run).await
            }
            Err(problem) => problem.into_response(),
        };
        if let Some(allowance) = allowance {
            allowance.write_headers(response.headers_mut());
        }
        response
    }

    /// Whether nobody asks who makes the request: all may have what it asks for.
    fn needs_no_credential(&self, request: &Request, dispatch: &Dispatch<'_>) -> bool {
        if !self.authenticator.is_protected() {
            return true;
        }
        let path = request.uri().path();
        match dispatch {
            Dispatch::Resource(owner) => owner.is_public,
            Dispatch::Direct(_) => false,
            Dispatch::Router(_) => path.starts_with("/health/") || is_asset_path(path),
        }
    }

    async fn run_authenticated(
        &self,
        request: Request,
        mut client: ClientInfo,
        dispatch: Dispatch<'_>,
    ) -> Response {
        let (mut head, body) = request.into_parts();
        let authenticated =
            self.authenticator.authenticate(&head.method, &head.headers, &mut head.extensions, &mut client);
        let watch = match authenticated.await {
            Ok(watch) => watch,
            Err(problem) => return problem.into_response(),
        };
        let actor = client.identity.clone().map(LoggedActor);
        let mut response = self.run_handler(Request::from_parts(head, body), client, dispatch).await;
        if let Some(actor) = actor {
            response.extensions_mut().insert(actor);
        }
        match watch {
            Some(watch) => WatchedBody::of_response(response, watch),
            None => response,
        }
    }

    /// Requests that could be forged writes go through the router, which the CSRF layer wraps.
    async fn run_handler(
        &self,
        mut request: Request,
        client: ClientInfo,
        dispatch: Dispatch<'_>,
    ) -> Response {
        match dispatch {
            Dispatch::Resource(_) if cross_origin::needs_no_csrf_check(&request) => {
                (self.handlers.route_handler)(request, client).resolve().await
            }
            Dispatch::Direct(direct) if cross_origin::needs_no_csrf_check(&request) => {
                (direct.handler)(request, client).resolve().await
            }
            Dispatch::Resource(_) | Dispatch::Direct(_) | Dispatch::Router(_) => {
                let request_id = client.request.clone();
                request.extensions_mut().insert(client);
                let asks_for_methods = request.method() == Method::OPTIONS;
                let origin = request.headers().get(ORIGIN).cloned();
                match Box::pin(self.router.clone().oneshot(request)).await {
                    Ok(response) => {
                        self.logged_origins.log_refusal(&response, origin.as_ref(), request_id.as_ref());
                        answer_options(response, asks_for_methods)
                    }
                    Err(never) => match never {},
                }
            }
        }
    }

    /// Gives a [`Problem`] its body; a bare error status, as the router returns for unknown paths, becomes one first.
    fn render_problem(
        &self,
        mut response: Response,
        error_context: &ErrorContext,
        id: &RequestId,
    ) -> Response {
        let status = response.status();
        let problem = match response.extensions_mut().remove::<Problem>() {
            Some(problem) => problem,
            None if (status.is_client_error() || status.is_server_error()) && has_no_body(&response) => {
                Problem::from_status(status)
            }
            None => return response,
        };
        if let Some(cause) = &problem.cause {
            LogScope::of(Some(id)).cause(cause);
        }
        let mut response =
            render_error(&problem, error_context, id.as_str(), &self.handlers.error_page, response);
        RequestRefusals::of_problem(&problem).attach(&mut response);
        response
    }

    fn check_rate_limit(
        &self,
        request: &mut Request,
        client: &ClientInfo,
    ) -> Option<(RateAllowance, Result<(), Problem>)> {
        let (rate, client) = (self.rate_limiter.as_ref()?, RateClient::of(client)?);
        request.extensions_mut().insert(ClientMeter::new(rate, client));
        Some(rate.take_request(client))
    }
}
