//! Example values that satisfy the schema, for documentation and forms.

use serde_json::{Map, Value as Json, json};

use crate::naming::names;
use crate::values::{coerce, json_text};
use crate::{Field, FieldRule, KeyForm, Model, RecordId, RecordType, Scalar, Value, ValueType};

/// An example record as a response shows it.
pub fn example_record(model: &Model, record: &RecordType) -> Option<Json> {
    let mut object = Map::new();
    for field in record.fields.iter().filter(|field| field.is_stored()) {
        let value = match field.kind.is_reference() && !field.required {
            true => Json::Null,
            false => as_response_json(model, field, value_of_field(model, field, field.kind.value_type()?)?)?,
        };
        object.insert(field.input_name.clone(), value);
    }
    Some(Json::Object(object))
}

/// The value as it looks after being stored and read back.
pub fn as_response_json(model: &Model, field: &Field, value: Json) -> Option<Json> {
    let stored = coerce::coerce_type_only(model, field, &Value::from(value)).ok()?;
    let mut text = Vec::new();
    json_text::write_cell(&mut text, field.kind.value_type()?, stored.as_cell()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A body that creates a record; `None` if no example exists for a required field.
pub fn example_input(model: &Model, record: &RecordType) -> Option<Json> {
    let mut object = Map::new();
    for field in record.fields.iter().filter(|field| record.is_set_on_create(field)) {
        match example_value(model, field) {
            Some(value) => drop(object.insert(field.input_name.clone(), value)),
            // A list of links may be empty.
            None if field.required && !field.has_default() && !field.kind.is_link() => return None,
            None => {}
        }
    }
    Some(Json::Object(object))
}

/// A body that changes one field.
pub fn example_patch(model: &Model, fields: &[Field]) -> Option<Json> {
    let mut candidates = fields.iter().filter(|field| field.is_writable() && !field.is_distinct());
    candidates.find_map(|field| Some(json!({ &field.input_name: example_value(model, field)? })))
}

/// A valid value of the field. References get one only if required, links never.
pub fn example_value(model: &Model, field: &Field) -> Option<Json> {
    if let Some(form) = field.kind.key_form() {
        return Some(example_key(form));
    }
    if field.kind.is_reference() {
        let form = field.kind.reference().map(|reference| reference.key_form);
        return form.filter(|_| field.required).map(example_key);
    }
    let value = value_of_field(model, field, field.kind.own_value()?)?;
    coerce::coerce_field(model, field, &Value::from(value.clone())).is_ok().then_some(value)
}

/// The default, or a value made for the type.
fn value_of_field(model: &Model, field: &Field, value_type: &ValueType) -> Option<Json> {
    match &field.default {
        Some(default) => Some(default.to_json()),
        None => value_of_type(model, field, value_type),
    }
}

fn value_of_type(model: &Model, field: &Field, value_type: &ValueType) -> Option<Json> {
    match value_type {
        ValueType::Key(form) => Some(example_key(*form)),
        ValueType::Scalar(scalar) => Some(value_for_scalar(field, *scalar)),
        ValueType::Enum(name) => model.enums.get(name)?.values.first().map(|value| json!(value)),
        ValueType::Embedded(name) => {
            let mut object = Map::new();
            for (inner, inner_type) in model.embedded.get(name)?.stored_fields() {
                // A type may contain itself.
                if inner.required || !inner_type.has_parts() {
                    object.insert(inner.name.clone(), value_of_field(model, inner, inner_type)?);
                }
            }
            Some(Json::Object(object))
        }
        ValueType::List(item) => Some(json!([value_of_type(model, field, &item.value_type)?])),
    }
}

/// An id of the form; a first record with a counted id usually exists.
pub fn example_id(form: KeyForm) -> RecordId {
    match form {
        KeyForm::Digits | KeyForm::Number => RecordId::Number(1),
        KeyForm::Uuid => RecordId::from("123e4567-e89b-12d3-a456-426614174000"),
        KeyForm::Text => RecordId::from("first"),
    }
}

fn example_key(form: KeyForm) -> Json {
    match (form, example_id(form)) {
        (KeyForm::Number, RecordId::Number(number)) => json!(number),
        (_, id) => json!(id.to_string()),
    }
}

fn value_for_scalar(field: &Field, scalar: Scalar) -> Json {
    let min = field.rules.iter().find_map(|rule| match rule {
        FieldRule::Range { min, .. } => min.clone(),
        FieldRule::NotBlank | FieldRule::Length { .. } | FieldRule::Pattern { .. } | FieldRule::Email => None,
    });
    let is_email = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    match scalar {
        Scalar::String if is_email || field.name.to_lowercase().contains("email") => json!("ada@example.com"),
        Scalar::String | Scalar::Id => json!(names::display_label(&field.name)),
        Scalar::Int => min.and_then(|min| min.parse::<i32>().ok()).unwrap_or(1).max(1).into(),
        Scalar::Float => json!(1.5),
        Scalar::Boolean => json!(true),
        Scalar::Long => json!("1"),
        Scalar::Decimal => json!(min.filter(|min| min != "0").unwrap_or_else(|| "12.50".to_owned())),
        Scalar::Date => json!("2026-01-31"),
        Scalar::DateTime => json!("2026-01-31T09:30:00Z"),
        Scalar::LocalDateTime => json!("2026-01-31T09:30:00"),
        Scalar::Uuid => json!("123e4567-e89b-12d3-a456-426614174000"),
        Scalar::Url => json!("https://example.com/"),
        Scalar::Email => json!("ada@example.com"),
        Scalar::Json => json!({}),
    }
}
