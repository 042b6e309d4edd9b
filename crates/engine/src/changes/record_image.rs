//! Record images of the change log: parsed from JSON, read by column.

use std::sync::Arc;

use trefoil_model::{CellValue, StoredValue, Value};

use crate::changes::MemorySize;

/// The columns of a record by name.
pub type RecordImage = Arc<Vec<(String, StoredValue)>>;

impl MemorySize for RecordImage {
    fn memory_size(&self) -> usize {
        self.iter().map(|(name, value)| cell_memory_size(name, value)).sum()
    }
}

/// Parses a stored image. Anything but a JSON object was not written by our triggers and gives an empty image.
pub fn parse_image(text: &str) -> RecordImage {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => {
            Arc::new(members.into_iter().map(|(name, value)| (name, stored_from_json(value))).collect())
        }
        Ok(
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_),
        )
        | Err(_) => Arc::default(),
    }
}

pub(crate) fn stored_from_json(value: Value) -> StoredValue {
    match value {
        Value::Null => StoredValue::Null,
        Value::Bool(flag) => StoredValue::Int(flag.into()),
        Value::Int(integer) => StoredValue::Int(integer),
        Value::Number(number) => {
            let float = number.parse().ok().filter(|float: &f64| float.is_finite());
            float.map_or(StoredValue::Null, StoredValue::Real)
        }
        Value::String(text) => StoredValue::Text(text),
        nested @ (Value::List(_) | Value::Object(_)) => StoredValue::Text(nested.to_json().to_string()),
    }
}

/// The value of a column; an unknown one is null.
pub fn image_cell<'i>(image: &'i [(String, StoredValue)], column: &str) -> CellValue<'i> {
    image.iter().find(|(name, _)| name == column).map_or(CellValue::Null, |(_, value)| value.as_cell())
}

/// Memory of one column in bytes.
pub(crate) fn cell_memory_size(name: &str, value: &StoredValue) -> usize {
    let text = match value {
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => 0,
        StoredValue::Text(text) => text.len(),
    };
    size_of::<(String, StoredValue)>() + name.len() + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_parse_into_stored_values() {
        let image = parse_image(
            r#"{"id":9007199254740993,"ok":true,"f":1.5,"whole":2.0,"t":"x","n":null,"j":"[1]"}"#,
        );
        let cells: Vec<_> = ["id", "ok", "f", "whole", "t", "n", "j", "gone"]
            .iter()
            .map(|name| image_cell(&image, name))
            .collect();
        assert_eq!(
            cells,
            [
                CellValue::Int(9_007_199_254_740_993),
                CellValue::Int(1),
                CellValue::Real(1.5),
                CellValue::Real(2.0),
                CellValue::Text("x"),
                CellValue::Null,
                CellValue::Text("[1]"),
                CellValue::Null,
            ]
        );
        let nested = super::parse_image(r#"{"j":{"$serde_json::private::Number":"x"},"t":"y"}"#);
        assert_eq!(image_cell(&nested, "j"), CellValue::Text(r#"{"$serde_json::private::Number":"x"}"#));
        assert_eq!(image_cell(&nested, "t"), CellValue::Text("y"));
        for odd in ["", "null", "[1]", "{"] {
            assert!(super::parse_image(odd).is_empty(), "{odd}");
        }
    }
}
