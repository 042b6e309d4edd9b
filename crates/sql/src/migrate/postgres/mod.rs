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

use crate::migrate::ddl::quoted;
use crate::migrate::migration_database::{Host, Spelling};
use crate::migrate::model_pairs::{LinkPair, Pairs, TablePair};
use crate::migrate::postgres::blocking_client::{Asking, bridge};
use crate::migrate::postgres::catalog::{Function, Trigger};
pub use crate::migrate::postgres::ddl::NUMBERED_AT_ONCE;
use crate::migrate::postgres::ddl::{BOOKKEEPING, SPELLING, numbering};
use crate::migrate::stored_model::StoredModel;
use crate::migrate::{MigrateError, Mode, Report};
use trefoil_engine::Deed;
use trefoil_model::{Model, Stored, TypeId};

/// Brings the database behind `client` to the shape of `model`, as [`crate::migrate::prepare`] does on SQLite. The client
/// must be in no transaction and used by nobody else meanwhile.
///
/// Nodes that start together come one after the other. Each finds the store fresh until one has brought its seeds in
/// and has called [`seeded`], so the seeding itself has to see to it that it happens once.
pub async fn prepare(
    client: &mut Client,
    model: &Arc<Model>,
    logged: &[(TypeId, Deed)],
    lists: &[String],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let shape = StoredModel::of(model, logged);
    refuse_long_names(&shape)?;
    let report = match in_transaction(client, model, shape, lists, mode).await {
        Err(MigrateError::Locked(_)) => {
            return Err(MigrateError::Locked(crate::migrate::postgres::lock::holders(client).await));
        }
        result => result?,
    };
    if report.done
        && let Err(error) = crate::migrate::postgres::indexes::drop_gone(client).await
    {
        tracing::warn!("indexes that are not needed any more stay until the next start: {error}");
    }
    Ok(report)
}

async fn in_transaction(
    client: &mut Client,
    model: &Arc<Model>,
    shape: StoredModel,
    lists: &[String],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let plans = mode == Mode::Plan;
    let isolation = if plans { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
    let transaction = client.build_transaction().isolation_level(isolation).read_only(plans).start().await?;
    let schema = settings(&transaction).await?;
    if !plans {
        crate::migrate::postgres::lock::take_turn(&transaction).await?;
    }
    let (model, lists) = (model.clone(), lists.to_vec());
    let run = move |host: &Postgres| crate::migrate::run(host, &model, &shape, &lists, &mode);
    let report = on_host(&transaction, schema, run).await;
    match report {
        Ok(_) => transaction.commit().await?,
        Err(_) => transaction.rollback().await?,
    }
    report
}

/// Runs what waits for the database on a thread that may, inside the transaction of `client`.
async fn on_host<T: Send + 'static>(
    client: &impl GenericClient,
    schema: String,
    work: impl FnOnce(&Postgres) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let (asking, mut questions) = bridge();
    let work = tokio::task::spawn_blocking(move || work(&Postgres { asking, schema }));
    while let Some(question) = questions.recv().await {
        question.answer(client).await;
    }
    work.await.map_err(|_| MigrateError::Database("the migration panicked".to_owned()))?
}

/// Runs a part of a migration in the transaction that `client` is in.
pub(crate) async fn within<T: Send + 'static>(
    client: &Client,
    work: impl FnOnce(&Postgres) -> Result<T, MigrateError> + Send + 'static,
) -> Result<T, MigrateError> {
    let schema = settings(client).await?;
    on_host(client, schema, work).await
}

/// One migration at a time, also where none is made: until the transaction of `client` ends.
pub(crate) async fn take_turn(client: &Client) -> Result<(), MigrateError> {
    crate::migrate::postgres::lock::take_turn(client).await
}

/// A column's value in the stored form.
pub(crate) fn reading(form: &crate::migrate::Form, column: &str) -> String {
    (SPELLING.reading)(form, column)
}

