//! The connection of a migration on SQLite, and stored values as its parameters and cells.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql};

use trefoil_model::StoredValue;

/// A connection in the transaction of a migration, with foreign keys off.
pub struct SqliteMigration<'c>(pub(crate) &'c Connection);

/// A stored value as a statement parameter.
pub struct StoredParameter<'a>(pub &'a StoredValue);

impl ToSql for StoredParameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(as_value_ref(self.0)))
    }
}

pub fn as_value_ref(stored: &StoredValue) -> ValueRef<'_> {
    match stored {
        StoredValue::Null => ValueRef::Null,
        StoredValue::Int(number) => ValueRef::Integer(*number),
        StoredValue::Real(number) => ValueRef::Real(*number),
        StoredValue::Text(text) => ValueRef::Text(text.as_bytes()),
    }
}

pub fn from_value_ref(value: ValueRef<'_>) -> StoredValue {
    match value {
        ValueRef::Null | ValueRef::Blob(_) => StoredValue::Null,
        ValueRef::Integer(number) => StoredValue::Int(number),
        ValueRef::Real(number) => StoredValue::Real(number),
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_or(StoredValue::Null, |text| StoredValue::Text(text.to_owned()))
        }
    }
}
