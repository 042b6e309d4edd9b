//! What the value of a field looks like in JSON Schema: as answers show it, bodies give it, forms and queries spell it.

use serde_json::{Value as Json, json};

use crate::openapi::patterns;
use crate::openapi::patterns::{DECIMAL, EMAIL, ID, NO_NUL, NOT_BLANK, NOT_NEGATIVE_ID, SHOWN_ID};
use trefoil_model::{Field, Item, Kind, Rule, Scalar};

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In an answer.
    Shown,
    /// In a JSON body that makes or overwrites a record.
    Given,
    /// In a merge patch.
    Patched,
    /// In a control of a form, where everything is text.
    Typed,
    /// Behind the `?`.
    Asked,
}

/// A component by its name.
pub fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// What one field holds, with everything that the schema says of it.
pub fn of_field(field: &Field, side: Side) -> Json {
    let mut schema = of_kind(&field.kind, side);
    match side {
        // What was kept before a rule came is shown all the same.
        Side::Shown | Side::Asked => {}
        Side::Given | Side::Patched | Side::Typed => constrain(&mut schema, field),
    }
    // No links are no records on the other side, however that is said.
    let is_optional = !field.required || matches!(field.kind, Kind::Link { .. });
    match side {
        Side::Shown | Side::Given | Side::Patched if is_optional => nullable(&mut schema),
        Side::Typed if !field.required => blankable(&mut schema),
        Side::Shown | Side::Given | Side::Patched | Side::Typed | Side::Asked => {}
    }
    if let Some(description) = field.description.as_ref().filter(|_| side != Side::Asked) {
        schema["description"] = description.as_str().into();
    }
    if let (Side::Given | Side::Typed, Some(default)) = (side, &field.default) {
        schema["default"] = default.to_json();
    }
    schema
}

pub fn of_kind(kind: &Kind, side: Side) -> Json {
    match kind {
        Kind::Id | Kind::Reference { .. } => id(side),
        Kind::Scalar(scalar) => of_scalar(*scalar, side),
        Kind::Enum(name) => reference(name),
        Kind::Embedded(name) => match side {
            Side::Shown | Side::Asked => reference(name),
            Side::Given => reference(&format!("{name}.New")),
            Side::Patched => reference(&format!("{name}.Patch")),
            Side::Typed => json!({ "type": "string", "contentMediaType": "application/json" }),
        },
        Kind::List(item) => list(item, side),
        Kind::Link { .. } => json!({ "type": "array", "items": id(side) }),
        Kind::Inverse { .. } | Kind::Unstored => json!({}),
    }
}

fn list(item: &Item, side: Side) -> Json {
    let within = match side {
        // A list is replaced as a whole.
        Side::Patched => Side::Given,
        Side::Typed => return json!({ "type": "string", "description": "One element a line." }),
        Side::Shown | Side::Given | Side::Asked => side,
    };
    let mut items = of_kind(&item.kind, within);
    if !item.required {
        nullable(&mut items);
    }
    json!({ "type": "array", "items": items })
}

/// A 64-bit number: text, so that no client rounds it. Bodies may write it as a number too.
fn id(side: Side) -> Json {
    match side {
        Side::Given | Side::Patched => json!({
            "type": ["string", "integer"], "pattern": ID, "minimum": i64::MIN, "maximum": i64::MAX,
        }),
        Side::Shown => json!({ "type": "string", "pattern": SHOWN_ID }),
        Side::Typed | Side::Asked => json!({ "type": "string", "pattern": ID }),
    }
}

