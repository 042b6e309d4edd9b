//! The service around the router: request ids, logging, limits, CORS, CSRF, compression and error bodies.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, STRICT_TRANSPORT_SECURITY,
};
use http::{HeaderValue, Method};
use http_body::Body as _;
use parking_lot::Mutex;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;

use trefoil_config::Config;
use trefoil_engine::{ActorIdentity, IdentityCheck};

use crate::assets::is_asset_path;
use crate::authentication::{
    ClientAuthenticator, CredentialWatch, RepeatableRequest, RequestAuthenticator, WatchedBody, remove_stale,
};
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
use crate::rate_limit::{ClientRateLimiter, RequestCount};
use crate::request_limits::{self, ConnectionInfo};
use crate::response_headers::{self, RequestId};
use crate::routing::options_answer::answer_options;
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
    /// `Strict-Transport-Security`, if it is asked for.
    hsts: Option<HeaderValue>,
    /// Wrapped in the CSRF check.
    router: Router,
}

fn hsts_header(max_age: Duration) -> Option<HeaderValue> {
    let header = format!("max-age={}", max_age.as_secs());
    (!max_age.is_zero()).then(|| HeaderValue::from_str(&header).expect("digits"))
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
        hsts: hsts_header(config.hsts),
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
        let id = response_headers::request_id(request.headers());
        let trusted = &state.config.trusted_proxies;
        let peer = Some(connection.peer.ip());
        let mut client = ClientInfo::from_request(peer, connection.is_encrypted, request.headers(), trusted);
        client.request = Some(id.clone());
        let hsts = state.hsts.clone().filter(|_| client.secure);
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
        let actor = Mutex::default();
        let route = RequestRoute { dispatch, actor: &actor, is_counted: false };
        let response = state.apply_cors(request, client, connection, route).await;
        access_log.actor = actor.into_inner();
        if access_log.actor.is_some() {
            error_context.set_identity(access_log.actor.clone());
        }
        let response = compression::compress_response(response, encodings).await;
        let mut response = state.render_problem(response, &error_context, &id);
        access_log.refusals = response.extensions_mut().remove::<RequestRefusals>();
        let status = response.status();
        etags::mark_encoded_tag(response.headers_mut());
        response_headers::complete_headers(response.headers_mut(), status, &id);
        if let Some(hsts) = hsts {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts);
        }
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

/// Where a request goes.
struct RequestRoute<'f> {
    dispatch: Dispatch<'f>,
    /// Is told who asked, for the log.
    actor: &'f Mutex<Option<Arc<ActorIdentity>>>,
    /// It was counted for the rate limit, by its address.
    is_counted: bool,
}

