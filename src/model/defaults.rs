//! Reads `@default` once all types are known and holds each against its own field's type and rules.

use std::collections::HashSet;

use apollo_compiler::Node;
use apollo_compiler::Schema;
use apollo_compiler::ast;

use super::coerce::Types;
use super::log::Log;
use super::records::Draft;
use super::{Field, Kind, Scalar, Value, coerce, directives};

pub(super) fn read(draft: &mut Draft, schema: &Schema, theirs: &HashSet<String>, log: &mut Log) {
    if theirs.contains("default") {
        return;
    }
    // Values first: the default of a record's field may be one, with defaults of its own inside.
    for i in 0..draft.embedded.len() {
        let owner = draft.embedded[i].name.clone();
        let defaults = defaults(draft, &draft.embedded[i].fields, &owner, schema, log);
        draft.embedded[i]
            .fields
            .iter_mut()
            .zip(defaults)
            .for_each(|(field, default)| field.default = default);
    }
    for i in 0..draft.records.len() {
        let owner = draft.records[i].name.clone();
        let defaults = defaults(draft, &draft.records[i].fields, &owner, schema, log);
        draft.records[i].fields.iter_mut().zip(defaults).for_each(|(field, default)| field.default = default);
    }
}

fn defaults(
    draft: &Draft,
    fields: &[Field],
    owner: &str,
    schema: &Schema,
    log: &mut Log,
) -> Vec<Option<Value>> {
    fields.iter().map(|field| default(draft, field, owner, schema, log)).collect()
}

fn default(draft: &Draft, field: &Field, owner: &str, schema: &Schema, log: &mut Log) -> Option<Value> {
    let definition = schema.get_object(owner)?.fields.get(field.name.as_str())?;
    let literal = directives::argument(definition.directives.get("default")?, "value")?;
    if literal.is_null() || directives::misfit("default", &field.kind).is_some() {
        return None;
    }
    let message = match wrong_literal(literal, &field.kind) {
        Some(reason) => reason,
        None => {
            let value = value(literal);
            let types = Types { enums: &draft.enums, embedded: &draft.embedded };
            match coerce::kept(types, field, &value) {
                Ok(_) => return Some(value),
                Err(violations) => {
                    violations.into_iter().map(|violation| violation.message).collect::<Vec<_>>().join("; ")
                }
            }
        }
    };
    let help = help(draft, &field.kind, literal);
    let found = log.error(
        literal.location(),
        "DEFAULT",
        format!("the default of `{owner}.{}` does not fit: {message}", field.name),
    );
    found.label(format!("does not fit `{}`", definition.ty));
    if let Some(help) = help {
        found.help(help);
    }
    None
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
            let near = literal.as_enum().and_then(|word| super::naming::nearest(word, known.clone()));
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
        ast::Value::Int(digits) => match digits.as_str().parse() {
            Ok(integer) => Value::Int(integer),
            Err(_) => Value::Number(digits.as_str().to_owned()),
        },
        ast::Value::Float(digits) => Value::Number(digits.as_str().to_owned()),
        ast::Value::List(items) => Value::List(items.iter().map(value).collect()),
        ast::Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.to_string(), value(field))).collect())
        }
    }
}
