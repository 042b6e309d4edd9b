//! Reads `@default` once all types are known and holds each against its own field's type and rules.

use std::collections::HashSet;

use apollo_compiler::Node;
use apollo_compiler::Schema;
use apollo_compiler::ast;

use crate::sdl::diagnostic_log::Log;
use crate::sdl::directives;
use crate::sdl::record_types::Draft;
use crate::values::coerce;
use crate::values::coerce::Types;
use crate::{Field, Kind, Scalar, Value};

pub(crate) fn read(draft: &mut Draft, schema: &Schema, theirs: &HashSet<String>, log: &mut Log) {
    if theirs.contains("default") {
        return;
    }
    // All those inside values are known before one is judged: it may make a value with defaults of its own.
    for ty in draft.embedded.values_mut() {
        ty.fields.iter_mut().for_each(|field| field.default = literal(schema, &ty.name, field).map(value));
    }
    let judge = |draft: &Draft, owner: &str, fields: &[Field], log: &mut Log| -> Vec<Option<Value>> {
        fields.iter().map(|field| default(draft, owner, field, schema, log)).collect()
    };
    let embedded: Vec<_> =
        draft.embedded.values().map(|ty| judge(draft, &ty.name, &ty.fields, log)).collect();
    draft.embedded.values_mut().zip(embedded).for_each(|(ty, defaults)| set(&mut ty.fields, defaults));
    let records: Vec<_> = draft.records.iter().map(|ty| judge(draft, &ty.name, &ty.fields, log)).collect();
    draft.records.iter_mut().zip(records).for_each(|(ty, defaults)| set(&mut ty.fields, defaults));
}

fn set(fields: &mut [Field], defaults: Vec<Option<Value>>) {
    fields.iter_mut().zip(defaults).for_each(|(field, default)| field.default = default);
}

fn literal<'a>(schema: &'a Schema, owner: &str, field: &Field) -> Option<&'a Node<ast::Value>> {
    let definition = schema.get_object(owner)?.fields.get(field.name.as_str())?;
    let literal = directives::argument(definition.directives.get("default")?, "value")?;
    let fits = !literal.is_null() && directives::misfit("default", &field.kind).is_none();
    fits.then_some(literal)
}

/// The default, or a word about what is wrong with it.
fn default(draft: &Draft, owner: &str, field: &Field, schema: &Schema, log: &mut Log) -> Option<Value> {
    let literal = literal(schema, owner, field)?;
    let default = value(literal);
    let types = Types { enums: &draft.enums, embedded: &draft.embedded };
    let message = if let Some(reason) = wrong_literal(literal, &field.kind) {
        reason
    } else if is_endless(types, owner, field, &mut Vec::new()) {
        "it never ends: the value it makes takes a default that makes it again".to_owned()
    } else if let Err(violations) = coerce::kept(types, field, &default) {
        violations.into_iter().map(|violation| violation.message).collect::<Vec<_>>().join("; ")
    } else {
        return Some(default);
    };
    let message = format!("the default of `{owner}.{}` does not fit: {message}", field.name);
    let found = log.error(literal.location(), "DEFAULT", message);
    let ty = schema.get_object(owner)?.fields.get(field.name.as_str())?.ty.to_string();
    found.label(format!("does not fit `{ty}`")).help = help(draft, &field.kind, literal);
    None
}

/// Whether filling in defaults inside this one comes back to where it was; `above` leads here.
fn is_endless<'a>(
    types: Types<'a>,
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
        field.default.as_ref().is_some_and(|value| fills_for_ever(types, &field.kind, value, above));
    above.pop();
    endless
}

fn fills_for_ever<'a>(
    types: Types<'a>,
    kind: &'a Kind,
    value: &'a Value,
    above: &mut Vec<(&'a str, &'a str)>,
) -> bool {
    match (kind, value) {
        (Kind::List(item), Value::List(values)) => {
            values.iter().any(|value| fills_for_ever(types, &item.kind, value, above))
        }
        (Kind::Embedded(name), Value::Object(_)) => {
            let fields = types.embedded.get(name).map(|ty| ty.fields.as_slice()).unwrap_or_default();
            fields.iter().any(|field| match value.get(&field.name) {
                Some(given) => fills_for_ever(types, &field.kind, given, above),
                None => is_endless(types, name, field, above),
            })
        }
        _ => false,
    }
}

/// Bare words are enum values and nothing else, although a scalar would take them.
fn wrong_literal(literal: &ast::Value, kind: &Kind) -> Option<String> {
    match (literal, kind) {
        (ast::Value::Variable(_), _) => Some("a schema has no variables".to_owned()),
        (ast::Value::Enum(word), Kind::Scalar(_)) => Some(format!("`{word}` is a bare word, not a value")),
        _ => None,
    }
}

fn help(draft: &Draft, kind: &Kind, literal: &ast::Value) -> Option<String> {
    match (kind, literal) {
        (Kind::Enum(name), _) => {
            let known = draft.enums.get(name)?.values.iter().map(String::as_str);
            let near = literal.as_enum().and_then(|word| crate::naming::names::nearest(word, known.clone()));
            Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write one of {}", known.collect::<Vec<_>>().join(", ")),
            })
        }
        (Kind::Scalar(Scalar::String | Scalar::Id), ast::Value::Enum(word)) => {
            Some(format!("write `\"{word}\"`"))
        }
        (Kind::Scalar(Scalar::Int | Scalar::Float), ast::Value::String(text)) => {
            text.parse::<f64>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        (Kind::Scalar(Scalar::Boolean), ast::Value::String(text)) => {
            text.parse::<bool>().ok().map(|_| format!("write `{text}` without quotes"))
        }
        _ => None,
    }
}

/// A literal of the schema as a value.
fn value(literal: &Node<ast::Value>) -> Value {
    match &**literal {
        ast::Value::Null | ast::Value::Variable(_) => Value::Null,
        ast::Value::Enum(name) => Value::String(name.to_string()),
        ast::Value::String(text) => Value::String(text.clone()),
        ast::Value::Boolean(flag) => Value::Bool(*flag),
        ast::Value::Int(digits) => Value::number(digits.as_str()).unwrap_or(Value::Null),
        ast::Value::Float(digits) => Value::number(digits.as_str()).unwrap_or(Value::Null),
        ast::Value::List(items) => Value::List(items.iter().map(value).collect()),
        ast::Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.to_string(), value(field))).collect())
        }
    }
}
