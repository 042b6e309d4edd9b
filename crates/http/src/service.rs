//! The common ground of every face: what holds for each response whatever made it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
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

use crate::client::ClientInfo;
use crate::compression;
use crate::cross_origin;
use crate::errors::error_log::LogScope;
use crate::errors::problem::Problem;
pub use crate::errors::render::ErrorContext;
use crate::errors::render::{FormatPolicy, render_error};
use crate::etags;
use crate::host_check::AllowedHosts;
use crate::monitoring::access_log::{AccessLog, LoggedBody, LoggedRoute};
use crate::monitoring::health::is_probe;
use crate::monitoring::metrics::Metrics;
use crate::rate_limit::{ClientMeter, ClientRateLimiter, RateAllowance};
use crate::request_limits;
use crate::request_limits::ConnectionInfo;
use crate::response_headers;
use crate::response_headers::RequestId;
use crate::shutdown::Shutdown;
use trefoil_config::Config;

/// Whose a path is that no route names.
#[derive(Debug, Clone)]
pub struct RouteInfo {
    /// What metrics call it.
    pub route: Cow<'static, str>,
    pub format_policy: FormatPolicy,
}

/// Finds the owner of a path.
pub type RouteLookup = Arc<dyn Fn(&str) -> Option<RouteInfo> + Send + Sync>;

/// How an error looks to people: a page, with what was asked and the id of the request on it.
pub type ErrorPageRenderer = Arc<dyn Fn(&Problem, &ErrorContext, &str) -> String + Send + Sync>;

/// Answers a client's request, whatever comes of it.
pub type RequestHandler = Arc<dyn Fn(Request, ClientInfo) -> HandlerResponse + Send + Sync>;

/// What nothing has to be waited for is there at once: a future in a box costs more than a text.
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

/// What is asked so often that it is answered past the router: a method at a very path. Its handler tells readings from
/// writes by itself, where pages of other sites may only read.
pub struct DirectRoute {
    pub method: Method,
    pub path: &'static str,
    pub handler: RequestHandler,
}

/// What the foundation asks of what stands on it.
pub struct ServiceHandlers {
    pub route_lookup: RouteLookup,
    pub error_page: ErrorPageRenderer,
    /// Answers at every path that has an owner.
    pub route_handler: RequestHandler,
    pub direct_routes: Vec<DirectRoute>,
    pub hosts: AllowedHosts,
}

struct ServiceState {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    rate_limiter: Option<Arc<ClientRateLimiter>>,
    handlers: ServiceHandlers,
    cors: Option<CorsLayer>,
    /// With the refusal of forged writes around it.
    router: Router,
}

/// All faces on common ground, ready to answer.
#[derive(Clone)]
pub struct HttpService(Arc<ServiceState>);

/// Puts every face on common ground. From the outside in: the envelope (id, log, metrics, headers, errors
/// spelled, compression), the host's name, CORS, the guard (refusals, draining, rate, size, time, panics), CSRF, the routes.
pub fn build_service(
    router: Router,
    ground: ServiceHandlers,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> HttpService {
    let router = router.layer(DefaultBodyLimit::disable()).layer(from_fn(record_matched_route));
    let judging = ground.direct_routes.iter().map(|direct| (direct.method.clone(), direct.path)).collect();
    HttpService(Arc::new(ServiceState {
        config: config.clone(),
        metrics: Arc::new(metrics.clone()),
        shutdown: shutdown.clone(),
        rate_limiter: config.rate_limit.and_then(ClientRateLimiter::new).map(Arc::new),
        handlers: ground,
        cors: cross_origin::cors_layer(&config.cors_origins),
        router: cross_origin::refuse_forged_writes(router, &config.cors_origins, judging),
    }))
}

/// Which template of a route matched, told by the router while the ticket waits outside.
#[derive(Clone, Default)]
pub(crate) struct MatchedRoute(Arc<OnceLock<MatchedPath>>);

impl MatchedRoute {
    pub(crate) fn path(&self) -> Option<&str> {
        self.0.get().map(MatchedPath::as_str)
    }
}

async fn record_matched_route(request: Request, next: Next) -> Response {
    if let (Some(matched), Some(path)) =
        (request.extensions().get::<MatchedRoute>(), request.extensions().get())
    {
        let _ = matched.0.set(MatchedPath::clone(path));
    }
    next.run(request).await
}

impl HttpService {
    pub async fn handle(&self, mut request: Request, came: ConnectionInfo) -> http::Response<LoggedBody> {
        let foundation = &self.0;
        let id = RequestId::from_headers(request.headers());
        let trusted = &foundation.config.trusted_proxies;
        let mut client = ClientInfo::from_request(Some(came.peer.ip()), request.headers(), trusted);
        client.request = Some(id.clone());
        let mut asker = ErrorContext::from_request(&request, &client);
        let encodings = compression::AcceptedEncodings::from_headers(request.headers());
        let way = foundation.dispatch(&request);
        let route = match &way {
            Dispatch::Resource(owner) => {
                asker.format_policy = Some(owner.format_policy);
                LoggedRoute::Known(owner.route.clone())
            }
            Dispatch::Direct(direct) => LoggedRoute::Known(direct.path.into()),
            Dispatch::Router(matched) => {
                request.extensions_mut().insert(matched.clone());
                LoggedRoute::Matched(matched.clone())
            }
        };
        let ticket = AccessLog::new(&request, came.received_at, route, &id, &client, &foundation.metrics);
        let response = foundation.apply_cors(request, client, came, way).await;
        let response = compression::compress_response(response, encodings).await;
        let mut response = foundation.render_problem(response, &asker, &id);
        let status = response.status();
        etags::mark_encoded_tag(response.headers_mut());
        response_headers::complete_headers(response.headers_mut(), status, &id);
        if foundation.shutdown.is_draining() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| ticket.attach_body(status, body))
    }
}

