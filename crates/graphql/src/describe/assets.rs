//! The files of GraphiQL, under `/_/assets/`.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::Response;
use http::HeaderMap;

use trefoil_http::assets::{Asset, Assets, SCRIPT, STYLE, compressed_asset, plain_asset};
use trefoil_http::errors::problem::Problem;

static FILES: [Asset; 6] = [
    compressed_asset!("{{react}}", "react", "js", SCRIPT),
    compressed_asset!("{{react-dom}}", "react-dom", "js", SCRIPT),
    compressed_asset!("{{graphiql-js}}", "graphiql", "js", SCRIPT),
    compressed_asset!("{{graphiql-css}}", "graphiql", "css", STYLE),
    plain_asset!("{{init-js}}", "graphiql-init", "js", SCRIPT),
    plain_asset!("{{page-css}}", "graphiql-page", "css", STYLE),
];

pub static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new("/_/assets/", &FILES));

pub async fn respond(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    ASSETS.respond(&name, &headers)
}
