//! Migration on PostgreSQL: changes tables in place, all in one transaction.

pub(crate) mod alter;
pub(crate) mod blocking_client;
pub(crate) mod catalog;
pub(crate) mod database;
pub(crate) mod ddl;
pub(crate) mod indexes;
pub(crate) mod link_triggers;
pub(crate) mod lock;
pub(crate) mod plain_list_tables;
pub(crate) mod sql_objects;
pub(crate) mod triggers;

use std::sync::Arc;

use tokio_postgres::{Client, GenericClient, IsolationLevel};

use trefoil_engine::ChangeKind;
use trefoil_model::{Model, RecordTypeId, StoredValue};

use crate::api_keys::{CREATE_ON_POSTGRES, log_on_postgres};
use crate::audit;
use crate::migrate::create_statements::quote_name;
use crate::migrate::migration_database::{DdlDialect, MigrationDatabase};
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::postgres::blocking_client::client_channel;
use crate::migrate::postgres::database::PostgresMigration;
pub use crate::migrate::postgres::ddl::NUMBERING_STEP;
use crate::migrate::postgres::ddl::{BOOKKEEPING, POSTGRES_DDL, numbering_function};
use crate::migrate::postgres::link_triggers::{link_functions, link_triggers};
use crate::migrate::postgres::sql_objects::{MAX_NAME_BYTES, SqlFunction, SqlTrigger};
use crate::migrate::stored_model::{StoredKey, StoredModel, StoredType};
use crate::migrate::{MARK_SEEDED, MigrateError, MigrationMode, MigrationReport, run_migration};

/// Brings a database to the tables of `model`, as [`crate::migrate::migrate_sqlite`] does on SQLite. The client must
/// not be in a transaction or used elsewhere meanwhile.
///
/// Nodes that start together migrate one after the other. Each report asks for seeds until one node has seeded
/// and called [`mark_seeded`], so the caller has to ensure that only one does.
pub async fn migrate_postgres(
    client: &mut Client,
    model: &Arc<Model>,
    logged: &[(RecordTypeId, ChangeKind)],
    lists: &[String],
    mode: MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let stored_model = StoredModel::from_model(model, logged);
    refuse_long_names(&stored_model)?;
    let report = match migrate_in_transaction(client, model, stored_model, lists, mode).await {
        Err(MigrateError::Locked(_)) => {
            return Err(MigrateError::Locked(lock::lock_holders(client).await));
        }
        result => result?,
    };
    if report.is_applied
        && let Err(error) = indexes::drop_obsolete(client).await
    {
        tracing::warn!("unused indexes remain until the next start: {error}");
    }
    Ok(report)
}

async fn migrate_in_transaction(
    client: &mut Client,
    model: &Arc<Model>,
    stored_model: StoredModel,
    lists: &[String],
    mode: MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let is_plan = mode == MigrationMode::Plan;
    let isolation = if is_plan { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
    let transaction =
        client.build_transaction().isolation_level(isolation).read_only(is_plan).start().await?;
    let schema = configure_session(&transaction).await?;
    if !is_plan {
        lock::lock_migration(&transaction).await?;
    }
    let (model, lists) = (model.clone(), lists.to_vec());
    let run =
        move |database: &PostgresMigration| run_migration(database, &model, &stored_model, &lists, &mode);
    let report = run_blocking(&transaction, schema, run).await;
    match report {
        Ok(_) => transaction.commit().await?,
        Err(_) => transaction.rollback().await?,
    }
    report
}

/// Runs blocking `work` on a thread of its own, inside the transaction of `client`.
async fn run_blocking<T: Send + 'static>(
    client: &impl GenericClient,
    schema: String,
    work: impl FnOnce(&PostgresMigration) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let (blocking_client, mut requests) = client_channel();
    let work =
        tokio::task::spawn_blocking(move || work(&PostgresMigration { client: blocking_client, schema }));
    while let Some(request) = requests.recv().await {
        request.execute(client).await;
    }
    work.await.map_err(|_| MigrateError::Database("the migration panicked".to_owned()))?
}

