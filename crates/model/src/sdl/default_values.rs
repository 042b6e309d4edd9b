//! Reads `@default` once all types are known, and checks each value against the type and rules of its field.

use std::collections::HashSet;

use apollo_compiler::{Node, Schema, ast};

use crate::naming::names;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives;
use crate::sdl::record_types::PartialModel;
use crate::values::coerce::{self, CoercionTypes};
use crate::{Field, Scalar, Value, ValueType};

pub(crate) fn read_defaults(
    partial_model: &mut PartialModel,
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    if redeclared.contains("default") {
        return;
    }
    // Defaults inside embedded types first: a default may create a value that takes them.
    for ty in partial_model.embedded.values_mut() {
        ty.fields
            .iter_mut()
            .for_each(|field| field.default = default_literal(schema, &ty.name, field).map(literal_value));
    }
    let check_all = |partial_model: &PartialModel,
                     owner: &str,
                     fields: &[Field],
                     log: &mut DiagnosticLog|
     -> Vec<Option<Value>> {
        fields.iter().map(|field| checked_default(partial_model, owner, field, schema, log)).collect()
    };
    let embedded: Vec<_> = partial_model
        .embedded
        .values()
        .map(|ty| check_all(partial_model, &ty.name, &ty.fields, log))
        .collect();
    partial_model
        .embedded
        .values_mut()
        .zip(embedded)
        .for_each(|(ty, defaults)| set_defaults(&mut ty.fields, defaults));
    let records: Vec<_> =
        partial_model.records.iter().map(|ty| check_all(partial_model, &ty.name, &ty.fields, log)).collect();
    partial_model
        .records
        .iter_mut()
        .zip(records)
        .for_each(|(ty, defaults)| set_defaults(&mut ty.fields, defaults));
}

fn set_defaults(fields: &mut [Field], defaults: Vec<Option<Value>>) {
    fields.iter_mut().zip(defaults).for_each(|(field, default)| field.default = default);
}

fn default_literal<'a>(schema: &'a Schema, owner: &str, field: &Field) -> Option<&'a Node<ast::Value>> {
    let definition = schema.get_object(owner)?.fields.get(field.name.as_str())?;
    let literal = directives::directive_argument(definition.directives.get("default")?, "value")?;
    let fits = !literal.is_null() && directives::expected_kind("default", &field.kind).is_none();
    fits.then_some(literal)
}

/// The default, or `None` after reporting what is wrong with it.
fn checked_default(
    partial_model: &PartialModel,
    owner: &str,
    field: &Field,
    schema: &Schema,
    log: &mut DiagnosticLog,
) -> Option<Value> {
    let literal = default_literal(schema, owner, field)?;
    let (value_type, default) = (field.kind.own_value()?, literal_value(literal));
    let types = CoercionTypes { enums: &partial_model.enums, embedded: &partial_model.embedded };
    let message = if let Some(reason) = literal_mismatch(literal, value_type) {
        reason
    } else if is_recursive_default(types, owner, field, &mut Vec::new()) {
        "it is recursive: the value contains a field whose default is this value again".to_owned()
    } else if let Err(violations) = coerce::coerce_with_types(types, field, &default) {
        violations.into_iter().map(|violation| violation.message).collect::<Vec<_>>().join("; ")
    } else {
        return Some(default);
    };
    let message = format!("invalid default for `{owner}.{}`: {message}", field.name);
    let diagnostic = log.error(literal.location(), "DEFAULT", message);
    let ty = schema.get_object(owner)?.fields.get(field.name.as_str())?.ty.to_string();
    diagnostic.label(format!("does not fit `{ty}`")).help = default_help(partial_model, value_type, literal);
    None
}

/// True if filling in this default leads back to a field in `above`, the path to it.
fn is_recursive_default<'a>(
    types: CoercionTypes<'a>,
    owner: &'a str,
    field: &'a Field,
    above: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    let entry = (owner, field.name.as_str());
    if above.contains(&entry) {
        return true;
    }
    above.push(entry);
    let is_recursive = field
        .default
        .as_ref()
        .is_some_and(|value| has_recursive_default(types, field.kind.own_value(), value, above));
    above.pop();
    is_recursive
}

fn has_recursive_default<'a>(
    types: CoercionTypes<'a>,
    value_type: Option<&'a ValueType>,
    value: &'a Value,
    above: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    match (value_type, value) {
        (Some(ValueType::List(item)), Value::List(values)) => {
            values.iter().any(|value| has_recursive_default(types, Some(&item.value_type), value, above))
        }
        (Some(ValueType::Embedded(name)), Value::Object(_)) => {
            let fields = types.embedded.get(name).map(|ty| ty.fields.as_slice()).unwrap_or_default();
            fields.iter().any(|field| match value.get(&field.name) {
                Some(member) => has_recursive_default(types, field.kind.own_value(), member, above),
                None => is_recursive_default(types, name, field, above),
            })
        }
        _ => false,
    }
}

/// The reason why a literal does not fit, where coercion would accept it: bare words are enum values, not text.
fn literal_mismatch(literal: &ast::Value, value_type: &ValueType) -> Option<String> {
    match (literal, value_type) {
        (ast::Value::Variable(_), _) => Some("variables are not allowed in a schema".to_owned()),
        (ast::Value::Enum(word), ValueType::Scalar(_)) => Some(format!("`{word}` is an enum value")),
        _ => None,
    }
}

fn default_help(
    partial_model: &PartialModel,
    value_type: &ValueType,
    literal: &ast::Value,
) -> Option<String> {
    match (value_type, literal) {
        (ValueType::Enum(name), _) => {
            let known = partial_model.enums.get(name)?.values.iter().map(String::as_str);
            let near = literal.as_enum().and_then(|word| names::nearest_name(word, known.clone()));
            Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use one of {}", known.collect::<Vec<_>>().join(", ")),
            })
        }
        (ValueType::Scalar(Scalar::String | Scalar::Id), ast::Value::Enum(word)) => {
            Some(format!("write `\"{word}\"`"))
        }
        (ValueType::Scalar(Scalar::Int | Scalar::Float), ast::Value::String(text)) => {
            text.parse::<f64>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        (ValueType::Scalar(Scalar::Boolean), ast::Value::String(text)) => {
            text.parse::<bool>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        _ => None,
    }
}

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
