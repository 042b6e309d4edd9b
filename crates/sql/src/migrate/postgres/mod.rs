//! Migration on PostgreSQL, which changes tables where they stand, all in one transaction.

pub(crate) mod alter;
pub(crate) mod blocking_client;
pub(crate) mod catalog;
pub(crate) mod ddl;
pub(crate) mod indexes;
pub(crate) mod list_tables;
pub(crate) mod lock;
pub(crate) mod triggers;

use std::sync::Arc;

use tokio_postgres::{Client, GenericClient, IsolationLevel};

use crate::migrate::ddl::quote_name;
use crate::migrate::migration_database::{DdlDialect, MigrationDatabase};
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::postgres::blocking_client::{BlockingClient, client_channel};
use crate::migrate::postgres::catalog::{SqlFunction, SqlTrigger};
pub use crate::migrate::postgres::ddl::NUMBERING_STEP;
use crate::migrate::postgres::ddl::{BOOKKEEPING, POSTGRES_DDL, numbering_function};
use crate::migrate::stored_model::StoredModel;
use crate::migrate::{MigrateError, MigrationMode, MigrationReport};
use trefoil_engine::ChangeKind;
use trefoil_model::{Model, RecordTypeId, StoredValue};

/// Brings the database behind `client` to the shape of `model`, as [`crate::migrate::prepare`] does on SQLite. The client
/// must be in no transaction and used by nobody else meanwhile.
///
/// Nodes that start together come one after the other. Each finds the store fresh until one has brought its seeds in
/// and has called [`seeded`], so the seeding itself has to see to it that it happens once.
pub async fn migrate_postgres(
    client: &mut Client,
    model: &Arc<Model>,
    logged: &[(RecordTypeId, ChangeKind)],
    lists: &[String],
    mode: MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let shape = StoredModel::from_model(model, logged);
    refuse_long_names(&shape)?;
    let report = match migrate_in_transaction(client, model, shape, lists, mode).await {
        Err(MigrateError::Locked(_)) => {
            return Err(MigrateError::Locked(crate::migrate::postgres::lock::lock_holders(client).await));
        }
        result => result?,
    };
    if report.is_applied
        && let Err(error) = crate::migrate::postgres::indexes::drop_obsolete(client).await
    {
        tracing::warn!("indexes that are not needed any more stay until the next start: {error}");
    }
    Ok(report)
}

async fn migrate_in_transaction(
    client: &mut Client,
    model: &Arc<Model>,
    shape: StoredModel,
    lists: &[String],
    mode: MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let plans = mode == MigrationMode::Plan;
    let isolation = if plans { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
    let transaction = client.build_transaction().isolation_level(isolation).read_only(plans).start().await?;
    let schema = configure_session(&transaction).await?;
    if !plans {
        crate::migrate::postgres::lock::lock_migration(&transaction).await?;
    }
    let (model, lists) = (model.clone(), lists.to_vec());
    let run =
        move |host: &PostgresMigration| crate::migrate::run_migration(host, &model, &shape, &lists, &mode);
    let report = run_blocking(&transaction, schema, run).await;
    match report {
        Ok(_) => transaction.commit().await?,
        Err(_) => transaction.rollback().await?,
    }
    report
}

/// Runs what waits for the database on a thread that may, inside the transaction of `client`.
async fn run_blocking<T: Send + 'static>(
    client: &impl GenericClient,
    schema: String,
    work: impl FnOnce(&PostgresMigration) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let (asking, mut questions) = client_channel();
    let work = tokio::task::spawn_blocking(move || work(&PostgresMigration { client: asking, schema }));
    while let Some(question) = questions.recv().await {
        question.execute(client).await;
    }
    work.await.map_err(|_| MigrateError::Database("the migration panicked".to_owned()))?
}

/// Runs a part of a migration in the transaction that `client` is in.
pub(crate) async fn run_in_transaction<T: Send + 'static>(
    client: &Client,
    work: impl FnOnce(&PostgresMigration) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let schema = configure_session(client).await?;
    run_blocking(client, schema, work).await
}

