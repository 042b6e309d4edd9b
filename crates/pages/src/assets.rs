//! The style sheet, script and icon of pages, at URLs that change with their content.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::IntoResponse;
use http::HeaderMap;

use trefoil_http::assets::{AssetFolder, ICON_TYPE, SCRIPT_TYPE, STYLE_TYPE, StaticAsset, embedded_asset};
use trefoil_http::routing::RouteTable;

static ASSET_FILES: [StaticAsset; 3] = [
    embedded_asset!("{{css}}", "app", "css", STYLE_TYPE),
    embedded_asset!("{{js}}", "live", "js", SCRIPT_TYPE),
    embedded_asset!("{{icon}}", "icon", "svg", ICON_TYPE),
];

pub(crate) static ASSETS: LazyLock<AssetFolder> =
    LazyLock::new(|| AssetFolder::new("/_/pages/", &ASSET_FILES));

/// The routes of the assets.
pub fn asset_routes() -> RouteTable {
    let file = async |Path(name): Path<String>, headers: HeaderMap| {
        ASSETS.respond(&name, &headers).map_err(IntoResponse::into_response)
    };
    RouteTable::default().get("/_/pages/{name}", file)
}
