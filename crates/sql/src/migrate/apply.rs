//! Applies the changes inside the caller's transaction. Record versions stay and nothing is logged.

use trefoil_model::{Model, StoredValue};

use crate::accounts::ACCOUNT_TABLES;
use crate::api_keys::API_KEYS_TABLE;
use crate::migrate::create_statements::{self, quote_name};
use crate::migrate::diff::needs_link_rebuild;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::stored_model::{LinkTable, STORE_FORMAT, StoredModel, StoredTable};
use crate::migrate::{MigrateError, log_images};

/// Records that the store was seeded, so that it is not seeded again after it is emptied.
pub const MARK_SEEDED: &str =
    "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('seeded', 'yes') ON CONFLICT DO NOTHING";

/// Creates a store in a database that has none.
pub fn create_all(database: &dyn MigrationDatabase, model: &StoredModel) -> Result<(), MigrateError> {
    create_bare_tables(database, model)?;
    sync_and_record(database, None, model)?;
    write_meta(database, "format", &STORE_FORMAT.to_string())?;
    write_meta(database, "store", &uuid::Uuid::new_v4().simple().to_string())
}

/// Creates the tables without indexes, foreign keys or triggers.
pub fn create_bare_tables(database: &dyn MigrationDatabase, model: &StoredModel) -> Result<(), MigrateError> {
    database.create_bookkeeping_tables()?;
    create_tables(database, model, &model.tables.iter().collect::<Vec<_>>())?;
    create_links(database, model, &model.links.iter().collect::<Vec<_>>())
}

/// Changes the tables from the old model to the new one. The caller has checked that any loss is allowed.
pub fn apply_changes(
    database: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    database.begin_change(pairs)?;
    if let Some((old, _)) = pairs.moved_accounts() {
        end_credentials(database, &old.name)?;
    }
    rename_tables(database, pairs)?;
    for pair in &pairs.tables {
        rename_columns(database, pair)?;
    }
    database.begin_replacing(pairs)?;
    replace_tables(database, model, pairs)?;
    log_images::rewrite_images(database, model, pairs)?;
    sync_and_record(database, Some(pairs.old), pairs.new)
}

/// Brings indexes, foreign keys and triggers to the new model and records it in `trefoil_meta`.
pub fn sync_and_record(
    database: &dyn MigrationDatabase,
    old: Option<&StoredModel>,
    new: &StoredModel,
) -> Result<(), MigrateError> {
    database.sync_objects(old, new)?;
    let json = serde_json::to_string(new).expect("plain data has a JSON form");
    write_meta(database, "model", &json)?;
    record_first_epoch(database)
}

/// Records the first epoch of the change log. Change ids carry the tag of their epoch, so that a recreated store
/// never repeats an id of the earlier one.
fn record_first_epoch(database: &dyn MigrationDatabase) -> Result<(), MigrateError> {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let epochs = format!(r#"[{{"tag":"{}","after":0}}]"#, &random[..8]);
    let sql =
        "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('epochs', $1) ON CONFLICT DO NOTHING";
    database.query(sql, &[StoredValue::Text(epochs)]).map(drop)
}

fn write_meta(database: &dyn MigrationDatabase, key: &str, value: &str) -> Result<(), MigrateError> {
    let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ($1, $2) \
               ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\" \
               WHERE \"trefoil_meta\".\"value\" <> excluded.\"value\"";
    database.query(sql, &[key, value].map(|text| StoredValue::Text(text.to_owned()))).map(drop)
}

fn replace_tables(
    database: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    for link in &pairs.removed_links {
        drop_table(database, &link.table)?;
    }
    for (_, name) in pairs.removed_names() {
        drop_table(database, &name)?;
    }
    create_tables(database, pairs.new, &pairs.new_tables)?;
    for pair in &pairs.tables {
        database.alter_table(model, pairs, pair)?;
    }
    move_links(database, pairs)?;
    create_links(database, pairs.new, &pairs.new_links)
}

/// Renames tables through temporary names, since a table may take the old name of another. References,
/// views and other programs' triggers follow.
fn rename_tables(database: &dyn MigrationDatabase, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let renamed = || pairs.tables.iter().filter(|pair| pair.old.table != pair.new.table).enumerate();
    for (name, temporary) in pairs.removed_names().filter(|(name, temporary)| name != temporary) {
        rename_table(database, name, &temporary)?;
    }
    for (number, pair) in renamed() {
        rename_table(database, &pair.old.table, &format!("trefoil_moving_{number}"))?;
    }
    for (number, pair) in renamed() {
        rename_table(database, &format!("trefoil_moving_{number}"), &pair.new.table)?;
    }
    for pair in pairs.tables.iter().filter(|pair| pair.old.name != pair.new.name) {
        log_images::rename_resource(database, &pair.old.name, &pair.new.name)?;
        if pair.new.has_accounts {
            rename_account_type(database, &pair.old.name, &pair.new.name)?;
        }
    }
    Ok(())
}

/// Credentials of accounts name their type.
fn rename_account_type(database: &dyn MigrationDatabase, old: &str, new: &str) -> Result<(), MigrateError> {
    for table in credential_tables(database)? {
        let sql = format!("UPDATE \"{table}\" SET \"account_type\" = $1 WHERE \"account_type\" = $2");
        database.query(&sql, &[new, old].map(|text| StoredValue::Text(text.to_owned())))?;
    }
    Ok(())
}

/// Ends all that accounts of a type sign in with.
fn end_credentials(database: &dyn MigrationDatabase, account_type: &str) -> Result<(), MigrateError> {
    for table in credential_tables(database)? {
        let sql = format!("DELETE FROM \"{table}\" WHERE \"account_type\" = $1");
        database.query(&sql, &[StoredValue::Text(account_type.to_owned())])?;
    }
    Ok(())
}

/// Those of the tables of credentials that are there.
fn credential_tables(database: &dyn MigrationDatabase) -> Result<Vec<&'static str>, MigrateError> {
    let relations = database.relations()?;
    let all = [API_KEYS_TABLE].into_iter().chain(ACCOUNT_TABLES);
    Ok(all.filter(|table| relations.iter().any(|name| name == table)).collect())
}

