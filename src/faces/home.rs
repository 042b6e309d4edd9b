//! `/`: what is served here and where to go.

use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;

/// `declared` tells what the application adds: a path and what is there.
pub fn router(
    name: &str,
    declared: impl Fn() -> Vec<(String, &'static str)> + Clone + Send + Sync + 'static,
) -> Router {
    let text = format!(
        "{name}\n\n\
         /graphql                   GraphQL; in a browser, GraphiQL\n\
         /graphql/schema.graphqls   the schema\n\
         /openapi.json              what REST serves, for programs\n\
         /docs                      the same for people, to try out\n\
         /health/live               is the process there\n\
         /health/ready              can it serve\n\
         /metrics                   figures for Prometheus\n"
    );
    let told = async move || {
        let lines = declared().into_iter().map(|(path, what)| format!("{path:<26} {what}\n"));
        ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text + &lines.collect::<String>())
    };
    Router::new().route("/", get(told))
}