/// One migration at a time, also where none is made: until the transaction of `client` ends.
pub(crate) async fn lock_migration(client: &Client) -> Result<(), MigrateError> {
    crate::migrate::postgres::lock::lock_migration(client).await
}

/// A column's value in the stored form.
pub(crate) fn read_expression(form: &crate::migrate::StoredType, column: &str) -> String {
    (POSTGRES_DDL.read_expression)(form, column)
}

/// What a session may have otherwise; gives the quoted name of the schema.
async fn configure_session(client: &impl GenericClient) -> Result<String, MigrateError> {
    let sql = "SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; \
               SET LOCAL client_min_messages = warning; SET LOCAL statement_timeout = 0; \
               SET LOCAL idle_in_transaction_session_timeout = 0";
    client.batch_execute(sql).await?;
    let schema: Option<String> = client.query_one("SELECT current_schema()::text", &[]).await?.get(0);
    let nowhere = || MigrateError::Database("the search_path names no schema that is there".to_owned());
    Ok(quote_name(&schema.ok_or_else(nowhere)?))
}

pub(crate) fn refuse_long_names(shape: &StoredModel) -> Result<(), MigrateError> {
    let columns = shape.tables.iter().flat_map(|table| &table.columns).map(|column| column.column.as_str());
    match shape
        .table_names()
        .chain(columns)
        .find(|name| name.len() > crate::migrate::postgres::catalog::MAX_NAME_BYTES)
    {
        None => Ok(()),
        Some(name) => Err(MigrateError::Database(format!(
            "PostgreSQL takes names of at most {} bytes, and {name} is longer",
            crate::migrate::postgres::catalog::MAX_NAME_BYTES
        ))),
    }
}

/// Records that the seeds are in, so that a store which is emptied later is not seeded again. On SQLite the ids that
/// were given tell as much; here they are given though the transaction fails.
pub async fn mark_seeded(client: &Client) -> Result<(), MigrateError> {
    Ok(client.batch_execute(MARK_SEEDED).await?)
}

pub const MARK_SEEDED: &str =
    "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('seeded', 'yes') ON CONFLICT DO NOTHING";

/// A database on a thread that may wait for it.
pub struct PostgresMigration {
    client: BlockingClient,
    /// Quoted.
    schema: String,
}

