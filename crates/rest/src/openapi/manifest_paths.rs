//! The OpenAPI operations of text endpoints and plain lists, which `trefoil.toml` declares.

use serde_json::{Map, Value as Json, json};

use trefoil_application::{AllowedMethods, EndpointReply, Manifest, PlainList, TextEndpoint};
use trefoil_engine::Engine;

use crate::openapi::collections::PathItem;
use crate::openapi::parameters;
use crate::openapi::patterns::NOT_BLANK;
use crate::openapi::responses::{OperationResponses, ProblemFormat, header_references};
use crate::openapi::unique_names::{UniqueNames, pascal_case};

/// The methods that OpenAPI knows; an endpoint may accept others.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

const TEXTS_TAG: &str = "Texts";
const LISTS_TAG: &str = "Lists";

/// The paths of all text endpoints, several of which may share a path. `views` are the names of the views that exist.
pub fn text_paths(
    manifest: &Manifest,
    views: &[String],
    engine: &Engine,
    names: &mut UniqueNames,
) -> Vec<PathItem> {
    let mut items: Vec<(String, Map<String, Json>)> = Vec::new();
    let endpoints = manifest.text_endpoints.iter().enumerate();
    for (_, endpoint) in endpoints.filter(|(position, _)| engine.check_text(*position).is_ok()) {
        let operations = METHODS.iter().filter(|method| accepts_method(&endpoint.methods, method));
        let operations: Vec<_> = operations
            .map(|method| ((*method).to_owned(), text_operation(views, endpoint, method, names)))
            .collect();
        match items.iter_mut().find(|(path, _)| *path == endpoint.path) {
            Some((_, item)) => item.extend(operations),
            None => items.push((endpoint.path.clone(), operations.into_iter().collect())),
        }
    }
    items.into_iter().map(|(path, item)| (path, Json::Object(item))).collect()
}

fn accepts_method(methods: &AllowedMethods, method: &str) -> bool {
    match methods {
        AllowedMethods::Any => true,
        AllowedMethods::Only(methods) => methods.iter().any(|allowed| allowed.eq_ignore_ascii_case(method)),
    }
}

fn text_operation(views: &[String], endpoint: &TextEndpoint, method: &str, names: &mut UniqueNames) -> Json {
    let is_read = ["get", "head"].contains(&method);
    let mut responses = OperationResponses::new(ProblemFormat::Text);
    if !is_read && method != "options" {
        responses = responses.add_problems(&[403]);
    }
    if let EndpointReply::Text(text) = &endpoint.reply {
        let mut ok = json!({ "description": "The text.", "headers": header_references(&["ETag!"]) });
        if method == "options" {
            ok["headers"]["Allow"] = json!({ "$ref": "#/components/headers/Allow.Always" });
        }
        // A response to HEAD has no content.
        if method != "head" {
            ok["content"] = json!({ "text/plain": { "schema": { "type": "string" }, "example": text } });
        }
        responses = responses.add(200, ok);
        if is_read {
            responses = responses.for_reading();
        }
    }
    if let EndpointReply::View(name) = &endpoint.reply
        && views.contains(name)
    {
        let mut ok = json!({ "description": "The page.", "headers": header_references(&[]) });
        if method != "head" {
            ok["content"] = json!({ "text/html": { "schema": { "type": "string" } } });
        }
        responses = responses.add(200, ok);
        if is_read {
            responses = responses.for_reading();
        }
    }
    let id = names.reserve(&format!("{method}{}", pascal_case(&endpoint.path)));
    let mut operation = json!({ "operationId": id, "tags": [TEXTS_TAG] });
    if is_read {
        operation["parameters"] = json!(parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference));
    }
    operation["responses"] = responses.finish();
    operation
}

pub fn list_paths(list: &PlainList, names: &mut UniqueNames) -> [PathItem; 2] {
    let name = pascal_case(&list.path);
    let values =
        json!({ "get": read_operation(list, &name, names), "post": append_operation(list, &name, names) });
    let value = json!({
        "parameters": [parameters::index_parameter()],
        "put": replace_operation(&name, names), "delete": remove_operation(&name, names),
    });
    [(list.path.clone(), values), (format!("{}/{{index}}", list.path), value)]
}

