//! Carries a change of shape out, inside the caller's transaction. Versions stay and nothing is logged.

use crate::migrate::ddl;
use crate::migrate::ddl::quote_name;
use crate::migrate::diff::needs_link_rebuild;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::stored_model::{LinkTable, StoredModel, StoredTable};
use crate::migrate::{MigrateError, log_images};
use trefoil_model::{Model, StoredValue};

/// The number of the store format this version writes.
pub const STORE_FORMAT: u32 = 1;

/// Makes everything in a database that has nothing of ours.
pub fn create_all(host: &dyn MigrationDatabase, model: &StoredModel) -> Result<(), MigrateError> {
    create_bare_tables(host, model)?;
    sync_and_record(host, None, model)?;
    write_meta(host, "format", &STORE_FORMAT.to_string())?;
    write_meta(host, "store", &uuid::Uuid::new_v4().simple().to_string())
}

/// Tables without anything beside them.
pub fn create_bare_tables(host: &dyn MigrationDatabase, model: &StoredModel) -> Result<(), MigrateError> {
    host.create_bookkeeping_tables()?;
    create_tables(host, model, &model.tables.iter().collect::<Vec<_>>())?;
    create_links(host, model, &model.links.iter().collect::<Vec<_>>())
}

/// Takes the tables from the old shape to the new one. What this loses was agreed to.
pub fn apply_changes(
    host: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    host.begin_change(pairs)?;
    rename_tables(host, pairs)?;
    for pair in &pairs.tables {
        rename_columns(host, pair)?;
    }
    host.begin_replacing(pairs)?;
    replace_tables(host, model, pairs)?;
    log_images::rewrite_images(host, model, pairs)?;
    sync_and_record(host, Some(pairs.old), pairs.new)
}

/// What stands beside the tables is as the shape wants it, whatever was there; then the shape is on record.
pub fn sync_and_record(
    host: &dyn MigrationDatabase,
    old: Option<&StoredModel>,
    new: &StoredModel,
) -> Result<(), MigrateError> {
    host.sync_objects(old, new)?;
    let json = serde_json::to_string(new).expect("plain data has a JSON form");
    write_meta(host, "model", &json)?;
    record_first_epoch(host)
}

/// The ids of changes carry the tag of their epoch: a store made anew never gives one that an older one gave.
fn record_first_epoch(host: &dyn MigrationDatabase) -> Result<(), MigrateError> {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let epochs = format!(r#"[{{"tag":"{}","after":0}}]"#, &random[..8]);
    let sql =
        "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('epochs', $1) ON CONFLICT DO NOTHING";
    host.query(sql, &[StoredValue::Text(epochs)]).map(drop)
}

fn write_meta(host: &dyn MigrationDatabase, key: &str, value: &str) -> Result<(), MigrateError> {
    let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ($1, $2) \
               ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\" \
               WHERE \"trefoil_meta\".\"value\" <> excluded.\"value\"";
    host.query(sql, &[key, value].map(|text| StoredValue::Text(text.to_owned()))).map(drop)
}

fn replace_tables(
    host: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    for link in &pairs.removed_links {
        drop_table(host, &link.table)?;
    }
    for (_, name) in pairs.removed_names() {
        drop_table(host, &name)?;
    }
    create_tables(host, pairs.new, &pairs.new_tables)?;
    for pair in &pairs.tables {
        host.alter_table(model, pairs, pair)?;
    }
    move_links(host, pairs)?;
    create_links(host, pairs.new, &pairs.new_links)
}

/// Through names that nobody has, since a table may take the name that another one had. References,
/// views and other programs' triggers follow.
fn rename_tables(host: &dyn MigrationDatabase, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let moved = || pairs.tables.iter().filter(|pair| pair.old.table != pair.new.table).enumerate();
    for (name, gone) in pairs.removed_names().filter(|(name, gone)| name != gone) {
        rename_table(host, name, &gone)?;
    }
    for (at, pair) in moved() {
        rename_table(host, &pair.old.table, &format!("trefoil_moving_{at}"))?;
    }
    for (at, pair) in moved() {
        rename_table(host, &format!("trefoil_moving_{at}"), &pair.new.table)?;
    }
    for pair in pairs.tables.iter().filter(|pair| pair.old.name != pair.new.name) {
        log_images::rename_resource(host, &pair.old.name, &pair.new.name)?;
    }
    Ok(())
}

/// A removed column gives way when a kept one takes its name.
fn rename_columns(host: &dyn MigrationDatabase, pair: &TablePair<'_>) -> Result<(), MigrateError> {
    let table = &pair.new.table;
    let moved = || pair.columns.iter().filter(|(old, new)| old.column != new.column).enumerate();
    for (name, gone) in pair.removed_names().filter(|(name, gone)| name != gone) {
        rename_column(host, table, name, &gone)?;
    }
    for (at, (old, _)) in moved() {
        rename_column(host, table, &old.column, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, new)) in moved() {
        rename_column(host, table, &format!("trefoil_moving_{at}"), &new.column)?;
    }
    Ok(())
}

fn move_links(host: &dyn MigrationDatabase, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let moved: Vec<&LinkPair<'_>> = pairs.links.iter().filter(|pair| needs_link_rebuild(pair)).collect();
    for (at, pair) in moved.iter().enumerate() {
        host.rebuild_link(pairs, pair, &format!("trefoil_moving_{at}"))?;
    }
    for (at, pair) in moved.iter().enumerate() {
        rename_table(host, &format!("trefoil_moving_{at}"), &pair.new.table)?;
    }
    Ok(())
}

fn create_tables(
    host: &dyn MigrationDatabase,
    model: &StoredModel,
    tables: &[&StoredTable],
) -> Result<(), MigrateError> {
    let create = |table: &&StoredTable| {
        host.execute_batch(&ddl::create_table_sql(host.ddl_dialect(), model, table, &table.table))
    };
    tables.iter().try_for_each(create)
}

fn create_links(
    host: &dyn MigrationDatabase,
    model: &StoredModel,
    links: &[&LinkTable],
) -> Result<(), MigrateError> {
    let create = |link: &&LinkTable| {
        host.execute_batch(&ddl::create_link_sql(host.ddl_dialect(), model, link, &link.table))
    };
    links.iter().try_for_each(create)
}

pub fn drop_table(host: &dyn MigrationDatabase, table: &str) -> Result<(), MigrateError> {
    host.execute_batch(&format!("DROP TABLE {}", quote_name(table)))
}

pub fn rename_table(host: &dyn MigrationDatabase, from: &str, to: &str) -> Result<(), MigrateError> {
    host.execute_batch(&format!("ALTER TABLE {} RENAME TO {}", quote_name(from), quote_name(to)))
}

pub fn rename_column(
    host: &dyn MigrationDatabase,
    table: &str,
    from: &str,
    to: &str,
) -> Result<(), MigrateError> {
    let (table, from, to) = (quote_name(table), quote_name(from), quote_name(to));
    host.execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}"))
}
