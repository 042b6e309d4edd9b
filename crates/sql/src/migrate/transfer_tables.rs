//! The tables of a shape for rows that come from another store: bare at first, and what stands beside them once the
//! rows are in, so that no trigger logs or counts what is copied and indexes are made in one go. And whether a store fits.

use std::sync::Arc;

use rusqlite::Connection;
use tokio_postgres::Client;

use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::sqlite::SqliteMigration;
use crate::migrate::stored_model::StoredModel;
use crate::migrate::{MigrateError, PlannedStep, apply, postgres};
use trefoil_model::Model;

fn create_tables(host: &dyn MigrationDatabase, shape: &StoredModel) -> Result<(), MigrateError> {
    crate::migrate::refuse_taken_names(host, shape)?;
    apply::create_bare_tables(host, shape)?;
    host.create_list_tables()
}

/// What is on record about the store is copied like any row.
fn finish_tables(host: &dyn MigrationDatabase, shape: &StoredModel) -> Result<(), MigrateError> {
    host.sync_objects(None, shape)?;
    host.create_lists(&[]).map(drop)
}

pub fn create_sqlite_tables(connection: &Connection, shape: &StoredModel) -> Result<(), MigrateError> {
    create_tables(&SqliteMigration(connection), shape)
}

pub fn finish_sqlite_tables(connection: &Connection, shape: &StoredModel) -> Result<(), MigrateError> {
    finish_tables(&SqliteMigration(connection), shape)
}

/// What a start with this model would refuse to do to the store.
pub fn unsafe_sqlite_steps(
    connection: &Connection,
    model: &Model,
    shape: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    crate::migrate::unsafe_steps(&SqliteMigration(connection), model, shape)
}

/// In the transaction that the client is in.
pub async fn unsafe_postgres_steps(
    client: &Client,
    model: &Arc<Model>,
    shape: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    let (model, shape) = (model.clone(), shape.clone());
    postgres::run_in_transaction(client, move |host| crate::migrate::unsafe_steps(host, &model, &shape)).await
}

/// In the transaction that the client is in.
pub async fn create_postgres_tables(client: &Client, shape: &StoredModel) -> Result<(), MigrateError> {
    postgres::refuse_long_names(shape)?;
    let shape = shape.clone();
    postgres::run_in_transaction(client, move |host| create_tables(host, &shape)).await
}

/// In the transaction that the client is in.
pub async fn finish_postgres_tables(client: &Client, shape: &StoredModel) -> Result<(), MigrateError> {
    let shape = shape.clone();
    postgres::run_in_transaction(client, move |host| finish_tables(host, &shape)).await
}
