//! Values on their way in ([`Value`]), as they are kept ([`Stored`]) and as they are read ([`Cell`]).

use std::borrow::Cow;

use crate::JsonNumber;

/// A value as it arrived, before anyone has judged it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// Any number that is no 64-bit integer, as written: digits survive exactly.
    Number(JsonNumber),
    String(String),
    List(Vec<Value>),
    /// In the order given.
    Object(Vec<(String, Value)>),
}

/// A value as the store keeps it; made by coercion only.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
}

/// A value as the store hands it out, borrowed from the row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    /// Another program wrote what no field can hold.
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
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// What kind of thing it is, for messages.
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

    /// How many lists and objects are inside of each other, itself included.
    pub fn depth(&self) -> usize {
        match self {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::String(_) => 0,
            Value::List(items) => 1 + items.iter().map(Value::depth).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }

    /// As JSON writes it.
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
