//! The store on PostgreSQL; any number of nodes may share one database.

// Connections, and statements on them.
pub(crate) mod connections;
pub(crate) mod error;
pub(crate) mod session;

// Running jobs.
pub(crate) mod cancellation;
mod execute_guarded;
pub(crate) mod execute_many;
pub(crate) mod execute_read;
pub(crate) mod execute_write;
pub(crate) mod run_job;
pub(crate) mod shared_connection_reads;

// Parts of jobs.
pub(crate) mod atomic_batch;
pub(crate) mod constraint_errors;
pub(crate) mod idempotency_keys;
pub(crate) mod plain_lists;

// Imports.
pub(crate) mod bulk_insert;
pub(crate) mod transactions;

// The change log.
pub(crate) mod change_log;
pub(crate) mod notify;
pub(crate) mod prune;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use trefoil_config::{PostgresUrl, TlsMode};
use trefoil_engine::{
    AuditOrigin, BegunTransaction, BulkTransaction, ChangeKind, ChangeLog, CredentialStore, DataVersion,
    IdempotencyKey, JobResult, LogReadLimits, RecordChange, Store, StoreJob,
};
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordTypeId};

use crate::migrate::{self, MigrateError, MigrationMode, MigrationReport};
pub use crate::options::PostgresOptions;
use crate::postgres::connections::connect::{ConnectTarget, ConnectionPurpose, RawConnection};
use crate::postgres::connections::connect_error::{database_unreachable, error_message};
pub use crate::postgres::connections::connection::PgConnection;
pub use crate::postgres::connections::manager::ConnectionManager;
pub use crate::postgres::connections::pool::PooledConnection;
use crate::postgres::notify::NodeNotifier;
use crate::postgres::prune::LogRetention;
use crate::postgres::session::CompiledPrograms;

/// A shared connection that does not answer a ping within this time counts as unreachable.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// The lock for seeding, released when dropped.
pub struct SeedLock {
    _session: RawConnection,
}

/// Locks a row of its own, since the migration's lock is taken while this one is held.
const LOCK_SEEDING: [&str; 2] = [
    "INSERT INTO trefoil_meta (key, value) VALUES ('seeding', '') ON CONFLICT DO NOTHING",
    "BEGIN; SET LOCAL lock_timeout = '60s'; SELECT 1 FROM trefoil_meta WHERE key = 'seeding' FOR UPDATE",
];

/// A connection for a command that copies a whole store. The error is one line for its user.
pub(crate) async fn connect_for_maintenance(url: &PostgresUrl) -> Result<tokio_postgres::Client, String> {
    let connection = ConnectTarget::new(url)?.connect(ConnectionPurpose::Maintenance, |_| {}).await;
    connection.map(|connection| connection.client).map_err(|error| error.message)
}

/// A store in a PostgreSQL database. Dropping it closes its connections.
pub struct PostgresStore {
    connections: Arc<ConnectionManager>,
    execution: CompiledPrograms,
    commits: watch::Sender<()>,
    /// `None` in polling mode.
    notifier: Option<NodeNotifier>,
    retention: LogRetention,
    prune_task: AbortHandle,
}

impl PostgresStore {
    /// Connects without touching any tables. The error is one line for the operator.
    pub async fn open(options: PostgresOptions) -> Result<PostgresStore, String> {
        let commits = watch::Sender::new(());
        if !options.url.is_local() && options.url.tls == TlsMode::Prefer {
            tracing::warn!(
                "the identity of the database server is not verified; use sslmode=verify-full to verify its certificate"
            );
        }
        let connections = Arc::new(ConnectionManager::open(&options, commits.clone()).await?);
        let notifier = options.notify.then(|| NodeNotifier::start(connections.clone()));
        let retention = LogRetention {
            min_changes: i64::try_from(options.keep_changes).unwrap_or(i64::MAX),
            min_seconds: options.keep_changes_for.as_secs_f64(),
        };
        let prune_task = tokio::spawn(prune::run_pruning(connections.clone(), retention)).abort_handle();
        Ok(PostgresStore {
            connections,
            execution: CompiledPrograms::default(),
            commits,
            notifier,
            retention,
            prune_task,
        })
    }

    /// Brings the tables to the model and these plain lists as far as `mode` allows, in one transaction.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(RecordTypeId, ChangeKind)],
        lists: &[String],
        mode: MigrationMode,
    ) -> Result<MigrationReport, MigrateError> {
        let connection = self.connections.connect_for_maintenance().await;
        let mut connection = connection.map_err(|error| MigrateError::Database(error.message))?;
        migrate::postgres::migrate_postgres(&mut connection.client, model, logged, lists, mode).await
    }

    /// Waits until no other node is seeding; none begins while the returned lock is held.
    pub async fn lock_seeding(&self) -> Result<SeedLock, MigrateError> {
        let connection = self
            .connections
            .connect_for_maintenance()
            .await
            .map_err(|error| MigrateError::Database(error.message))?;
        for sql in LOCK_SEEDING {
            let result = connection.client.batch_execute(sql).await;
            result.map_err(|error| MigrateError::Database(error_message(&error)))?;
        }
        Ok(SeedLock { _session: connection })
    }

    /// Records that the store was seeded.
    pub async fn mark_seeded(&self) -> Result<(), MigrateError> {
        let connection = self
            .connections
            .shared_connection()
            .map_err(|error| MigrateError::Database(error.to_string()))?;
        migrate::postgres::mark_seeded(connection.client()).await
    }

    /// Deletes expired changes and keys now; a background task does so every few seconds. If several nodes try, one
    /// does the work.
    pub async fn prune_now(&self) -> Result<()> {
        prune::prune_all(&self.connections, self.retention).await
    }

    /// All connections to the database.
    pub fn connections(&self) -> &ConnectionManager {
        &self.connections
    }

    /// The number of statements run for jobs so far, without transaction control.
    pub fn statement_count(&self) -> u64 {
        self.execution.statement_count()
    }

    /// Called after a commit with logged changes: wakes followers in this process now and those on other nodes soon.
    pub(crate) fn signal_commit(&self) {
        self.commits.send_replace(());
        if let Some(notifier) = &self.notifier {
            notifier.notify();
        }
    }

    async fn ping_shared(&self) -> Result<()> {
        let connection = self.connections.shared_connection()?;
        match tokio::time::timeout(PING_TIMEOUT, connection.client().check_connection()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(database_unreachable()),
        }
    }
}

impl Store for PostgresStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        Box::pin(self.run_job(job))
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(self.find_replay(key))
    }

    fn begin_bulk_write(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        Box::pin(self.open_bulk_transaction(model.clone(), origin))
    }

    fn begin_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>> {
        Box::pin(self.open_transaction(key, origin))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.ping_shared())
    }

    /// None: asking the database would cost about as much as most reads.
    fn data_version(&self) -> Option<DataVersion> {
        None
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        Box::pin(async { change_log::read_log(&*self.connections.log_connection()?).await })
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        Box::pin(async move {
            change_log::read_changes(&*self.connections.log_connection()?, after, until, limits).await
        })
    }

    fn commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }

    fn poll_interval(&self) -> Duration {
        if self.notifier.is_some() { Duration::from_secs(1) } else { Duration::from_millis(100) }
    }

    fn credentials(&self) -> Option<&dyn CredentialStore> {
        Some(self)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.prune_task.abort();
    }
}
