//! The REST API: records as JSON, CSV and NDJSON, change streams, plain lists, text endpoints, and the OpenAPI document that
//! describes them all. The server crate routes a request here after content negotiation; functions take a
//! [`trefoil_resources::request::ResourceRequest`] and return a response or a problem.

// GET of records, lists and groups.
mod groups;
mod read;
mod read_response;

// POST of records.
mod create;

// PUT, PATCH and DELETE of a record.
mod write;

// PATCH, DELETE and PUT of many records.
mod bulk_patch;
mod bulk_write;

// POST and DELETE of links.
mod links;

// PATCH inside embedded values and JSON.
mod merge_patch;

// Changes of a collection as server-sent events.
mod event_stream;

// The list that an event stream can begin with.
mod stream_snapshot;

// Several requests in one.
pub mod batch;

// Fixed texts and views that the manifest declares.
mod text_endpoints;

// Lists of texts that the manifest declares.
pub mod plain_lists;

// Encoder of plain lists.
mod plain_list_sink;

// The OpenAPI document at `/openapi.json`.
mod openapi;

// Swagger UI at `/docs`.
mod swagger_ui;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::response::Response;
use http::HeaderMap;

use trefoil_application::{App, Manifest};
use trefoil_http::routing::RouteTable;
use trefoil_resources::ServedResources;

use crate::openapi::OpenApiDocument;

pub use crate::bulk_patch::patch_matching;
pub use crate::bulk_write::{delete_matching, upsert_many, upsert_one};
pub use crate::create::{create_from_text, create_many, create_one};
pub use crate::event_stream::StreamSettings;
pub use crate::links::{link_record, unlink_record};
pub use crate::read::{read_list, read_nested_list, read_nested_record, read_record};
pub use crate::text_endpoints::TextPath;
pub use crate::write::{as_json_problem, delete_record, json_problem, patch_record, replace_record};

/// The REST endpoints of one manifest and one schema, prepared at start-up or reload.
pub struct RestState {
    pub streams: StreamSettings,
    pub text_paths: HashMap<String, TextPath>,
    manifest: Arc<Manifest>,
    openapi: OnceLock<OpenApiDocument>,
}

impl RestState {
    pub fn new(app: &App, streams: StreamSettings) -> RestState {
        let mut text_paths: HashMap<String, TextPath> = HashMap::new();
        for (position, endpoint) in app.manifest.text_endpoints.iter().enumerate() {
            text_paths.entry(endpoint.path.clone()).or_default().add(position, endpoint);
        }
        RestState { streams, text_paths, manifest: app.manifest.clone(), openapi: OnceLock::new() }
    }

    /// The response at `/openapi.json`, for the actor on whose behalf `resources` are. `views` are the names of the views that exist.
    pub fn openapi_response(
        &self,
        resources: &ServedResources,
        views: &[String],
        headers: &HeaderMap,
    ) -> Response {
        let make = || OpenApiDocument::new(&self.manifest, views, resources);
        match resources.engine.access_view() {
            None => self.openapi.get_or_init(make).respond(headers),
            // Of a protected application everybody reads another one, and few do.
            Some(_) => make().respond(headers),
        }
    }
}

/// The routes of `/docs`, a page to read the OpenAPI document.
pub fn docs_routes() -> RouteTable {
    swagger_ui::routes()
}
