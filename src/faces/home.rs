//! `/`: what is served here and where to go.

use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;

pub fn router(name: &str) -> Router {
    let text = format!(
        "{name}\n\n\
         /graphql                   GraphQL; in a browser, GraphiQL\n\
         /graphql/schema.graphqls   the schema\n\
         /health/live               is the process there\n\
         /health/ready              can it serve\n\
         /metrics                   figures for Prometheus\n"
    );
    let text = bytes::Bytes::from(text);
    Router::new().route("/", get(async move || ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text.clone())))
}
