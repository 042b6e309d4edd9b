//! Numbers that are sent as text.

use trefoil_model::{Field, RecordType, Scalar, Value};

use crate::builtin_operation::ArgumentRole;

/// The value of an argument. If the argument belongs to a field, [`number_for_field`] converts it.
pub(super) fn number_for_role(record: &RecordType, role: &ArgumentRole, value: Value) -> Value {
    let (ArgumentRole::Field(field) | ArgumentRole::Compare(field, _)) = role else { return value };
    number_for_field(record.field(*field), value)
}

/// Turns text into a number where the field is an `Int`: an argument of type `ID` holds digits as text.
pub(crate) fn number_for_field(field: &Field, value: Value) -> Value {
    if field.kind.scalar() != Some(Scalar::Int) {
        return value;
    }
    match value {
        Value::String(text) => text.parse().map_or(Value::String(text), Value::Int),
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| number_for_field(field, item)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::Object(_) => value,
    }
}
