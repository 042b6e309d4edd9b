//! The JSON Schema of a field's value in responses, bodies, patches, forms and queries.

use serde_json::{Value as Json, json};

use trefoil_model::{Field, FieldKind, FieldRule, KeyForm, ListItem, MAX_KEY_BYTES, Scalar, ValueType};

use crate::openapi::patterns::{
    self, DECIMAL, EMAIL, ID_PATTERN, NO_NUL, NOT_BLANK, NOT_NEGATIVE_ID, SHOWN_ID, TEXT_KEY,
};

/// Where a value appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueContext {
    /// In a response.
    Response,
    /// In a JSON body that creates or replaces a record.
    Body,
    /// In a merge patch.
    Patch,
    /// In a form control, where everything is text.
    Form,
    /// In the query.
    Query,
}

/// Any text that a store can hold.
pub fn text_schema() -> Json {
    json!({ "type": "string", "pattern": NO_NUL })
}

/// A reference to a schema component.
pub fn schema_reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The schema of a field, with its rules, description and default.
pub fn field_schema(field: &Field, context: ValueContext) -> Json {
    let mut schema = kind_schema(&field.kind, context);
    match context {
        // Values stored before a rule was added are shown all the same.
        ValueContext::Response | ValueContext::Query => {}
        ValueContext::Body | ValueContext::Patch | ValueContext::Form => add_rules(&mut schema, field),
    }
    // For links null, absent and an empty list mean the same.
    let is_optional = !field.required || field.kind.is_link();
    match context {
        ValueContext::Response if is_optional || field.may_be_hidden => make_nullable(&mut schema),
        ValueContext::Body | ValueContext::Patch if is_optional => make_nullable(&mut schema),
        ValueContext::Form if !field.required => make_blankable(&mut schema),
        ValueContext::Response
        | ValueContext::Body
        | ValueContext::Patch
        | ValueContext::Form
        | ValueContext::Query => {}
    }
    if context != ValueContext::Query {
        add_words(&mut schema, field);
    }
    if let (ValueContext::Body | ValueContext::Form, Some(default)) = (context, &field.default) {
        schema["default"] = default.to_json();
    }
    schema
}

/// The words for the field and its place among the others, as far as the schema says them.
fn add_words(schema: &mut Json, field: &Field) {
    let words = field.description.as_ref().or(field.display.hint.as_ref());
    for (name, words) in [("title", field.display.label.as_ref()), ("description", words)] {
        if let Some(words) = words {
            schema[name] = words.as_str().into();
        }
    }
    if let Some(order) = field.display.order {
        schema["x-order"] = order.into();
    }
}

pub fn kind_schema(kind: &FieldKind, context: ValueContext) -> Json {
    match kind.value_type() {
        Some(value_type) => type_schema(value_type, context),
        None => match kind.link() {
            Some(link) => {
                json!({ "type": "array", "items": type_schema(&ValueType::Key(link.key_form), context) })
            }
            None => json!({}),
        },
    }
}

/// The schema of the ids of records.
pub fn key_schema(form: KeyForm, context: ValueContext) -> Json {
    type_schema(&ValueType::Key(form), context)
}

fn type_schema(value_type: &ValueType, context: ValueContext) -> Json {
    match value_type {
        ValueType::Key(KeyForm::Number) if context == ValueContext::Response => {
            json!({ "type": "integer", "format": "int64" })
        }
        ValueType::Key(KeyForm::Digits | KeyForm::Number) => id_schema(context),
        ValueType::Key(form) => text_key_schema(*form),
        ValueType::Scalar(scalar) => scalar_schema(*scalar, context),
        ValueType::Enum(name) => schema_reference(name),
        ValueType::Embedded(name) => match context {
            ValueContext::Response | ValueContext::Query => schema_reference(name),
            ValueContext::Body => schema_reference(&format!("{name}.New")),
            ValueContext::Patch => schema_reference(&format!("{name}.Patch")),
            ValueContext::Form => json!({ "type": "string", "contentMediaType": "application/json" }),
        },
        ValueType::List(item) => list_schema(item, context),
    }
}

fn list_schema(item: &ListItem, context: ValueContext) -> Json {
    let item_context = match context {
        // A patch replaces a list as a whole.
        ValueContext::Patch => ValueContext::Body,
        ValueContext::Form => return json!({ "type": "string", "description": "One element per line." }),
        ValueContext::Response | ValueContext::Body | ValueContext::Query => context,
    };
    let mut items = type_schema(&item.value_type, item_context);
    if !item.required {
        make_nullable(&mut items);
    }
    json!({ "type": "array", "items": items })
}

