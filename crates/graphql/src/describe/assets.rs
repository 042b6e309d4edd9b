//! The scripts and styles of GraphiQL under `/_/assets/`.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::Response;
use http::HeaderMap;

use trefoil_http::assets::{AssetFolder, SCRIPT_TYPE, STYLE_TYPE, StaticAsset, embedded_asset};
use trefoil_http::errors::problem::Problem;

static FILES: [StaticAsset; 6] = [
    embedded_asset!("{{react}}", "react", "js", SCRIPT_TYPE),
    embedded_asset!("{{react-dom}}", "react-dom", "js", SCRIPT_TYPE),
    embedded_asset!("{{graphiql-js}}", "graphiql", "js", SCRIPT_TYPE),
    embedded_asset!("{{graphiql-css}}", "graphiql", "css", STYLE_TYPE),
    embedded_asset!("{{init-js}}", "graphiql-init", "js", SCRIPT_TYPE),
    embedded_asset!("{{page-css}}", "graphiql-page", "css", STYLE_TYPE),
];

pub static ASSETS: LazyLock<AssetFolder> = LazyLock::new(|| AssetFolder::new("/_/assets/", &FILES));

pub async fn respond(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    ASSETS.respond(&name, &headers)
}
