//! The full-text indexes on SQLite: an FTS5 table for each record's table, and the triggers that keep it.
//!
//! It has no contents of its own, so a row is removed from it by giving its former texts once more. As with the change
//! log, `INSERT OR REPLACE` of another program leaves out the removal of the replaced row.

use rusqlite::{Connection, OptionalExtension};

use crate::migrate::create_statements::{ObjectDefinition, quote_name};
use crate::migrate::stored_model::{StoredModel, StoredTable};
use crate::statements::dialect::Dialect;
use crate::statements::search::search_index::{index_table, indexed_texts};

/// The statement that creates the index of a table.
fn index_sql(table: &StoredTable) -> String {
    let columns: Vec<String> = table.search.iter().map(|column| quote_name(column)).collect();
    format!(
        "CREATE VIRTUAL TABLE {} USING fts5({}, content='', tokenize='unicode61 remove_diacritics 2')",
        quote_name(&index_table(&table.table)),
        columns.join(", ")
    )
}

/// The triggers that keep the index of a table.
pub fn search_triggers(table: &StoredTable) -> Vec<ObjectDefinition> {
    if table.search.is_empty() {
        return Vec::new();
    }
    let index = quote_name(&index_table(&table.table));
    let columns: Vec<String> = table.search.iter().map(|column| quote_name(column)).collect();
    let list = columns.join(", ");
    let texts = |row: &str| indexed_texts(Dialect::Sqlite, row, &table.search).join(", ");
    let add = format!("INSERT INTO {index} (rowid, {list}) VALUES (NEW.\"id\", {})", texts("NEW."));
    let remove = format!(
        "INSERT INTO {index} ({index}, rowid, {list}) VALUES ('delete', OLD.\"id\", {})",
        texts("OLD.")
    );
    let changed: Vec<String> =
        columns.iter().map(|column| format!("NEW.{column} IS NOT OLD.{column}")).collect();
    let trigger = |purpose: &str, when: &str, body: &str| {
        let name = format!("trefoil_{}_search_{purpose}", table.table);
        let (quoted, on) = (quote_name(&name), quote_name(&table.table));
        let sql = format!("CREATE TRIGGER {quoted} {} BEGIN {body}; END", when.replace("{table}", &on));
        ObjectDefinition { name, sql }
    };
    let update = format!("AFTER UPDATE OF {list} ON {{table}} WHEN {}", changed.join(" OR "));
    vec![
        trigger("add", "AFTER INSERT ON {table}", &add),
        trigger("change", &update, &format!("{remove}; {add}")),
        trigger("remove", "AFTER DELETE ON {table}", &remove),
    ]
}

/// Drops the index of a table, if it has one.
pub fn drop_index(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("DROP TABLE IF EXISTS {}", quote_name(&index_table(table))))
}

/// Creates and fills the indexes that are missing, and drops those of tables that have none any more. An index without
/// its triggers was not kept, such as by an earlier version.
pub fn sync_search(connection: &Connection, new: &StoredModel) -> rusqlite::Result<()> {
    let definition = |name: &str| -> rusqlite::Result<Option<String>> {
        let sql = "SELECT sql FROM sqlite_master WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get(0)).optional()
    };
    for table in &new.tables {
        let found = definition(&index_table(&table.table))?;
        if table.search.is_empty() {
            if found.is_some() {
                drop_index(connection, &table.table)?;
            }
            continue;
        }
        let mut is_current = found == Some(index_sql(table));
        for trigger in search_triggers(table) {
            is_current &= definition(&trigger.name)? == Some(trigger.sql);
        }
        if !is_current {
            drop_index(connection, &table.table)?;
            fill_index(connection, table)?;
        }
    }
    Ok(())
}

fn fill_index(connection: &Connection, table: &StoredTable) -> rusqlite::Result<()> {
    let columns: Vec<String> = table.search.iter().map(|column| quote_name(column)).collect();
    connection.execute_batch(&format!(
        "{}; INSERT INTO {} (rowid, {}) SELECT \"id\", {} FROM {}",
        index_sql(table),
        quote_name(&index_table(&table.table)),
        columns.join(", "),
        indexed_texts(Dialect::Sqlite, "", &table.search).join(", "),
        quote_name(&table.table)
    ))
}