fn has_no_body(response: &Response) -> bool {
    response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE)
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
        route: RequestRoute<'_>,
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
            return self.apply_limits(request, client, connection, route).await;
        };
        let mut guarded = Some((client, connection, route));
        let service = service_fn(|request| {
            let (client, connection, route) = guarded.take().expect("a request is answered once");
            async move { Ok::<_, Infallible>(self.apply_limits(request, client, connection, route).await) }
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
        mut route: RequestRoute<'_>,
    ) -> Response {
        if let Some(problem) = connection.refusal.take() {
            return problem.into_response();
        }
        // What follows compares it with `Origin`, which names the proxy's host.
        if let Some(host) = client.forwarded_host() {
            request.headers_mut().insert(HOST, host);
        }
        let is_probe = is_probe(request.uri().path());
        if self.shutdown.is_draining() && !is_probe {
            return Problem::unavailable("shutting down", Duration::from_secs(1)).into_response();
        }
        // Who shows a credential is counted by it, once it is known to be good.
        route.is_counted =
            is_probe || self.rate_limiter.is_none() || self.needs_no_credential(&request, &route.dispatch);
        let limiter = self.rate_limiter.as_ref().filter(|_| route.is_counted && !is_probe);
        let count = RequestCount::of(limiter, &mut request, &client);
        let response = match count.refusal() {
            None => {
                let run = |request| self.run_for_client(request, client, &route);
                request_limits::run_limited(&self.config.limits, &connection, request, run).await
            }
            Some(response) => response,
        };
        count.told_in(response)
    }

    /// Whether nobody asks who makes the request: it does not say, or all may have what it asks for.
    fn needs_no_credential(&self, request: &Request, dispatch: &Dispatch<'_>) -> bool {
        if !self.authenticator.is_protected() || !self.authenticator.is_concerned(request.headers()) {
            return true;
        }
        let path = request.uri().path();
        match dispatch {
            Dispatch::Resource(owner) => owner.is_public,
            Dispatch::Direct(_) => false,
            Dispatch::Router(_) => path.starts_with("/health/") || is_asset_path(path),
        }
    }

    /// Answers for whom the credential proves, if there is one that counts.
    async fn run_for_client(
        &self,
        request: Request,
        mut client: ClientInfo,
        route: &RequestRoute<'_>,
    ) -> Response {
        let mut watch = None;
        if !self.needs_no_credential(&request, &route.dispatch) {
            if !self.authenticator.may_presume(request.headers()) {
                return Box::pin(self.run_authenticated(request, client, route)).await;
            }
            let (method, headers) = (request.method(), request.headers());
            watch = match self.authenticator.presume(method, headers, &mut client).await {
                Ok(watch) => watch,
                Err(problem) => return self.refuse_credential(problem, &client, route),
            };
            // Boxed, unlike what is ready to be answered: it needs much more memory.
            if let Some(check) = client.check.clone() {
                return Box::pin(self.run_presumed(request, client, route, (watch, check))).await;
            }
        }
        self.run_identified(request, client, route, watch).await
    }

    /// Answers for whom the credential proved before, while the store is asked whether it still does. What was read meanwhile
    /// is only given to them if so, and nothing is written before: else the reading ends at once, and the request is answered
    /// anew.
    async fn run_presumed(
        &self,
        request: Request,
        client: ClientInfo,
        route: &RequestRoute<'_>,
        (watch, check): (Option<CredentialWatch>, IdentityCheck),
    ) -> Response {
        let kept = match RepeatableRequest::new(request) {
            Ok(kept) => kept,
            Err(request) => return Box::pin(self.run_authenticated(*request, client, route)).await,
        };
        let answering = self.run_identified(kept.request(), client.clone(), route, watch);
        // Pinned in this statement only: what answers the wrong one is gone, with what it holds, before the next begins.
        let confirmed = check.confirmed(pin!(answering)).await;
        match confirmed {
            Some(response) => response,
            None => {
                *route.actor.lock() = None;
                Box::pin(self.run_authenticated(kept.into_request(), client, route)).await
            }
        }
    }

    async fn run_authenticated(
        &self,
        request: Request,
        mut client: ClientInfo,
        route: &RequestRoute<'_>,
    ) -> Response {
        let (mut head, body) = request.into_parts();
        let authenticated =
            self.authenticator.authenticate(&head.method, &head.headers, &mut head.extensions, &mut client);
        let watch = match authenticated.await {
            Ok(watch) => watch,
            Err(problem) => return self.refuse_credential(problem, &client, route),
        };
        self.run_identified(Request::from_parts(head, body), client, route, watch).await
    }

    /// Its address is counted: guesses are limited, too.
    fn refuse_credential(&self, problem: Problem, client: &ClientInfo, route: &RequestRoute<'_>) -> Response {
        let limiter = self.rate_limiter.as_ref().filter(|_| !route.is_counted);
        let count = RequestCount::of_address(limiter, client);
        let response = count.refusal().unwrap_or_else(|| problem.into_response());
        count.told_in(response)
    }

    async fn run_identified(
        &self,
        mut request: Request,
        client: ClientInfo,
        route: &RequestRoute<'_>,
        watch: Option<CredentialWatch>,
    ) -> Response {
        let actor = client.identity.clone();
        let (has_stale_cookie, is_secure) = (client.has_stale_cookie, client.secure);
        let limiter = self.rate_limiter.as_ref().filter(|_| !route.is_counted);
        let count = RequestCount::of(limiter, &mut request, &client);
        let mut response = match count.refusal() {
            None => self.run_handler(request, client, &route.dispatch).await,
            Some(response) => response,
        };
        response = count.told_in(response);
        if has_stale_cookie {
            remove_stale(response.headers_mut(), is_secure);
        }
        if actor.is_some() {
            *route.actor.lock() = actor;
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
        dispatch: &Dispatch<'_>,
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
        let problem = if self.authenticator.has_accounts() { problem.naming_sign_in() } else { problem };
        let mut response = match self.authenticator.has_accounts() && error_context.needs_sign_in(&problem) {
            true => error_context.lead_to_sign_in(response),
            false => render_error(&problem, error_context, id.as_str(), &self.handlers.error_page, response),
        };
        RequestRefusals::of_problem(&problem).attach(&mut response);
        response
    }
}
