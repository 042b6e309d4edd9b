//! Replaces a table by one of another definition, row by row: ids, versions and the highest id ever
//! given stay, and so does what other programs have put on the table.

use std::collections::HashMap;

use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use super::MigrateError;
use super::apply::{drop_table, rename_table};
use super::catalog::{self, Extra};
use super::convert::{Converted, Converter};
use super::ddl::{self, Definition, quoted};
use super::pair::{Pairs, TablePair};
use super::shape::{Column, Fill};
use super::survey::field;
use crate::model::{Model, Stored};

const REBUILT: &str = "trefoil_rebuilt";

/// Tables and columns have their new names by now.
pub fn table(
    connection: &Connection,
    model: &Model,
    pairs: &Pairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let name = &pair.new.table;
    let dangling = catalog::dangling(connection, name)?;
    let highest = highest_id(connection, name)?;
    let ours: Vec<&str> = pair.old.indexes.iter().map(|index| index.name.as_str()).collect();
    let foreign = catalog::foreign_parts(connection, name, &ours)?;
    connection.execute_batch(&ddl::table(pairs.new, pair.new, REBUILT))?;
    let extras = carry_extras(connection, pair)?;
    copy(connection, model, pairs, pair, &extras)?;
    drop_table(connection, name)?;
    rename_table(connection, REBUILT, name)?;
    keep_highest_id(connection, name, highest)?;
    for part in foreign {
        connection.execute_batch(&part.sql).map_err(|error| {
            let Definition { name: part, .. } = &part;
            MigrateError::Database(format!(
                "{part}, which another program has put on {name}, is in the way ({error})"
            ))
        })?;
    }
    refuse_dangling(connection, name, dangling)
}

/// Columns that another program added are none of ours to drop.
fn carry_extras(connection: &Connection, pair: &TablePair<'_>) -> rusqlite::Result<Vec<Extra>> {
    let gone = pair.gone_names().map(|(_, name)| name);
    let kept = pair.columns.iter().map(|(_, new)| new.column.clone());
    let own = ["id", "_version"].map(str::to_owned).into_iter();
    let known: Vec<String> = own.chain(gone).chain(kept).collect();
    let mut extras = catalog::columns(connection, &pair.new.table)?;
    extras.retain(|extra| !known.iter().any(|name| name.eq_ignore_ascii_case(&extra.name)));
    for extra in &extras {
        connection.execute_batch(&format!("ALTER TABLE {REBUILT} ADD COLUMN {}", extra.definition))?;
    }
    Ok(extras)
}

/// Every row, with the values of changed columns converted. New columns are left to their defaults.
fn copy(
    connection: &Connection,
    model: &Model,
    pairs: &Pairs<'_>,
    pair: &TablePair<'_>,
    extras: &[Extra],
) -> rusqlite::Result<()> {
    let tables = tables(pairs);
    let passages: Vec<Passage<'_>> = pair
        .columns
        .iter()
        .map(|(old, new)| Passage::of(connection, model, pairs, pair, (old, new), &tables))
        .collect::<rusqlite::Result<_>>()?;
    let own = pair.columns.iter().map(|(_, new)| new.column.as_str()).chain(["id", "_version"]);
    let names: Vec<String> = own.chain(extras.iter().map(|extra| extra.name.as_str())).map(quoted).collect();
    let (list, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
    let read = format!("SELECT {list} FROM {} ORDER BY \"id\"", quoted(&pair.new.table));
    let mut reading = connection.prepare(&read)?;
    let mut writing = connection.prepare(&format!("INSERT INTO {REBUILT} ({list}) VALUES ({marks})"))?;
    let mut rows = reading.query([])?;
    while let Some(row) = rows.next()? {
        for at in 0..names.len() {
            let value = row.get_ref(at)?;
            let passed = match passages.get(at) {
                Some(passage) => passage.pass(value)?,
                None => Passed::AsItWas(value),
            };
            writing.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(passed.as_value()))?;
        }
        writing.raw_execute()?;
    }
    Ok(())
}

