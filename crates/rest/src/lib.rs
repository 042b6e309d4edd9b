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

use trefoil_application::{App, Manifest};
use trefoil_resources::ServedResources;

use crate::openapi::OpenApiDocument;

pub use crate::create::{create_from_text, create_many, create_one};
pub use crate::event_stream::StreamSettings;
pub use crate::read::{read_list, read_nested_list, read_nested_record, read_record};
pub use crate::text_endpoints::TextPath;
pub use crate::write::{as_json_problem, delete_record, json_problem, patch_record, replace_record};

/// What one manifest and one schema declare, ready to be sent.
pub struct RestState {
    pub streams: StreamSettings,
    pub text_paths: HashMap<String, TextPath>,
    manifest: Arc<Manifest>,
    openapi: OnceLock<OpenApiDocument>,
}

impl RestState {
    pub fn new(app: &App, streams: StreamSettings) -> RestState {
        let mut texts: HashMap<String, TextPath> = HashMap::new();
        for endpoint in &app.manifest.text_endpoints {
            texts.entry(endpoint.path.clone()).or_default().add(endpoint);
        }
        RestState { streams, text_paths: texts, manifest: app.manifest.clone(), openapi: OnceLock::new() }
    }

    /// `/openapi.json`; of the views that endpoints name, `views` are there.
    pub fn openapi_response(
        &self,
        site: &ServedResources,
        views: &[String],
        headers: &HeaderMap,
    ) -> Response {
        let document = self.openapi.get_or_init(|| OpenApiDocument::new(&self.manifest, views, site));
        document.respond(headers)
    }
}

/// `/docs`: the document for people.
pub fn docs_router() -> Router {
    crate::swagger_ui::router()
}
