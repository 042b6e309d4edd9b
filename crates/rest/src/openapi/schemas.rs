//! The OpenAPI schemas: each type of the model in responses, creations, replacements, patches and forms.

use serde_json::{Map, Value as Json, json};

use trefoil_model::values::example_values;
use trefoil_model::{EmbeddedType, EnumType, Field, Model, RecordType, Relation, ValueSource};
use trefoil_resources::collection::readable_fields;

use crate::openapi::nested_schemas::{nested_members, nested_schemas, reference_choices, related_schema};
use crate::openapi::values::{ValueContext, field_schema, make_nullable, schema_reference};

/// GraphQL type names have no dot, so this one and those with a suffix collide with none.
pub const PROBLEM_SCHEMA: &str = "Problem.Details";

pub fn all_schemas(model: &Model) -> Map<String, Json> {
    let mut schemas = Map::new();
    for record in &model.records {
        let name = &record.name;
        schemas.insert(name.clone(), record_schema(model, record));
        schemas.insert(format!("{name}.Part"), part_schema(model, record));
        schemas.insert(format!("{name}.New"), new_schema(model, record));
        schemas.insert(format!("{name}.Whole"), whole_schema(model, record));
        schemas.insert(format!("{name}.Patch"), patch_schema(model, record));
        schemas.insert(format!("{name}.Form"), form_schema(record));
        schemas.insert(format!("{name}.Related"), related_schema(model, record));
        schemas.extend(nested_schemas(model, record));
    }
    schemas.insert(GROUP_SCHEMA.to_owned(), group_schema());
    for embedded in model.embedded.values() {
        schemas.insert(embedded.name.clone(), embedded_schema(embedded, ValueContext::Response));
        schemas.insert(format!("{}.New", embedded.name), embedded_schema(embedded, ValueContext::Body));
        schemas.insert(format!("{}.Patch", embedded.name), embedded_schema(embedded, ValueContext::Patch));
    }
    for enum_type in model.enums.values() {
        schemas.insert(enum_type.name.clone(), enum_schema(enum_type));
    }
    schemas.insert(PROBLEM_SCHEMA.to_owned(), problem_schema());
    schemas
}

/// The name of the schema of a group, which is no name of a type.
pub const GROUP_SCHEMA: &str = "Aggregate.Group";

/// A group of records: its keys and measures by the texts of the request.
fn group_schema() -> Json {
    let value = json!({ "type": ["string", "number", "boolean", "null"] });
    let description =
        "A group of records: the values of `group` and `aggregate`, each under its text in the request.";
    json!({ "type": "object", "additionalProperties": value, "description": description })
}

/// A record in a response: all of it, or the fields that the `fields` parameter selects.
pub fn response_schema(record: &RecordType) -> Json {
    json!({ "anyOf": [schema_reference(&record.name), schema_reference(&format!("{}.Part", record.name))] })
}

fn object_schema(fields: impl Iterator<Item = (String, Json)>, required: Vec<&str>) -> Json {
    let properties: Map<String, Json> = fields.collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn with_description(mut schema: Json, description: &str) -> Json {
    schema["description"] = description.into();
    schema
}

fn stored_fields(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| field.is_stored())
}

fn writable_fields(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| field.is_writable())
}

fn named_schema(field: &Field, context: ValueContext) -> (String, Json) {
    (field.input_name.clone(), field_schema(field, context))
}

/// True if a form that creates a record must have the field.
pub fn is_required(field: &Field) -> bool {
    field.is_writable() && field.required && !field.has_default() && !field.kind.is_link()
}

fn record_schema(model: &Model, record: &RecordType) -> Json {
    // What is hidden from an actor in all records is left out.
    let shown = stored_fields(record).filter(|field| !field.may_be_hidden);
    let required = shown.map(|field| field.input_name.as_str()).collect();
    let mut schema = object_schema(readable_properties(model, record), required);
    if let Some(label) = &record.display.label {
        schema["title"] = label.as_str().into();
    }
    if let Some(description) = &record.description {
        schema["description"] = description.as_str().into();
    }
    if let Some(example) = example_values::example_record(model, record) {
        schema["examples"] = json!([example]);
    }
    schema
}

/// The fields of a record, and the related records that `include` adds.
fn readable_properties<'m>(
    model: &'m Model,
    record: &'m RecordType,
) -> impl Iterator<Item = (String, Json)> + 'm {
    let fields = readable_fields(record).map(|field| record.field(field));
    let related = record.fields.iter().filter_map(|field| {
        let relation = field.kind.relation()?;
        let target = schema_reference(&model.record(relation.target()).name);
        let schema = match relation {
            Relation::Reference(_) if field.is_always_shown() => target,
            Relation::Reference(_) => json!({ "anyOf": [target, { "type": "null" }] }),
            Relation::Inverse(_) | Relation::Link(_) => json!({ "type": "array", "items": target }),
        };
        Some((field.name.clone(), schema))
    });
    fields.map(|field| named_schema(field, ValueContext::Response)).chain(related)
}

fn part_schema(model: &Model, record: &RecordType) -> Json {
    let mut schema = object_schema(readable_properties(model, record), Vec::new());
    schema["minProperties"] = 1.into();
    with_description(schema, &format!("The fields of {} that `fields` selects.", record.name))
}

