//! `/health/live` and `/health/ready`: is the process there, and should it get traffic now.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::errors::problem::{Problem, Voice};
use crate::shutdown::Shutdown;

/// Says why requests cannot be served now, if they cannot.
pub type Ready = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A balancer asks every few seconds; an answer later than this is of no use to it.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn router(ready: Ready, shutdown: &Shutdown) -> Router {
    let shutdown = shutdown.clone();
    let ready = move || {
        let (ready, shutdown) = (ready.clone(), shutdown.clone());
        async move { judge(ready, shutdown).await.map(|()| ok()) }
    };
    Router::new().route("/health/live", get(async || ok())).route("/health/ready", get(ready))
}

/// Whether this is a probe, which is neither limited nor logged like other requests.
pub fn is_probe(path: &str) -> bool {
    path.starts_with("/health/") || path == "/metrics"
}

async fn judge(ready: Ready, shutdown: Shutdown) -> Result<(), Problem> {
    if shutdown.is_leaving() {
        return Err(unready("shutting down"));
    }
    match tokio::time::timeout(PATIENCE, ready()).await {
        Ok(verdict) => verdict.map_err(|reason| unready(&reason)),
        Err(_) => Err(unready("the store does not answer")),
    }
}

fn unready(reason: &str) -> Problem {
    Problem::unavailable(reason, Duration::from_secs(1)).voice(Voice::Text)
}

fn ok() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")], "ok\n")
}
