//! The operations of what `trefoil.toml` declares: text endpoints and plain lists.

use serde_json::{Map, Value as Json, json};

use crate::openapi::collections::Item;
use crate::openapi::parameters;
use crate::openapi::patterns::NOT_BLANK;
use crate::openapi::responses::{Responses, Voice, headers};
use crate::openapi::unique_names::{Names, pascal};
use trefoil_application::{Manifest, Methods, PlainList, Reply, TextEndpoint};

/// The methods that the document has words for; an endpoint may take others.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

const TEXTS: &str = "Texts";
const LISTS: &str = "Lists";

/// Of all text endpoints; several may share a path. Of the views they name, `views` are there.
pub fn texts(manifest: &Manifest, views: &[String], names: &mut Names) -> Vec<Item> {
    let mut items: Vec<(String, Map<String, Json>)> = Vec::new();
    for endpoint in &manifest.texts {
        let operations = METHODS.iter().filter(|method| takes(&endpoint.methods, method));
        let operations: Vec<_> =
            operations.map(|method| ((*method).to_owned(), text(views, endpoint, method, names))).collect();
        match items.iter_mut().find(|(path, _)| *path == endpoint.path) {
            Some((_, item)) => item.extend(operations),
            None => items.push((endpoint.path.clone(), operations.into_iter().collect())),
        }
    }
    items.into_iter().map(|(path, item)| (path, Json::Object(item))).collect()
}

fn takes(methods: &Methods, method: &str) -> bool {
    match methods {
        Methods::Any => true,
        Methods::Only(methods) => methods.iter().any(|one| one.eq_ignore_ascii_case(method)),
    }
}

fn text(views: &[String], endpoint: &TextEndpoint, method: &str, names: &mut Names) -> Json {
    let is_read = ["get", "head"].contains(&method);
    let mut responses = Responses::new(Voice::Text);
    if !is_read && method != "options" {
        responses = responses.refused(&[403]);
    }
    if let Reply::Text(text) = &endpoint.reply {
        let mut ok = json!({ "description": "The text as it stands.", "headers": headers(&["ETag!"]) });
        if method == "options" {
            ok["headers"]["Allow"] = json!({ "$ref": "#/components/headers/Allow.Always" });
        }
        // What only asks for the head gets no more.
        if method != "head" {
            ok["content"] = json!({ "text/plain": { "schema": { "type": "string" }, "example": text } });
        }
        responses = responses.add(200, ok);
        if is_read {
            responses = responses.reads();
        }
    }
    if let Reply::View(name) = &endpoint.reply
        && views.contains(name)
    {
        let mut ok = json!({ "description": "The page.", "headers": headers(&[]) });
        if method != "head" {
            ok["content"] = json!({ "text/html": { "schema": { "type": "string" } } });
        }
        responses = responses.add(200, ok);
        if is_read {
            responses = responses.reads();
        }
    }
    let id = names.take(&format!("{method}{}", pascal(&endpoint.path)));
    let mut operation = json!({ "operationId": id, "tags": [TEXTS] });
    if is_read {
        operation["parameters"] = json!(parameters::CONDITIONS.map(parameters::reference));
    }
    operation["responses"] = responses.finish();
    operation
}

pub fn list(list: &PlainList, names: &mut Names) -> [Item; 2] {
    let name = pascal(&list.path);
    let values = json!({ "get": read(list, &name, names), "post": append(list, &name, names) });
    let value = json!({
        "parameters": [parameters::index()],
        "put": replace(&name, names), "delete": remove(&name, names),
    });
    [(list.path.clone(), values), (format!("{}/{{index}}", list.path), value)]
}

fn operation(id: String, summary: &str, parameters: &[&str], responses: Responses) -> Json {
    let parameters: Vec<Json> = parameters.iter().map(|name| parameters::reference(name)).collect();
    json!({
        "operationId": id, "tags": [LISTS], "summary": summary, "parameters": parameters,
        "responses": responses.finish(),
    })
}

fn read(list: &PlainList, name: &str, names: &mut Names) -> Json {
    let mut content = json!({
        "application/json": { "schema": { "type": "array", "items": { "type": "string" } } },
        "text/plain": { "schema": { "type": "string" } },
    });
    if list.page {
        content["text/html"] = json!({ "schema": { "type": "string" } });
    }
    let ok = json!({ "description": "Every value, in order.", "content": content, "headers": headers(&["ETag!"]) });
    let refused: &[u16] = if list.page { &[406] } else { &[] };
    let responses = Responses::new(voice(list)).add(200, ok).reads().refused(refused);
    operation(names.take(&format!("get{name}")), "All values", &parameters::CONDITIONS, responses)
}

/// JSON that is no object and no array is text as it stands.
fn body() -> Json {
    let json = json!({ "type": ["string", "number", "boolean", "null"], "pattern": NOT_BLANK });
    json!({
        "text/plain": { "schema": { "type": "string", "pattern": NOT_BLANK }, "example": "milk" },
        "application/json": { "schema": json, "example": "milk" },
    })
}

const WRITES: [&str; 3] = ["If-Match", "If-None-Match", "Idempotency-Key"];

/// How refusals are said at the list itself; below it they are always texts.
fn voice(list: &PlainList) -> Voice {
    if list.page { Voice::List } else { Voice::Text }
}

fn written(voice: Voice, status: u16, description: &str) -> Responses {
    let ok = json!({
        "description": description, "headers": headers(&["ETag!", "Idempotency-Replayed"]),
        "content": { "text/plain": { "schema": { "type": "string" } } },
    });
    Responses::new(voice).add(status, ok).writes()
}

fn append(list: &PlainList, name: &str, names: &mut Names) -> Json {
    let mut content = body();
    let mut responses = written(voice(list), 201, "Added at the end.").takes().refused(&[400]);
    if list.page {
        let form = json!({
            "type": "object", "required": ["value"],
            "properties": { "value": { "type": "string", "pattern": NOT_BLANK } },
        });
        content["application/x-www-form-urlencoded"] = json!({ "schema": form });
        content["multipart/form-data"] = json!({ "schema": form });
        let names = ["Location!", "ETag!", "Idempotency-Replayed"];
        responses = responses.plain(303, "The form added it; go on to the list.", &names);
    }
    let summary = "Add a value: the body is the text itself, whatever its content type";
    let mut operation = operation(names.take(&format!("addTo{name}")), summary, &WRITES, responses);
    operation["requestBody"] = json!({ "required": true, "content": content });
    operation
}

fn replace(name: &str, names: &mut Names) -> Json {
    let responses = written(Voice::Text, 200, "Replaced.").takes().refused(&[400, 404]);
    let mut operation =
        operation(names.take(&format!("replaceIn{name}")), "Replace a value", &WRITES, responses);
    operation["requestBody"] = json!({ "required": true, "content": body() });
    operation
}

fn remove(name: &str, names: &mut Names) -> Json {
    let responses = written(Voice::Text, 200, "Removed; the rest move up.").refused(&[400, 404]);
    operation(names.take(&format!("removeFrom{name}")), "Remove a value", &WRITES, responses)
}

/// What the groups of operations are called, as far as there are any.
pub fn tags(manifest: &Manifest) -> Vec<Json> {
    let mut tags = Vec::new();
    if !manifest.lists.is_empty() {
        tags.push(json!({ "name": LISTS, "description": "Ordered lists of texts." }));
    }
    if !manifest.texts.is_empty() {
        tags.push(json!({ "name": TEXTS, "description": "Texts as they stand." }));
    }
    tags
}
