//! Migration on SQLite: adds columns in place and rebuilds a table for every other change.

pub(crate) mod catalog;
pub(crate) mod database;
pub(crate) mod ddl;
pub(crate) mod link_triggers;
pub(crate) mod rebuild;
pub(crate) mod search_index;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};

use trefoil_engine::ChangeKind;
use trefoil_model::{Model, RecordTypeId, StoredValue};

use crate::api_keys::{CREATE_ON_SQLITE, log_on_sqlite};
use crate::audit;
use crate::migrate::create_statements::{
    ObjectDefinition, column_definition, create_link_sql, index_definition, link_index_definition, quote_name,
};
use crate::migrate::migration_database::{DdlDialect, MigrationDatabase};
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair, delete_action};
use crate::migrate::sqlite::database::{SqliteMigration, StoredParameter, from_value_ref};
use crate::migrate::sqlite::ddl::{BOOKKEEPING, SQLITE_DDL};
use crate::migrate::sqlite::link_triggers::link_triggers;
use crate::migrate::stored_model::{ColumnDefault, StoredColumn, StoredKey, StoredModel};
use crate::migrate::{MigrateError, MigrationMode, MigrationReport, apply, run_migration};
use crate::sqlite::plain_lists;

/// Brings a database to the tables of `model` as far as `mode` allows, in one transaction. `logged` are the
/// changes to log, `lists` the names of the plain lists; an existing list that is not named keeps its values.
/// After a `Database` error the connection must not be used.
pub fn migrate_sqlite(
    connection: &mut Connection,
    model: &Model,
    logged: &[(RecordTypeId, ChangeKind)],
    lists: &[String],
    mode: MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let stored_model = StoredModel::from_model(model, logged);
    // Replacing a table must not cascade, and foreign keys cannot be switched inside a transaction.
    let enforced: bool = connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    // Otherwise a quoted name of a dropped column would be read as text in another program's index.
    let lenient = connection.db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    let report = migrate_in_transaction(connection, model, &stored_model, lists, &mode);
    connection.pragma_update(None, "legacy_alter_table", false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, lenient)?;
    connection.pragma_update(None, "foreign_keys", enforced)?;
    report
}

fn migrate_in_transaction(
    connection: &mut Connection,
    model: &Model,
    stored_model: &StoredModel,
    lists: &[String],
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let behavior = match mode {
        MigrationMode::Plan => TransactionBehavior::Deferred,
        MigrationMode::Start | MigrationMode::Apply { .. } => TransactionBehavior::Immediate,
    };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let report = run_migration(&SqliteMigration(&transaction), model, stored_model, lists, mode)?;
    transaction.commit()?;
    Ok(report)
}