fn list_operation(id: String, summary: &str, parameters: &[&str], responses: OperationResponses) -> Json {
    let parameters: Vec<Json> = parameters.iter().map(|name| parameters::parameter_reference(name)).collect();
    json!({
        "operationId": id, "tags": [LISTS_TAG], "summary": summary, "parameters": parameters,
        "responses": responses.finish(),
    })
}

fn read_operation(list: &PlainList, name: &str, names: &mut UniqueNames) -> Json {
    let mut content = json!({
        "application/json": { "schema": { "type": "array", "items": { "type": "string" } } },
        "text/plain": { "schema": { "type": "string" } },
    });
    if list.page {
        content["text/html"] = json!({ "schema": { "type": "string" } });
    }
    let ok = json!({ "description": "Every value, in order.", "content": content, "headers": header_references(&["ETag!"]) });
    let problems: &[u16] = if list.page { &[406] } else { &[] };
    let responses =
        OperationResponses::new(problem_format(list)).add(200, ok).for_reading().add_problems(problems);
    list_operation(
        names.reserve(&format!("get{name}")),
        "All values",
        &parameters::CONDITIONAL_HEADERS,
        responses,
    )
}

/// The body of a value. JSON other than objects and arrays is taken as text.
fn value_body() -> Json {
    let json = json!({ "type": ["string", "number", "boolean", "null"], "pattern": NOT_BLANK });
    json!({
        "text/plain": { "schema": { "type": "string", "pattern": NOT_BLANK }, "example": "milk" },
        "application/json": { "schema": json, "example": "milk" },
    })
}

const WRITE_PARAMETERS: [&str; 3] = ["If-Match", "If-None-Match", "Idempotency-Key"];

/// The format of problems at the list itself; below it they are always text.
fn problem_format(list: &PlainList) -> ProblemFormat {
    if list.page { ProblemFormat::PlainList } else { ProblemFormat::Text }
}

fn write_responses(problem_format: ProblemFormat, status: u16, description: &str) -> OperationResponses {
    let ok = json!({
        "description": description, "headers": header_references(&["ETag!", "Idempotency-Replayed"]),
        "content": { "text/plain": { "schema": { "type": "string" } } },
    });
    OperationResponses::new(problem_format).add(status, ok).for_writing()
}

fn append_operation(list: &PlainList, name: &str, names: &mut UniqueNames) -> Json {
    let mut content = value_body();
    let mut responses =
        write_responses(problem_format(list), 201, "Appended.").for_body().add_problems(&[400]);
    if list.page {
        let form = json!({
            "type": "object", "required": ["value"],
            "properties": { "value": { "type": "string", "pattern": NOT_BLANK } },
        });
        content["application/x-www-form-urlencoded"] = json!({ "schema": form });
        content["multipart/form-data"] = json!({ "schema": form });
        let names = ["Location!", "ETag!", "Idempotency-Replayed"];
        responses = responses.add_empty(303, "Added by a form; redirects to the list.", &names);
    }
    let summary = "Append a value: the body is the text, with any content type";
    let mut operation =
        list_operation(names.reserve(&format!("addTo{name}")), summary, &WRITE_PARAMETERS, responses);
    operation["requestBody"] = json!({ "required": true, "content": content });
    operation
}

fn replace_operation(name: &str, names: &mut UniqueNames) -> Json {
    let responses =
        write_responses(ProblemFormat::Text, 200, "Replaced.").for_body().add_problems(&[400, 404]);
    let mut operation = list_operation(
        names.reserve(&format!("replaceIn{name}")),
        "Replace a value",
        &WRITE_PARAMETERS,
        responses,
    );
    operation["requestBody"] = json!({ "required": true, "content": value_body() });
    operation
}

fn remove_operation(name: &str, names: &mut UniqueNames) -> Json {
    let responses = write_responses(ProblemFormat::Text, 200, "Removed; later values move up by one.")
        .add_problems(&[400, 404]);
    list_operation(
        names.reserve(&format!("removeFrom{name}")),
        "Remove a value",
        &WRITE_PARAMETERS,
        responses,
    )
}

/// The tags of lists and texts, if the manifest has any.
pub fn manifest_tags(manifest: &Manifest) -> Vec<Json> {
    let mut tags = Vec::new();
    if !manifest.plain_lists.is_empty() {
        tags.push(json!({ "name": LISTS_TAG, "description": "Ordered lists of text values." }));
    }
    if !manifest.text_endpoints.is_empty() {
        tags.push(json!({ "name": TEXTS_TAG, "description": "Fixed texts." }));
    }
    tags
}