/// The schema of ids that are not integers.
pub fn text_key_schema(form: KeyForm) -> Json {
    match form {
        KeyForm::Uuid => json!({ "type": "string", "format": "uuid" }),
        KeyForm::Digits | KeyForm::Number | KeyForm::Text => {
            // A length in characters: the limit is one of bytes, which JSON Schema cannot count.
            json!({ "type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES, "pattern": TEXT_KEY })
        }
    }
}

/// A 64-bit integer: text, so that no client rounds it. Bodies may have a number instead.
fn id_schema(context: ValueContext) -> Json {
    match context {
        ValueContext::Body | ValueContext::Patch => json!({
            "type": ["string", "integer"], "pattern": ID_PATTERN, "minimum": i64::MIN, "maximum": i64::MAX,
        }),
        ValueContext::Response => json!({ "type": "string", "pattern": SHOWN_ID }),
        ValueContext::Form | ValueContext::Query => json!({ "type": "string", "pattern": ID_PATTERN }),
    }
}

fn scalar_schema(scalar: Scalar, context: ValueContext) -> Json {
    let is_response = context == ValueContext::Response;
    match scalar {
        Scalar::String if is_response => json!({ "type": "string" }),
        Scalar::String => json!({ "type": "string", "pattern": NO_NUL }),
        Scalar::Id => match context {
            ValueContext::Body | ValueContext::Patch => json!({
                "type": ["string", "integer"], "pattern": NO_NUL, "minimum": i64::MIN, "maximum": i64::MAX,
            }),
            ValueContext::Response => json!({ "type": "string" }),
            ValueContext::Form | ValueContext::Query => json!({ "type": "string", "pattern": NO_NUL }),
        },
        Scalar::Int => {
            json!({ "type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX })
        }
        Scalar::Float => json!({ "type": "number", "format": "double" }),
        Scalar::Boolean => json!({ "type": "boolean" }),
        Scalar::Long => id_schema(context),
        Scalar::Decimal => match context {
            ValueContext::Response => {
                json!({ "type": "string", "pattern": patterns::anchored(patterns::PLAIN_DECIMAL) })
            }
            ValueContext::Body | ValueContext::Patch => {
                json!({ "type": ["string", "number"], "pattern": patterns::anchored(DECIMAL) })
            }
            ValueContext::Form | ValueContext::Query => {
                json!({ "type": "string", "pattern": patterns::anchored(DECIMAL) })
            }
        },
        Scalar::Date => json!({ "type": "string", "format": "date" }),
        Scalar::DateTime => json!({ "type": "string", "format": "date-time" }),
        Scalar::LocalDateTime => {
            json!({ "type": "string", "pattern": patterns::anchored(patterns::LOCAL_DATE_TIME) })
        }
        Scalar::Uuid => json!({ "type": "string", "format": "uuid" }),
        Scalar::Url => json!({ "type": "string", "format": "uri" }),
        // Without `format: email`, which means RFC 5321: Trefoil accepts what browsers accept.
        Scalar::Email if is_response => json!({ "type": "string" }),
        Scalar::Email => json!({ "type": "string", "pattern": EMAIL }),
        Scalar::Json if context == ValueContext::Form => {
            json!({ "type": "string", "contentMediaType": "application/json" })
        }
        Scalar::Json => json!({ "description": "Any JSON." }),
    }
}

/// Adds the rules of a field as JSON Schema keywords, or as description where there is no keyword.
fn add_rules(schema: &mut Json, field: &Field) {
    let mut patterns: Vec<String> =
        schema.get("pattern").and_then(Json::as_str).map(str::to_owned).into_iter().collect();
    for rule in &field.rules {
        match rule {
            FieldRule::NotBlank => {
                patterns.retain(|pattern| pattern != NO_NUL);
                patterns.push(NOT_BLANK.to_owned());
            }
            FieldRule::Email => {
                patterns.retain(|pattern| pattern != NO_NUL);
                patterns.push(EMAIL.to_owned());
            }
            FieldRule::Pattern { pattern: source, .. } => match patterns::portable_pattern(source) {
                Some(pattern) => patterns.push(pattern),
                None => schema["description"] = format!("Must match `{source}`.").into(),
            },
            FieldRule::Length { min, max } => {
                let is_list = field.kind.list_item().is_some();
                let names = if is_list { ["minItems", "maxItems"] } else { ["minLength", "maxLength"] };
                for (name, bound) in names.into_iter().zip([min, max]) {
                    if let Some(bound) = bound {
                        schema[name] = (*bound).into();
                    }
                }
            }
            FieldRule::Range { min, max } => add_range(schema, &mut patterns, min.as_deref(), max.as_deref()),
        }
    }
    schema.as_object_mut().map(|schema| schema.remove("pattern"));
    match patterns.as_slice() {
        [] => {}
        [pattern] => schema["pattern"] = pattern.as_str().into(),
        several => schema["allOf"] = several.iter().map(|pattern| json!({ "pattern": pattern })).collect(),
    }
}

/// Adds bounds, which apply to numbers. For numbers written as text JSON Schema can only restrict the sign.
fn add_range(schema: &mut Json, patterns: &mut [String], min: Option<&str>, max: Option<&str>) {
    let number = |text: &str| serde_json::from_str::<serde_json::Number>(text).ok().map(Json::Number);
    for (name, bound) in [("minimum", min), ("maximum", max)] {
        if let Some(bound) = bound.and_then(number) {
            schema[name] = bound;
        }
    }
    if min.is_some_and(|min| !min.starts_with('-')) {
        for pattern in patterns {
            if *pattern == patterns::anchored(DECIMAL) {
                *pattern = patterns::anchored(patterns::unsigned(DECIMAL));
            } else if pattern == ID_PATTERN {
                *pattern = NOT_NEGATIVE_ID.to_owned();
            }
        }
    }
}

pub fn make_nullable(schema: &mut Json) {
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

/// Also allows the empty text: a blank control means null.
fn make_blankable(schema: &mut Json) {
    let is_text = schema.get("type") == Some(&json!("string")) && schema.get("minLength").is_none();
    let is_free = schema.get("pattern").is_none_or(|pattern| pattern == NO_NUL);
    if !(is_text && is_free && schema.get("format").is_none() && schema.get("allOf").is_none()) {
        *schema = json!({ "anyOf": [schema.take(), { "type": "string", "maxLength": 0 }] });
    }
}
