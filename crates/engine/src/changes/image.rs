//! The image of a record in the log: read from its JSON, found by column.

use std::sync::Arc;

use trefoil_model::{Cell, Stored, Value};

/// A record's columns by name.
pub type Image = Arc<Vec<(String, Stored)>>;

/// The image that a store keeps as this text. What is no JSON object was not written by a trigger of ours and tells
/// nothing.
pub fn image(text: &str) -> Image {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => {
            Arc::new(members.into_iter().map(|(name, value)| (name, stored(value))).collect())
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

fn stored(value: Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Bool(flag) => Stored::Int(flag.into()),
        Value::Int(integer) => Stored::Int(integer),
        Value::Number(number) => {
            let float = number.parse().ok().filter(|float: &f64| float.is_finite());
            float.map_or(Stored::Null, Stored::Real)
        }
        Value::String(text) => Stored::Text(text),
        nested @ (Value::List(_) | Value::Object(_)) => Stored::Text(nested.to_json().to_string()),
    }
}

/// What the image says of a column; one that it does not know is null.
pub fn cell_of<'i>(image: &'i [(String, Stored)], column: &str) -> Cell<'i> {
    image.iter().find(|(name, _)| name == column).map_or(Cell::Null, |(_, value)| value.as_cell())
}

/// Bytes of memory.
pub(crate) fn weight(name: &str, value: &Stored) -> usize {
    let text = match value {
        Stored::Null | Stored::Int(_) | Stored::Real(_) => 0,
        Stored::Text(text) => text.len(),
    };
    size_of::<(String, Stored)>() + name.len() + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_are_kept() {
        let image =
            image(r#"{"id":9007199254740993,"ok":true,"f":1.5,"whole":2.0,"t":"x","n":null,"j":"[1]"}"#);
        let cells: Vec<_> = ["id", "ok", "f", "whole", "t", "n", "j", "gone"]
            .iter()
            .map(|name| cell_of(&image, name))
            .collect();
        assert_eq!(
            cells,
            [
                Cell::Int(9_007_199_254_740_993),
                Cell::Int(1),
                Cell::Real(1.5),
                Cell::Real(2.0),
                Cell::Text("x"),
                Cell::Null,
                Cell::Text("[1]"),
                Cell::Null,
            ]
        );
        let nested = super::image(r#"{"j":{"$serde_json::private::Number":"x"},"t":"y"}"#);
        assert_eq!(cell_of(&nested, "j"), Cell::Text(r#"{"$serde_json::private::Number":"x"}"#));
        assert_eq!(cell_of(&nested, "t"), Cell::Text("y"));
        for odd in ["", "null", "[1]", "{"] {
            assert!(super::image(odd).is_empty(), "{odd}");
        }
    }
}
