//! The start page `/` as plain text: the paths of the server and of the application.

use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, ETAG, VARY};
use xxhash_rust::xxh3::xxh3_128;

use trefoil_http::etags;

/// `declared` lists the paths of the application and what is there. `shows_metrics` to who may see them.
pub fn home_text<'a>(
    request_headers: &HeaderMap,
    name: &str,
    shows_metrics: bool,
    declared: impl Iterator<Item = &'a (String, &'static str)>,
) -> Response {
    let metrics = if shows_metrics { "/metrics                   metrics for Prometheus\n" } else { "" };
    let server_paths = format!(
        "{name}\n\n\
         /graphql                   GraphQL; in a browser, GraphiQL\n\
         /graphql/schema.graphqls   the schema\n\
         /openapi.json              the REST API as OpenAPI\n\
         /docs                      the REST API as a page to try out\n\
         /health/live               liveness\n\
         /health/ready              readiness\n\
         {metrics}"
    );
    let lines = declared.map(|(path, what)| format!("{path:<26} {what}\n"));
    let text = server_paths + &lines.collect::<String>();
    let tag = format!("\"{:032x}\"", xxh3_128(text.as_bytes()));
    if let Err(problem) = etags::check_if_match(request_headers, Some(&tag)) {
        return problem.into_response();
    }
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (VARY, "accept"), (ETAG, &tag)];
    etags::not_modified_if_known(request_headers, (headers, text).into_response())
}
