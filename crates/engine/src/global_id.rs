//! Relay's global ids: the name of a record type and a key, as one opaque text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use trefoil_model::error::Violation;
use trefoil_model::{RecordType, Value};

/// `VXNlcjox` for the key `1` of `User`.
pub fn encode(type_name: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{type_name}:{key}"))
}

/// The type and the key, or `None` if the text is not a global id.
pub fn decode(text: &str) -> Option<(String, String)> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let decoded = String::from_utf8(bytes).ok()?;
    let (type_name, key) = decoded.split_once(':')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!type_name.is_empty() && type_name.chars().all(is_name)).then(|| (type_name.to_owned(), key.to_owned()))
}

/// The value with the plain key in place of each global id. Plain keys stay; ids of other types are refused.
pub fn plain_keys(record: &RecordType, name: &str, value: Value) -> Result<Value, Vec<Violation>> {
    if !record.has_global_ids {
        return Ok(value);
    }
    match value {
        Value::String(text) => match decode(&text) {
            Some((type_name, key)) if type_name == record.name => Ok(Value::String(key)),
            Some((type_name, _)) => Err(vec![wrong_type(name, &type_name, &record.name)]),
            None => Ok(Value::String(text)),
        },
        Value::List(items) => items
            .into_iter()
            .map(|item| plain_keys(record, name, item))
            .collect::<Result<_, _>>()
            .map(Value::List),
        other @ (Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::Object(_)) => {
            Ok(other)
        }
    }
}

/// The violation of an id of another type.
pub fn wrong_type(name: &str, found: &str, expected: &str) -> Violation {
    Violation::new(name, "TYPE", format!("`{name}` is the id of a {found}, not of a {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_decoded_with_and_without_padding() {
        assert_eq!(encode("User", "1"), "VXNlcjox");
        assert_eq!(encode("Tag", "ü:?"), "VGFnOsO8Oj8");
        for text in ["VGFnOsO8Oj8", "VGFnOsO8Oj8="] {
            assert_eq!(decode(text), Some(("Tag".to_owned(), "ü:?".to_owned())));
        }
        for plain in ["", "1", "42", "abcd", "018f3a1c-0000-7000-8000-000000000000", "Og", "IDox"] {
            assert_eq!(decode(plain), None, "{plain}");
        }
    }
}
