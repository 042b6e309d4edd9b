//! Reads the JSON parameters of a request: strings and objects.

use std::borrow::Cow;

use serde_json::value::RawValue;

use trefoil_http::errors::problem::Problem;
use trefoil_model::Value;

/// A text parameter; null counts as absent.
pub fn read_text<'a>(name: &str, raw: &'a RawValue) -> Result<Option<Cow<'a, str>>, Problem> {
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: JsonText =
                serde_json::from_str(raw.get()).map_err(|error| malformed_request(error.to_string()))?;
            Ok(Some(text.0))
        }
        Some(b'n') => Ok(None),
        _ => Err(malformed_request(format!("the parameter `{name}` must be text"))),
    }
}

#[derive(serde::Deserialize)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object parameter; null counts as absent.
pub fn read_object(name: &str, json: &str) -> Result<Vec<(String, Value)>, Problem> {
    match serde_json::from_str::<Value>(json) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(other) => Err(malformed_request(format!(
            "the parameter `{name}` must be an object, not {}",
            other.type_noun()
        ))),
        Err(error) => Err(malformed_request(format!("the parameter `{name}` is not valid JSON: {error}"))),
    }
}

pub fn malformed_request(detail: impl Into<String>) -> Problem {
    Problem::bad_request("MALFORMED_REQUEST", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_parameter_rejects_other_types() {
        assert_eq!(read_object("variables", "null").expect("absent"), []);
        for json in ["1", "\"x\"", "[]", "true", "{", &"[".repeat(100_000)] {
            assert!(read_object("variables", json).is_err(), "{:.20}", json);
        }
    }
}
