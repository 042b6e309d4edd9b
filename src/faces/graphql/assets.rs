//! The files of GraphiQL, under `/_/assets/`.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::Response;
use http::HeaderMap;

use crate::faces::assets::{Asset, Assets, SCRIPT, STYLE, compressed, plain};
use crate::faces::problem::Problem;

static FILES: [Asset; 6] = [
    compressed!("{{react}}", "react", "js", SCRIPT),
    compressed!("{{react-dom}}", "react-dom", "js", SCRIPT),
    compressed!("{{graphiql-js}}", "graphiql", "js", SCRIPT),
    compressed!("{{graphiql-css}}", "graphiql", "css", STYLE),
    plain!("{{init-js}}", "graphiql-init", "js", SCRIPT),
    plain!("{{page-css}}", "graphiql-page", "css", STYLE),
];

pub static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new("/_/assets/", &FILES));

pub async fn respond(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    ASSETS.respond(&name, &headers)
}
