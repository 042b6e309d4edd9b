//! Reads `@default` once all types are known and holds each against its own field's type and rules.

use std::collections::HashSet;

use apollo_compiler::Node;
use apollo_compiler::Schema;
use apollo_compiler::ast;

use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives;
use crate::sdl::record_types::PartialModel;
use crate::values::coerce;
use crate::values::coerce::CoercionTypes;
use crate::{Field, FieldKind, Scalar, Value};

pub(crate) fn read_defaults(
    draft: &mut PartialModel,
    schema: &Schema,
    theirs: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    if theirs.contains("default") {
        return;
    }
    // All those inside values are known before one is judged: it may make a value with defaults of its own.
    for ty in draft.embedded.values_mut() {
        ty.fields
            .iter_mut()
            .for_each(|field| field.default = default_literal(schema, &ty.name, field).map(literal_value));
    }
    let judge = |draft: &PartialModel,
                 owner: &str,
                 fields: &[Field],
                 log: &mut DiagnosticLog|
     -> Vec<Option<Value>> {
        fields.iter().map(|field| checked_default(draft, owner, field, schema, log)).collect()
    };
    let embedded: Vec<_> =
        draft.embedded.values().map(|ty| judge(draft, &ty.name, &ty.fields, log)).collect();
    draft
        .embedded
        .values_mut()
        .zip(embedded)
        .for_each(|(ty, defaults)| set_defaults(&mut ty.fields, defaults));
    let records: Vec<_> = draft.records.iter().map(|ty| judge(draft, &ty.name, &ty.fields, log)).collect();
    draft.records.iter_mut().zip(records).for_each(|(ty, defaults)| set_defaults(&mut ty.fields, defaults));
}

fn set_defaults(fields: &mut [Field], defaults: Vec<Option<Value>>) {
    fields.iter_mut().zip(defaults).for_each(|(field, default)| field.default = default);
}

fn default_literal<'a>(schema: &'a Schema, owner: &str, field: &Field) -> Option<&'a Node<ast::Value>> {
    let definition = schema.get_object(owner)?.fields.get(field.name.as_str())?;
    let literal = directives::directive_argument(definition.directives.get("default")?, "value")?;
    let fits = !literal.is_null() && directives::unfit_reason("default", &field.kind).is_none();
    fits.then_some(literal)
}

/// The default, or a word about what is wrong with it.
fn checked_default(
    draft: &PartialModel,
    owner: &str,
    field: &Field,
    schema: &Schema,
    log: &mut DiagnosticLog,
) -> Option<Value> {
    let literal = default_literal(schema, owner, field)?;
    let default = literal_value(literal);
    let types = CoercionTypes { enums: &draft.enums, embedded: &draft.embedded };
    let message = if let Some(reason) = literal_mismatch(literal, &field.kind) {
        reason
    } else if is_recursive_default(types, owner, field, &mut Vec::new()) {
        "it never ends: the value it makes takes a default that makes it again".to_owned()
    } else if let Err(violations) = coerce::field_with_types(types, field, &default) {
        violations.into_iter().map(|violation| violation.message).collect::<Vec<_>>().join("; ")
    } else {
        return Some(default);
    };
    let message = format!("the default of `{owner}.{}` does not fit: {message}", field.name);
    let found = log.error(literal.location(), "DEFAULT", message);
    let ty = schema.get_object(owner)?.fields.get(field.name.as_str())?.ty.to_string();
    found.label(format!("does not fit `{ty}`")).help = default_help(draft, &field.kind, literal);
    None
}

/// Whether filling in defaults inside this one comes back to where it was; `above` leads here.
fn is_recursive_default<'a>(
    types: CoercionTypes<'a>,
    owner: &'a str,
    field: &'a Field,
    above: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    let at = (owner, field.name.as_str());
    if above.contains(&at) {
        return true;
    }
    above.push(at);
    let endless =
        field.default.as_ref().is_some_and(|value| has_recursive_default(types, &field.kind, value, above));
    above.pop();
    endless
}

fn has_recursive_default<'a>(
    types: CoercionTypes<'a>,
    kind: &'a FieldKind,
    value: &'a Value,
    above: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    match (kind, value) {
        (FieldKind::List(item), Value::List(values)) => {
            values.iter().any(|value| has_recursive_default(types, &item.kind, value, above))
        }
        (FieldKind::Embedded(name), Value::Object(_)) => {
            let fields = types.embedded.get(name).map(|ty| ty.fields.as_slice()).unwrap_or_default();
            fields.iter().any(|field| match value.get(&field.name) {
                Some(given) => has_recursive_default(types, &field.kind, given, above),
                None => is_recursive_default(types, name, field, above),
            })
        }
        _ => false,
    }
}

/// Bare words are enum values and nothing else, although a scalar would take them.
fn literal_mismatch(literal: &ast::Value, kind: &FieldKind) -> Option<String> {
    match (literal, kind) {
        (ast::Value::Variable(_), _) => Some("a schema has no variables".to_owned()),
        (ast::Value::Enum(word), FieldKind::Scalar(_)) => {
            Some(format!("`{word}` is a bare word, not a value"))
        }
        _ => None,
    }
}

fn default_help(draft: &PartialModel, kind: &FieldKind, literal: &ast::Value) -> Option<String> {
    match (kind, literal) {
        (FieldKind::Enum(name), _) => {
            let known = draft.enums.get(name)?.values.iter().map(String::as_str);
            let near =
                literal.as_enum().and_then(|word| crate::naming::names::nearest_name(word, known.clone()));
            Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", known.collect::<Vec<_>>().join(", ")),
            })
        }
        (FieldKind::Scalar(Scalar::String | Scalar::Id), ast::Value::Enum(word)) => {
            Some(format!("write `\"{word}\"`"))
        }
        (FieldKind::Scalar(Scalar::Int | Scalar::Float), ast::Value::String(text)) => {
            text.parse::<f64>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        (FieldKind::Scalar(Scalar::Boolean), ast::Value::String(text)) => {
            text.parse::<bool>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        _ => None,
    }
}

/// A literal of the schema as a value.
fn literal_value(literal: &Node<ast::Value>) -> Value {
    match &**literal {
        ast::Value::Null | ast::Value::Variable(_) => Value::Null,
        ast::Value::Enum(name) => Value::String(name.to_string()),
        ast::Value::String(text) => Value::String(text.clone()),
        ast::Value::Boolean(flag) => Value::Bool(*flag),
        ast::Value::Int(digits) => Value::number(digits.as_str()).unwrap_or(Value::Null),
        ast::Value::Float(digits) => Value::number(digits.as_str()).unwrap_or(Value::Null),
        ast::Value::List(items) => Value::List(items.iter().map(literal_value).collect()),
        ast::Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, field)| (name.to_string(), literal_value(field))).collect(),
        ),
    }
}
