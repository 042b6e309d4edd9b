//! Conditions as the argument `where` of GraphQL, written as literals or given as variables.

use serde_json::{Map, Value, json};

use super::schema::{Content, PlainField, PlainSchema, ValueKind};
use super::tree::{ConditionTree, Quantifier, TestOperator, TreeOwner};
use super::values::PlainValue;

/// The conditions as an object.
pub fn object(schema: &PlainSchema, owner: TreeOwner, conditions: &[ConditionTree]) -> Value {
    let mut members = Map::new();
    let mut others: Vec<Value> = Vec::new();
    for condition in conditions {
        if let ConditionTree::All(inner) = condition {
            others.extend(inner.iter().map(|inner| object(schema, owner, std::slice::from_ref(inner))));
            continue;
        }
        let (name, value) = member(schema, owner, condition);
        match members.contains_key(&name) {
            true => others.push(json!({ name: value })),
            false => drop(members.insert(name, value)),
        }
    }
    if !others.is_empty() {
        members.insert("and".to_owned(), others.into());
    }
    members.into()
}

fn member(schema: &PlainSchema, owner: TreeOwner, condition: &ConditionTree) -> (String, Value) {
    match condition {
        ConditionTree::All(_) => panic!("these are joined"),
        ConditionTree::Any(inner) => {
            let each = inner.iter().map(|inner| object(schema, owner, std::slice::from_ref(inner)));
            ("or".to_owned(), each.collect())
        }
        ConditionTree::Not(inner) => ("not".to_owned(), object(schema, owner, inner)),
        ConditionTree::Test { field, operator, operand } => {
            test(schema, &owner.fields(schema)[*field], *operator, operand)
        }
        ConditionTree::Part { field, conditions } => {
            let name = owner.fields(schema)[*field].name.clone();
            (name, object(schema, owner.inside(schema, *field), conditions))
        }
        ConditionTree::Related { field, quantifier, conditions } => {
            let name = &owner.fields(schema)[*field].name;
            let ending = match quantifier {
                Quantifier::One => "",
                Quantifier::Some => "_some",
                Quantifier::Every => "_every",
                Quantifier::None => "_none",
            };
            (format!("{name}{ending}"), object(schema, owner.inside(schema, *field), conditions))
        }
    }
}

fn test(
    schema: &PlainSchema,
    field: &PlainField,
    operator: TestOperator,
    operand: &PlainValue,
) -> (String, Value) {
    let kind = match field.content {
        Content::List(kind) => kind,
        _ => field.single(schema).unwrap_or(ValueKind::Text),
    };
    let line = if operator.name().is_empty() { "" } else { "_" };
    (format!("{}{line}{}", field.input_name(), operator.name()), operand.to_json(kind))
}

/// JSON as a literal of GraphQL. Names of colours are enum values wherever they occur: no text is one.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if super::schema::COLORS.contains(&text.as_str()) => text.clone(),
        // Both escape alike, but for what JSON need not.
        Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}: {}", literal(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}
