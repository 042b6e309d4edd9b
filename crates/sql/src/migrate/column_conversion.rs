//! The way of one column's values from the old shape to the new one, in the table and in the log's images.

use std::collections::HashMap;

use crate::migrate::MigrateError;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::stored_model::{ColumnDefault, StoredColumn, StoredTable};
use crate::migrate::value_converter::{ConvertedValue, ValueConverter, referenced_ids};
use trefoil_model::{Field, Model, StoredValue};

pub struct ColumnConversion<'a> {
    converter: Option<ValueConverter<'a>>,
    /// In place of a value that is missing or does not fit.
    replacement: StoredValue,
}

impl<'a> ColumnConversion<'a> {
    /// For after the tables got their new names.
    pub fn new(
        host: &dyn MigrationDatabase,
        model: &'a Model,
        pairs: &ModelPairs<'a>,
        pair: &TablePair<'a>,
        (old, new): (&'a StoredColumn, &'a StoredColumn),
    ) -> Result<Self, MigrateError> {
        let converter = match changes_values(pairs, old, new) {
            false => None,
            true => Some(ValueConverter {
                model,
                stored_model: pairs.new,
                field: model_field(model, pairs, pair.old, new),
                old_type: &old.form,
                new_type: &new.form,
                valid_ids: referenced_ids(host, &new.form, &renamed_tables(pairs))?,
            }),
        };
        // Null, unless the field is required.
        let stand_in = if new.required { default_value(host, new)? } else { StoredValue::Null };
        Ok(ColumnConversion { converter, replacement: stand_in })
    }

    /// Whether values that are there become others.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    pub fn convert(&self, value: StoredValue) -> StoredValue {
        match (&self.converter, value) {
            (_, StoredValue::Null) => self.replacement.clone(),
            (None, value) => value,
            (Some(converter), value) => match converter.convert(&value) {
                ConvertedValue::Kept(stored) | ConvertedValue::Trimmed(stored) => stored,
                ConvertedValue::Unfit => self.replacement.clone(),
            },
        }
    }
}

/// Whether the values of a column are others under the new shape.
pub fn changes_values(pairs: &ModelPairs<'_>, old: &StoredColumn, new: &StoredColumn) -> bool {
    !pairs.is_same_type(&old.form, &new.form) || pairs.is_narrowed(&old.form, &new.form)
}

/// Where the records of each type are after the renames.
fn renamed_tables<'a>(pairs: &ModelPairs<'a>) -> HashMap<&'a str, &'a str> {
    pairs.new.tables.iter().map(|table| (table.name.as_str(), table.table.as_str())).collect()
}

/// What a record gets that was there before the column.
pub fn default_value(
    host: &dyn MigrationDatabase,
    column: &StoredColumn,
) -> Result<StoredValue, MigrateError> {
    Ok(match &column.default {
        ColumnDefault::Nothing => StoredValue::Null,
        ColumnDefault::Int(number) => StoredValue::Int(*number),
        ColumnDefault::Real(number) => StoredValue::Real(*number),
        ColumnDefault::Text(text) => StoredValue::Text(text.clone()),
        ColumnDefault::Created | ColumnDefault::Updated => {
            let rows = host.query(&format!("SELECT {}", host.ddl_dialect().now), &[])?;
            rows.into_iter().flatten().next().unwrap_or(StoredValue::Null)
        }
    })
}

/// The field of the model that a column of the new shape stands for; `table` is the old one.
pub fn model_field<'a>(
    model: &'a Model,
    pairs: &ModelPairs<'_>,
    table: &StoredTable,
    column: &StoredColumn,
) -> &'a Field {
    let record = pairs.new_name(&table.name).and_then(|name| model.find_record(name));
    let record = model.record(record.expect("the new shape is of this model"));
    record.field(record.find_field(&column.field).expect("its columns are fields of the model"))
}
