//! Changes the columns of a table with ALTER TABLE, which fires no row triggers, neither ours nor other programs'.

use trefoil_model::{Model, StoredValue};

use crate::migrate::MigrateError;
use crate::migrate::apply::{rename_column, rename_table};
use crate::migrate::column_rewrite::{ColumnRewrite, changes_values};
use crate::migrate::create_statements::{column_definition, quote_name};
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::postgres::catalog::foreign_objects;
use crate::migrate::postgres::database::PostgresMigration;
use crate::migrate::postgres::ddl::POSTGRES_DDL;
use crate::migrate::postgres::indexes;
use crate::migrate::stored_model::StoredColumn;

/// The table that holds converted values until ALTER COLUMN … USING reads them through functions. Those have its row
/// type as a parameter only so that they are dropped with it.
const STAGING_TABLE: &str = "trefoil_converted";

pub fn alter_table(
    database: &PostgresMigration,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    refuse_foreign_objects(database, pair)?;
    let staged = StagedColumn::stage_all(database, model, pairs, pair)?;
    drop_affected_indexes(database, pair, &staged)?;
    let mut first = Vec::new();
    let mut actions: Vec<String> =
        pair.removed_names().map(|(_, name)| format!("DROP COLUMN {}", quote_name(&name))).collect();
    for (position, (old, new)) in pair.columns.iter().enumerate() {
        let name = quote_name(&new.column);
        let using = match staged.iter().find(|column| column.column_index == position) {
            Some(column) => Some(column.value_expression()),
            None => fill_expression(database, pair, old, new)?,
        };
        if old.default != new.default || using.is_some() {
            // The old default may not be valid for the new type.
            first.push(format!("ALTER {name} DROP DEFAULT"));
            actions.extend(
                (POSTGRES_DDL.default_value)(new).map(|value| format!("ALTER {name} SET DEFAULT {value}")),
            );
        }
        if let Some(value) = using {
            let column_type = (POSTGRES_DDL.column_type)(&new.form);
            actions.push(format!("ALTER {name} TYPE {column_type} USING {value}::{column_type}"));
        }
        match (old.required, new.required) {
            (false, true) => actions.push(format!("ALTER {name} SET NOT NULL")),
            (true, false) => first.push(format!("ALTER {name} DROP NOT NULL")),
            (true, true) | (false, false) => {}
        }
    }
    let added =
        |new: &&StoredColumn| format!("ADD COLUMN {}", column_definition(&POSTGRES_DDL, pairs.new, new));
    actions.extend(pair.new_columns.iter().map(added));
    for actions in [first, actions].iter().filter(|actions| !actions.is_empty()) {
        database.execute_batch(&format!(
            "ALTER TABLE {} {}",
            quote_name(&pair.new.table),
            actions.join(", ")
        ))?;
    }
    if staged.is_empty() {
        Ok(())
    } else {
        database.execute_batch(&format!("DROP TABLE {STAGING_TABLE} CASCADE"))
    }
}

/// Refuses to drop columns that other programs' objects depend on, which PostgreSQL would drop as well.
fn refuse_foreign_objects(database: &PostgresMigration, pair: &TablePair<'_>) -> Result<(), MigrateError> {
    let own = pair.old.indexes.iter().flat_map(indexes::possible_names);
    let ours: Vec<String> = own.chain([indexes::search_name(pair.old)]).collect();
    let table = &pair.new.table;
    for (_, column) in pair.removed_names() {
        if let Some(part) = foreign_objects(database, table, &column, &ours)?.first() {
            return Err(MigrateError::Database(format!(
                "{part}, created by another program on {table}, prevents this change"
            )));
        }
    }
    Ok(())
}

