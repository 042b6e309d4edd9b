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

use crate::client::Client;
use crate::compression;
use crate::cross_origin;
use crate::errors::error_log::LogScope;
use crate::errors::problem::Problem;
pub use crate::errors::render::Asker;
use crate::errors::render::{Speaks, spell};
use crate::etags;
use crate::host_check::AllowedHosts;
use crate::monitoring::access_log::{Followed, Route, Ticket};
use crate::monitoring::health::is_probe;
use crate::monitoring::metrics::Metrics;
use crate::rate_limit::{Allowance, Meter, Rate};
use crate::request_limits;
use crate::request_limits::Came;
use crate::response_headers;
use crate::response_headers::RequestId;
use crate::shutdown::Shutdown;
use trefoil_config::Config;

/// Whose a path is that no route names.
#[derive(Debug, Clone)]
pub struct Owner {
    /// What metrics call it.
    pub route: Cow<'static, str>,
    pub speaks: Speaks,
}

/// Finds the owner of a path.
pub type Owners = Arc<dyn Fn(&str) -> Option<Owner> + Send + Sync>;

/// How an error looks to people: a page, with what was asked and the id of the request on it.
pub type ErrorPage = Arc<dyn Fn(&Problem, &Asker, &str) -> String + Send + Sync>;

/// Answers a client's request, whatever comes of it.
pub type Handler = Arc<dyn Fn(Request, Client) -> Answer + Send + Sync>;

/// What nothing has to be waited for is there at once: a future in a box costs more than a text.
pub enum Answer {
    Now(Response),
    Soon(BoxFuture<'static, Response>),
}

impl Answer {
    async fn given(self) -> Response {
        match self {
            Answer::Now(response) => response,
            Answer::Soon(response) => response.await,
        }
    }
}

/// What is asked so often that it is answered past the router: a method at a very path. Its handler tells readings from
/// writes by itself, where pages of other sites may only read.
pub struct Direct {
    pub method: Method,
    pub path: &'static str,
    pub handler: Handler,
}

/// What the foundation asks of what stands on it.
pub struct Ground {
    pub owners: Owners,
    pub errors: ErrorPage,
    /// Answers at every path that has an owner.
    pub owned: Handler,
    pub direct: Vec<Direct>,
    pub hosts: AllowedHosts,
}

struct Foundation {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    rate: Option<Arc<Rate>>,
    ground: Ground,
    cors: Option<CorsLayer>,
    /// With the refusal of forged writes around it.
    router: Router,
}

/// All faces on common ground, ready to answer.
#[derive(Clone)]
pub struct App(Arc<Foundation>);

/// Puts every face on common ground. From the outside in: the envelope (id, log, metrics, headers, errors
/// spelled, compression), the host's name, CORS, the guard (refusals, draining, rate, size, time, panics), CSRF, the routes.
pub fn wrap(
    router: Router,
    ground: Ground,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> App {
    let router = router.layer(DefaultBodyLimit::disable()).layer(from_fn(note_route));
    let judging = ground.direct.iter().map(|direct| (direct.method.clone(), direct.path)).collect();
    App(Arc::new(Foundation {
        config: config.clone(),
        metrics: Arc::new(metrics.clone()),
        shutdown: shutdown.clone(),
        rate: config.rate_limit.and_then(Rate::new).map(Arc::new),
        ground,
        cors: cross_origin::cors(&config.cors_origins),
        router: cross_origin::refuse_forged_writes(router, &config.cors_origins, judging),
    }))
}

/// Which template of a route matched, told by the router while the ticket waits outside.
#[derive(Clone, Default)]
pub(crate) struct Matched(Arc<OnceLock<MatchedPath>>);

impl Matched {
    pub(crate) fn path(&self) -> Option<&str> {
        self.0.get().map(MatchedPath::as_str)
    }
}

async fn note_route(request: Request, next: Next) -> Response {
    if let (Some(matched), Some(path)) = (request.extensions().get::<Matched>(), request.extensions().get()) {
        let _ = matched.0.set(MatchedPath::clone(path));
    }
    next.run(request).await
}

impl App {
    pub async fn answer(&self, mut request: Request, came: Came) -> http::Response<Followed> {
        let foundation = &self.0;
        let id = RequestId::of(request.headers());
        let trusted = &foundation.config.trusted_proxies;
        let mut client = Client::of(Some(came.peer.ip()), request.headers(), trusted);
        client.request = Some(id.clone());
        let mut asker = Asker::of(&request, &client);
        let encodings = compression::Accepted::of(request.headers());
        let way = foundation.way(&request);
        let route = match &way {
            Way::Owned(owner) => {
                asker.speaks = Some(owner.speaks);
                Route::Known(owner.route.clone())
            }
            Way::Direct(direct) => Route::Known(direct.path.into()),
            Way::Routed(matched) => {
                request.extensions_mut().insert(matched.clone());
                Route::Matched(matched.clone())
            }
        };
        let ticket = Ticket::new(&request, came.at, route, &id, &client, &foundation.metrics);
        let response = foundation.answer_elsewhere(request, client, came, way).await;
        let response = compression::pack(response, encodings).await;
        let mut response = foundation.put_into_words(response, &asker, &id);
        let status = response.status();
        etags::mark_encoding(response.headers_mut());
        response_headers::complete(response.headers_mut(), status, &id);
        if foundation.shutdown.is_draining() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| ticket.follow(status, body))
    }
}

/// Who answers.
enum Way<'f> {
    Owned(Owner),
    Direct(&'f Direct),
    Routed(Matched),
}

fn is_bare(response: &Response) -> bool {
    response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE)
}

