//! The OpenAPI operation of batches.

use serde_json::{Value as Json, json};

use trefoil_resources::collection::Collection;

use crate::openapi::parameters::parameter_reference;
use crate::openapi::responses::{OperationResponses, ProblemFormat, header_references};
use crate::openapi::unique_names::UniqueNames;

/// `POST /_/batch`, with a request for one of the collections as its example.
pub fn batch_item(names: &mut UniqueNames, collection: Option<&Collection>) -> Json {
    let example = collection.map(|collection| json!({ "method": "GET", "path": collection.path }));
    let example: Vec<Json> = example.into_iter().collect();
    let request = json!({
        "type": "object", "required": ["method", "path"], "additionalProperties": false,
        "properties": {
            "method": { "type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"] },
            "path": {
                "type": "string", "pattern": "^/([^/]|$)",
                "description": "The path of records or of a plain list, with its query. `$0.id` in it is from the result of the first request, `$$` is a dollar sign.",
            },
            "headers": {
                "type": "object", "additionalProperties": false,
                "properties": { "if-match": { "type": "string" }, "if-none-match": { "type": "string" } },
            },
            "body": { "description": "Any JSON. A text that is `$0.id` and nothing else is from the result of the first request; one that begins with `$$` begins with a dollar sign." },
        },
    });
    let result = json!({
        "type": "object", "required": ["status", "headers", "body"], "additionalProperties": false,
        "properties": {
            "status": { "type": "integer", "minimum": 200, "maximum": 599 },
            "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            "body": { "description": "JSON, or a text if the response is none; null without a body." },
        },
    });
    let ok = json!({
        "description": "The results, in the order of the requests.",
        "content": { "application/json": { "schema": { "type": "array", "items": result } } },
        "headers": header_references(&["Idempotency-Replayed"]),
    });
    let responses = OperationResponses::new(ProblemFormat::Negotiated)
        .add(200, ok)
        .for_body()
        .add_problems(&[400, 404, 406]);
    let atomic = json!({
        "name": "atomic", "in": "query", "schema": { "type": "boolean", "default": true },
        "description": "All or nothing; with `false` each request is by itself.",
    });
    json!({
        "post": {
            "operationId": names.reserve("batch"),
            "summary": "Several requests in one transaction",
            "description": "Runs the requests in order. The first that fails undoes all, and its problem is the response, with its number as `index`.",
            "parameters": [atomic, parameter_reference("Idempotency-Key")],
            "requestBody": {
                "required": true,
                "content": { "application/json": {
                    "schema": { "type": "array", "items": request }, "example": example,
                } },
            },
            "responses": responses.finish(),
        },
    })
}
