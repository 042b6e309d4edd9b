//! Changes the columns of a table where it stands: no row is touched one by one, so no trigger of anyone sees it.

use crate::migrate::MigrateError;
use crate::migrate::apply::{rename_column, rename_table};
use crate::migrate::column_conversion::{ColumnConversion, changes_values};
use crate::migrate::ddl::{column_definition, quote_name};
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::postgres::catalog::foreign_objects;
use crate::migrate::postgres::ddl::POSTGRES_DDL;
use crate::migrate::postgres::{PostgresMigration, indexes};
use crate::migrate::stored_model::StoredColumn;
use trefoil_model::{Model, StoredValue};

/// Where converted values wait until their column takes them, by functions that have its row type as a parameter only
/// in order to go when it goes.
const STAGING_TABLE: &str = "trefoil_converted";

pub fn alter_table(
    host: &PostgresMigration,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    refuse_foreign_objects(host, pair)?;
    let conversions = StagedColumn::stage_all(host, model, pairs, pair)?;
    drop_affected_indexes(host, pair, &conversions)?;
    let mut first = Vec::new();
    let mut actions: Vec<String> =
        pair.removed_names().map(|(_, name)| format!("DROP COLUMN {}", quote_name(&name))).collect();
    for (at, (old, new)) in pair.columns.iter().enumerate() {
        let name = quote_name(&new.column);
        let using = match conversions.iter().find(|one| one.column_index == at) {
            Some(conversion) => Some(conversion.value_expression()),
            None => fill_expression(host, pair, old, new)?,
        };
        if old.default != new.default || using.is_some() {
            // The old default may be none of the new type.
            first.push(format!("ALTER {name} DROP DEFAULT"));
            actions.extend(
                (POSTGRES_DDL.default_value)(new).map(|value| format!("ALTER {name} SET DEFAULT {value}")),
            );
        }
        if let Some(value) = using {
            let ty = (POSTGRES_DDL.column_type)(&new.form);
            actions.push(format!("ALTER {name} TYPE {ty} USING {value}::{ty}"));
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
        host.execute_batch(&format!("ALTER TABLE {} {}", quote_name(&pair.new.table), actions.join(", ")))?;
    }
    if conversions.is_empty() {
        Ok(())
    } else {
        host.execute_batch(&format!("DROP TABLE {STAGING_TABLE} CASCADE"))
    }
}

/// PostgreSQL drops what is on a column together with it, whoever put it there.
fn refuse_foreign_objects(host: &PostgresMigration, pair: &TablePair<'_>) -> Result<(), MigrateError> {
    let ours: Vec<String> = pair.old.indexes.iter().flat_map(indexes::possible_names).collect();
    let table = &pair.new.table;
    for (_, column) in pair.removed_names() {
        if let Some(part) = foreign_objects(host, table, &column, &ours)?.first() {
            return Err(MigrateError::Database(format!(
                "{part}, which another program has put on {table}, is in the way"
            )));
        }
    }
    Ok(())
}

/// A required column without a value in some records takes its default there.
fn fill_expression(
    host: &PostgresMigration,
    pair: &TablePair<'_>,
    old: &StoredColumn,
    new: &StoredColumn,
) -> Result<Option<String>, MigrateError> {
    let Some(value) = (POSTGRES_DDL.default_value)(new).filter(|_| new.required && !old.required) else {
        return Ok(None);
    };
    let (name, table) = (quote_name(&new.column), quote_name(&pair.new.table));
    let empty = host.query(&format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"), &[])?;
    Ok((!empty.is_empty()).then(|| format!("coalesce({name}, {value})")))
}

/// A column whose values become others.
struct StagedColumn {
    /// Which of the pair's columns.
    column_index: usize,
}

impl StagedColumn {
    fn stage_all(
        host: &PostgresMigration,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<Vec<StagedColumn>, MigrateError> {
        let changing =
            pair.columns.iter().enumerate().filter(|(_, (old, new))| changes_values(pairs, old, new));
        let mut passages = Vec::new();
        for (at, (old, new)) in changing {
            passages.push((at, ColumnConversion::new(host, model, pairs, pair, (old, new))?));
        }
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let columns: String = passages.iter().map(|(at, _)| format!(", c{at} text")).collect();
        host.execute_batch(&format!(
            "CREATE UNLOGGED TABLE {STAGING_TABLE} (id bigint PRIMARY KEY{columns})"
        ))?;
        let differing = stage_values(host, pair, &passages, &columns)?;
        let mut list = Vec::new();
        for at in passages.into_iter().map(|(at, _)| at) {
            let (old, new) = pair.columns[at];
            // Where only fewer values are allowed than before, all that are there may be allowed still.
            if (POSTGRES_DDL.column_type)(&old.form) != (POSTGRES_DDL.column_type)(&new.form)
                || differing.contains(&at)
            {
                host.execute_batch(&format!(
                    "CREATE FUNCTION {STAGING_TABLE}_{at}({STAGING_TABLE}, bigint) RETURNS text LANGUAGE sql STABLE AS \
                     'SELECT c{at} FROM {schema}.{STAGING_TABLE} WHERE id = $2'",
                    schema = host.schema.replace('\'', "''")
                ))?;
                list.push(StagedColumn { column_index: at });
            }
        }
        if list.is_empty() {
            host.execute_batch(&format!("DROP TABLE {STAGING_TABLE}"))?;
        }
        Ok(list)
    }

    /// An expression; a subquery may not stand there.
    fn value_expression(&self) -> String {
        format!("{STAGING_TABLE}_{}(NULL, \"id\")", self.column_index)
    }
}

/// Puts every converted value beside its record's id; says which columns have values that are not what they were.
fn stage_values(
    host: &PostgresMigration,
    pair: &TablePair<'_>,
    passages: &[(usize, ColumnConversion<'_>)],
    columns: &str,
) -> Result<Vec<usize>, MigrateError> {
    let read: String = passages
        .iter()
        .map(|(at, _)| {
            let (old, new) = pair.columns[*at];
            format!(", {}", (POSTGRES_DDL.read_expression)(&old.form, &quote_name(&new.column)))
        })
        .collect();
    let query = format!("SELECT \"id\"{read} FROM {} WHERE true", quote_name(&pair.new.table));
    let write = format!(
        "INSERT INTO {STAGING_TABLE} SELECT * FROM json_to_recordset($1::json) AS r(id bigint{columns})"
    );
    let mut differing = Vec::new();
    for_each_page(host, &query, "id", |rows| {
        let mut page = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells = row.into_iter();
            let mut member = serde_json::Map::new();
            member.insert("id".to_owned(), to_json_text(cells.next().unwrap_or(StoredValue::Null)));
            for ((at, passage), value) in passages.iter().zip(cells) {
                let passed = passage.convert(value.clone());
                if passed != value && !differing.contains(at) {
                    differing.push(*at);
                }
                member.insert(format!("c{at}"), to_json_text(passed));
            }
            page.push(serde_json::Value::Object(member));
        }
        host.query(&write, &[StoredValue::Text(serde_json::Value::Array(page).to_string())]).map(drop)
    })?;
    Ok(differing)
}

/// As the text of a column of any type.
fn to_json_text(value: StoredValue) -> serde_json::Value {
    match value {
        StoredValue::Null => serde_json::Value::Null,
        StoredValue::Int(number) => serde_json::Value::String(number.to_string()),
        StoredValue::Real(number) => serde_json::Value::String(number.to_string()),
        StoredValue::Text(text) => serde_json::Value::String(text),
    }
}

/// Not every type has an index; `settle` makes those anew that are wanted still.
fn drop_affected_indexes(
    host: &PostgresMigration,
    pair: &TablePair<'_>,
    conversions: &[StagedColumn],
) -> Result<(), MigrateError> {
    let converted = |column: &String| {
        conversions
            .iter()
            .any(|one| pair.columns.get(one.column_index).is_some_and(|(old, _)| old.column == *column))
    };
    let outdated = pair.old.indexes.iter().filter(|index| index.columns.iter().any(converted));
    let mut names: Vec<String> = outdated.flat_map(indexes::possible_names).collect();
    if !names.is_empty() {
        names.extend(indexes::obsolete_names(host, &pair.new.table)?);
    }
    indexes::drop_indexes(host, &names)
}

/// Through names that nobody has: the two columns may change places.
pub fn rebuild_link(
    host: &PostgresMigration,
    pair: &LinkPair<'_>,
    temporary: &str,
) -> Result<(), MigrateError> {
    rename_table(host, &pair.old.table, temporary)?;
    let (first, second) = pair.old_sides();
    let sides = [(first, &pair.new.first), (second, &pair.new.second)];
    for (at, (old, _)) in sides.iter().enumerate() {
        rename_column(host, temporary, &old.column, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, new)) in sides.iter().enumerate() {
        rename_column(host, temporary, &format!("trefoil_moving_{at}"), &new.column)?;
    }
    if !pair.swapped {
        return Ok(());
    }
    let key = "SELECT conname FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'";
    let table = quote_name(temporary);
    for name in host.query_texts(key, &[&table])?.into_iter().flatten() {
        let key =
            [&pair.new.first.column, &pair.new.second.column].map(|column| quote_name(column)).join(", ");
        host.execute_batch(&format!(
            "ALTER TABLE {table} DROP CONSTRAINT {}, ADD PRIMARY KEY ({key})",
            quote_name(&name)
        ))?;
    }
    Ok(())
}
