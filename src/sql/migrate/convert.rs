//! Stored values of one type as values of another: defaults, and what a changed field type keeps.

use crate::model::{Field, Model, Stored, Value};

/// A default as the store keeps it.
pub fn stored(_model: &Model, _field: &Field, default: &Value) -> Option<Stored> {
    match default {
        Value::Null | Value::List(_) | Value::Object(_) => None,
        Value::Bool(flag) => Some(Stored::Int(i64::from(*flag))),
        Value::Int(number) => Some(Stored::Int(*number)),
        Value::Number(text) | Value::String(text) => Some(Stored::Text(text.clone())),
    }
}
