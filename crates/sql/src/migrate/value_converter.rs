//! Stored values of one type as values of another: defaults, and what a changed field type keeps.

use std::collections::{HashMap, HashSet};

use crate::migrate::MigrateError;
use crate::migrate::ddl::quoted;
use crate::migrate::migration_database::{Host, each_page};
use crate::migrate::stored_model::{Form, StoredModel};
use trefoil_model::values::{coerce, decimal};
use trefoil_model::{Field, Model, Stored, Value};

/// What is left of a value.
#[derive(Debug, PartialEq)]
pub enum Converted {
    Kept(Stored),
    /// All but members that its embedded type no longer has.
    Trimmed(Stored),
    Unfit,
}

/// Converts the values of one field.
pub struct Converter<'a> {
    pub model: &'a Model,
    pub shape: &'a StoredModel,
    pub field: &'a Field,
    pub old: &'a Form,
    pub new: &'a Form,
    /// The ids that a reference may hold.
    pub targets: HashSet<i64>,
}

/// The records that a column may refer to. `tables` says where those of each type are just now.
pub fn targets(
    host: &dyn Host,
    form: &Form,
    tables: &HashMap<&str, &str>,
) -> Result<HashSet<i64>, MigrateError> {
    let Form::Reference { to, .. } = form else { return Ok(HashSet::new()) };
    let Some(table) = tables.get(to.as_str()) else { return Ok(HashSet::new()) };
    let mut found = HashSet::new();
    each_page(host, &format!("SELECT \"id\" FROM {} WHERE true", quoted(table)), "id", |rows| {
        found.extend(rows.iter().filter_map(|row| match row.first() {
            Some(Stored::Int(id)) => Some(*id),
            Some(Stored::Null | Stored::Real(_) | Stored::Text(_)) | None => None,
        }));
        Ok(())
    })?;
    Ok(found)
}

impl Converter<'_> {
    /// `value` is not null.
    pub fn convert(&self, value: &Stored) -> Converted {
        let Some(value) = self.read(value) else { return Converted::Unfit };
        let trimmed = self.trim(&value, self.new);
        match readings(&trimmed).find_map(|reading| self.coerce(&reading)) {
            Some(stored) if self.leads_somewhere(&stored) => {
                if trimmed == value {
                    Converted::Kept(stored)
                } else {
                    Converted::Trimmed(stored)
                }
            }
            Some(_) | None => Converted::Unfit,
        }
    }

    /// The value as a client would have sent it.
    fn read(&self, value: &Stored) -> Option<Value> {
        match value {
            Stored::Null => None,
            Stored::Int(number) if *self.old == scalar("Boolean") => Some(Value::Bool(*number != 0)),
            Stored::Int(number) => Some(Value::Int(*number)),
            Stored::Real(number) if number.is_finite() => Some(number_value(&number.to_string())),
            Stored::Real(_) => None,
            Stored::Text(text) => self.read_text(text),
        }
    }

    fn read_text(&self, text: &str) -> Option<Value> {
        let day = *self.old == scalar("Date") && *self.new == scalar("DateTime");
        match self.old {
            _ if *self.new == scalar("String") && self.old_is_json() => Some(Value::String(text.to_owned())),
            Form::Embedded(_) | Form::List { .. } => Some(json(text)?),
            Form::Scalar(name) => match name.as_str() {
                "JSON" => Some(json(text)?),
                "Decimal" => Some(number_value(text)),
                "DateTime" => Some(Value::String(shown_time(text))),
                _ if day => Some(Value::String(format!("{text}T00:00:00Z"))),
                _ => Some(Value::String(text.to_owned())),
            },
            Form::Enum(_) | Form::Reference { .. } => Some(Value::String(text.to_owned())),
        }
    }

    fn old_is_json(&self) -> bool {
        matches!(self.old, Form::Embedded(_) | Form::List { .. }) || *self.old == scalar("JSON")
    }

    /// Without the members of embedded values that the new shape does not know.
    fn trim(&self, value: &Value, form: &Form) -> Value {
        match (value, form) {
            (Value::List(items), Form::List { item, .. }) => {
                Value::List(items.iter().map(|value| self.trim(value, item)).collect())
            }
            (Value::Object(members), Form::Embedded(name)) => {
                let parts = self.shape.embedded.get(name).map_or(&[][..], Vec::as_slice);
                let kept = members.iter().filter_map(|(key, value)| {
                    let part = parts.iter().find(|part| part.name == *key)?;
                    Some((key.clone(), self.trim(value, &part.form)))
                });
                Value::Object(kept.collect())
            }
            (value, _) => value.clone(),
        }
    }

    fn coerce(&self, value: &Value) -> Option<Stored> {
        let stored = coerce::typed(self.model, self.field, value).ok()?;
        match &stored {
            // A number that would come back as another one has not been kept.
            Stored::Real(number) => same_number(&number.to_string(), value).then_some(stored),
            Stored::Null => None,
            Stored::Int(_) | Stored::Text(_) => Some(stored),
        }
    }

    fn leads_somewhere(&self, stored: &Stored) -> bool {
        match (self.new, stored) {
            (Form::Reference { .. }, Stored::Int(id)) => self.targets.contains(id),
            (
                Form::Reference { .. }
                | Form::Scalar(_)
                | Form::Enum(_)
                | Form::Embedded(_)
                | Form::List { .. },
                _,
            ) => true,
        }
    }
}

/// A value as it is, as text, as a number, and each of these as the only one of a list.
fn readings(value: &Value) -> impl Iterator<Item = Value> {
    let plain = [value.clone(), each(value, as_text), each(value, as_literal)];
    let lists = plain.clone().map(|reading| Value::List(vec![reading]));
    plain.into_iter().chain(lists)
}

fn each(value: &Value, reading: fn(&Value) -> Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(|item| each(item, reading)).collect()),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => reading(value),
    }
}

fn as_text(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::String(flag.to_string()),
        Value::Int(number) => Value::String(number.to_string()),
        Value::Number(digits) => Value::String(digits.to_string()),
        Value::Null | Value::String(_) | Value::List(_) | Value::Object(_) => value.clone(),
    }
}

/// Text that spells a number or a truth value.
fn as_literal(value: &Value) -> Value {
    match value {
        Value::String(text) => match json(text) {
            Some(literal @ (Value::Bool(_) | Value::Int(_) | Value::Number(_))) => literal,
            Some(Value::Null | Value::String(_) | Value::List(_) | Value::Object(_)) | None => value.clone(),
        },
        Value::Number(digits) => decimal::to_i64(digits).map_or_else(|| value.clone(), Value::Int),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::List(_) | Value::Object(_) => value.clone(),
    }
}

fn number_value(digits: &str) -> Value {
    Value::number(digits).unwrap_or_else(|| Value::from(digits))
}

fn same_number(a: &str, b: &Value) -> bool {
    let b = match b {
        Value::Int(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => return false,
    };
    match (decimal::normalise(a), decimal::normalise(&b)) {
        (Ok(a), Ok(b)) => decimal::compare(&a, &b).is_eq(),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// `2026-01-02T03:04:05Z`, as clients see it, for the stored `2026-01-02T03:04:05.000000Z`.
fn shown_time(text: &str) -> String {
    match text.strip_suffix('Z') {
        Some(rest) if rest.contains('.') => {
            format!("{}Z", rest.trim_end_matches('0').trim_end_matches('.'))
        }
        Some(_) | None => text.to_owned(),
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn scalar(name: &str) -> Form {
    Form::Scalar(name.to_owned())
}
