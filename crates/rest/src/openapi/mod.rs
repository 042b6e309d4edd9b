//! `/openapi.json`: what this face serves, described from the schema and the manifest when it is first asked for, and
//! kept as bytes.

pub(crate) mod collections;
pub(crate) mod manifest_paths;
pub(crate) mod parameters;
pub(crate) mod patterns;
pub(crate) mod responses;
pub(crate) mod schemas;
pub(crate) mod unique_names;
pub(crate) mod values;

use std::collections::HashSet;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, ETAG};
use serde_json::{Map, Value as Json, json};
use xxhash_rust::xxh3::xxh3_128;

use trefoil_application::Manifest;
use trefoil_engine::Engine;
use trefoil_http::etags;
use trefoil_resources::ServedResources;

use crate::openapi::collections::{CollectionDescriber, OperationIds};
use crate::openapi::unique_names::UniqueNames;

/// The document, ready to be sent.
pub struct OpenApiDocument {
    bytes: Bytes,
    etag: String,
}

impl OpenApiDocument {
    /// Of the views that endpoints name, `views` are there.
    pub fn new(manifest: &Manifest, views: &[String], site: &ServedResources) -> OpenApiDocument {
        let bytes = Bytes::from(build_document(manifest, views, site).to_string());
        let tag = format!("\"{:032x}\"", xxh3_128(&bytes));
        OpenApiDocument { bytes, etag: tag }
    }

    pub fn respond(&self, headers: &HeaderMap) -> Response {
        if let Err(problem) = etags::check_if_match(headers, Some(&self.etag)) {
            return problem.into_response();
        }
        let told = [(CONTENT_TYPE, "application/json; charset=utf-8"), (ETAG, &self.etag)];
        etags::not_modified_if_known(headers, (told, Body::from(self.bytes.clone())).into_response())
    }
}

fn build_document(manifest: &Manifest, views: &[String], site: &ServedResources) -> Json {
    let engine = &site.engine;
    let (model, limits) = (engine.model(), engine.limits());
    let mut names = UniqueNames::default();
    let ids = OperationIds::new(model, &mut names);
    let mut paths = Map::new();
    for collection in &site.collections {
        let described = CollectionDescriber { model, limits, collection, ids: &ids };
        paths.extend(described.path_items(&mut names));
    }
    for list in &manifest.plain_lists {
        paths.extend(crate::openapi::manifest_paths::list_paths(list, &mut names));
    }
    paths.extend(crate::openapi::manifest_paths::text_paths(manifest, views, &mut names));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": info(manifest),
        "servers": [{ "url": "/" }],
        "tags": tag_list(manifest, engine),
        "paths": paths,
        "components": {
            "schemas": crate::openapi::schemas::all_schemas(model),
            "parameters": crate::openapi::parameters::all_parameters(model, limits),
            "responses": crate::openapi::responses::all_responses(),
            "headers": crate::openapi::responses::all_headers(),
        },
    });
    while drop_unused_components(&mut document) {}
    document
}

/// Takes away the components that nothing refers to; says whether there were some, since others may be left alone by them.
fn drop_unused_components(document: &mut Json) -> bool {
    let mut used = HashSet::new();
    collect_references(document, &mut used);
    let Some(kinds) = document["components"].as_object_mut() else { return false };
    let mut dropped = false;
    for (kind, components) in kinds {
        let Some(components) = components.as_object_mut() else { continue };
        let before = components.len();
        components.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
        dropped |= components.len() < before;
    }
    dropped
}

fn collect_references(value: &Json, found: &mut HashSet<String>) {
    match value {
        Json::Object(members) => {
            found.extend(members.get("$ref").and_then(Json::as_str).map(str::to_owned));
            members.values().for_each(|member| collect_references(member, found));
        }
        Json::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// The version is the server's: what an application folder says has none of its own.
fn info(manifest: &Manifest) -> Json {
    let said =
        "JSON is asked for with `Accept: application/json`; HEAD follows GET, and OPTIONS tells `Allow`.";
    json!({
        "title": manifest.name.as_deref().unwrap_or("Trefoil"),
        "version": env!("CARGO_PKG_VERSION"),
        "description": said,
    })
}

fn tag_list(manifest: &Manifest, engine: &Engine) -> Vec<Json> {
    let records = engine.model().records.iter().map(|record| match &record.description {
        Some(description) => json!({ "name": record.name, "description": description }),
        None => json!({ "name": record.name }),
    });
    records.chain(crate::openapi::manifest_paths::manifest_tags(manifest)).collect()
}
