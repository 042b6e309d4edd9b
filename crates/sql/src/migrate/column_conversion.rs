//! The way of one column's values from the old shape to the new one, in the table and in the log's images.

use std::collections::HashMap;

use crate::migrate::MigrateError;
use crate::migrate::migration_database::Host;
use crate::migrate::model_pairs::{Pairs, TablePair};
use crate::migrate::stored_model::{Column, Fill, Table};
use crate::migrate::value_converter::{Converted, Converter, targets};
use trefoil_model::{Field, Model, Stored};

pub struct Passage<'a> {
    converter: Option<Converter<'a>>,
    /// In place of a value that is missing or does not fit.
    stand_in: Stored,
}

impl<'a> Passage<'a> {
    /// For after the tables got their new names.
    pub fn of(
        host: &dyn Host,
        model: &'a Model,
        pairs: &Pairs<'a>,
        pair: &TablePair<'a>,
        (old, new): (&'a Column, &'a Column),
    ) -> Result<Self, MigrateError> {
        let converter = match changes_values(pairs, old, new) {
            false => None,
            true => Some(Converter {
                model,
                shape: pairs.new,
                field: field(model, pairs, pair.old, new),
                old: &old.form,
                new: &new.form,
                targets: targets(host, &new.form, &tables(pairs))?,
            }),
        };
        // Null, unless the field is required.
        let stand_in = if new.required { default(host, new)? } else { Stored::Null };
        Ok(Passage { converter, stand_in })
    }

    /// Whether values that are there become others.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    pub fn pass(&self, value: Stored) -> Stored {
        match (&self.converter, value) {
            (_, Stored::Null) => self.stand_in.clone(),
            (None, value) => value,
            (Some(converter), value) => match converter.convert(&value) {
                Converted::Kept(stored) | Converted::Trimmed(stored) => stored,
                Converted::Unfit => self.stand_in.clone(),
            },
        }
    }
}

/// Whether the values of a column are others under the new shape.
pub fn changes_values(pairs: &Pairs<'_>, old: &Column, new: &Column) -> bool {
    !pairs.same_form(&old.form, &new.form) || pairs.narrowed(&old.form, &new.form)
}

/// Where the records of each type are after the renames.
fn tables<'a>(pairs: &Pairs<'a>) -> HashMap<&'a str, &'a str> {
    pairs.new.tables.iter().map(|table| (table.name.as_str(), table.table.as_str())).collect()
}

/// What a record gets that was there before the column.
pub fn default(host: &dyn Host, column: &Column) -> Result<Stored, MigrateError> {
    Ok(match &column.default {
        Fill::Nothing => Stored::Null,
        Fill::Int(number) => Stored::Int(*number),
        Fill::Real(number) => Stored::Real(*number),
        Fill::Text(text) => Stored::Text(text.clone()),
        Fill::Created | Fill::Updated => {
            let rows = host.rows(&format!("SELECT {}", host.spelling().now), &[])?;
            rows.into_iter().flatten().next().unwrap_or(Stored::Null)
        }
    })
}

/// The field of the model that a column of the new shape stands for; `table` is the old one.
pub fn field<'a>(model: &'a Model, pairs: &Pairs<'_>, table: &Table, column: &Column) -> &'a Field {
    let record = pairs.new_name(&table.name).and_then(|name| model.record_named(name));
    let record = model.record(record.expect("the new shape is of this model"));
    record.field(record.field_named(&column.field).expect("its columns are fields of the model"))
}
