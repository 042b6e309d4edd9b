//! Rewrites the values of one column for the new model: converted to its type, or replaced by its default.

use std::collections::HashMap;

use trefoil_model::{Field, Model, StoredValue};

use crate::migrate::MigrateError;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::stored_model::{ColumnDefault, StoredColumn, StoredTable};
use crate::migrate::type_converter::{ConvertedValue, TypeConverter, referenced_ids};

/// The values of one column for the new model.
pub struct ColumnRewrite<'a> {
    converter: Option<TypeConverter<'a>>,
    /// Replaces a value that is null or cannot be converted.
    replacement: StoredValue,
}

impl<'a> ColumnRewrite<'a> {
    /// Must be called after the tables got their new names.
    pub fn new(
        database: &dyn MigrationDatabase,
        model: &'a Model,
        pairs: &ModelPairs<'a>,
        pair: &TablePair<'a>,
        (old, new): (&'a StoredColumn, &'a StoredColumn),
    ) -> Result<Self, MigrateError> {
        let converter = match changes_values(pairs, old, new) {
            false => None,
            true => Some(TypeConverter {
                model,
                stored_model: pairs.new,
                field: model_field(model, pairs, pair.old, new),
                old_type: &old.form,
                new_type: &new.form,
                valid_ids: referenced_ids(database, &new.form, &renamed_tables(pairs))?,
            }),
        };
        let replacement = if new.required { default_value(database, new)? } else { StoredValue::Null };
        Ok(ColumnRewrite { converter, replacement })
    }

    /// True if values other than null may change.
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

/// True if the values of a column may have to change for the new model.
pub fn changes_values(pairs: &ModelPairs<'_>, old: &StoredColumn, new: &StoredColumn) -> bool {
    !pairs.is_same_type(&old.form, &new.form) || pairs.is_narrowed(&old.form, &new.form)
}

/// The table of each record type after the renames.
fn renamed_tables<'a>(pairs: &ModelPairs<'a>) -> HashMap<&'a str, &'a str> {
    pairs.new.tables.iter().map(|table| (table.name.as_str(), table.table.as_str())).collect()
}

/// The value of a new column in records that exist already.
pub fn default_value(
    database: &dyn MigrationDatabase,
    column: &StoredColumn,
) -> Result<StoredValue, MigrateError> {
    Ok(match &column.default {
        ColumnDefault::Nothing => StoredValue::Null,
        ColumnDefault::Int(number) => StoredValue::Int(*number),
        ColumnDefault::Real(number) => StoredValue::Real(*number),
        ColumnDefault::Text(text) => StoredValue::Text(text.clone()),
        ColumnDefault::Created | ColumnDefault::Updated => {
            let rows = database.query(&format!("SELECT {}", database.ddl_dialect().now), &[])?;
            rows.into_iter().flatten().next().unwrap_or(StoredValue::Null)
        }
    })
}

/// The model's field of a column of the new model; `table` is the old table.
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
