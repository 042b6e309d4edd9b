//! The store that a server was told to use, whichever kind it is.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::migrate::{MigrateError, Mode, Report};
use crate::{Options, PostgresStore, SqliteStore, postgres};
use trefoil_engine::{Change, Deed, Done, Job, Key, Log, LongWrite, ReadLimits, State, Store};
use trefoil_model::error::Result;
use trefoil_model::{Model, TypeId};

pub enum Database {
    Sqlite(Box<SqliteStore>),
    Postgres(PostgresStore),
}

impl Database {
    /// A file, or memory where none is named.
    pub fn sqlite(path: Option<&Path>, options: Options) -> Result<Database> {
        SqliteStore::open(path, options).map(|store| Database::Sqlite(Box::new(store)))
    }

    /// The error is a line for whoever starts the server.
    pub async fn postgres(options: postgres::Options) -> Result<Database, String> {
        PostgresStore::open(options).await.map(Database::Postgres)
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(TypeId, Deed)],
        lists: &[String],
        mode: Mode,
    ) -> Result<Report, MigrateError> {
        match self {
            Database::Sqlite(store) => store.migrate(model, logged, lists, mode).await,
            Database::Postgres(store) => store.migrate(model, logged, lists, mode).await,
        }
    }

    /// The turn to bring seeds in, if others could be at it too. Held until they are in; whether they are wanted is
    /// asked again with it in hand.
    pub async fn seeding(&self) -> Result<Option<postgres::Seeding>, MigrateError> {
        match self {
            Database::Sqlite(_) => Ok(None),
            Database::Postgres(store) => store.seeding().await.map(Some),
        }
    }

    /// Every seed is in: a store that is emptied later is not seeded again.
    pub async fn seeded(&self) -> Result<(), MigrateError> {
        match self {
            // An id that was given says so by itself.
            Database::Sqlite(_) => Ok(()),
            Database::Postgres(store) => store.seeded().await,
        }
    }

    fn store(&self) -> &dyn Store {
        match self {
            Database::Sqlite(store) => &**store,
            Database::Postgres(store) => store,
        }
    }
}

impl Store for Database {
    fn run(&self, job: Job) -> BoxFuture<'_, Result<Done>> {
        self.store().run(job)
    }

    fn replay<'s>(&'s self, key: &'s Key) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        self.store().replay(key)
    }

    fn begin(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn LongWrite + '_>>> {
        self.store().begin(model)
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        self.store().ping()
    }

    fn state(&self) -> Option<State> {
        self.store().state()
    }

    fn log(&self) -> BoxFuture<'_, Result<Log>> {
        self.store().log()
    }

    fn changes(&self, after: i64, until: i64, limits: ReadLimits) -> BoxFuture<'_, Result<Vec<Change>>> {
        self.store().changes(after, until, limits)
    }

    fn stirred(&self) -> watch::Receiver<()> {
        self.store().stirred()
    }

    fn look_every(&self) -> Duration {
        self.store().look_every()
    }
}
