//! The OpenAPI schemas of related records inside a body.

use serde_json::{Map, Value as Json, json};

use trefoil_model::{Field, FieldId, Model, RecordType, Relation};

use crate::openapi::values::{ValueContext, field_schema, key_schema, schema_reference};

/// The members for related records in a body, each with its schema.
pub fn nested_members(
    model: &Model,
    record: &RecordType,
    context: ValueContext,
) -> impl Iterator<Item = (String, Json)> {
    record.fields.iter().filter_map(move |field| {
        let relation = field.kind.relation().filter(|_| !field.is_filled_reference())?;
        let schema = match relation {
            Relation::Reference(_) => {
                schema_reference(&format!("{}.Reference", model.record(relation.target()).name))
            }
            Relation::Inverse(_) | Relation::Link(_) => {
                let list = schema_reference(&list_name(record, field, context));
                match context {
                    ValueContext::Body => {
                        let items = json!({ "type": "array", "items": new_item(model, relation) });
                        json!({ "anyOf": [items, list] })
                    }
                    ValueContext::Patch
                    | ValueContext::Response
                    | ValueContext::Form
                    | ValueContext::Query => list,
                }
            }
        };
        Some((field.name.clone(), schema))
    })
}

/// The rule that a body has each required reference in one of its two forms.
pub fn reference_choices(record: &RecordType) -> Vec<Json> {
    let required = record.fields.iter().filter(|field| {
        field.kind.is_reference() && field.required && !field.has_default() && field.is_writable()
    });
    let choice = |field: &Field| json!({ "anyOf": [{ "required": [field.input_name] }, { "required": [field.name] }] });
    required.map(choice).collect()
}

/// The schemas that the members above refer to.
pub fn nested_schemas(model: &Model, record: &RecordType) -> Map<String, Json> {
    let mut schemas = Map::new();
    schemas.insert(format!("{}.Reference", record.name), reference_schema(record));
    for field in &record.fields {
        let Some(relation) = field.kind.relation().filter(|_| !field.kind.is_reference()) else { continue };
        for context in [ValueContext::Body, ValueContext::Patch] {
            schemas.insert(list_name(record, field, context), list_schema(model, relation, context));
        }
    }
    for (position, field) in record.fields.iter().enumerate().filter(|(_, field)| field.kind.is_reference()) {
        schemas.insert(item_name(record, field), item_schema(model, record, FieldId(position)));
    }
    schemas
}

fn list_name(record: &RecordType, field: &Field, context: ValueContext) -> String {
    let suffix = if context == ValueContext::Patch { "Patch" } else { "New" };
    format!("{}.{}.{suffix}", record.name, field.name)
}

fn item_name(record: &RecordType, field: &Field) -> String {
    format!("{}.New.{}", record.name, field.name)
}

fn reference_schema(record: &RecordType) -> Json {
    let id = key_schema(record.key_form(), ValueContext::Body);
    let new = schema_reference(&format!("{}.New", record.name));
    json!({
        "description": format!("An existing {0} by its id, or a new {0}.", record.name),
        "oneOf": [
            { "type": "object", "required": ["id"], "properties": { "id": id }, "additionalProperties": false },
            { "type": "object", "required": ["create"], "properties": { "create": new }, "additionalProperties": false },
        ],
    })
}

/// A new record of a list: without the reference to the record around it.
fn new_item(model: &Model, relation: &Relation) -> Json {
    let target = model.record(relation.target());
    match relation {
        Relation::Inverse(inverse) => schema_reference(&item_name(target, target.field(inverse.field))),
        Relation::Link(_) | Relation::Reference(_) => schema_reference(&format!("{}.New", target.name)),
    }
}

fn list_schema(model: &Model, relation: &Relation, context: ValueContext) -> Json {
    let target = model.record(relation.target());
    let id = key_schema(target.key_form(), ValueContext::Body);
    // A member that is null is left out.
    let ids = || json!({ "type": ["array", "null"], "items": id });
    let update = json!({
        "type": "object", "required": ["id", "input"], "additionalProperties": false,
        "properties": { "id": id, "input": schema_reference(&format!("{}.Related", target.name)) },
    });
    let mut members = Map::new();
    members.insert(
        "create".to_owned(),
        json!({ "type": ["array", "null"], "items": new_item(model, relation) }),
    );
    if context == ValueContext::Patch {
        members.insert("update".to_owned(), json!({ "type": ["array", "null"], "items": update }));
        members.insert("delete".to_owned(), ids());
        members.insert("disconnect".to_owned(), ids());
    }
    members.insert("connect".to_owned(), ids());
    members.insert("set".to_owned(), ids());
    json!({
        "type": "object", "properties": members, "additionalProperties": false,
        "description": format!("What is done with the related records of type {}.", target.name),
    })
}

fn item_schema(model: &Model, record: &RecordType, reference: FieldId) -> Json {
    let is_owner = |field: &Field| field.name == record.field(reference).name;
    let fields = record.fields.iter().filter(|field| field.is_writable() && !is_owner(field));
    let mut properties: Map<String, Json> = fields
        .clone()
        .map(|field| (field.input_name.clone(), field_schema(field, ValueContext::Body)))
        .collect();
    let nested = nested_members(model, record, ValueContext::Body);
    properties.extend(nested.filter(|(name, _)| *name != record.field(reference).name));
    let is_required = |field: &&Field| {
        field.required && !field.has_default() && !field.kind.is_link() && !field.kind.is_reference()
    };
    let required: Vec<&str> = fields.filter(is_required).map(|field| field.input_name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["description"] =
        format!("A new {} inside the record that its `{}` is.", record.name, record.field(reference).name)
            .into();
    schema
}

/// The changes to a related record: those of a patch, without the id that stands beside them.
pub fn related_schema(model: &Model, record: &RecordType) -> Json {
    let fields = record.fields.iter().filter(|field| field.is_writable());
    let mut properties: Map<String, Json> =
        fields.map(|field| (field.input_name.clone(), field_schema(field, ValueContext::Body))).collect();
    properties.extend(nested_members(model, record, ValueContext::Patch));
    json!({
        "type": "object", "properties": properties, "additionalProperties": false,
        "description": format!("Changes to a related {}: omitted fields stay unchanged.", record.name),
    })
}
