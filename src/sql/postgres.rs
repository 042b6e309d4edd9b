//! Records in a PostgreSQL database that any number of nodes share.

mod link;
mod links;
mod run;

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

pub use link::Link;
pub use links::{Links, Own};

use self::run::Runs;

use crate::engine::{Change, Done, Job, Log, ReadLimits, Store};
use crate::error::{Error, Result};

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    links: Links,
    runs: Runs,
    stirred: watch::Sender<()>,
}

impl PostgresStore {
    /// Something logged was committed here: followers in this process look at once, those on other nodes soon.
    pub(super) fn stir(&self) {
        self.stirred.send_replace(());
    }
}

impl Store for PostgresStore {
    fn run(&self, job: Job) -> BoxFuture<'_, Result<Done>> {
        Box::pin(self.carry_out(job))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Err(Error::internal("not yet")) })
    }

    fn log(&self) -> BoxFuture<'_, Result<Log>> {
        Box::pin(async { Err(Error::internal("not yet")) })
    }

    fn changes(&self, _after: i64, _until: i64, _limits: ReadLimits) -> BoxFuture<'_, Result<Vec<Change>>> {
        Box::pin(async { Err(Error::internal("not yet")) })
    }

    fn stirred(&self) -> watch::Receiver<()> {
        self.stirred.subscribe()
    }

    fn look_every(&self) -> Duration {
        Duration::from_secs(1)
    }
}
