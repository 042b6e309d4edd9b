//! The tables for rows that are copied from another store. Indexes and triggers are created after the rows, so that
//! no trigger logs or counts the copied rows and each index is built at once.

use std::sync::Arc;

use rusqlite::Connection;
use tokio_postgres::Client;

use trefoil_model::Model;

use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::sqlite::database::SqliteMigration;
use crate::migrate::stored_model::StoredModel;
use crate::migrate::{MigrateError, PlannedStep, apply, postgres, refuse_taken_names, unsafe_steps};

/// Creates the tables without indexes and triggers.
fn create_tables(database: &dyn MigrationDatabase, stored_model: &StoredModel) -> Result<(), MigrateError> {
    refuse_taken_names(database, stored_model)?;
    apply::create_bare_tables(database, stored_model)?;
    database.create_list_tables()
}

/// Creates indexes, foreign keys and triggers. The contents of `trefoil_meta` are copied like any other rows.
fn finish_tables(database: &dyn MigrationDatabase, stored_model: &StoredModel) -> Result<(), MigrateError> {
    database.sync_objects(None, stored_model)?;
    database.create_lists(&[]).map(drop)
}

pub fn create_sqlite_tables(connection: &Connection, stored_model: &StoredModel) -> Result<(), MigrateError> {
    create_tables(&SqliteMigration(connection), stored_model)
}

pub fn finish_sqlite_tables(connection: &Connection, stored_model: &StoredModel) -> Result<(), MigrateError> {
    finish_tables(&SqliteMigration(connection), stored_model)
}

/// The steps that a start with this model would refuse.
pub fn unsafe_sqlite_steps(
    connection: &Connection,
    model: &Model,
    stored_model: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    unsafe_steps(&SqliteMigration(connection), model, stored_model)
}

/// The steps that a start with this model would refuse, found in the client's open transaction.
pub async fn unsafe_postgres_steps(
    client: &Client,
    model: &Arc<Model>,
    stored_model: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    let (model, stored_model) = (model.clone(), stored_model.clone());
    postgres::run_in_transaction(client, move |database| unsafe_steps(database, &model, &stored_model)).await
}

/// Creates the tables in the client's open transaction.
pub async fn create_postgres_tables(client: &Client, stored_model: &StoredModel) -> Result<(), MigrateError> {
    postgres::refuse_long_names(stored_model)?;
    let stored_model = stored_model.clone();
    postgres::run_in_transaction(client, move |database| create_tables(database, &stored_model)).await
}

/// Finishes the tables in the client's open transaction.
pub async fn finish_postgres_tables(client: &Client, stored_model: &StoredModel) -> Result<(), MigrateError> {
    let stored_model = stored_model.clone();
    postgres::run_in_transaction(client, move |database| finish_tables(database, &stored_model)).await
}