/// What a session may have otherwise; gives the quoted name of the schema.
async fn settings(client: &impl GenericClient) -> Result<String, MigrateError> {
    let sql = "SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; \
               SET LOCAL client_min_messages = warning; SET LOCAL statement_timeout = 0; \
               SET LOCAL idle_in_transaction_session_timeout = 0";
    client.batch_execute(sql).await?;
    let schema: Option<String> = client.query_one("SELECT current_schema()::text", &[]).await?.get(0);
    let nowhere = || MigrateError::Database("the search_path names no schema that is there".to_owned());
    Ok(quoted(&schema.ok_or_else(nowhere)?))
}

pub(crate) fn refuse_long_names(shape: &StoredModel) -> Result<(), MigrateError> {
    let columns = shape.tables.iter().flat_map(|table| &table.columns).map(|column| column.column.as_str());
    match shape
        .table_names()
        .chain(columns)
        .find(|name| name.len() > crate::migrate::postgres::catalog::LONGEST_NAME)
    {
        None => Ok(()),
        Some(name) => Err(MigrateError::Database(format!(
            "PostgreSQL takes names of at most {} bytes, and {name} is longer",
            crate::migrate::postgres::catalog::LONGEST_NAME
        ))),
    }
}

/// Records that the seeds are in, so that a store which is emptied later is not seeded again. On SQLite the ids that
/// were given tell as much; here they are given though the transaction fails.
pub async fn seeded(client: &Client) -> Result<(), MigrateError> {
    Ok(client.batch_execute(SEEDED).await?)
}

pub const SEEDED: &str =
    "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('seeded', 'yes') ON CONFLICT DO NOTHING";

/// A database on a thread that may wait for it.
pub struct Postgres {
    asking: Asking,
    /// Quoted.
    schema: String,
}