fn new_schema(model: &Model, record: &RecordType) -> Json {
    let key = record.fields.iter().filter(|field| field.kind.is_id() && record.accepts_given_key());
    let fields: Vec<&Field> = key.chain(writable_fields(record)).collect();
    let is_needed =
        |field: &Field| is_body_required(field) || (field.kind.is_id() && record.is_set_on_create(field));
    let required = fields.iter().filter(|field| is_needed(field)).map(|field| field.input_name.as_str());
    let properties = fields.iter().map(|field| named_schema(field, ValueContext::Body));
    let nested = nested_members(model, record, ValueContext::Body);
    let mut schema = with_choices(object_schema(properties.chain(nested), required.collect()), record);
    if let Some(example) = example_values::example_input(model, record) {
        schema["examples"] = json!([example]);
    }
    with_description(schema, &format!("A new {}.", record.name))
}

/// The body of PUT. It may have the fields that only the server fills, so that a response of GET can be sent back.
fn whole_schema(model: &Model, record: &RecordType) -> Json {
    let fields = record.fields.iter().filter(|field| field.is_writable() || field.is_stored());
    let properties = fields.map(|field| echoed_schema(field, ValueContext::Body));
    let nested = nested_members(model, record, ValueContext::Patch);
    let required = writable_fields(record)
        .filter(|field| is_body_required(field))
        .map(|field| field.input_name.as_str());
    let schema = with_choices(object_schema(properties.chain(nested), required.collect()), record);
    let description = "The whole {}: omitted fields become null or their default. Fields set by the server are ignored; `id`, if given, must be that of the path.";
    with_description(schema, &description.replace("{}", &record.name))
}

/// True if a JSON body must have the field. A reference can be a related record instead.
fn is_body_required(field: &Field) -> bool {
    is_required(field) && !field.kind.is_reference()
}

fn with_choices(mut schema: Json, record: &RecordType) -> Json {
    let choices = reference_choices(record);
    if !choices.is_empty() {
        schema["allOf"] = choices.into();
    }
    schema
}

fn echoed_schema(field: &Field, context: ValueContext) -> (String, Json) {
    let (name, mut schema) = named_schema(field, context);
    if !field.is_writable() {
        schema["readOnly"] = true.into();
    }
    (name, schema)
}

fn patch_schema(model: &Model, record: &RecordType) -> Json {
    let fields = record.fields.iter().filter(|field| field.is_writable() || field.kind.is_id());
    let properties = fields.map(|field| echoed_schema(field, ValueContext::Patch));
    let nested = nested_members(model, record, ValueContext::Patch);
    let mut schema = object_schema(properties.chain(nested), Vec::new());
    if let Some(example) = example_values::example_patch(model, &record.fields) {
        schema["examples"] = json!([example]);
    }
    let description = "Changes to one {}: omitted fields stay unchanged, null removes a value; `id`, if given, must be that of the path.";
    with_description(schema, &description.replace("{}", &record.name))
}

/// The body of a form, which may have other controls too: they are ignored.
fn form_schema(record: &RecordType) -> Json {
    let required =
        writable_fields(record).filter(|field| is_required(field)).map(|field| field.input_name.as_str());
    let mut schema = object_schema(
        writable_fields(record).map(|field| named_schema(field, ValueContext::Form)),
        required.collect(),
    );
    schema["additionalProperties"] = true.into();
    with_description(
        schema,
        "Form controls by name; a blank one is null if the field is nullable, unknown ones are ignored.",
    )
}

fn embedded_schema(embedded: &EmbeddedType, context: ValueContext) -> Json {
    let fields = || embedded.stored_fields().map(|(field, _)| field);
    let is_needed = |field: &&Field| {
        field.required && field.default.is_none() && field.value_source == ValueSource::Client
    };
    let required = match context {
        ValueContext::Body => fields().filter(is_needed).map(|field| field.name.as_str()).collect(),
        ValueContext::Response | ValueContext::Patch | ValueContext::Form | ValueContext::Query => Vec::new(),
    };
    let properties = fields().map(|field| {
        let mut schema = field_schema(field, context);
        // In a patch null removes a member, which brings back its default.
        if context == ValueContext::Patch && field.required && field.default.is_some() {
            make_nullable(&mut schema);
        }
        (field.name.clone(), schema)
    });
    object_schema(properties, required)
}

fn enum_schema(enum_type: &EnumType) -> Json {
    let mut schema = json!({ "type": "string", "enum": enum_type.values });
    if enum_type.displays.iter().any(|display| display.label.is_some()) {
        let choices = enum_type.values.iter().zip(&enum_type.displays).map(|(value, display)| {
            let mut choice = json!({ "const": value });
            if let Some(label) = &display.label {
                choice["title"] = label.as_str().into();
            }
            choice
        });
        schema["oneOf"] = choices.collect();
    }
    match &enum_type.description {
        Some(description) => with_description(schema, description),
        None => schema,
    }
}

fn problem_schema() -> Json {
    let entry = json!({
        "type": "object",
        "required": ["code", "detail"],
        "properties": {
            "pointer": { "type": "string", "description": "The location in the body: a JSON Pointer as a URI fragment." },
            "parameter": { "type": "string", "description": "The query parameter." },
            "code": { "type": "string", "description": "Stable code in upper case." },
            "detail": { "type": "string" },
        },
    });
    json!({
        "type": "object",
        "description": "An error (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code", "requestId"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference" },
            "title": { "type": "string", "description": "The reason phrase of the status." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string" },
            "code": { "type": "string", "description": "Stable code in upper case: `NOT_FOUND`, `INVALID`, …" },
            "requestId": { "type": "string" },
            "index": { "type": "integer", "minimum": 0, "description": "The number of the failed request of a batch." },
            "errors": { "type": "array", "items": entry, "description": "One entry for each violated rule." },
        },
        "examples": [{
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": "Name must not be blank",
            "code": "INVALID", "requestId": "5f3c9d2a7b1e4c60-1",
            "errors": [{ "pointer": "#/name", "code": "NOT_BLANK", "detail": "Name must not be blank" }],
        }],
    })
}
