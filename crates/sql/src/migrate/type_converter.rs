//! Converts one stored value from the old type of its field to the new one.

use std::collections::{HashMap, HashSet};

use trefoil_model::values::{coerce, decimal};
use trefoil_model::{Field, Model, RecordId, StoredValue, Value};

use crate::migrate::MigrateError;
use crate::migrate::create_statements::quote_name;
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::stored_model::{StoredModel, StoredType};

/// The result of converting a value.
#[derive(Debug, PartialEq)]
pub enum ConvertedValue {
    Kept(StoredValue),
    /// The value without the members that its embedded type no longer has.
    Trimmed(StoredValue),
    Unfit,
}

/// Converts the values of one field.
pub struct TypeConverter<'a> {
    pub model: &'a Model,
    pub stored_model: &'a StoredModel,
    pub field: &'a Field,
    pub old_type: &'a StoredType,
    pub new_type: &'a StoredType,
    /// The ids that a reference may hold.
    pub valid_ids: HashSet<RecordId>,
}

/// The ids that a column may refer to. `tables` is the current table of each record type.
pub fn referenced_ids(
    database: &dyn MigrationDatabase,
    stored_type: &StoredType,
    tables: &HashMap<&str, &str>,
) -> Result<HashSet<RecordId>, MigrateError> {
    let StoredType::Reference { to, key, .. } = stored_type else { return Ok(HashSet::new()) };
    let Some(table) = tables.get(to.as_str()) else { return Ok(HashSet::new()) };
    let mut ids = HashSet::new();
    let id = database.ddl_dialect().read_id(*key);
    for_each_page(database, &format!("SELECT {id} FROM {} WHERE true", quote_name(table)), "id", |rows| {
        ids.extend(rows.iter().filter_map(|row| RecordId::from_cell(row.first()?.as_cell())));
        Ok(())
    })?;
    Ok(ids)
}

impl TypeConverter<'_> {
    /// Converts a value other than null.
    pub fn convert(&self, value: &StoredValue) -> ConvertedValue {
        let Some(value) = self.read_value(value) else { return ConvertedValue::Unfit };
        let trimmed = self.trim(&value, self.new_type);
        match candidate_values(&trimmed).find_map(|candidate| self.coerce(&candidate)) {
            Some(stored) if self.target_exists(&stored) => {
                if trimmed == value {
                    ConvertedValue::Kept(stored)
                } else {
                    ConvertedValue::Trimmed(stored)
                }
            }
            Some(_) | None => ConvertedValue::Unfit,
        }
    }

    /// The value as a client would have sent it.
    fn read_value(&self, value: &StoredValue) -> Option<Value> {
        match value {
            StoredValue::Null => None,
            StoredValue::Int(number) if *self.old_type == scalar_type("Boolean") => {
                Some(Value::Bool(*number != 0))
            }
            StoredValue::Int(number) => Some(Value::Int(*number)),
            StoredValue::Real(number) if number.is_finite() => Some(number_value(&number.to_string())),
            StoredValue::Real(_) => None,
            StoredValue::Text(text) => self.read_text(text),
        }
    }

    fn read_text(&self, text: &str) -> Option<Value> {
        let is_date_to_time =
            *self.old_type == scalar_type("Date") && *self.new_type == scalar_type("DateTime");
        match self.old_type {
            _ if *self.new_type == scalar_type("String") && self.old_is_json() => {
                Some(Value::String(text.to_owned()))
            }
            StoredType::Embedded(_) | StoredType::List { .. } => Some(parse_json(text)?),
            StoredType::Scalar(name) => match name.as_str() {
                "JSON" => Some(parse_json(text)?),
                "Decimal" => Some(number_value(text)),
                "DateTime" => Some(Value::String(client_time(text))),
                _ if is_date_to_time => Some(Value::String(format!("{text}T00:00:00Z"))),
                _ => Some(Value::String(text.to_owned())),
            },
            StoredType::Enum(_) | StoredType::Reference { .. } => Some(Value::String(text.to_owned())),
        }
    }

    fn old_is_json(&self) -> bool {
        matches!(self.old_type, StoredType::Embedded(_) | StoredType::List { .. })
            || *self.old_type == scalar_type("JSON")
    }

    /// The value without members that the new embedded types do not have.
    fn trim(&self, value: &Value, stored_type: &StoredType) -> Value {
        match (value, stored_type) {
            (Value::List(items), StoredType::List { item, .. }) => {
                Value::List(items.iter().map(|value| self.trim(value, item)).collect())
            }
            (Value::Object(all_members), StoredType::Embedded(name)) => {
                let fields = self.stored_model.embedded.get(name).map_or(&[][..], Vec::as_slice);
                let members = all_members.iter().filter_map(|(key, value)| {
                    let field = fields.iter().find(|field| field.name == *key)?;
                    Some((key.clone(), self.trim(value, &field.form)))
                });
                Value::Object(members.collect())
            }
            (value, _) => value.clone(),
        }
    }

    fn coerce(&self, value: &Value) -> Option<StoredValue> {
        let stored = coerce::coerce_type_only(self.model, self.field, value).ok()?;
        match &stored {
            // A number that is not stored exactly does not count as converted.
            StoredValue::Real(number) => same_number(&number.to_string(), value).then_some(stored),
            StoredValue::Null => None,
            StoredValue::Int(_) | StoredValue::Text(_) => Some(stored),
        }
    }

    fn target_exists(&self, stored: &StoredValue) -> bool {
        match (self.new_type, stored) {
            (StoredType::Reference { .. }, stored) => {
                RecordId::from_cell(stored.as_cell()).is_none_or(|id| self.valid_ids.contains(&id))
            }
            (
                StoredType::Scalar(_)
                | StoredType::Enum(_)
                | StoredType::Embedded(_)
                | StoredType::List { .. },
                _,
            ) => true,
        }
    }
}

/// The value as it is, as text, as a literal, and each of these as a list of one.
fn candidate_values(value: &Value) -> impl Iterator<Item = Value> {
    let plain = [value.clone(), map_items(value, as_text), map_items(value, as_literal)];
    let lists = plain.clone().map(|value| Value::List(vec![value]));
    plain.into_iter().chain(lists)
}

fn map_items(value: &Value, map: fn(&Value) -> Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(|item| map_items(item, map)).collect()),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => map(value),
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

/// Text that spells a number or a boolean as that value, and whole numbers as integers.
fn as_literal(value: &Value) -> Value {
    match value {
        Value::String(text) => match parse_json(text) {
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
fn client_time(text: &str) -> String {
    match text.strip_suffix('Z') {
        Some(rest) if rest.contains('.') => {
            format!("{}Z", rest.trim_end_matches('0').trim_end_matches('.'))
        }
        Some(_) | None => text.to_owned(),
    }
}

fn parse_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn scalar_type(name: &str) -> StoredType {
    StoredType::Scalar(name.to_owned())
}
