//! Reads tables, columns, indexes and triggers from SQLite's catalog and brings ours up to date.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::migrate::create_statements::{ObjectDefinition, quote_name, quote_text};
use crate::migrate::stored_model::StoredModel;

/// A column of a table and its definition.
pub struct FoundColumn {
    pub name: String,
    pub definition: String,
}

/// The names of all tables and views.
pub fn relations(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_master \
               WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

pub fn find_columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<FoundColumn>> {
    let mut statement =
        connection.prepare("SELECT name, type, \"notnull\", dflt_value FROM pragma_table_info(?1)")?;
    let found = statement.query_map([table], |row| {
        let (name, kind): (String, String) = (row.get(0)?, row.get(1)?);
        let required = if row.get(2)? { " NOT NULL" } else { "" };
        let default: Option<String> = row.get(3)?;
        let default = default.map(|value| format!(" DEFAULT ({value})")).unwrap_or_default();
        Ok(FoundColumn { definition: format!("{} {kind}{required}{default}", quote_name(&name)), name })
    })?;
    found.collect()
}

/// Indexes and triggers of other programs on a table, which dropping the table would lose.
pub fn foreign_objects(
    connection: &Connection,
    table: &str,
    ours: &[&str],
) -> rusqlite::Result<Vec<ObjectDefinition>> {
    let sql = "SELECT name, sql FROM sqlite_master WHERE tbl_name = ?1 COLLATE NOCASE AND sql IS NOT NULL \
               AND type IN ('index', 'trigger') ORDER BY rowid";
    let mut statement = connection.prepare(sql)?;
    let found =
        statement.query_map([table], |row| Ok(ObjectDefinition { name: row.get(0)?, sql: row.get(1)? }))?;
    let found: Vec<ObjectDefinition> = found.collect::<rusqlite::Result<_>>()?;
    Ok(found.into_iter().filter(|object| !ours.contains(&object.name.as_str())).collect())
}

/// Drops our triggers on the tables of the model.
pub fn drop_triggers(connection: &Connection, model: &StoredModel) -> rusqlite::Result<()> {
    sync_triggers(connection, model, &[])
}

pub fn sync_triggers(
    connection: &Connection,
    model: &StoredModel,
    required: &[ObjectDefinition],
) -> rusqlite::Result<()> {
    let tables: Vec<String> = model.table_names().map(quote_text).collect();
    let found = find_definitions(
        connection,
        &format!(
            "type = 'trigger' AND name LIKE 'trefoil!_%' ESCAPE '!' AND tbl_name COLLATE NOCASE IN ({})",
            tables.join(", ")
        ),
    )?;
    let outdated: Vec<&str> = found.keys().map(String::as_str).collect();
    sync_objects(connection, "TRIGGER", &found, &outdated, required)
}

pub fn sync_indexes(
    connection: &Connection,
    old: &[&str],
    required: &[ObjectDefinition],
) -> rusqlite::Result<()> {
    sync_objects(
        connection,
        "INDEX",
        &find_definitions(connection, "type = 'index' AND sql IS NOT NULL")?,
        old,
        required,
    )
}

/// Keeps objects whose definition is identical, drops `outdated` ones and creates the rest.
fn sync_objects(
    connection: &Connection,
    kind: &str,
    found: &HashMap<String, String>,
    outdated: &[&str],
    required: &[ObjectDefinition],
) -> rusqlite::Result<()> {
    let is_kept = |name: &str| {
        required.iter().any(|object| object.name == name && found.get(name) == Some(&object.sql))
    };
    let replaced =
        required.iter().map(|object| object.name.as_str()).filter(|name| found.contains_key(*name));
    let mut dropped: Vec<&str> =
        outdated.iter().copied().chain(replaced).filter(|name| !is_kept(name)).collect();
    dropped.sort_unstable();
    dropped.dedup();
    for name in dropped {
        connection.execute_batch(&format!("DROP {kind} IF EXISTS {}", quote_name(name)))?;
    }
    for object in required.iter().filter(|object| !is_kept(&object.name)) {
        connection.execute_batch(&object.sql)?;
    }
    Ok(())
}

fn find_definitions(connection: &Connection, condition: &str) -> rusqlite::Result<HashMap<String, String>> {
    let mut statement =
        connection.prepare(&format!("SELECT name, sql FROM sqlite_master WHERE {condition}"))?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The number of dangling references in a table.
pub fn count_dangling(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let sql = format!("SELECT count(*) FROM pragma_foreign_key_check({})", quote_text(table));
    connection.query_row(&sql, [], |row| row.get(0))
}
