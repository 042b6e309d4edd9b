//! Values made up from the schema that pass all its rules: what people are offered to try.

use serde_json::{Map, Value as Json, json};

use crate::naming::names;
use crate::values::{coerce, json_text};
use crate::{Field, Kind, Model, RecordType, Rule, Scalar, Value};

/// A record as an answer shows it.
pub fn shown(model: &Model, record: &RecordType) -> Option<Json> {
    let mut object = Map::new();
    for field in record.fields.iter().filter(|field| field.is_stored()) {
        let value = match &field.kind {
            Kind::Reference { .. } if !field.required => Json::Null,
            kind @ (Kind::Id
            | Kind::Reference { .. }
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored) => written(model, field, value(model, field, kind)?)?,
        };
        object.insert(field.input_name.clone(), value);
    }
    Some(Json::Object(object))
}

/// As the store keeps it and an answer writes it.
pub fn written(model: &Model, field: &Field, value: Json) -> Option<Json> {
    let kept = coerce::typed(model, field, &Value::from(value)).ok()?;
    let mut text = Vec::new();
    json_text::write_cell(&mut text, &field.kind, kept.as_cell()).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A body that creates a record. Nothing where no value can be made up for a field that must be there.
pub fn given(model: &Model, fields: &[Field]) -> Option<Json> {
    let mut object = Map::new();
    for field in fields.iter().filter(|field| field.is_writable()) {
        match made_up(model, field) {
            Some(value) => drop(object.insert(field.input_name.clone(), value)),
            None if field.required && field.default.is_none() => return None,
            None => {}
        }
    }
    Some(Json::Object(object))
}

/// A change of one field.
pub fn patch(model: &Model, fields: &[Field]) -> Option<Json> {
    let mut known = fields.iter().filter(|field| field.is_writable() && !field.unique);
    known.find_map(|field| Some(json!({ &field.input_name: made_up(model, field)? })))
}

/// A value that the field takes. References are made up only where one must be there, and links never.
pub fn made_up(model: &Model, field: &Field) -> Option<Json> {
    match &field.kind {
        // Which records there are is not known; the first one usually is.
        Kind::Reference { .. } => field.required.then(|| json!("1")),
        Kind::Id | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
        kind @ (Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_)) => {
            let value = value(model, field, kind)?;
            coerce::field(model, field, &Value::from(value.clone())).is_ok().then_some(value)
        }
    }
}

fn value(model: &Model, field: &Field, kind: &Kind) -> Option<Json> {
    if let (Some(default), true) = (&field.default, *kind == field.kind) {
        return Some(default.to_json());
    }
    match kind {
        Kind::Scalar(scalar) => Some(of_scalar(field, *scalar)),
        Kind::Enum(name) => model.enums.get(name)?.values.first().map(|value| json!(value)),
        Kind::Embedded(name) => {
            let mut object = Map::new();
            for inner in model.embedded.get(name)?.fields.iter().filter(|inner| inner.kind != Kind::Unstored)
            {
                // A type may be inside itself.
                if !inner.required && matches!(inner.kind, Kind::Embedded(_) | Kind::List(_)) {
                    continue;
                }
                object.insert(inner.name.clone(), value(model, inner, &inner.kind)?);
            }
            Some(Json::Object(object))
        }
        Kind::List(item) => Some(json!([value(model, field, &item.kind)?])),
        Kind::Id | Kind::Reference { .. } => Some(json!("1")),
        Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => None,
    }
}

fn of_scalar(field: &Field, scalar: Scalar) -> Json {
    let least = field.rules.iter().find_map(|rule| match rule {
        Rule::Range { min, .. } => min.clone(),
        Rule::NotBlank | Rule::Length { .. } | Rule::Pattern { .. } | Rule::Email => None,
    });
    let is_email = field.rules.iter().any(|rule| matches!(rule, Rule::Email));
    match scalar {
        Scalar::String if is_email || field.name.to_lowercase().contains("email") => json!("ada@example.com"),
        Scalar::String | Scalar::Id => json!(names::label(&field.name)),
        Scalar::Int => least.and_then(|least| least.parse::<i32>().ok()).unwrap_or(1).max(1).into(),
        Scalar::Float => json!(1.5),
        Scalar::Boolean => json!(true),
        Scalar::Long => json!("1"),
        Scalar::Decimal => json!(least.filter(|least| least != "0").unwrap_or_else(|| "12.50".to_owned())),
        Scalar::Date => json!("2026-01-31"),
        Scalar::DateTime => json!("2026-01-31T09:30:00Z"),
        Scalar::Uuid => json!("123e4567-e89b-12d3-a456-426614174000"),
        Scalar::Url => json!("https://example.com/"),
        Scalar::Email => json!("ada@example.com"),
        Scalar::Json => json!({}),
    }
}
