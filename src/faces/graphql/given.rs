//! JSON parameters of a request as values; digits of numbers survive as they were written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::input::number;
use super::request::malformed;
use crate::faces::problem::Problem;
use crate::model::Value;

/// How serde_json hands over a number that it keeps as text.
const NUMBER: &str = "$serde_json::private::Number";

/// A text parameter; null counts as absent.
pub fn text<'a>(name: &str, raw: &'a RawValue) -> Result<Option<Cow<'a, str>>, Problem> {
    match raw.get().as_bytes().first() {
        Some(b'"') => {
            let text: Borrowed =
                serde_json::from_str(raw.get()).map_err(|error| malformed(error.to_string()))?;
            Ok(Some(text.0))
        }
        Some(b'n') => Ok(None),
        _ => Err(malformed(format!("the parameter `{name}` must be text"))),
    }
}

#[derive(serde::Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object parameter; null counts as absent.
pub fn object(name: &str, json: &str) -> Result<Vec<(String, Value)>, Problem> {
    match serde_json::from_str::<Given>(json) {
        Ok(Given(Value::Object(fields))) => Ok(fields),
        Ok(Given(Value::Null)) => Ok(Vec::new()),
        Ok(Given(other)) => {
            Err(malformed(format!("the parameter `{name}` must be an object, not {}", other.noun())))
        }
        Err(error) => Err(malformed(format!("the parameter `{name}` cannot be read: {error}"))),
    }
}

struct Given(Value);

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Given, D::Error> {
        deserializer.deserialize_any(Reader).map(Given)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: de::Error>(self, integer: i64) -> Result<Value, E> {
        Ok(Value::Int(integer))
    }

    fn visit_u64<E: de::Error>(self, integer: u64) -> Result<Value, E> {
        Ok(number(&integer.to_string()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Given(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Given(value) = entries.next_value()?;
            match (&value, key == NUMBER && fields.is_empty()) {
                (Value::String(digits), true) => return Ok(number(digits)),
                _ => insert(&mut fields, key, value),
            }
        }
        Ok(Value::Object(fields))
    }
}

/// Of a key that is given twice, the last one counts.
fn insert(fields: &mut Vec<(String, Value)>, key: String, value: Value) {
    match fields.iter_mut().find(|(known, _)| *known == key) {
        Some((_, old)) => *old = value,
        None => fields.push((key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_integers_are_integers() {
        let fields = object(
            "variables",
            r#"{"a":1,"b":-9223372036854775808,"c":12.50,"d":1E400,"e":[null,{"x":true}]}"#,
        )
        .expect("an object");
        let expected = [
            ("a", Value::Int(1)),
            ("b", Value::Int(i64::MIN)),
            ("c", Value::Number("12.50".into())),
            ("d", Value::Number("1e+400".into())),
            ("e", Value::List(vec![Value::Null, Value::Object(vec![("x".into(), Value::Bool(true))])])),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn what_is_no_object_is_refused_and_null_is_absent() {
        assert_eq!(object("variables", "null").expect("absent"), []);
        for json in ["1", "\"x\"", "[]", "true", "{", &"[".repeat(100_000)] {
            assert!(object("variables", json).is_err(), "{:.20}", json);
        }
    }
}
