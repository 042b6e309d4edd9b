//! The GraphiQL page, for browsers that open `/graphql`; nothing of it comes from elsewhere.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, VARY};

use crate::describe::assets::ASSETS;

/// The page with the names of its files filled in.
static PAGE: LazyLock<String> =
    LazyLock::new(|| ASSETS.fill_placeholders(include_str!("assets/graphiql.html")));

pub fn respond() -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (VARY, "Accept")], PAGE.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled_and_nothing_comes_from_elsewhere() {
        assert!(!PAGE.contains("{{"), "{}", *PAGE);
        assert!(!PAGE.contains("://"), "{}", *PAGE);
        assert_eq!(PAGE.matches("/_/assets/").count(), ASSETS.count());
    }
}