/// Runs a part of a migration in the open transaction of `client`.
pub(crate) async fn run_in_transaction<T: Send + 'static>(
    client: &Client,
    work: impl FnOnce(&PostgresMigration) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let schema = configure_session(client).await?;
    run_blocking(client, schema, work).await
}

/// Locks out migrations until the transaction of `client` ends.
pub(crate) async fn lock_migration(client: &Client) -> Result<(), MigrateError> {
    lock::lock_migration(client).await
}

/// An expression for a column's value in the stored form.
pub(crate) fn read_expression(stored_type: &StoredType, column: &str) -> String {
    (POSTGRES_DDL.read_expression)(stored_type, column)
}

/// Applies the session settings that a migration needs, for this transaction; returns the quoted name of the schema.
async fn configure_session(client: &impl GenericClient) -> Result<String, MigrateError> {
    let sql = "SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; \
               SET LOCAL client_min_messages = warning; SET LOCAL statement_timeout = 0; \
               SET LOCAL idle_in_transaction_session_timeout = 0";
    client.batch_execute(sql).await?;
    let schema: Option<String> = client.query_one("SELECT current_schema()::text", &[]).await?.get(0);
    let no_schema = || MigrateError::Database("no schema in the search_path exists".to_owned());
    Ok(quote_name(&schema.ok_or_else(no_schema)?))
}

pub(crate) fn refuse_long_names(stored_model: &StoredModel) -> Result<(), MigrateError> {
    let columns =
        stored_model.tables.iter().flat_map(|table| &table.columns).map(|column| column.column.as_str());
    match stored_model.table_names().chain(columns).find(|name| name.len() > MAX_NAME_BYTES) {
        None => Ok(()),
        Some(name) => Err(MigrateError::Database(format!(
            "PostgreSQL allows names of at most {} bytes, but {name} is longer",
            MAX_NAME_BYTES
        ))),
    }
}

/// Records that the store was seeded. A PostgreSQL sequence does not tell: it also advances in transactions that fail.
pub async fn mark_seeded(client: &Client) -> Result<(), MigrateError> {
    Ok(client.batch_execute(MARK_SEEDED).await?)
}

