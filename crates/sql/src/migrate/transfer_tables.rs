//! The tables of a shape for rows that come from another store: bare at first, and what stands beside them once the
//! rows are in, so that no trigger logs or counts what is copied and indexes are made in one go. And whether a store fits.

use std::sync::Arc;

use rusqlite::Connection;
use tokio_postgres::Client;

use crate::migrate::migration_database::Host;
use crate::migrate::sqlite::Sqlite;
use crate::migrate::stored_model::StoredModel;
use crate::migrate::{MigrateError, PlannedStep, apply, postgres};
use trefoil_model::Model;

fn lay_out(host: &dyn Host, shape: &StoredModel) -> Result<(), MigrateError> {
    crate::migrate::refuse_taken_names(host, shape)?;
    apply::create_bare(host, shape)?;
    host.list_tables()
}

/// What is on record about the store is copied like any row.
fn finish(host: &dyn Host, shape: &StoredModel) -> Result<(), MigrateError> {
    host.settle(None, shape)?;
    host.lists(&[]).map(drop)
}

pub fn lay_out_sqlite(connection: &Connection, shape: &StoredModel) -> Result<(), MigrateError> {
    lay_out(&Sqlite(connection), shape)
}

pub fn finish_sqlite(connection: &Connection, shape: &StoredModel) -> Result<(), MigrateError> {
    finish(&Sqlite(connection), shape)
}

/// What a start with this model would refuse to do to the store.
pub fn unfit_sqlite(
    connection: &Connection,
    model: &Model,
    shape: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    crate::migrate::unfit(&Sqlite(connection), model, shape)
}

/// In the transaction that the client is in.
pub async fn unfit_postgres(
    client: &Client,
    model: &Arc<Model>,
    shape: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    let (model, shape) = (model.clone(), shape.clone());
    postgres::within(client, move |host| crate::migrate::unfit(host, &model, &shape)).await
}

/// In the transaction that the client is in.
pub async fn lay_out_postgres(client: &Client, shape: &StoredModel) -> Result<(), MigrateError> {
    postgres::refuse_long_names(shape)?;
    let shape = shape.clone();
    postgres::within(client, move |host| lay_out(host, &shape)).await
}

/// In the transaction that the client is in.
pub async fn finish_postgres(client: &Client, shape: &StoredModel) -> Result<(), MigrateError> {
    let shape = shape.clone();
    postgres::within(client, move |host| finish(host, &shape)).await
}
