//! Replaces a table by one of another definition, row by row: ids, versions and the highest id ever
//! given stay, and so does what other programs have put on the table.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use crate::migrate::MigrateError;
use crate::migrate::apply::{drop_table, rename_table};
use crate::migrate::column_conversion::ColumnConversion;
use crate::migrate::ddl;
use crate::migrate::ddl::{ObjectDefinition, quote_name};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::sqlite::catalog;
use crate::migrate::sqlite::catalog::FoundColumn;
use crate::migrate::sqlite::ddl::SQLITE_DDL;
use crate::migrate::sqlite::{SqliteMigration, as_value_ref, from_value_ref};
use trefoil_model::Model;

const REBUILT: &str = "trefoil_rebuilt";

/// Tables and columns have their new names by now.
pub fn rebuild_table(
    host: &SqliteMigration<'_>,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let (connection, name) = (host.0, &pair.new.table);
    let dangling = catalog::count_dangling(connection, name)?;
    let highest = highest_id(connection, name)?;
    let ours: Vec<&str> = pair.old.indexes.iter().map(|index| index.name.as_str()).collect();
    let foreign = catalog::foreign_objects(connection, name, &ours)?;
    host.execute_batch(&ddl::create_table_sql(&SQLITE_DDL, pairs.new, pair.new, REBUILT))?;
    let extras = add_foreign_columns(connection, pair)?;
    copy_rows(host, model, pairs, pair, &extras)?;
    drop_table(host, name)?;
    rename_table(host, REBUILT, name)?;
    restore_highest_id(connection, name, highest)?;
    for part in foreign {
        connection.execute_batch(&part.sql).map_err(|error| {
            let ObjectDefinition { name: part, .. } = &part;
            MigrateError::Database(format!(
                "{part}, which another program has put on {name}, is in the way ({error})"
            ))
        })?;
    }
    refuse_dangling(connection, name, dangling)
}

/// Columns that another program added are none of ours to drop.
fn add_foreign_columns(connection: &Connection, pair: &TablePair<'_>) -> rusqlite::Result<Vec<FoundColumn>> {
    let gone = pair.removed_names().map(|(_, name)| name);
    let kept = pair.columns.iter().map(|(_, new)| new.column.clone());
    let own = ["id", "_version"].map(str::to_owned).into_iter();
    let known: Vec<String> = own.chain(gone).chain(kept).collect();
    let mut extras = catalog::find_columns(connection, &pair.new.table)?;
    extras.retain(|extra| !known.iter().any(|name| name.eq_ignore_ascii_case(&extra.name)));
    for extra in &extras {
        connection.execute_batch(&format!("ALTER TABLE {REBUILT} ADD COLUMN {}", extra.definition))?;
    }
    Ok(extras)
}

/// Every row, with the values of changed columns converted. New columns are left to their defaults.
fn copy_rows(
    host: &SqliteMigration<'_>,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
    extras: &[FoundColumn],
) -> Result<(), MigrateError> {
    let passages: Vec<ColumnConversion<'_>> = pair
        .columns
        .iter()
        .map(|(old, new)| ColumnConversion::new(host, model, pairs, pair, (old, new)))
        .collect::<Result<_, _>>()?;
    let own = pair.columns.iter().map(|(_, new)| new.column.as_str()).chain(["id", "_version"]);
    let names: Vec<String> =
        own.chain(extras.iter().map(|extra| extra.name.as_str())).map(quote_name).collect();
    let (list, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
    let read = format!("SELECT {list} FROM {} ORDER BY \"id\"", quote_name(&pair.new.table));
    let mut reading = host.0.prepare(&read)?;
    let mut writing = host.0.prepare(&format!("INSERT INTO {REBUILT} ({list}) VALUES ({marks})"))?;
    let mut rows = reading.query([])?;
    while let Some(row) = rows.next()? {
        for at in 0..names.len() {
            let value = row.get_ref(at)?;
            match passages.get(at) {
                Some(passage) if passage.converts() || value == ValueRef::Null => {
                    let passed = passage.convert(from_value_ref(value));
                    writing.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(as_value_ref(&passed)))?;
                }
                // As it was, though no field could hold it.
                Some(_) | None => writing.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(value))?,
            }
        }
        writing.raw_execute()?;
    }
    Ok(())
}

fn highest_id(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0)).optional()
}

/// The id of a deleted record is never given again, though no row tells of it.
fn restore_highest_id(connection: &Connection, table: &str, highest: Option<i64>) -> rusqlite::Result<()> {
    let Some(highest) = highest else { return Ok(()) };
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![table, highest])?;
    Ok(())
}

/// Foreign keys are off while tables are replaced, so they are checked here. What was wrong before, by
/// the hand of a program that does not enforce them, does not count.
fn refuse_dangling(connection: &Connection, table: &str, before: i64) -> Result<(), MigrateError> {
    let after = catalog::count_dangling(connection, table)?;
    if after > before {
        let text = format!("{} records of {table} would refer to nothing", after - before);
        return Err(MigrateError::Database(text));
    }
    Ok(())
}
