//! The three value types: input ([`Value`]), stored ([`StoredValue`]) and read from a row ([`CellValue`]).

use std::borrow::Cow;

use crate::JsonNumber;

/// A value as received, not validated yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// A number that is not a 64-bit integer, with its digits as written.
    Number(JsonNumber),
    String(String),
    List(Vec<Value>),
    /// Members in their original order.
    Object(Vec<(String, Value)>),
}

/// A value in its stored form; only coercion makes one.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

/// A value read from the store, borrowed from the row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    /// A value that no field can hold, written by another program.
    Unreadable,
}

impl StoredValue {
    pub fn as_cell(&self) -> CellValue<'_> {
        match self {
            StoredValue::Null => CellValue::Null,
            StoredValue::Int(number) => CellValue::Int(*number),
            StoredValue::Real(number) => CellValue::Real(*number),
            StoredValue::Text(text) => CellValue::Text(text),
        }
    }
}

impl CellValue<'_> {
    pub fn to_i64(self) -> Option<i64> {
        match self {
            CellValue::Int(number) => Some(number),
            CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => None,
        }
    }

    pub fn to_stored(self) -> StoredValue {
        match self {
            CellValue::Null | CellValue::Unreadable => StoredValue::Null,
            CellValue::Int(number) => StoredValue::Int(number),
            CellValue::Real(number) => StoredValue::Real(number),
            CellValue::Text(text) => StoredValue::Text(text.to_owned()),
        }
    }
}

impl Value {
    /// The number that a JSON text denotes, an integer if it fits in 64 bits.
    pub fn number(text: &str) -> Option<Value> {
        let number = JsonNumber::parse(text)?;
        Some(number.parse().map_or_else(|_| Value::Number(number), Value::Int))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// The type with its article, for messages.
    pub fn type_noun(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        })
    }

    /// Nesting of lists and objects, itself included.
    pub fn depth(&self) -> usize {
        match self {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::String(_) => 0,
            Value::List(items) => 1 + items.iter().map(Value::depth).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }

    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Int(number) => (*number).into(),
            Value::Number(number) => number.to_json(),
            Value::String(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Value::to_json).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), value.to_json())).collect()
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_) => None,
        }
    }
}
