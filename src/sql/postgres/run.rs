//! Runs the plans of one request on PostgreSQL.

use super::PostgresStore;
use crate::engine::{Done, Job};
use crate::error::{Error, Result};

/// What running plans keeps between requests: programs by shape, and counters.
#[derive(Default)]
pub struct Runs {}

impl PostgresStore {
    pub(super) async fn carry_out(&self, _job: Job) -> Result<Done> {
        Err(Error::internal("not yet"))
    }
}