impl MigrationDatabase for PostgresMigration {
    fn ddl_dialect(&self) -> &'static DdlDialect {
        &POSTGRES_DDL
    }

    fn execute_batch(&self, sql: &str) -> Result<(), MigrateError> {
        self.client.query(sql, None).map(drop)
    }

    fn query(&self, sql: &str, parameters: &[StoredValue]) -> Result<Vec<Vec<StoredValue>>, MigrateError> {
        self.client.query(sql, Some(parameters))
    }

    fn relations(&self) -> Result<Vec<String>, MigrateError> {
        catalog::relations(self)
    }

    fn column_names(&self, table: &str) -> Result<Vec<String>, MigrateError> {
        catalog::find_columns(self, table)
    }

    fn is_unused(&self, stored_model: &StoredModel) -> Result<bool, MigrateError> {
        if !self.query("SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'seeded'", &[])?.is_empty() {
            return Ok(false);
        }
        for table in &stored_model.tables {
            if !self.query(&format!("SELECT 1 FROM {} LIMIT 1", quote_name(&table.table)), &[])?.is_empty() {
                self.execute_batch(MARK_SEEDED)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn create_list_tables(&self) -> Result<(), MigrateError> {
        self.execute_batch(plain_list_tables::LIST_TABLES)
    }

    fn create_lists(&self, names: &[String]) -> Result<bool, MigrateError> {
        self.create_list_tables()?;
        catalog::sync_functions(self, &plain_list_tables::list_functions())?;
        catalog::sync_triggers(self, &["trefoil_list_values"], &plain_list_tables::list_triggers())?;
        let sql = "INSERT INTO \"trefoil_lists\" (\"name\") SELECT $1 \
                   WHERE NOT EXISTS (SELECT FROM \"trefoil_lists\" WHERE \"name\" = $1)";
        names.iter().try_for_each(|name| self.query(sql, &[StoredValue::Text(name.clone())]).map(drop))?;
        let used_lists = "SELECT 1 FROM \"trefoil_lists\" WHERE \"next\" <> 0 OR \"length\" <> 0";
        Ok(self.query(used_lists, &[])?.is_empty())
    }

    fn create_bookkeeping_tables(&self) -> Result<(), MigrateError> {
        self.execute_batch(BOOKKEEPING)
    }

    fn lock_tables(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        lock::lock_tables(self, pairs)
    }

    /// Numbers all changes of the locked tables, so that all their images are in `trefoil_changes`.
    fn begin_change(&self, _pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        catalog::sync_functions(self, &[numbering_function()])?;
        let mut previous = None;
        loop {
            let last = self.query("SELECT \"trefoil_number_changes\"(true)", &[])?;
            let Some([StoredValue::Int(last)]) = last.first().map(Vec::as_slice) else { return Ok(()) };
            if previous.is_some_and(|previous| last - previous < NUMBERING_STEP) {
                return Ok(());
            }
            previous = Some(*last);
        }
    }

    fn begin_replacing(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        catalog::drop_outdated_references(self, pairs.new)
    }

    fn alter_table(
        &self,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<(), MigrateError> {
        alter::alter_table(self, model, pairs, pair)
    }

    fn rebuild_link(
        &self,
        _pairs: &ModelPairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError> {
        alter::rebuild_link(self, pair, temporary)
    }

    fn update_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError> {
        let pairs = images.iter().map(|(number, image)| (number.to_string(), image.clone().into()));
        let object: serde_json::Map<String, serde_json::Value> = pairs.collect();
        let sql = "UPDATE \"trefoil_changes\" SET \"image\" = i.value::json FROM json_each_text($1::json) AS i \
                   WHERE \"number\" = i.key::bigint";
        self.query(sql, &[StoredValue::Text(serde_json::Value::Object(object).to_string())]).map(drop)
    }

    fn index_rebuilds(&self, old: &StoredModel, new: &StoredModel) -> Result<Vec<String>, MigrateError> {
        indexes::index_rebuilds(self, old, new)
    }

    fn sync_objects(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError> {
        if new.tables.iter().any(|table| !table.search.is_empty()) {
            catalog::sync_functions(self, &triggers::search_functions())?;
        }
        let unique_obsolete = indexes::sync_indexes(self, old, new)?;
        catalog::sync_references(self, new)?;
        catalog::make_references_deferrable(self, new)?;
        if new.tables.iter().any(|table| table.has_accounts) {
            self.execute_batch(&format!("{CREATE_ON_POSTGRES};{}", log_on_postgres()))?;
        }
        if new.tables.iter().any(|table| table.is_audited) {
            self.execute_batch(audit::CREATE_ON_POSTGRES)?;
        }
        let mut functions = triggers::shared_functions();
        functions.push(numbering_function());
        for table in &new.tables {
            let sequence = match table.key {
                StoredKey::Counted => Some(catalog::id_sequence(self, &table.table)?),
                StoredKey::Uuid | StoredKey::Text => None,
            };
            functions.extend(triggers::table_functions(table, sequence.as_deref()));
        }
        functions.extend(new.links.iter().flat_map(|link| link_functions(new, link)));
        catalog::sync_functions(self, &functions)?;
        let triggers: Vec<SqlTrigger> = (new.tables.iter().flat_map(triggers::table_triggers))
            .chain(new.links.iter().flat_map(link_triggers))
            .collect();
        catalog::sync_triggers(self, &new.table_names().collect::<Vec<_>>(), &triggers)?;
        let mut obsolete: Vec<SqlFunction> = Vec::new();
        if let Some(old) = old {
            obsolete.extend(old.tables.iter().flat_map(|table| triggers::table_functions(table, None)));
            obsolete.extend(old.links.iter().flat_map(|link| link_functions(old, link)));
        }
        obsolete.retain(|function| !functions.iter().any(|current| current.name == function.name));
        catalog::drop_functions(self, &obsolete)?;
        indexes::drop_indexes(self, &unique_obsolete)
    }
}