/// Renames columns through temporary names; a removed column is renamed if another takes its name.
fn rename_columns(database: &dyn MigrationDatabase, pair: &TablePair<'_>) -> Result<(), MigrateError> {
    let table = &pair.new.table;
    let renamed = || pair.columns.iter().filter(|(old, new)| old.column != new.column).enumerate();
    for (name, temporary) in pair.removed_names().filter(|(name, temporary)| name != temporary) {
        rename_column(database, table, name, &temporary)?;
    }
    for (number, (old, _)) in renamed() {
        rename_column(database, table, &old.column, &format!("trefoil_moving_{number}"))?;
    }
    for (number, (_, new)) in renamed() {
        rename_column(database, table, &format!("trefoil_moving_{number}"), &new.column)?;
    }
    Ok(())
}

fn move_links(database: &dyn MigrationDatabase, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
    let moved_links: Vec<&LinkPair<'_>> =
        pairs.links.iter().filter(|pair| needs_link_rebuild(pair)).collect();
    for (number, pair) in moved_links.iter().enumerate() {
        database.rebuild_link(pairs, pair, &format!("trefoil_moving_{number}"))?;
    }
    for (number, pair) in moved_links.iter().enumerate() {
        rename_table(database, &format!("trefoil_moving_{number}"), &pair.new.table)?;
    }
    Ok(())
}

fn create_tables(
    database: &dyn MigrationDatabase,
    model: &StoredModel,
    tables: &[&StoredTable],
) -> Result<(), MigrateError> {
    let create = |table: &&StoredTable| {
        database.execute_batch(&create_statements::create_table_sql(
            database.ddl_dialect(),
            model,
            table,
            &table.table,
        ))
    };
    tables.iter().try_for_each(create)
}

fn create_links(
    database: &dyn MigrationDatabase,
    model: &StoredModel,
    links: &[&LinkTable],
) -> Result<(), MigrateError> {
    let create = |link: &&LinkTable| {
        database.execute_batch(&create_statements::create_link_sql(
            database.ddl_dialect(),
            model,
            link,
            &link.table,
        ))
    };
    links.iter().try_for_each(create)
}

pub fn drop_table(database: &dyn MigrationDatabase, table: &str) -> Result<(), MigrateError> {
    database.execute_batch(&format!("DROP TABLE {}", quote_name(table)))
}

pub fn rename_table(database: &dyn MigrationDatabase, from: &str, to: &str) -> Result<(), MigrateError> {
    database.execute_batch(&format!("ALTER TABLE {} RENAME TO {}", quote_name(from), quote_name(to)))
}

pub fn rename_column(
    database: &dyn MigrationDatabase,
    table: &str,
    from: &str,
    to: &str,
) -> Result<(), MigrateError> {
    let (table, from, to) = (quote_name(table), quote_name(from), quote_name(to));
    database.execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}"))
}
