//! Conversions between [`Value`] and Rust types.

use std::borrow::Cow;

use crate::values::decimal;
use crate::{JsonNumber, Value};

impl Value {
    /// A 64-bit integer from a number or a text: ids and large integers are sent as text.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Number(digits) => decimal::to_i64(digits),
            Value::String(text) => decimal::parse_integer(text),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        }
    }

    /// The fields of an object, or else the noun of its type for messages.
    pub fn into_fields(self) -> Result<Vec<(String, Value)>, Cow<'static, str>> {
        match self {
            Value::Object(fields) => Ok(fields),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)) => Err(other.type_noun()),
        }
    }

    pub fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Value)>) -> Value {
        Value::Object(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<f64> for Value {
    /// NaN and the infinities become null, as in JSON.
    fn from(number: f64) -> Self {
        JsonNumber::parse(&number.to_string()).map_or(Value::Null, Value::Number)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}
