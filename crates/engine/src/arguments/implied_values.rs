//! Values that arguments do not give as such: numbers that are sent as text.

use trefoil_model::{RecordType, Scalar, Value};

use crate::builtin_operation::ArgumentRole;

/// An `ID` that is compared with a number, or set as one, is its digits.
pub(super) fn number_for_field(record: &RecordType, role: &ArgumentRole, value: Value) -> Value {
    let (ArgumentRole::Field(field) | ArgumentRole::Compare(field, _)) = role else { return value };
    let is_number = record.field(*field).kind.scalar() == Some(Scalar::Int);
    match &value {
        Value::String(text) if is_number => text.parse().map_or(value, Value::Int),
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::List(_)
        | Value::Object(_) => value,
    }
}
