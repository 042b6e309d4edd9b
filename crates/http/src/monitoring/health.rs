//! `/health/live` and `/health/ready`: whether the process runs, and whether it should get traffic now.

use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse;
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::errors::problem::{ErrorFormat, Problem};
use crate::routing::RouteTable;
use crate::shutdown::Shutdown;

/// Returns the reason why requests cannot be served now, if there is one.
pub type ReadinessCheck = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Load balancers check every few seconds; a later response is of no use to them.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

pub fn health_routes(ready: ReadinessCheck, shutdown: &Shutdown) -> RouteTable {
    let shutdown = shutdown.clone();
    let ready = move || {
        let (ready, shutdown) = (ready.clone(), shutdown.clone());
        async move { check_readiness(ready, shutdown).await.map(|()| ok_response()) }
    };
    RouteTable::default().get("/health/live", async || ok_response()).get("/health/ready", ready)
}

/// Whether the path is a probe, which is exempt from the rate limit and logged at debug level.
pub fn is_probe(path: &str) -> bool {
    path.starts_with("/health/") || path == "/metrics"
}

async fn check_readiness(ready: ReadinessCheck, shutdown: Shutdown) -> Result<(), Problem> {
    if shutdown.is_leaving() {
        return Err(not_ready("shutting down"));
    }
    match tokio::time::timeout(READY_TIMEOUT, ready()).await {
        Ok(verdict) => verdict.map_err(|reason| not_ready(&reason)),
        Err(_) => Err(not_ready("the store does not respond")),
    }
}

fn not_ready(reason: &str) -> Problem {
    Problem::unavailable(reason, Duration::from_secs(1)).with_format(ErrorFormat::Text)
}

fn ok_response() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")], "ok\n")
}
