//! The stack of layers under every face: what holds for each response whatever made it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{Extensions, HeaderValue};
use http_body::Body as _;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use super::client::{Client, Peer};
use super::elsewhere;
use super::headers::{self, RequestId};
use super::health::is_probe;
use super::limits::{self, Arrived, Refused};
use super::log::Ticket;
use super::metrics::Metrics;
use super::problem::Problem;
use super::rate::{Allowance, Meter, Rate};
use super::shutdown::Shutdown;
pub use super::spell::Asker;
use super::spell::{Speaks, spell};
use super::tags;
use crate::config::Config;

/// Smaller answers fit one packet anyway.
const WORTH_COMPRESSING: u64 = 1024;

/// Whose a path is that no route names.
#[derive(Debug, Clone)]
pub struct Owner {
    /// What metrics call it.
    pub route: String,
    pub speaks: Speaks,
}

/// Finds the owner of a path.
pub type Owners = Arc<dyn Fn(&str) -> Option<Owner> + Send + Sync>;

/// How an error looks to people: a page, with what was asked and the id of the request on it.
pub type ErrorPage = Arc<dyn Fn(&Problem, &Asker, &str) -> String + Send + Sync>;

/// What the foundation asks of what stands on it.
pub struct Ground {
    pub owners: Owners,
    pub errors: ErrorPage,
}

struct Foundation {
    config: Arc<Config>,
    metrics: Metrics,
    shutdown: Shutdown,
    rate: Option<Arc<Rate>>,
    ground: Ground,
}

/// Puts every face on common ground. From the outside in: the envelope (id, log, metrics, headers, errors
/// spelled), compression, CORS, the guard (refusals, draining, rate, size, time, panics), CSRF, the routes.
pub fn wrap(
    router: Router,
    ground: Ground,
    config: &Arc<Config>,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> Router {
    let foundation = Arc::new(Foundation {
        config: config.clone(),
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
        rate: config.rate_limit.and_then(Rate::new).map(Arc::new),
        ground,
    });
    let router = router.layer(DefaultBodyLimit::disable());
    let router = elsewhere::refuse_forged_writes(router, &config.cors_origins);
    let router = router.layer(from_fn_with_state(foundation.clone(), guard));
    let router = match elsewhere::cors(&config.cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    router.layer(compression()).layer(from_fn_with_state(foundation, envelope))
}

/// A stream is read as it comes: holding it back to compress it would defeat it.
fn compression() -> CompressionLayer<impl Predicate> {
    let worthwhile = SizeAbove::new(WORTH_COMPRESSING)
        .and(NotForContentType::IMAGES)
        .and(NotForContentType::SSE)
        .and(NotForContentType::const_new("multipart/mixed"))
        .and(NotForContentType::const_new("application/x-ndjson"))
        .and(NotForContentType::const_new("text/csv"));
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worthwhile)
}

async fn envelope(State(foundation): State<Arc<Foundation>>, mut request: Request, next: Next) -> Response {
    let arrived = request.extensions().get::<Arrived>().map_or_else(Instant::now, |arrived| arrived.0);
    let id = RequestId::of(request.headers());
    let trusted = &foundation.config.trusted_proxies;
    let client = Client::of(peer(request.extensions()), request.headers(), trusted);
    let mut asker = Asker::of(&request, &client);
    let mut ticket = Ticket::new(&request, arrived, &id, &client, &foundation.metrics);
    if let Some(owner) = foundation.owner(&request) {
        asker.speaks = Some(owner.speaks);
        ticket.owner = Some(owner.route);
    }
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(client);

    let mut response = foundation.put_into_words(next.run(request).await, &asker, &id);
    let status = response.status();
    tags::mark_encoding(response.headers_mut());
    headers::complete(response.headers_mut(), status, &id);
    if foundation.shutdown.is_draining() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(|body| ticket.follow(status, body))
}

fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0.ip())
}

fn is_bare(response: &Response) -> bool {
    response.body().size_hint().exact() == Some(0) && !response.headers().contains_key(CONTENT_TYPE)
}

async fn guard(State(foundation): State<Arc<Foundation>>, mut request: Request, next: Next) -> Response {
    if let Some(Refused(problem)) = request.extensions_mut().remove() {
        return problem.into_response();
    }
    let limits = &foundation.config.limits;
    if is_probe(request.uri().path()) {
        return limits::bounded(limits, request, next).await;
    }
    if foundation.shutdown.is_draining() {
        return Problem::unavailable("shutting down", Duration::from_secs(1)).into_response();
    }
    let Some((allowance, verdict)) = foundation.take_from_rate(&mut request) else {
        return limits::bounded(limits, request, next).await;
    };
    let mut response = match verdict {
        Ok(()) => limits::bounded(limits, request, next).await,
        Err(problem) => problem.into_response(),
    };
    allowance.tell(response.headers_mut());
    response
}

impl Foundation {
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
            tracing::error!(request_id = id.as_str(), cause, "unexpected error");
        }
        spell(&problem, asker, id.as_str(), &self.ground.errors, response)
    }

    fn owner(&self, request: &Request) -> Option<Owner> {
        let routed = request.extensions().get::<MatchedPath>().is_some();
        if routed { None } else { (self.ground.owners)(request.uri().path()) }
    }

    fn take_from_rate(&self, request: &mut Request) -> Option<(Allowance, Result<(), Problem>)> {
        let (rate, client) = (self.rate.as_ref()?, request.extensions().get::<Client>()?.address?);
        request.extensions_mut().insert(Meter::new(rate, client));
        Some(rate.take(client))
    }
}
