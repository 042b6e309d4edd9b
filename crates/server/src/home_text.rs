//! `/` as lines of text: what is served here and where to go.

use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, ETAG, VARY};
use xxhash_rust::xxh3::xxh3_128;

use trefoil_http::etags;

/// `declared` tells what the application adds: a path and what is there.
pub fn home_text(asking: &HeaderMap, name: &str, declared: &[(String, &'static str)]) -> Response {
    let own = format!(
        "{name}\n\n\
         /graphql                   GraphQL; in a browser, GraphiQL\n\
         /graphql/schema.graphqls   the schema\n\
         /openapi.json              what REST serves, for programs\n\
         /docs                      the same for people, to try out\n\
         /health/live               is the process there\n\
         /health/ready              can it serve\n\
         /metrics                   figures for Prometheus\n"
    );
    let lines = declared.iter().map(|(path, what)| format!("{path:<26} {what}\n"));
    let text = own + &lines.collect::<String>();
    let tag = format!("\"{:032x}\"", xxh3_128(text.as_bytes()));
    if let Err(problem) = etags::check_if_match(asking, Some(&tag)) {
        return problem.into_response();
    }
    let told = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (VARY, "accept"), (ETAG, &tag)];
    etags::not_modified_if_known(asking, (told, text).into_response())
}
