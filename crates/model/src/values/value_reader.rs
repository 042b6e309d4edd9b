//! Deserialises JSON into a [`Value`], with all digits of numbers and any text as a member name.
//!
//! serde_json passes an arbitrary-precision number as a map with one string key. Keys are requested as bytes here:
//! serde_json then passes real member names as bytes, so no client can send an object that is taken for a number.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{JsonNumber, Value};

/// Up to this size, duplicate names are searched for without a hash table.
const MAX_LINEAR_SEARCH: usize = 16;

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
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
        number(&integer.to_string())
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value, E> {
        Ok(Value::from(float))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = members.next_key_seed(KeySeed)? {
            match key {
                Key::Number => return number(&members.next_value::<String>()?),
                Key::Name(name) => fields.push((name, members.next_value()?)),
            }
        }
        Ok(Value::Object(last_of_each(fields)))
    }
}

fn number<E: de::Error>(text: &str) -> Result<Value, E> {
    Value::number(text).ok_or_else(|| E::custom("invalid number"))
}

/// Removes duplicate names; the last value of each wins.
fn last_of_each(fields: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let is_new =
        |(i, (name, _)): (usize, &(String, Value))| fields[..i].iter().all(|(known, _)| known != name);
    if fields.len() <= MAX_LINEAR_SEARCH && fields.iter().enumerate().all(is_new) {
        return fields;
    }
    fields.into_iter().collect::<IndexMap<_, _>>().into_iter().collect()
}

enum Key {
    Name(String),
    /// Not a member: the value is the text of a number.
    Number,
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_bytes<E: de::Error>(self, name: &[u8]) -> Result<Key, E> {
        let name =
            std::str::from_utf8(name).map_err(|_| E::custom("lone surrogate in the name of a member"))?;
        Ok(Key::Name(name.to_owned()))
    }

    fn visit_str<E: de::Error>(self, _token: &str) -> Result<Key, E> {
        Ok(Key::Number)
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(flag) => Value::Bool(flag),
            serde_json::Value::Number(number) => {
                Value::number(&number.to_string()).expect("serde_json keeps JSON numbers and nothing else")
            }
            serde_json::Value::String(text) => Value::String(text),
            serde_json::Value::Array(items) => Value::List(items.into_iter().map(Value::from).collect()),
            serde_json::Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
            }
        }
    }
}

impl From<JsonNumber> for Value {
    fn from(number: JsonNumber) -> Self {
        Value::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(json)
    }

    fn float(text: &str) -> Value {
        JsonNumber::parse(text).expect("a number").into()
    }

    #[test]
    fn numbers_keep_their_digits() {
        let json = r#"{"a":1,"b":-9223372036854775808,"c":12.50,"d":1E400,"e":[null,{"x":true}]}"#;
        let expected = [
            ("a", Value::Int(1)),
            ("b", Value::Int(i64::MIN)),
            ("c", float("12.50")),
            ("d", float("1e+400")),
            ("e", Value::List(vec![Value::Null, Value::object([("x", Value::Bool(true))])])),
        ];
        assert_eq!(read(json).expect("JSON"), Value::object(expected));
        assert_eq!(read("1.10").expect("JSON"), float("1.10"));
    }

    #[test]
    fn serde_json_private_keys_are_plain_names() {
        for token in ["$serde_json::private::Number", "$serde_json::private::RawValue"] {
            for value in ["1", "any text", "[1]", "1.5"] {
                let expected = Value::object([(token, Value::from(value))]);
                let escaped = token.replace('$', "\\u0024");
                for name in [token, &escaped] {
                    let json = format!("{{\"{name}\": \"{value}\"}}");
                    assert_eq!(read(&json).expect("JSON"), expected, "{json}");
                    let list = read(&format!("[{json}]")).expect("JSON");
                    assert_eq!(list, Value::List(vec![expected.clone()]), "{json}");
                }
            }
        }
    }

    #[test]
    fn last_of_duplicate_names_wins() {
        assert_eq!(
            read(r#"{"a":1,"b":2,"a":3}"#).expect("JSON"),
            Value::object([("a", Value::Int(3)), ("b", Value::Int(2))])
        );
        let names = |from: usize| (0..50_000).map(move |i| format!("\"k{}\":{i}", (i + from) % 50_000));
        let json = format!("{{{}}}", names(0).chain(names(1)).collect::<Vec<_>>().join(","));
        let Value::Object(fields) = read(&json).expect("JSON") else { panic!("an object") };
        assert_eq!((fields.len(), &fields[1]), (50_000, &("k1".to_owned(), Value::Int(0))));
    }

    #[test]
    fn malformed_json_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for json in ["", "{", "[1,]", "01", "1e", "{\"\\ud800\":1}", "\"\\ud800\"", "{1:2}", "nul", &deep] {
            assert!(read(json).is_err(), "{json:.20}");
        }
    }
}
