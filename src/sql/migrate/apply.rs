//! Carries a change of shape out: everything in one transaction, or nothing.

use rusqlite::{Connection, Transaction, params};

use super::ddl;
use super::shape::StoredModel;

/// The number of the store format this version writes.
pub const FORMAT: u32 = 1;

/// Makes every table in a database that has none of them.
pub fn create(transaction: &Transaction<'_>, model: &StoredModel) -> rusqlite::Result<()> {
    transaction.execute_batch(ddl::BOOKKEEPING)?;
    for table in &model.tables {
        run(transaction, &ddl::table(model, table, &table.table))?;
        for index in &table.indexes {
            run(transaction, &ddl::index(table, index).sql)?;
        }
        for trigger in ddl::triggers(table) {
            run(transaction, &trigger.sql)?;
        }
    }
    for link in &model.links {
        run(transaction, &ddl::link(model, link, &link.table))?;
        run(transaction, &ddl::link_index(link).sql)?;
    }
    let store = uuid::Uuid::new_v4().simple().to_string();
    write_meta(transaction, "format", &FORMAT.to_string())?;
    write_meta(transaction, "store", &store)?;
    write_model(transaction, model)
}

pub fn write_model(connection: &Connection, model: &StoredModel) -> rusqlite::Result<()> {
    let json = serde_json::to_string(model).expect("plain data has a JSON form");
    write_meta(connection, "model", &json)
}

fn write_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO \"trefoil_meta\" (\"key\", \"value\") VALUES (?1, ?2)";
    connection.execute(sql, params![key, value]).map(drop)
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.execute_batch(sql)
}
