//! The image of a record in the log: read from its JSON, found by column.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::model::{Cell, Stored};

/// A record's columns by name.
pub type Image = Arc<Vec<(String, Stored)>>;

/// The image that a store keeps as this text. What is no JSON object was not written by a trigger of ours and tells
/// nothing.
pub fn image(text: &str) -> Image {
    match serde_json::from_str(text) {
        Ok(Json::Object(members)) => {
            Arc::new(members.into_iter().map(|(name, value)| (name, stored(value))).collect())
        }
        Ok(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) | Err(_) => {
            Arc::default()
        }
    }
}

fn stored(value: Json) -> Stored {
    match value {
        Json::Null => Stored::Null,
        Json::Bool(flag) => Stored::Int(flag.into()),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Stored::Int(integer),
            None => number.as_f64().map_or(Stored::Null, Stored::Real),
        },
        Json::String(text) => Stored::Text(text),
        nested @ (Json::Array(_) | Json::Object(_)) => Stored::Text(nested.to_string()),
    }
}

/// What the image says of a column; one that it does not know is null.
pub fn cell_of<'i>(image: &'i [(String, Stored)], column: &str) -> Cell<'i> {
    image.iter().find(|(name, _)| name == column).map_or(Cell::Null, |(_, value)| value.as_cell())
}

/// Bytes of memory.
pub(super) fn weight(name: &str, value: &Stored) -> usize {
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
        for odd in ["", "null", "[1]", "{"] {
            assert!(super::image(odd).is_empty(), "{odd}");
        }
    }
}