/// The expression that fills nulls of a newly required column with its default; `None` if there is nothing to fill.
fn fill_expression(
    database: &PostgresMigration,
    pair: &TablePair<'_>,
    old: &StoredColumn,
    new: &StoredColumn,
) -> Result<Option<String>, MigrateError> {
    let Some(value) = (POSTGRES_DDL.default_value)(new).filter(|_| new.required && !old.required) else {
        return Ok(None);
    };
    let (name, table) = (quote_name(&new.column), quote_name(&pair.new.table));
    let empty = database.query(&format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"), &[])?;
    Ok((!empty.is_empty()).then(|| format!("coalesce({name}, {value})")))
}

/// A column whose converted values are in the staging table.
struct StagedColumn {
    /// The position among the pair's columns.
    column_index: usize,
}

impl StagedColumn {
    fn stage_all(
        database: &PostgresMigration,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<Vec<StagedColumn>, MigrateError> {
        let changing =
            pair.columns.iter().enumerate().filter(|(_, (old, new))| changes_values(pairs, old, new));
        let mut conversions = Vec::new();
        for (position, (old, new)) in changing {
            conversions.push((position, ColumnRewrite::new(database, model, pairs, pair, (old, new))?));
        }
        if conversions.is_empty() {
            return Ok(Vec::new());
        }
        let id_type = (POSTGRES_DDL.column_type)(&pair.new.key.column_form());
        let columns: String = conversions.iter().map(|(position, _)| format!(", c{position} text")).collect();
        database.execute_batch(&format!(
            "CREATE UNLOGGED TABLE {STAGING_TABLE} (id {id_type} PRIMARY KEY{columns})"
        ))?;
        // A parameter of a function has no collation.
        let id_argument = id_type.split(' ').next().unwrap_or(id_type);
        let differing = stage_values(database, pair, &conversions, &columns)?;
        let mut staged = Vec::new();
        for position in conversions.into_iter().map(|(position, _)| position) {
            let (old, new) = pair.columns[position];
            // If the type only allows fewer values, all stored ones may still be valid.
            if (POSTGRES_DDL.column_type)(&old.form) != (POSTGRES_DDL.column_type)(&new.form)
                || differing.contains(&position)
            {
                database.execute_batch(&format!(
                    "CREATE FUNCTION {STAGING_TABLE}_{position}({STAGING_TABLE}, {id_argument}) RETURNS text LANGUAGE sql STABLE AS \
                     'SELECT c{position} FROM {schema}.{STAGING_TABLE} WHERE id = $2'",
                    schema = database.schema.replace('\'', "''")
                ))?;
                staged.push(StagedColumn { column_index: position });
            }
        }
        if staged.is_empty() {
            database.execute_batch(&format!("DROP TABLE {STAGING_TABLE}"))?;
        }
        Ok(staged)
    }

    /// The converted value of a row. A function call, since USING does not allow a subquery.
    fn value_expression(&self) -> String {
        format!("{STAGING_TABLE}_{}(NULL, \"id\")", self.column_index)
    }
}

/// Writes all converted values to the staging table; returns the columns in which at least one value changed.
fn stage_values(
    database: &PostgresMigration,
    pair: &TablePair<'_>,
    conversions: &[(usize, ColumnRewrite<'_>)],
    columns: &str,
) -> Result<Vec<usize>, MigrateError> {
    let read: String = conversions
        .iter()
        .map(|(position, _)| {
            let (old, new) = pair.columns[*position];
            format!(", {}", (POSTGRES_DDL.read_expression)(&old.form, &quote_name(&new.column)))
        })
        .collect();
    let id = POSTGRES_DDL.read_id(pair.new.key);
    let id_type = (POSTGRES_DDL.column_type)(&pair.new.key.column_form());
    let query = format!("SELECT {id}{read} FROM {} WHERE true", quote_name(&pair.new.table));
    let write = format!(
        "INSERT INTO {STAGING_TABLE} SELECT * FROM json_to_recordset($1::json) AS r(id {id_type}{columns})"
    );
    let mut differing = Vec::new();
    for_each_page(database, &query, "id", |rows| {
        let mut page = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells = row.into_iter();
            let mut member = serde_json::Map::new();
            member.insert("id".to_owned(), to_json_text(cells.next().unwrap_or(StoredValue::Null)));
            for ((position, conversion), value) in conversions.iter().zip(cells) {
                let converted = conversion.convert(value.clone());
                if converted != value && !differing.contains(position) {
                    differing.push(*position);
                }
                member.insert(format!("c{position}"), to_json_text(converted));
            }
            page.push(serde_json::Value::Object(member));
        }
        database.query(&write, &[StoredValue::Text(serde_json::Value::Array(page).to_string())]).map(drop)
    })?;
    Ok(differing)
}

/// The value as JSON text, which PostgreSQL casts to any column type.
fn to_json_text(value: StoredValue) -> serde_json::Value {
    match value {
        StoredValue::Null => serde_json::Value::Null,
        StoredValue::Int(number) => serde_json::Value::String(number.to_string()),
        StoredValue::Real(number) => serde_json::Value::String(number.to_string()),
        StoredValue::Text(text) => serde_json::Value::String(text),
    }
}

/// Drops the indexes of converted columns, since not every type can be indexed. `sync_objects` creates those of the new
/// model again.
fn drop_affected_indexes(
    database: &PostgresMigration,
    pair: &TablePair<'_>,
    staged: &[StagedColumn],
) -> Result<(), MigrateError> {
    let is_converted = |column: &String| {
        staged
            .iter()
            .any(|one| pair.columns.get(one.column_index).is_some_and(|(old, _)| old.column == *column))
    };
    let outdated = pair.old.indexes.iter().filter(|index| index.columns.iter().any(is_converted));
    let mut names: Vec<String> = outdated.flat_map(indexes::possible_names).collect();
    if !names.is_empty() {
        names.extend(indexes::obsolete_names(database, &pair.new.table)?);
    }
    indexes::drop_indexes(database, &names)
}

/// Renames the columns through temporary names, since they may be swapped.
pub fn rebuild_link(
    database: &PostgresMigration,
    pair: &LinkPair<'_>,
    temporary: &str,
) -> Result<(), MigrateError> {
    rename_table(database, &pair.old.table, temporary)?;
    let (first, second) = pair.old_sides();
    let sides = [(first, &pair.new.first), (second, &pair.new.second)];
    for (position, (old, _)) in sides.iter().enumerate() {
        rename_column(database, temporary, &old.column, &format!("trefoil_moving_{position}"))?;
    }
    for (position, (_, new)) in sides.iter().enumerate() {
        rename_column(database, temporary, &format!("trefoil_moving_{position}"), &new.column)?;
    }
    if !pair.swapped {
        return Ok(());
    }
    let key = "SELECT conname FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'";
    let table = quote_name(temporary);
    for name in database.query_texts(key, &[&table])?.into_iter().flatten() {
        let key =
            [&pair.new.first.column, &pair.new.second.column].map(|column| quote_name(column)).join(", ");
        database.execute_batch(&format!(
            "ALTER TABLE {table} DROP CONSTRAINT {}, ADD PRIMARY KEY ({key})",
            quote_name(&name)
        ))?;
    }
    Ok(())
}