fn of_scalar(scalar: Scalar, side: Side) -> Json {
    let is_shown = side == Side::Shown;
    match scalar {
        Scalar::String if is_shown => json!({ "type": "string" }),
        Scalar::String => json!({ "type": "string", "pattern": NO_NUL }),
        Scalar::Id => match side {
            Side::Given | Side::Patched => json!({
                "type": ["string", "integer"], "pattern": NO_NUL, "minimum": i64::MIN, "maximum": i64::MAX,
            }),
            Side::Shown => json!({ "type": "string" }),
            Side::Typed | Side::Asked => json!({ "type": "string", "pattern": NO_NUL }),
        },
        Scalar::Int => {
            json!({ "type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX })
        }
        Scalar::Float => json!({ "type": "number", "format": "double" }),
        Scalar::Boolean => json!({ "type": "boolean" }),
        Scalar::Long => id(side),
        Scalar::Decimal => match side {
            Side::Shown => json!({ "type": "string", "pattern": patterns::whole(patterns::PLAIN_DECIMAL) }),
            Side::Given | Side::Patched => {
                json!({ "type": ["string", "number"], "pattern": patterns::whole(DECIMAL) })
            }
            Side::Typed | Side::Asked => json!({ "type": "string", "pattern": patterns::whole(DECIMAL) }),
        },
        Scalar::Date => json!({ "type": "string", "format": "date" }),
        Scalar::DateTime => json!({ "type": "string", "format": "date-time" }),
        Scalar::Uuid => json!({ "type": "string", "format": "uuid" }),
        Scalar::Url => json!({ "type": "string", "format": "uri" }),
        // No `format`: that of RFC 5321 is another than that of browsers, which is ours.
        Scalar::Email if is_shown => json!({ "type": "string" }),
        Scalar::Email => json!({ "type": "string", "pattern": EMAIL }),
        Scalar::Json if side == Side::Typed => {
            json!({ "type": "string", "contentMediaType": "application/json" })
        }
        Scalar::Json => json!({ "description": "Any JSON." }),
    }
}

/// The rules of a field, as far as JSON Schema has words for them; the rest is said in words.
fn constrain(schema: &mut Json, field: &Field) {
    let mut patterns: Vec<String> =
        schema.get("pattern").and_then(Json::as_str).map(str::to_owned).into_iter().collect();
    for rule in &field.rules {
        match rule {
            Rule::NotBlank => {
                patterns.retain(|pattern| pattern != NO_NUL);
                patterns.push(NOT_BLANK.to_owned());
            }
            Rule::Email => {
                patterns.retain(|pattern| pattern != NO_NUL);
                patterns.push(EMAIL.to_owned());
            }
            Rule::Pattern { source, .. } => match patterns::portable(source) {
                Some(pattern) => patterns.push(pattern),
                None => schema["description"] = format!("Must match `{source}`.").into(),
            },
            Rule::Length { min, max } => {
                let is_list = matches!(field.kind, Kind::List(_));
                let names = if is_list { ["minItems", "maxItems"] } else { ["minLength", "maxLength"] };
                for (name, bound) in names.into_iter().zip([min, max]) {
                    if let Some(bound) = bound {
                        schema[name] = (*bound).into();
                    }
                }
            }
            Rule::Range { min, max } => range(schema, &mut patterns, min.as_deref(), max.as_deref()),
        }
    }
    schema.as_object_mut().map(|schema| schema.remove("pattern"));
    match patterns.as_slice() {
        [] => {}
        [pattern] => schema["pattern"] = pattern.as_str().into(),
        several => schema["allOf"] = several.iter().map(|pattern| json!({ "pattern": pattern })).collect(),
    }
}

/// Bounds hold for numbers; of a number that is written as text, JSON Schema can bound no more than the sign.
fn range(schema: &mut Json, patterns: &mut [String], min: Option<&str>, max: Option<&str>) {
    let number = |text: &str| serde_json::from_str::<serde_json::Number>(text).ok().map(Json::Number);
    for (name, bound) in [("minimum", min), ("maximum", max)] {
        if let Some(bound) = bound.and_then(number) {
            schema[name] = bound;
        }
    }
    if min.is_some_and(|min| !min.starts_with('-')) {
        for pattern in patterns {
            if *pattern == patterns::whole(DECIMAL) {
                *pattern = patterns::whole(patterns::unsigned(DECIMAL));
            } else if pattern == ID {
                *pattern = NOT_NEGATIVE_ID.to_owned();
            }
        }
    }
}

pub fn nullable(schema: &mut Json) {
    if schema.get("$ref").is_some() {
        *schema = json!({ "anyOf": [schema.take(), { "type": "null" }] });
        return;
    }
    match schema.get_mut("type") {
        Some(Json::Array(types)) => types.push("null".into()),
        Some(one) => *one = json!([one.take(), "null"]),
        None => {}
    }
}

/// A control that is left blank is null.
fn blankable(schema: &mut Json) {
    let is_text = schema.get("type") == Some(&json!("string")) && schema.get("minLength").is_none();
    let is_free = schema.get("pattern").is_none_or(|pattern| pattern == NO_NUL);
    if !(is_text && is_free && schema.get("format").is_none() && schema.get("allOf").is_none()) {
        *schema = json!({ "anyOf": [schema.take(), { "type": "string", "maxLength": 0 }] });
    }
}
