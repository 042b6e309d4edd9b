//! Replaces a table by one with another definition, row by row. Ids, versions, the highest id ever assigned and
//! the indexes and triggers of other programs are preserved.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use trefoil_model::Model;

use crate::migrate::MigrateError;
use crate::migrate::apply::{drop_table, rename_table};
use crate::migrate::column_rewrite::ColumnRewrite;
use crate::migrate::create_statements::{self, ObjectDefinition, quote_name};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::sqlite::catalog::{self, FoundColumn};
use crate::migrate::sqlite::database::{SqliteMigration, as_value_ref, from_value_ref};
use crate::migrate::sqlite::ddl::SQLITE_DDL;

/// The temporary name of the new table.
const REBUILD_TABLE: &str = "trefoil_rebuilt";

/// Rebuilds a table. Tables and columns already have their new names.
pub fn rebuild_table(
    database: &SqliteMigration<'_>,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let (connection, name) = (database.0, &pair.new.table);
    let dangling = catalog::count_dangling(connection, name)?;
    let highest = highest_id(connection, name)?;
    let ours: Vec<&str> = pair.old.indexes.iter().map(|index| index.name.as_str()).collect();
    let foreign = catalog::foreign_objects(connection, name, &ours)?;
    database.execute_batch(&create_statements::create_table_sql(
        &SQLITE_DDL,
        pairs.new,
        pair.new,
        REBUILD_TABLE,
    ))?;
    let extras = add_foreign_columns(connection, pair)?;
    // Records that are there stay, however their keys are spelt.
    connection.pragma_update(None, "ignore_check_constraints", true)?;
    let copied = copy_rows(database, model, pairs, pair, &extras);
    connection.pragma_update(None, "ignore_check_constraints", false)?;
    copied?;
    drop_table(database, name)?;
    rename_table(database, REBUILD_TABLE, name)?;
    restore_highest_id(connection, name, highest)?;
    for object in foreign {
        connection.execute_batch(&object.sql).map_err(|error| {
            let ObjectDefinition { name: part, .. } = &object;
            MigrateError::Database(format!(
                "{part}, created by another program on {name}, prevents this change ({error})"
            ))
        })?;
    }
    refuse_dangling(connection, name, dangling)
}

/// Adds the columns of other programs to the new table, since they are not ours to drop.
fn add_foreign_columns(connection: &Connection, pair: &TablePair<'_>) -> rusqlite::Result<Vec<FoundColumn>> {
    let removed = pair.removed_names().map(|(_, name)| name);
    let columns = pair.columns.iter().map(|(_, new)| new.column.clone());
    let own = ["id", "_version"].map(str::to_owned).into_iter();
    let known: Vec<String> = own.chain(removed).chain(columns).collect();
    let mut extras = catalog::find_columns(connection, &pair.new.table)?;
    extras.retain(|extra| !known.iter().any(|name| name.eq_ignore_ascii_case(&extra.name)));
    for extra in &extras {
        connection.execute_batch(&format!("ALTER TABLE {REBUILD_TABLE} ADD COLUMN {}", extra.definition))?;
    }
    Ok(extras)
}

/// Copies every row with the values of changed columns converted. New columns get their defaults.
fn copy_rows(
    database: &SqliteMigration<'_>,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
    extras: &[FoundColumn],
) -> Result<(), MigrateError> {
    let conversions: Vec<ColumnRewrite<'_>> = pair
        .columns
        .iter()
        .map(|(old, new)| ColumnRewrite::new(database, model, pairs, pair, (old, new)))
        .collect::<Result<_, _>>()?;
    let own = pair.columns.iter().map(|(_, new)| new.column.as_str()).chain(["id", "_version"]);
    let names: Vec<String> =
        own.chain(extras.iter().map(|extra| extra.name.as_str())).map(quote_name).collect();
    let (list, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
    let query = format!("SELECT {list} FROM {} ORDER BY \"id\"", quote_name(&pair.new.table));
    let mut select = database.0.prepare(&query)?;
    let mut insert = database.0.prepare(&format!("INSERT INTO {REBUILD_TABLE} ({list}) VALUES ({marks})"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        for position in 0..names.len() {
            let value = row.get_ref(position)?;
            match conversions.get(position) {
                Some(conversion) if conversion.converts() || value == ValueRef::Null => {
                    let converted = conversion.convert(from_value_ref(value));
                    insert
                        .raw_bind_parameter(position + 1, ToSqlOutput::Borrowed(as_value_ref(&converted)))?;
                }
                // Unchanged, even if no field could hold it.
                Some(_) | None => insert.raw_bind_parameter(position + 1, ToSqlOutput::Borrowed(value))?,
            }
        }
        insert.raw_execute()?;
    }
    Ok(())
}

fn highest_id(connection: &Connection, table: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
    connection.query_row(sql, [table], |row| row.get(0)).optional()
}

/// Keeps the ids of deleted records from being assigned again.
fn restore_highest_id(connection: &Connection, table: &str, highest: Option<i64>) -> rusqlite::Result<()> {
    let Some(highest) = highest else { return Ok(()) };
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", params![table, highest])?;
    Ok(())
}

/// Checks references, since foreign keys are off while tables are replaced. References that dangled before,
/// because another program does not enforce them, do not count.
fn refuse_dangling(connection: &Connection, table: &str, before: i64) -> Result<(), MigrateError> {
    let after = catalog::count_dangling(connection, table)?;
    if after > before {
        let text = format!("{} records of {table} would have dangling references", after - before);
        return Err(MigrateError::Database(text));
    }
    Ok(())
}
