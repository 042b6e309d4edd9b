//! Values that arguments do not give as such: those of fields that nothing sets, and numbers that are sent as text.

use trefoil_model::{Field, FieldId, Model, RecordType, Scalar, Value, ValueType};

use crate::builtin_operation::{ArgumentRole, BuiltinOperation, FillValue};

impl BuiltinOperation {
    /// The values of fields that no argument can set, for a new record with these fields.
    pub(super) fn filled_values(&self, model: &Model, given: &[(FieldId, Value)]) -> Vec<(FieldId, Value)> {
        let is_missing = |field: &FieldId| !given.iter().any(|(known, _)| known == field);
        let fields = self.filled_fields.iter().filter(|(field, _)| is_missing(field));
        let value = |(field, value): &(FieldId, FillValue)| {
            (*field, filled_value(model, model.record(self.record).field(*field), *value))
        };
        fields.map(value).collect()
    }
}

fn filled_value(model: &Model, field: &Field, value: FillValue) -> Value {
    match value {
        FillValue::CurrentTime => {
            Value::String(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        }
        FillValue::CurrentDate => Value::String(jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()),
        FillValue::False => Value::Bool(false),
        FillValue::Zero => Value::Int(0),
        FillValue::EmptyList => Value::List(Vec::new()),
        FillValue::FirstValue => {
            let enum_type = field.kind.own_value().and_then(ValueType::enum_name);
            let values =
                enum_type.and_then(|name| model.enums.get(name)).map(|found| found.values.as_slice());
            values.and_then(<[String]>::first).map_or(Value::Null, |first| Value::String(first.clone()))
        }
    }
}

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
