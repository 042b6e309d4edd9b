//! Migration on PostgreSQL, in one transaction.

use std::sync::Arc;

use tokio_postgres::Client;

use super::{MigrateError, Mode, Report};
use crate::engine::Deed;
use crate::model::{Model, TypeId};

/// Brings the database behind `client` to the shape of `model`, as [`super::prepare`] does on SQLite. The client
/// must be in no transaction and used by nobody else meanwhile.
pub async fn prepare(
    client: &mut Client,
    model: &Arc<Model>,
    logged: &[(TypeId, Deed)],
    lists: &[String],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let _ = (client, model, logged, lists, mode);
    Err(MigrateError::Database("PostgreSQL is not there yet".to_owned()))
}

/// Records that the seeds are in, so that a store emptied later is not seeded again.
pub async fn seeded(client: &Client) -> Result<(), MigrateError> {
    let _ = client;
    Err(MigrateError::Database("PostgreSQL is not there yet".to_owned()))
}
