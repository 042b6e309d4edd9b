//! The REST face: records as JSON, plain lists, text endpoints, and the document that describes them.

mod create;
mod event_stream;
mod merge_patch;
mod openapi;
mod plain_list_sink;
pub mod plain_lists;
mod read;
mod snapshot;
mod swagger_ui;
mod text_endpoints;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::response::Response;
use http::HeaderMap;

pub use crate::create::{create_from_text, create_many, create_one};
pub use crate::event_stream::Streams;
use crate::openapi::Document;
pub use crate::read::{read_list, read_nested_list, read_nested_record, read_record};
pub use crate::text_endpoints::TextPath;
pub use crate::write::in_json;
pub use crate::write::{delete_record, json_problem, patch_record, replace_record};
use trefoil_application::{App, Manifest};
use trefoil_resources::Site;

/// What one manifest and one schema declare, ready to be sent.
pub struct Served {
    pub streams: Streams,
    pub texts: HashMap<String, TextPath>,
    manifest: Arc<Manifest>,
    document: OnceLock<Document>,
}

impl Served {
    pub fn new(app: &App, streams: Streams) -> Served {
        let mut texts: HashMap<String, TextPath> = HashMap::new();
        for endpoint in &app.manifest.texts {
            texts.entry(endpoint.path.clone()).or_default().add(endpoint);
        }
        Served { streams, texts, manifest: app.manifest.clone(), document: OnceLock::new() }
    }

    /// `/openapi.json`; of the views that endpoints name, `views` are there.
    pub fn describe(&self, site: &Site, views: &[String], headers: &HeaderMap) -> Response {
        let document = self.document.get_or_init(|| Document::new(&self.manifest, views, site));
        document.respond(headers)
    }
}

/// `/docs`: the document for people.
pub fn docs() -> Router {
    crate::swagger_ui::router()
}
