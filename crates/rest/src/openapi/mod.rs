//! `/openapi.json`: the OpenAPI document, built from schema and manifest on the first request and cached as bytes.

// Operations: of record collections, of the manifest, and their ids.
mod batch_path;
mod bulk_operations;
mod collections;
mod link_operations;
mod manifest_paths;
mod unique_names;

// What its reader may never do, see or set is left out.
mod actor_document;

// Components that operations refer to.
mod condition_parameters;
mod nested_schemas;
mod parameters;
mod responses;
mod schemas;

// JSON Schema of single values.
mod patterns;
mod values;

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

use crate::batch::BATCH_PATH;
use crate::openapi::collections::{CollectionDescriber, OperationIds};
use crate::openapi::unique_names::UniqueNames;

/// The serialized document.
pub struct OpenApiDocument {
    bytes: Bytes,
    etag: String,
}

impl OpenApiDocument {
    /// `views` are the names of the views that exist: endpoints may name others.
    pub fn new(manifest: &Manifest, views: &[String], resources: &ServedResources) -> OpenApiDocument {
        let bytes = Bytes::from(build_document(manifest, views, resources).to_string());
        let etag = format!("\"{:032x}\"", xxh3_128(&bytes));
        OpenApiDocument { bytes, etag }
    }

    pub fn respond(&self, headers: &HeaderMap) -> Response {
        if let Err(problem) = etags::check_if_match(headers, Some(&self.etag)) {
            return problem.into_response();
        }
        let response_headers = [(CONTENT_TYPE, "application/json; charset=utf-8"), (ETAG, &self.etag)];
        etags::not_modified_if_known(
            headers,
            (response_headers, Body::from(self.bytes.clone())).into_response(),
        )
    }
}

fn build_document(manifest: &Manifest, views: &[String], resources: &ServedResources) -> Json {
    let engine = &resources.engine;
    let (model, limits) = (engine.model(), engine.limits());
    let mut names = UniqueNames::default();
    let ids = OperationIds::new(model, &mut names);
    let mut paths = Map::new();
    for collection in resources.collections.iter() {
        let describer = CollectionDescriber { model, limits, collection, ids: &ids };
        paths.extend(describer.path_items(&mut names));
        describer.add_bulk_operations(&mut names, &mut paths[&collection.path]);
        describer.add_link_operations(&mut names, &mut paths);
    }
    for list in &manifest.plain_lists {
        paths.extend(manifest_paths::list_paths(list, &mut names));
    }
    paths.extend(manifest_paths::text_paths(manifest, views, engine, &mut names));
    paths.insert(BATCH_PATH.to_owned(), batch_path::batch_item(&mut names, resources.collections.first()));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": info(manifest),
        "servers": [{ "url": "/" }],
        "tags": tag_list(manifest, engine),
        "paths": paths,
        "components": {
            "schemas": schemas::all_schemas(model),
            "parameters": parameters::all_parameters(model, limits),
            "responses": responses::all_responses(),
            "headers": responses::all_headers(),
        },
    });
    actor_document::leave_out_closed(&mut document, resources);
    while drop_unused_components(&mut document) {}
    document
}

/// Removes components without references. True if there were any: removing them may leave others without references.
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

/// Title, version and description. The version is that of the server, since applications have none.
fn info(manifest: &Manifest) -> Json {
    let description = "Send `Accept: application/json` to get JSON. HEAD works wherever GET does, and OPTIONS returns `Allow`.";
    json!({
        "title": manifest.name.as_deref().unwrap_or("Trefoil"),
        "version": env!("CARGO_PKG_VERSION"),
        "description": description,
    })
}

fn tag_list(manifest: &Manifest, engine: &Engine) -> Vec<Json> {
    let records = engine.model().records.iter().map(|record| match &record.description {
        Some(description) => json!({ "name": record.name, "description": description }),
        None => json!({ "name": record.name }),
    });
    records.chain(manifest_paths::manifest_tags(manifest)).collect()
}