impl MigrationDatabase for SqliteMigration<'_> {
    fn ddl_dialect(&self) -> &'static DdlDialect {
        &SQLITE_DDL
    }

    fn execute_batch(&self, sql: &str) -> Result<(), MigrateError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn query(&self, sql: &str, parameters: &[StoredValue]) -> Result<Vec<Vec<StoredValue>>, MigrateError> {
        let mut statement = self.0.prepare(sql)?;
        let width = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            (0..width).map(|column| row.get_ref(column).map(from_value_ref)).collect()
        };
        let rows = statement.query_map(params_from_iter(parameters.iter().map(StoredParameter)), read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn relations(&self) -> Result<Vec<String>, MigrateError> {
        Ok(catalog::relations(self.0)?)
    }

    fn column_names(&self, table: &str) -> Result<Vec<String>, MigrateError> {
        Ok(catalog::find_columns(self.0, table)?.into_iter().map(|found| found.name).collect())
    }

    fn is_unused(&self, stored_model: &StoredModel) -> Result<bool, MigrateError> {
        if self.0.prepare("SELECT 1 FROM trefoil_meta WHERE key = 'seeded'")?.exists([])? {
            return Ok(false);
        }
        let mut has_ids = self.0.prepare("SELECT 1 FROM sqlite_sequence WHERE name = ?1 AND seq > 0")?;
        for table in &stored_model.tables {
            let is_used = match table.key {
                StoredKey::Counted => has_ids.exists([&table.table])?,
                StoredKey::Uuid | StoredKey::Text => self
                    .0
                    .prepare(&format!("SELECT 1 FROM {} LIMIT 1", quote_name(&table.table)))?
                    .exists([])?,
            };
            if is_used {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn create_lists(&self, names: &[String]) -> Result<bool, MigrateError> {
        plain_lists::create_lists(self.0, names)?;
        Ok(plain_lists::are_unused(self.0)?)
    }

    fn create_list_tables(&self) -> Result<(), MigrateError> {
        Ok(plain_lists::create_tables(self.0)?)
    }

    fn create_bookkeeping_tables(&self) -> Result<(), MigrateError> {
        self.execute_batch(BOOKKEEPING)
    }

    /// Nothing to lock: the transaction is the only writer.
    fn lock_tables(&self, _pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        Ok(())
    }

    /// Drops our triggers, which must not fire for copied rows, and the full-text indexes, which are filled anew.
    fn begin_change(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        for table in pairs.old.tables.iter().filter(|table| !table.search.is_empty()) {
            search_index::drop_index(self.0, &table.table)?;
        }
        Ok(catalog::drop_triggers(self.0, pairs.old)?)
    }

    /// From here on, renaming a table does not change names in other tables, views and triggers.
    fn begin_replacing(&self, _pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        Ok(self.0.pragma_update(None, "legacy_alter_table", true)?)
    }

    fn alter_table(
        &self,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<(), MigrateError> {
        if needs_rebuild(pairs, pair) {
            return rebuild::rebuild_table(self, model, pairs, pair);
        }
        let table = quote_name(&pair.new.table);
        pair.new_columns.iter().try_for_each(|new| {
            self.execute_batch(&format!(
                "ALTER TABLE {table} ADD COLUMN {}",
                column_definition(&SQLITE_DDL, pairs.new, new)
            ))
        })
    }

    fn rebuild_link(
        &self,
        pairs: &ModelPairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError> {
        self.execute_batch(&create_link_sql(&SQLITE_DDL, pairs.new, pair.new, temporary))?;
        let (first, second) = pair.old_sides();
        self.execute_batch(&format!(
            "INSERT INTO {} SELECT {}, {} FROM {}",
            quote_name(temporary),
            quote_name(&first.column),
            quote_name(&second.column),
            quote_name(&pair.old.table)
        ))?;
        apply::drop_table(self, &pair.old.table)
    }

    fn update_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError> {
        let sql = "UPDATE \"trefoil_changes\" SET \"image\" = ?2 WHERE \"number\" = ?1";
        let mut update = self.0.prepare_cached(sql)?;
        for (number, image) in images {
            update.execute(params![number, image])?;
        }
        Ok(())
    }

    fn sync_objects(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError> {
        let definition = |table| move |index| index_definition(&SQLITE_DDL, table, index);
        let tables = new.tables.iter().flat_map(|table| table.indexes.iter().map(definition(table)));
        let indexes: Vec<ObjectDefinition> =
            tables.chain(new.links.iter().map(link_index_definition)).collect();
        let outdated: Vec<&str> = old.into_iter().flat_map(StoredModel::index_names).collect();
        catalog::sync_indexes(self.0, &outdated, &indexes)?;
        search_index::sync_search(self.0, new)?;
        if new.tables.iter().any(|table| table.has_accounts) {
            // The triggers of accounts name it.
            self.execute_batch(&format!("{CREATE_ON_SQLITE};{}", log_on_sqlite()))?;
        }
        if new.tables.iter().any(|table| table.is_audited) {
            self.execute_batch(audit::CREATE_ON_SQLITE)?;
        }
        let triggers: Vec<ObjectDefinition> = (new.tables.iter().flat_map(ddl::table_triggers))
            .chain(new.links.iter().flat_map(|link| link_triggers(new, link)))
            .collect();
        Ok(catalog::sync_triggers(self.0, new, &triggers)?)
    }
}

/// True unless the only changes are columns that SQLite can add in place.
fn needs_rebuild(pairs: &ModelPairs<'_>, pair: &TablePair<'_>) -> bool {
    let addable = |new: &StoredColumn| match new.default {
        ColumnDefault::Created | ColumnDefault::Updated => false,
        ColumnDefault::Nothing => !new.required,
        ColumnDefault::Int(_) | ColumnDefault::Real(_) | ColumnDefault::Text(_) => true,
    };
    let same = |old: &StoredColumn, new: &StoredColumn| {
        pairs.is_same_type(&old.form, &new.form)
            && !pairs.is_narrowed(&old.form, &new.form)
            && delete_action(&old.form) == delete_action(&new.form)
            && old.required == new.required
            && old.default == new.default
    };
    !pair.removed_columns.is_empty()
        || !pair.new_columns.iter().all(|new| addable(new))
        || !pair.columns.iter().all(|(old, new)| same(old, new))
}
