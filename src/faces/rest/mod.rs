//! The REST face: records as JSON, plain lists, text endpoints, and the document that describes them.

mod create;
mod docs;
mod events;
mod lines;
pub mod lists;
mod openapi;
mod patch;
mod read;
mod snapshot;
mod text;
mod write;

use std::collections::HashMap;

use axum::Router;
use axum::response::Response;
use http::HeaderMap;

pub use self::events::Streams;
use self::openapi::Document;
pub use self::text::TextPath;
pub use self::write::in_json;
use super::resources::Site;
use crate::app::App;

/// What one manifest and one schema declare, ready to be sent.
pub struct Served {
    pub streams: Streams,
    pub texts: HashMap<String, TextPath>,
    document: Document,
}

impl Served {
    pub fn new(app: &App, site: &Site, streams: Streams) -> Served {
        let manifest = &app.manifest;
        let mut texts: HashMap<String, TextPath> = HashMap::new();
        for endpoint in &manifest.texts {
            texts.entry(endpoint.path.clone()).or_default().add(endpoint);
        }
        let document = Document::new(app, &site.engine, &site.collections);
        Served { streams, texts, document }
    }

    /// `/openapi.json`.
    pub fn describe(&self, headers: &HeaderMap) -> Response {
        self.document.respond(headers)
    }
}

/// `/docs`: the document for people.
pub fn docs() -> Router {
    docs::router()
}
