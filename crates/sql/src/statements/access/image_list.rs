//! Images of records as one parameter.

use trefoil_engine::changes::ImageList;
use trefoil_model::{Field, FieldId, RecordType, Scalar, StoredValue, ValueType};

use crate::statements::dialect::Dialect;

/// The images as a JSON array of objects.
pub fn images_as_json(dialect: Dialect, list: &ImageList) -> String {
    let images = list.images.iter().map(|image| {
        let members = image.iter().map(|(column, value)| {
            // PostgreSQL has such values in columns of their own type.
            let is_json = dialect == Dialect::Postgres && list.json_columns.contains(column);
            (column.clone(), if is_json { nested_value(value) } else { json_value(value) })
        });
        serde_json::Value::Object(members.collect())
    });
    serde_json::Value::Array(images.collect()).to_string()
}

/// Values of fields as a JSON object of columns.
pub fn fields_as_json(dialect: Dialect, owner: &RecordType, values: &[(FieldId, StoredValue)]) -> String {
    let members = values.iter().map(|(field, value)| {
        let field = owner.field(*field);
        let is_json = dialect == Dialect::Postgres && is_json(field);
        (field.column.clone(), if is_json { nested_value(value) } else { json_value(value) })
    });
    serde_json::Value::Object(members.collect()).to_string()
}

/// True if the column of a field has JSON.
pub fn is_json(field: &Field) -> bool {
    match field.kind.value_type() {
        Some(ValueType::List(_) | ValueType::Embedded(_)) => true,
        Some(value_type) => value_type.scalar() == Some(Scalar::Json),
        None => false,
    }
}

fn nested_value(value: &StoredValue) -> serde_json::Value {
    match value {
        StoredValue::Text(text) => serde_json::from_str(text).unwrap_or_default(),
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => json_value(value),
    }
}

fn json_value(value: &StoredValue) -> serde_json::Value {
    match value {
        StoredValue::Null => serde_json::Value::Null,
        StoredValue::Int(number) => (*number).into(),
        StoredValue::Real(number) => (*number).into(),
        StoredValue::Text(text) => text.as_str().into(),
    }
}
