//! The expressions that select columns, so that cells have the form of stored values on both databases.

use trefoil_model::{Field, KeyForm, RecordType, Scalar, ValueType};

use crate::statements::dialect::Dialect;

/// How a column is selected, so that its cell is as [`trefoil_model::StoredValue`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnReading {
    Plain,
    Text,
    DateTime,
    LocalDateTime,
}

impl ColumnReading {
    fn for_field(field: &Field) -> ColumnReading {
        if let Some(ValueType::Key(form)) = field.kind.value_type() {
            return ColumnReading::for_key(*form);
        }
        match field.kind.scalar() {
            Some(Scalar::DateTime) => ColumnReading::DateTime,
            Some(Scalar::LocalDateTime) => ColumnReading::LocalDateTime,
            Some(Scalar::Decimal | Scalar::Date | Scalar::Uuid | Scalar::Json) => ColumnReading::Text,
            None if field.kind.value_type().is_some_and(ValueType::is_json) => ColumnReading::Text,
            Some(
                Scalar::String
                | Scalar::Int
                | Scalar::Float
                | Scalar::Boolean
                | Scalar::Id
                | Scalar::Long
                | Scalar::Url
                | Scalar::Email,
            )
            | None => ColumnReading::Plain,
        }
    }

    fn for_key(form: KeyForm) -> ColumnReading {
        match form {
            KeyForm::Uuid => ColumnReading::Text,
            KeyForm::Digits | KeyForm::Number | KeyForm::Text => ColumnReading::Plain,
        }
    }
}

impl Dialect {
    /// The expression that selects a quoted column of a record; `from` is its prefix, such as `t.`.
    pub fn read_column(self, owner: &RecordType, from: &str, column: &str) -> String {
        let value = format!("{from}{column}");
        let field =
            owner.fields.iter().find(|field| field.is_stored() && self.quote_name(&field.column) == column);
        self.read_value(field.map_or(ColumnReading::Plain, ColumnReading::for_field), value)
    }

    /// The expression that selects a value of a field, wherever it comes from.
    pub fn read_field_value(self, field: &Field, value: String) -> String {
        self.read_value(ColumnReading::for_field(field), value)
    }

    /// The expression that selects the id of a record.
    pub fn read_key(self, form: KeyForm, value: &str) -> String {
        self.read_value(ColumnReading::for_key(form), value.to_owned())
    }

    fn read_value(self, reading: ColumnReading, value: String) -> String {
        match (self, reading) {
            (Dialect::Sqlite, _) | (Dialect::Postgres, ColumnReading::Plain) => value,
            (Dialect::Postgres, ColumnReading::Text) => format!("{value}::text"),
            (Dialect::Postgres, ColumnReading::DateTime) => {
                format!("to_char({value} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
            }
            (Dialect::Postgres, ColumnReading::LocalDateTime) => {
                format!("to_char({value}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')")
            }
        }
    }

    /// [`Dialect::read_column`] of several columns.
    pub fn read_columns(self, owner: &RecordType, from: &str, columns: &[String]) -> String {
        columns.iter().map(|column| self.read_column(owner, from, column)).collect::<Vec<_>>().join(", ")
    }
}
