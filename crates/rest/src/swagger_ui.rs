//! `/docs`: Swagger UI on `/openapi.json`, with all its files embedded.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue};
use xxhash_rust::xxh3::xxh3_128;

use trefoil_http::assets::{AssetFolder, SCRIPT_TYPE, STYLE_TYPE, StaticAsset, embedded_asset};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::negotiation::format::{FormatChoice, PAGE_ONLY};
use trefoil_http::routing::RouteTable;

static FILES: [StaticAsset; 4] = [
    embedded_asset!("{{swagger-js}}", "swagger-ui", "js", SCRIPT_TYPE),
    embedded_asset!("{{swagger-css}}", "swagger-ui", "css", STYLE_TYPE),
    embedded_asset!("{{init-js}}", "docs-init", "js", SCRIPT_TYPE),
    embedded_asset!("{{page-css}}", "docs-page", "css", STYLE_TYPE),
];

static ASSETS: LazyLock<AssetFolder> = LazyLock::new(|| AssetFolder::new("/_/docs/", &FILES));

/// The page with the URLs of its files filled in.
static PAGE: LazyLock<String> = LazyLock::new(|| ASSETS.fill_placeholders(include_str!("assets/docs.html")));

static PAGE_ETAG: LazyLock<String> = LazyLock::new(|| format!("\"{:032x}\"", xxh3_128(PAGE.as_bytes())));

pub fn routes() -> RouteTable {
    RouteTable::default().get("/docs", page).get("/_/docs/{name}", file)
}

async fn page(headers: HeaderMap) -> Result<Response, Problem> {
    let format = PAGE_ONLY.negotiate(&headers, FormatChoice::Unspecified)?;
    etags::check_if_match(&headers, Some(&PAGE_ETAG))?;
    let response_headers = [
        (CONTENT_TYPE, format.content_type()),
        (VARY, ACCEPT.into()),
        (ETAG, HeaderValue::from_static(&PAGE_ETAG)),
    ];
    Ok(etags::not_modified_if_known(&headers, (response_headers, PAGE.as_str()).into_response()))
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    ASSETS.respond(&name, &headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_no_placeholders_and_no_external_urls() {
        assert!(!PAGE.contains("{{"), "{}", *PAGE);
        assert!(!PAGE.contains("://"), "{}", *PAGE);
        assert_eq!(PAGE.matches("/_/docs/").count(), ASSETS.count());
    }
}