/// Who answers.
enum Dispatch<'f> {
    Resource(RouteInfo),
    Direct(&'f DirectRoute),
    Router(MatchedRoute),
}

fn has_no_body(response: &Response) -> bool {
    response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE)
}

/// The router names the methods of a route, but not that they can be asked for, and refuses whoever does.
fn answer_options(mut response: Response, asks_for_methods: bool) -> Response {
    let is_own = response.extensions().get::<Problem>().is_none();
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || !is_own {
        return response;
    }
    let told = response.headers().get(ALLOW).and_then(|allow| allow.to_str().ok()).unwrap_or_default();
    let others = told.split(',').map(str::trim).filter(|method| !["", "OPTIONS"].contains(method));
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
            self.handlers.direct_routes.iter().find(|one| one.path == path && one.method == method)
        {
            return Dispatch::Direct(direct);
        }
        match (self.handlers.route_lookup)(path) {
            Some(owner) => Dispatch::Resource(owner),
            None => Dispatch::Router(MatchedRoute::default()),
        }
    }

    /// What other sites' pages may know of the answer is said around everything that refuses.
    async fn apply_cors(
        &self,
        request: Request,
        client: ClientInfo,
        came: ConnectionInfo,
        way: Dispatch<'_>,
    ) -> Response {
        // What could not be read as a request has no host to speak of.
        let host = if came.refusal.is_none() { self.handlers.hosts.check(&request) } else { Ok(()) };
        if let Err(problem) = host {
            return problem.into_response();
        }
        cross_origin::log_unreadable(&request, &self.config.cors_origins);
        // The layer takes every OPTIONS for a preflight.
        let is_plain = request.method() == Method::OPTIONS
            && !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let Some(cors) = self.cors.as_ref().filter(|_| !is_plain) else {
            return self.apply_limits(request, client, came, way).await;
        };
        let mut guarded = Some((client, came, way));
        let service = service_fn(|request| {
            let (client, came, way) = guarded.take().expect("a request is answered once");
            async move { Ok::<_, Infallible>(self.apply_limits(request, client, came, way).await) }
        });
        // In a box, as all that is rare: what a connection holds in place for a request is as large as the largest way.
        match Box::pin(cors.layer(service).oneshot(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn apply_limits(
        &self,
        mut request: Request,
        client: ClientInfo,
        mut came: ConnectionInfo,
        way: Dispatch<'_>,
    ) -> Response {
        if let Some(problem) = came.refusal.take() {
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
                let run = |request| self.run_handler(request, client, way);
                request_limits::run_limited(&self.config.limits, &came, request, run).await
            }
            Err(problem) => problem.into_response(),
        };
        if let Some(allowance) = allowance {
            allowance.write_headers(response.headers_mut());
        }
        response
    }

    /// What could be a forged write goes by the router, which has the judge before it.
    async fn run_handler(&self, mut request: Request, client: ClientInfo, way: Dispatch<'_>) -> Response {
        match way {
            Dispatch::Resource(_) if cross_origin::needs_no_csrf_check(&request) => {
                (self.handlers.route_handler)(request, client).resolve().await
            }
            Dispatch::Direct(direct) if cross_origin::needs_no_csrf_check(&request) => {
                (direct.handler)(request, client).resolve().await
            }
            Dispatch::Resource(_) | Dispatch::Direct(_) | Dispatch::Router(_) => {
                request.extensions_mut().insert(client);
                let asks_for_methods = request.method() == Method::OPTIONS;
                let origin = request.headers().get(ORIGIN).cloned();
                match Box::pin(self.router.clone().oneshot(request)).await {
                    Ok(response) => {
                        cross_origin::log_refusal(&response, origin.as_ref());
                        answer_options(response, asks_for_methods)
                    }
                    Err(never) => match never {},
                }
            }
        }
    }

    /// Spells a [`Problem`] for its asker; a bare status, as the router gives for an unknown path, becomes one.
    fn render_problem(&self, mut response: Response, asker: &ErrorContext, id: &RequestId) -> Response {
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
        render_error(&problem, asker, id.as_str(), &self.handlers.error_page, response)
    }

    fn check_rate_limit(
        &self,
        request: &mut Request,
        client: &ClientInfo,
    ) -> Option<(RateAllowance, Result<(), Problem>)> {
        let (rate, client) = (self.rate_limiter.as_ref()?, client.address?);
        request.extensions_mut().insert(ClientMeter::new(rate, client));
        Some(rate.take_request(client))
    }
}
