//! The store of a server: either SQLite or PostgreSQL, as its settings say.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use trefoil_engine::{
    AuditOrigin, BegunTransaction, BulkTransaction, ChangeKind, ChangeLog, CredentialStore, DataVersion,
    IdempotencyKey, JobResult, LogReadLimits, RecordChange, Store, StoreJob,
};
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordTypeId};

use crate::migrate::{MigrateError, MigrationMode, MigrationReport};
use crate::{PostgresStore, SqliteOptions, SqliteStore, postgres};

pub enum SqlStore {
    Sqlite(Box<SqliteStore>),
    Postgres(Box<PostgresStore>),
}

impl SqlStore {
    /// Opens the SQLite file at `path`, or a database in memory.
    pub fn open_sqlite(path: Option<&Path>, options: SqliteOptions) -> Result<SqlStore> {
        SqliteStore::open(path, options).map(|store| SqlStore::Sqlite(Box::new(store)))
    }

    /// The error is one line for the person who starts the server.
    pub async fn open_postgres(options: postgres::PostgresOptions) -> Result<SqlStore, String> {
        PostgresStore::open(options).await.map(|store| SqlStore::Postgres(Box::new(store)))
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(RecordTypeId, ChangeKind)],
        lists: &[String],
        mode: MigrationMode,
    ) -> Result<MigrationReport, MigrateError> {
        match self {
            SqlStore::Sqlite(store) => store.migrate(model, logged, lists, mode).await,
            SqlStore::Postgres(store) => store.migrate(model, logged, lists, mode).await,
        }
    }

    /// The lock that keeps other nodes from seeding at the same time; `None` where no other node can exist. Hold it until
    /// the seeds are in, and check again under it whether seeding is needed.
    pub async fn lock_seeding(&self) -> Result<Option<postgres::SeedLock>, MigrateError> {
        match self {
            SqlStore::Sqlite(_) => Ok(None),
            SqlStore::Postgres(store) => store.lock_seeding().await.map(Some),
        }
    }

    /// Records that seeding is complete, so that a store that is emptied later is not seeded again.
    pub async fn mark_seeded(&self) -> Result<(), MigrateError> {
        match self {
            // The id counters of the tables already say so.
            SqlStore::Sqlite(_) => Ok(()),
            SqlStore::Postgres(store) => store.mark_seeded().await,
        }
    }

    fn as_store(&self) -> &dyn Store {
        match self {
            SqlStore::Sqlite(store) => &**store,
            SqlStore::Postgres(store) => &**store,
        }
    }
}

impl Store for SqlStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        self.as_store().run(job)
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        self.as_store().replay(key)
    }

    fn begin_bulk_write(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        self.as_store().begin_bulk_write(model, origin)
    }

    fn begin_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>> {
        self.as_store().begin_transaction(key, origin)
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        self.as_store().ping()
    }

    fn data_version(&self) -> Option<DataVersion> {
        self.as_store().data_version()
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        self.as_store().change_log()
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        self.as_store().read_changes(after, until, limits)
    }

    fn commits(&self) -> watch::Receiver<()> {
        self.as_store().commits()
    }

    fn poll_interval(&self) -> Duration {
        self.as_store().poll_interval()
    }

    fn credentials(&self) -> Option<&dyn CredentialStore> {
        self.as_store().credentials()
    }
}
