//! JSON values as GraphQL literals.

use serde_json::{Value as Json, json};

use trefoil_model::{Model, ValueType};

/// A value as a GraphQL literal of type `ty`; `value_type` is that of the field, for nested values.
pub(super) fn graphql_literal(
    model: &Model,
    ty: &str,
    value_type: Option<&ValueType>,
    value: &Json,
) -> String {
    match value {
        Json::Array(items) => {
            let inner = if let Some(ValueType::List(item)) = value_type {
                Some(&item.value_type)
            } else {
                value_type
            };
            let items: Vec<String> =
                items.iter().map(|item| graphql_literal(model, ty, inner, item)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let embedded = if let Some(ValueType::Embedded(name)) = value_type {
                model.embedded.get(name)
            } else {
                None
            };
            let type_of = |name: &str| {
                embedded?.stored_fields().find(|(field, _)| field.name == name).map(|(_, inner)| inner)
            };
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(name, value)| format!("{name}: {}", graphql_literal(model, "", type_of(name), value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Json::String(text) if model.enums.contains_key(ty) => text.clone(),
        Json::String(text) if ty.is_empty() && value_type.and_then(ValueType::enum_name).is_some() => {
            text.clone()
        }
        Json::String(text) if matches!(ty, "Int" | "Float") && text.parse::<f64>().is_ok() => text.clone(),
        Json::Number(number) if matches!(ty, "String" | "ID") => json!(number.to_string()).to_string(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value.to_string(),
    }
}
