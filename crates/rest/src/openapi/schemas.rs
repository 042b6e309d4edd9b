//! The schemas of the document: each type of the model as it is shown, given, patched and typed into a form.

use serde_json::{Map, Value as Json, json};

use crate::openapi::values::{Side, of_field, reference};
use trefoil_model::values::example_values;
use trefoil_model::{EmbeddedType, EnumType, Field, FilledBy, Kind, Model, RecordType};

/// No type of a schema has a dot in its name, so ours collide with none.
pub const PROBLEM: &str = "Problem.Details";

pub fn all(model: &Model) -> Map<String, Json> {
    let mut schemas = Map::new();
    for record in &model.records {
        let name = &record.name;
        schemas.insert(name.clone(), shown(model, record));
        schemas.insert(format!("{name}.Part"), part(record));
        schemas.insert(format!("{name}.New"), new(model, record));
        schemas.insert(format!("{name}.Whole"), whole(record));
        schemas.insert(format!("{name}.Patch"), patch(model, record));
        schemas.insert(format!("{name}.Form"), form(record));
    }
    for embedded in model.embedded.values() {
        schemas.insert(embedded.name.clone(), inside(embedded, Side::Shown));
        schemas.insert(format!("{}.New", embedded.name), inside(embedded, Side::Given));
        schemas.insert(format!("{}.Patch", embedded.name), inside(embedded, Side::Patched));
    }
    for choice in model.enums.values() {
        schemas.insert(choice.name.clone(), one_of(choice));
    }
    schemas.insert(PROBLEM.to_owned(), problem());
    schemas
}

/// A record in an answer: all of it, or what `fields` asks for.
pub fn answered(record: &RecordType) -> Json {
    json!({ "anyOf": [reference(&record.name), reference(&format!("{}.Part", record.name))] })
}

fn object(fields: impl Iterator<Item = (String, Json)>, required: Vec<&str>) -> Json {
    let properties: Map<String, Json> = fields.collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn described(mut schema: Json, description: &str) -> Json {
    schema["description"] = description.into();
    schema
}

fn stored(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| field.is_stored())
}

fn writable(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| field.is_writable())
}

fn named(field: &Field, side: Side) -> (String, Json) {
    (field.input_name.clone(), of_field(field, side))
}

/// Must be in a body that makes a record.
pub fn is_needed(field: &Field) -> bool {
    field.is_writable()
        && field.required
        && field.default.is_none()
        && !matches!(field.kind, Kind::Link { .. })
}

fn shown(model: &Model, record: &RecordType) -> Json {
    let required = stored(record).map(|field| field.input_name.as_str()).collect();
    let mut schema = object(stored(record).map(|field| named(field, Side::Shown)), required);
    if let Some(description) = &record.description {
        schema["description"] = description.as_str().into();
    }
    if let Some(example) = example_values::shown(model, record) {
        schema["examples"] = json!([example]);
    }
    schema
}

fn part(record: &RecordType) -> Json {
    let mut schema = object(stored(record).map(|field| named(field, Side::Shown)), Vec::new());
    schema["minProperties"] = 1.into();
    described(schema, &format!("The fields of {} that `fields` asks for.", record.name))
}

fn new(model: &Model, record: &RecordType) -> Json {
    let required = writable(record).filter(|field| is_needed(field)).map(|field| field.input_name.as_str());
    let mut schema = object(writable(record).map(|field| named(field, Side::Given)), required.collect());
    if let Some(example) = example_values::given(model, &record.fields) {
        schema["examples"] = json!([example]);
    }
    described(schema, &format!("A new {}.", record.name))
}

/// What GET gave can be sent back: what only the server fills may be there.
fn whole(record: &RecordType) -> Json {
    let given = record.fields.iter().filter(|field| field.is_writable() || field.is_stored());
    let given = given.map(|field| sent_back(field, Side::Given));
    let required = writable(record).filter(|field| is_needed(field)).map(|field| field.input_name.as_str());
    let schema = object(given, required.collect());
    let said = "The whole {}: what is left out becomes null or its default. What only the server fills may be \
                there and is ignored; `id`, if given, is the path's.";
    described(schema, &said.replace("{}", &record.name))
}

fn sent_back(field: &Field, side: Side) -> (String, Json) {
    let (name, mut schema) = named(field, side);
    if !field.is_writable() {
        schema["readOnly"] = true.into();
    }
    (name, schema)
}

fn patch(model: &Model, record: &RecordType) -> Json {
    let given = record.fields.iter().filter(|field| field.is_writable() || field.kind == Kind::Id);
    let mut schema = object(given.map(|field| sent_back(field, Side::Patched)), Vec::new());
    if let Some(example) = example_values::patch(model, &record.fields) {
        schema["examples"] = json!([example]);
    }
    let said = "Changes to one {}: what is left out stays, null empties; `id`, if given, is the path's.";
    described(schema, &said.replace("{}", &record.name))
}

/// Forms send more than is asked for, and nobody minds.
fn form(record: &RecordType) -> Json {
    let required = writable(record).filter(|field| is_needed(field)).map(|field| field.input_name.as_str());
    let mut schema = object(writable(record).map(|field| named(field, Side::Typed)), required.collect());
    schema["additionalProperties"] = true.into();
    described(schema, "Controls by name; a blank one is null where the field may be, others are ignored.")
}

fn inside(embedded: &EmbeddedType, side: Side) -> Json {
    let fields = || embedded.fields.iter().filter(|field| field.kind != Kind::Unstored);
    let needed =
        |field: &&Field| field.required && field.default.is_none() && field.filled_by == FilledBy::Client;
    let required = match side {
        Side::Given => fields().filter(needed).map(|field| field.name.as_str()).collect(),
        Side::Shown | Side::Patched | Side::Typed | Side::Asked => Vec::new(),
    };
    let properties = fields().map(|field| {
        let mut schema = of_field(field, side);
        // In a patch null takes a member away, so that its default comes back.
        if side == Side::Patched && field.required && field.default.is_some() {
            crate::openapi::values::nullable(&mut schema);
        }
        (field.name.clone(), schema)
    });
    object(properties, required)
}

fn one_of(choice: &EnumType) -> Json {
    let schema = json!({ "type": "string", "enum": choice.values });
    match &choice.description {
        Some(description) => described(schema, description),
        None => schema,
    }
}

fn problem() -> Json {
    let entry = json!({
        "type": "object",
        "required": ["code", "detail"],
        "properties": {
            "pointer": { "type": "string", "description": "The place in the body: a JSON Pointer as a URI fragment." },
            "parameter": { "type": "string", "description": "The parameter of the query." },
            "code": { "type": "string", "description": "Stable, in capitals." },
            "detail": { "type": "string" },
        },
    });
    json!({
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code", "requestId"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference" },
            "title": { "type": "string", "description": "The status in words." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string" },
            "code": { "type": "string", "description": "Stable, in capitals: `NOT_FOUND`, `INVALID`, …" },
            "requestId": { "type": "string" },
            "errors": { "type": "array", "items": entry, "description": "One for each broken rule." },
        },
        "examples": [{
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": "Name must not be blank",
            "code": "INVALID", "requestId": "5f3c9d2a7b1e4c60-1",
            "errors": [{ "pointer": "#/name", "code": "NOT_BLANK", "detail": "Name must not be blank" }],
        }],
    })
}
