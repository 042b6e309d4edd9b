//! The GraphiQL page, for browsers that open `/graphql`; nothing of it comes from elsewhere.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, VARY};

use super::assets;

/// The page with the names of its files filled in.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let template = include_str!("assets/graphiql.html").to_owned();
    assets::named()
        .iter()
        .fold(template, |page, (name, asset)| page.replace(asset.placeholder, &format!("/_/assets/{name}")))
});

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
        assert_eq!(PAGE.matches("/_/assets/").count(), assets::named().len());
    }
}