/// The router names the methods of a route, but not that they can be asked for, and refuses whoever does.
fn with_options(mut response: Response, asks_for_methods: bool) -> Response {
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

impl Foundation {
    fn way(&self, request: &Request) -> Way<'_> {
        let (method, path) = (request.method(), request.uri().path());
        if let Some(direct) = self.ground.direct.iter().find(|one| one.path == path && one.method == method) {
            return Way::Direct(direct);
        }
        match (self.ground.owners)(path) {
            Some(owner) => Way::Owned(owner),
            None => Way::Routed(Matched::default()),
        }
    }

    /// What other sites' pages may know of the answer is said around everything that refuses.
    async fn answer_elsewhere(&self, request: Request, client: Client, came: Came, way: Way<'_>) -> Response {
        // What could not be read as a request has no host to speak of.
        let host = if came.refused.is_none() { self.ground.hosts.check(&request) } else { Ok(()) };
        if let Err(problem) = host {
            return problem.into_response();
        }
        cross_origin::log_unreadable(&request, &self.config.cors_origins);
        // The layer takes every OPTIONS for a preflight.
        let is_plain = request.method() == Method::OPTIONS
            && !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let Some(cors) = self.cors.as_ref().filter(|_| !is_plain) else {
            return self.guard(request, client, came, way).await;
        };
        let mut guarded = Some((client, came, way));
        let service = service_fn(|request| {
            let (client, came, way) = guarded.take().expect("a request is answered once");
            async move { Ok::<_, Infallible>(self.guard(request, client, came, way).await) }
        });
        // In a box, as all that is rare: what a connection holds in place for a request is as large as the largest way.
        match Box::pin(cors.layer(service).oneshot(request)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn guard(&self, mut request: Request, client: Client, mut came: Came, way: Way<'_>) -> Response {
        if let Some(problem) = came.refused.take() {
            return problem.into_response();
        }
        let is_probe = is_probe(request.uri().path());
        if self.shutdown.is_draining() && !is_probe {
            return Problem::unavailable("shutting down", Duration::from_secs(1)).into_response();
        }
        let taken = if is_probe { None } else { self.take_from_rate(&mut request, &client) };
        let (allowance, verdict) = taken.unzip();
        let mut response = match verdict.unwrap_or(Ok(())) {
            Ok(()) => {
                let run = |request| self.run(request, client, way);
                request_limits::bounded(&self.config.limits, &came, request, run).await
            }
            Err(problem) => problem.into_response(),
        };
        if let Some(allowance) = allowance {
            allowance.tell(response.headers_mut());
        }
        response
    }

    /// What could be a forged write goes by the router, which has the judge before it.
    async fn run(&self, mut request: Request, client: Client, way: Way<'_>) -> Response {
        match way {
            Way::Owned(_) if cross_origin::is_harmless(&request) => {
                (self.ground.owned)(request, client).given().await
            }
            Way::Direct(direct) if cross_origin::is_harmless(&request) => {
                (direct.handler)(request, client).given().await
            }
            Way::Owned(_) | Way::Direct(_) | Way::Routed(_) => {
                request.extensions_mut().insert(client);
                let asks_for_methods = request.method() == Method::OPTIONS;
                let origin = request.headers().get(ORIGIN).cloned();
                match Box::pin(self.router.clone().oneshot(request)).await {
                    Ok(response) => {
                        cross_origin::log_refusal(&response, origin.as_ref());
                        with_options(response, asks_for_methods)
                    }
                    Err(never) => match never {},
                }
            }
        }
    }

    /// Spells a [`Problem`] for its asker; a bare status, as the router gives for an unknown path, becomes one.
    fn put_into_words(&self, mut response: Response, asker: &Asker, id: &RequestId) -> Response {
        let status = response.status();
        let problem = match response.extensions_mut().remove::<Problem>() {
            Some(problem) => problem,
            None if (status.is_client_error() || status.is_server_error()) && is_bare(&response) => {
                Problem::of_status(status)
            }
            None => return response,
        };
        if let Some(cause) = &problem.cause {
            LogScope::of(Some(id)).cause(cause);
        }
        spell(&problem, asker, id.as_str(), &self.ground.errors, response)
    }

    fn take_from_rate(
        &self,
        request: &mut Request,
        client: &Client,
    ) -> Option<(Allowance, Result<(), Problem>)> {
        let (rate, client) = (self.rate.as_ref()?, client.address?);
        request.extensions_mut().insert(Meter::new(rate, client));
        Some(rate.take(client))
    }
}