impl PostgresMigration {
    /// Rows of text; null is the empty one.
    fn query_texts(&self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<String>>, MigrateError> {
        let parameters: Vec<StoredValue> =
            parameters.iter().map(|&text| StoredValue::Text(text.to_owned())).collect();
        let text = |cell| match cell {
            StoredValue::Text(text) => text,
            StoredValue::Null => String::new(),
            StoredValue::Int(number) => number.to_string(),
            StoredValue::Real(number) => number.to_string(),
        };
        Ok(self.query(sql, &parameters)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    fn with_schema(&self, sql: &str) -> String {
        sql.replace("{schema}", &self.schema)
    }
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
        crate::migrate::postgres::catalog::relations(self)
    }

    fn column_names(&self, table: &str) -> Result<Vec<String>, MigrateError> {
        crate::migrate::postgres::catalog::find_columns(self, table)
    }

    fn is_unused(&self, shape: &StoredModel) -> Result<bool, MigrateError> {
        if !self.query("SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'seeded'", &[])?.is_empty() {
            return Ok(false);
        }
        for table in &shape.tables {
            if !self.query(&format!("SELECT 1 FROM {} LIMIT 1", quote_name(&table.table)), &[])?.is_empty() {
                self.execute_batch(MARK_SEEDED)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn create_list_tables(&self) -> Result<(), MigrateError> {
        self.execute_batch(crate::migrate::postgres::list_tables::LIST_TABLES)
    }

    fn create_lists(&self, names: &[String]) -> Result<bool, MigrateError> {
        self.create_list_tables()?;
        crate::migrate::postgres::catalog::sync_functions(
            self,
            &crate::migrate::postgres::list_tables::list_functions(),
        )?;
        crate::migrate::postgres::catalog::sync_triggers(
            self,
            &["trefoil_list_values"],
            &crate::migrate::postgres::list_tables::list_triggers(),
        )?;
        let sql = "INSERT INTO \"trefoil_lists\" (\"name\") SELECT $1 \
                   WHERE NOT EXISTS (SELECT FROM \"trefoil_lists\" WHERE \"name\" = $1)";
        names.iter().try_for_each(|name| self.query(sql, &[StoredValue::Text(name.clone())]).map(drop))?;
        let used = "SELECT 1 FROM \"trefoil_lists\" WHERE \"next\" <> 0 OR \"length\" <> 0";
        Ok(self.query(used, &[])?.is_empty())
    }

    fn create_bookkeeping_tables(&self) -> Result<(), MigrateError> {
        self.execute_batch(BOOKKEEPING)
    }

    fn lock_tables(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::lock::lock_tables(self, pairs)
    }

    /// Every change of the tables that are held gets its number, so that all images are in one place.
    fn begin_change(&self, _pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::catalog::sync_functions(self, &[numbering_function()])?;
        let mut before = None;
        loop {
            let last = self.query("SELECT \"trefoil_number_changes\"(true)", &[])?;
            let Some([StoredValue::Int(last)]) = last.first().map(Vec::as_slice) else { return Ok(()) };
            if before.is_some_and(|before| last - before < NUMBERING_STEP) {
                return Ok(());
            }
            before = Some(*last);
        }
    }

    fn begin_replacing(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::catalog::drop_outdated_references(self, pairs.new)
    }

    fn alter_table(
        &self,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<(), MigrateError> {
        crate::migrate::postgres::alter::alter_table(self, model, pairs, pair)
    }

    fn rebuild_link(
        &self,
        _pairs: &ModelPairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError> {
        crate::migrate::postgres::alter::rebuild_link(self, pair, temporary)
    }

    fn update_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError> {
        let pairs = images.iter().map(|(number, image)| (number.to_string(), image.clone().into()));
        let object: serde_json::Map<String, serde_json::Value> = pairs.collect();
        let sql = "UPDATE \"trefoil_changes\" SET \"image\" = i.value::json FROM json_each_text($1::json) AS i \
                   WHERE \"number\" = i.key::bigint";
        self.query(sql, &[StoredValue::Text(serde_json::Value::Object(object).to_string())]).map(drop)
    }

    fn index_rebuilds(&self, old: &StoredModel, new: &StoredModel) -> Result<Vec<String>, MigrateError> {
        crate::migrate::postgres::indexes::index_rebuilds(self, old, new)
    }

    fn sync_objects(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError> {
        let doomed = crate::migrate::postgres::indexes::sync_indexes(self, old, new)?;
        crate::migrate::postgres::catalog::sync_references(self, new)?;
        crate::migrate::postgres::catalog::make_references_deferrable(self, new)?;
        let mut functions = crate::migrate::postgres::triggers::shared_functions();
        functions.push(numbering_function());
        for table in &new.tables {
            functions.extend(crate::migrate::postgres::triggers::table_functions(
                table,
                &crate::migrate::postgres::catalog::id_sequence(self, &table.table)?,
            ));
        }
        crate::migrate::postgres::catalog::sync_functions(self, &functions)?;
        let wanted: Vec<SqlTrigger> =
            new.tables.iter().flat_map(crate::migrate::postgres::triggers::table_triggers).collect();
        crate::migrate::postgres::catalog::sync_triggers(
            self,
            &new.table_names().collect::<Vec<_>>(),
            &wanted,
        )?;
        let old = old.into_iter().flat_map(|old| &old.tables);
        let mut gone: Vec<SqlFunction> =
            old.flat_map(|table| crate::migrate::postgres::triggers::table_functions(table, "")).collect();
        gone.retain(|function| !functions.iter().any(|kept| kept.name == function.name));
        crate::migrate::postgres::catalog::drop_functions(self, &gone)?;
        crate::migrate::postgres::indexes::drop_indexes(self, &doomed)
    }
}
