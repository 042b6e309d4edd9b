//! The GraphiQL page for browsers at `/graphql`, self-contained.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, VARY};

use crate::describe::assets::ASSETS;

/// The page with the paths of its assets filled in.
static PAGE: LazyLock<String> =
    LazyLock::new(|| ASSETS.fill_placeholders(include_str!("assets/graphiql.html")));

pub fn respond() -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (VARY, "Accept")], PAGE.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_no_placeholders_and_no_external_urls() {
        assert!(!PAGE.contains("{{"), "{}", *PAGE);
        assert!(!PAGE.contains("://"), "{}", *PAGE);
        assert_eq!(PAGE.matches("/_/assets/").count(), ASSETS.count());
    }
}