/// The way of one column's values from the old shape to the new one.
pub struct Passage<'a> {
    converter: Option<Converter<'a>>,
    /// In place of a value that is missing or does not fit.
    stand_in: Sql,
}

impl<'a> Passage<'a> {
    pub fn of(
        connection: &'a Connection,
        model: &'a Model,
        pairs: &Pairs<'a>,
        pair: &TablePair<'a>,
        (old, new): (&'a Column, &'a Column),
        tables: &'a HashMap<&'a str, &'a str>,
    ) -> rusqlite::Result<Self> {
        let converter = changes_values(pairs, old, new).then(|| Converter {
            model,
            shape: pairs.new,
            field: field(model, pairs, pair.old, new),
            old: &old.form,
            new: &new.form,
            tables,
            connection,
        });
        // Null, unless the field is required.
        let stand_in = if new.required { default(connection, new)? } else { Sql::Null };
        Ok(Passage { converter, stand_in })
    }

    pub fn pass<'v>(&self, value: ValueRef<'v>) -> rusqlite::Result<Passed<'v>> {
        let owned = match (&self.converter, value) {
            (_, ValueRef::Null) => self.stand_in.clone(),
            (None, value) => return Ok(Passed::AsItWas(value)),
            (Some(converter), value) => match converter.convert(value)? {
                Converted::Kept(stored) | Converted::Trimmed(stored) => sql(stored),
                Converted::Unfit => self.stand_in.clone(),
            },
        };
        Ok(Passed::Changed(owned))
    }
}

/// A value of the new column.
pub enum Passed<'v> {
    AsItWas(ValueRef<'v>),
    Changed(Sql),
}

impl Passed<'_> {
    pub fn as_value(&self) -> ValueRef<'_> {
        match self {
            Passed::AsItWas(value) => *value,
            Passed::Changed(value) => ValueRef::from(value),
        }
    }
}

/// Whether the values of a column are others under the new shape.
pub fn changes_values(pairs: &Pairs<'_>, old: &Column, new: &Column) -> bool {
    !pairs.same_form(&old.form, &new.form) || pairs.narrowed(&old.form, &new.form)
}

/// Where the records of each type are.
pub fn tables<'a>(pairs: &Pairs<'a>) -> HashMap<&'a str, &'a str> {
    pairs.new.tables.iter().map(|table| (table.name.as_str(), table.table.as_str())).collect()
}

/// What a record gets that was there before the column.
pub fn default(connection: &Connection, column: &Column) -> rusqlite::Result<Sql> {
    Ok(match &column.default {
        Fill::Nothing => Sql::Null,
        Fill::Int(number) => Sql::Integer(*number),
        Fill::Real(number) => Sql::Real(*number),
        Fill::Text(text) => Sql::Text(text.clone()),
        Fill::Created | Fill::Updated => {
            connection.query_row(&format!("SELECT {}", ddl::NOW), [], |row| row.get(0))?
        }
    })
}

fn sql(stored: Stored) -> Sql {
    match stored {
        Stored::Null => Sql::Null,
        Stored::Int(number) => Sql::Integer(number),
        Stored::Real(number) => Sql::Real(number),
        Stored::Text(text) => Sql::Text(text),
    }
}

fn highest_id(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0)).optional()
}

/// The id of a deleted record is never given again, though no row tells of it.
fn keep_highest_id(connection: &Connection, table: &str, highest: Option<i64>) -> rusqlite::Result<()> {
    let Some(highest) = highest else { return Ok(()) };
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![table, highest])?;
    Ok(())
}

/// Foreign keys are off while tables are replaced, so they are checked here. What was wrong before, by
/// the hand of a program that does not enforce them, does not count.
fn refuse_dangling(connection: &Connection, table: &str, before: i64) -> Result<(), MigrateError> {
    let after = catalog::dangling(connection, table)?;
    if after > before {
        let text = format!("{} records of {table} would refer to nothing", after - before);
        return Err(MigrateError::Database(text));
    }
    Ok(())
}