impl Postgres {
    /// Rows of text; null is the empty one.
    fn texts(&self, sql: &str, parameters: &[&str]) -> Result<Vec<Vec<String>>, MigrateError> {
        let parameters: Vec<Stored> = parameters.iter().map(|&text| Stored::Text(text.to_owned())).collect();
        let text = |cell| match cell {
            Stored::Text(text) => text,
            Stored::Null => String::new(),
            Stored::Int(number) => number.to_string(),
            Stored::Real(number) => number.to_string(),
        };
        Ok(self.rows(sql, &parameters)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    fn placed(&self, sql: &str) -> String {
        sql.replace("{schema}", &self.schema)
    }
}

impl Host for Postgres {
    fn spelling(&self) -> &'static Spelling {
        &SPELLING
    }

    fn batch(&self, sql: &str) -> Result<(), MigrateError> {
        self.asking.ask(sql, None).map(drop)
    }

    fn rows(&self, sql: &str, parameters: &[Stored]) -> Result<Vec<Vec<Stored>>, MigrateError> {
        self.asking.ask(sql, Some(parameters))
    }

    fn relations(&self) -> Result<Vec<String>, MigrateError> {
        crate::migrate::postgres::catalog::relations(self)
    }

    fn columns(&self, table: &str) -> Result<Vec<String>, MigrateError> {
        crate::migrate::postgres::catalog::columns(self, table)
    }

    fn is_unused(&self, shape: &StoredModel) -> Result<bool, MigrateError> {
        if !self.rows("SELECT 1 FROM \"trefoil_meta\" WHERE \"key\" = 'seeded'", &[])?.is_empty() {
            return Ok(false);
        }
        for table in &shape.tables {
            if !self.rows(&format!("SELECT 1 FROM {} LIMIT 1", quoted(&table.table)), &[])?.is_empty() {
                self.batch(SEEDED)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn list_tables(&self) -> Result<(), MigrateError> {
        self.batch(crate::migrate::postgres::list_tables::TABLES)
    }

    fn lists(&self, names: &[String]) -> Result<bool, MigrateError> {
        self.list_tables()?;
        crate::migrate::postgres::catalog::sync_functions(
            self,
            &crate::migrate::postgres::list_tables::functions(),
        )?;
        crate::migrate::postgres::catalog::sync_triggers(
            self,
            &["trefoil_list_values"],
            &crate::migrate::postgres::list_tables::triggers(),
        )?;
        let sql = "INSERT INTO \"trefoil_lists\" (\"name\") SELECT $1 \
                   WHERE NOT EXISTS (SELECT FROM \"trefoil_lists\" WHERE \"name\" = $1)";
        names.iter().try_for_each(|name| self.rows(sql, &[Stored::Text(name.clone())]).map(drop))?;
        let used = "SELECT 1 FROM \"trefoil_lists\" WHERE \"next\" <> 0 OR \"length\" <> 0";
        Ok(self.rows(used, &[])?.is_empty())
    }

    fn bookkeeping(&self) -> Result<(), MigrateError> {
        self.batch(BOOKKEEPING)
    }

    fn hold(&self, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::lock::hold(self, pairs)
    }

    /// Every change of the tables that are held gets its number, so that all images are in one place.
    fn begin_change(&self, _pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::catalog::sync_functions(self, &[numbering()])?;
        let mut before = None;
        loop {
            let last = self.rows("SELECT \"trefoil_number_changes\"(true)", &[])?;
            let Some([Stored::Int(last)]) = last.first().map(Vec::as_slice) else { return Ok(()) };
            if before.is_some_and(|before| last - before < NUMBERED_AT_ONCE) {
                return Ok(());
            }
            before = Some(*last);
        }
    }

    fn begin_replacing(&self, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::catalog::drop_outdated_references(self, pairs.new)
    }

    fn reshape(&self, model: &Model, pairs: &Pairs<'_>, pair: &TablePair<'_>) -> Result<(), MigrateError> {
        crate::migrate::postgres::alter::reshape(self, model, pairs, pair)
    }

    fn move_link(
        &self,
        _pairs: &Pairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError> {
        crate::migrate::postgres::alter::move_link(self, pair, temporary)
    }

    fn write_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError> {
        let pairs = images.iter().map(|(number, image)| (number.to_string(), image.clone().into()));
        let object: serde_json::Map<String, serde_json::Value> = pairs.collect();
        let sql = "UPDATE \"trefoil_changes\" SET \"image\" = i.value::json FROM json_each_text($1::json) AS i \
                   WHERE \"number\" = i.key::bigint";
        self.rows(sql, &[Stored::Text(serde_json::Value::Object(object).to_string())]).map(drop)
    }

    fn renewed(&self, old: &StoredModel, new: &StoredModel) -> Result<Vec<String>, MigrateError> {
        crate::migrate::postgres::indexes::renewed(self, old, new)
    }

    fn settle(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError> {
        let doomed = crate::migrate::postgres::indexes::sync(self, old, new)?;
        crate::migrate::postgres::catalog::sync_references(self, new)?;
        crate::migrate::postgres::catalog::let_references_wait(self, new)?;
        let mut functions = crate::migrate::postgres::triggers::shared();
        functions.push(numbering());
        for table in &new.tables {
            functions.extend(crate::migrate::postgres::triggers::functions(
                table,
                &crate::migrate::postgres::catalog::sequence(self, &table.table)?,
            ));
        }
        crate::migrate::postgres::catalog::sync_functions(self, &functions)?;
        let wanted: Vec<Trigger> =
            new.tables.iter().flat_map(crate::migrate::postgres::triggers::triggers).collect();
        crate::migrate::postgres::catalog::sync_triggers(
            self,
            &new.table_names().collect::<Vec<_>>(),
            &wanted,
        )?;
        let old = old.into_iter().flat_map(|old| &old.tables);
        let mut gone: Vec<Function> =
            old.flat_map(|table| crate::migrate::postgres::triggers::functions(table, "")).collect();
        gone.retain(|function| !functions.iter().any(|kept| kept.name == function.name));
        crate::migrate::postgres::catalog::drop_functions(self, &gone)?;
        crate::migrate::postgres::indexes::drop_all(self, &doomed)
    }
}
