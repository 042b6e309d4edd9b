//! Records in a PostgreSQL database that any number of nodes share.

pub(crate) mod atomic_batch;
pub(crate) mod bulk_insert;
pub(crate) mod bulk_transaction;
pub(crate) mod cancellation;
pub(crate) mod change_log;
pub(crate) mod connections;
pub(crate) mod constraint_errors;
pub(crate) mod error;
pub(crate) mod execute_read;
pub(crate) mod execute_write;
pub(crate) mod idempotency_keys;
pub(crate) mod notify;
pub(crate) mod plain_lists;
pub(crate) mod prune;
pub(crate) mod run_job;
pub(crate) mod session;
pub(crate) mod short_reads;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch as news;
use tokio::task::AbortHandle;

pub use crate::postgres::connections::connection::PgConnection;
pub use crate::postgres::connections::manager::ConnectionManager;
pub use crate::postgres::connections::pool::PooledConnection;

use crate::migrate;
use crate::migrate::{MigrateError, MigrationMode, MigrationReport};
use crate::postgres::notify::ChangeNotifier;
use crate::postgres::prune::LogRetention;
use crate::postgres::run_job::ExecutionState;
use trefoil_config::PostgresUrl;
use trefoil_engine::{
    BulkTransaction, ChangeKind, ChangeLog, DataVersion, IdempotencyKey, JobResult, LogReadLimits,
    RecordChange, Store, StoreJob,
};
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordTypeId};

/// What nodes listen to and announce on.
const NOTIFY_CHANNEL: &str = "trefoil_changes";
/// The lock that every node shares for as long as it serves, so that nobody moves or replaces the store meanwhile.
pub(crate) const SERVING_LOCK: &str = "hashtextextended('trefoil serving ' || current_schema(), 0)";
/// A shared connection that gives no sign of life within this is as good as none for whoever asks.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// How a store on PostgreSQL is run.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub url: PostgresUrl,
    /// Own connections at most, beside the shared ones.
    pub pool_size: usize,
    /// How long one of them is waited for.
    pub acquire_timeout: Duration,
    /// Nodes wake each other by LISTEN and NOTIFY; else they look often.
    pub notify: bool,
    /// The change log keeps at least so many changes …
    pub keep_changes: u64,
    /// … and all that are younger than this.
    pub keep_changes_for: Duration,
}

impl PostgresOptions {
    pub fn for_url(url: PostgresUrl) -> PostgresOptions {
        PostgresOptions {
            url,
            pool_size: 8,
            acquire_timeout: Duration::from_secs(5),
            notify: true,
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The turn to bring seeds in, over when it is dropped.
pub struct SeedLock {
    _session: crate::postgres::connections::connect::RawConnection,
}

/// A row of its own: the migration's lock is taken while this one is held.
const LOCK_SEEDING: [&str; 2] = [
    "INSERT INTO trefoil_meta (key, value) VALUES ('seeding', '') ON CONFLICT DO NOTHING",
    "BEGIN; SET LOCAL lock_timeout = '60s'; SELECT 1 FROM trefoil_meta WHERE key = 'seeding' FOR UPDATE",
];

/// A connection for a command that copies a whole store; the error is a line for whoever runs it.
pub(crate) async fn connect_for_maintenance(url: &PostgresUrl) -> Result<tokio_postgres::Client, String> {
    let session = crate::postgres::connections::connect::ConnectTarget::new(url)?
        .connect(crate::postgres::connections::connect::ConnectionPurpose::Maintenance, |_| {})
        .await;
    session.map(|session| session.client).map_err(|trouble| trouble.message)
}

/// A store in a PostgreSQL database. Dropping it closes its connections.
pub struct PostgresStore {
    connections: Arc<ConnectionManager>,
    execution: ExecutionState,
    commits: news::Sender<()>,
    /// None in polling mode.
    notifier: Option<ChangeNotifier>,
    retention: LogRetention,
    prune_task: AbortHandle,
}

impl PostgresStore {
    /// Connects; the error is a line for whoever starts the server. Tables are the migration's business.
    pub async fn open(options: PostgresOptions) -> Result<PostgresStore, String> {
        let stirred = news::Sender::new(());
        if !options.url.is_local() && options.url.tls == trefoil_config::TlsMode::Prefer {
            tracing::warn!(
                "nothing proves that the database is who it says: sslmode=verify-full checks its certificate"
            );
        }
        let links = Arc::new(ConnectionManager::open(&options, stirred.clone()).await?);
        let herald = options.notify.then(|| ChangeNotifier::start(links.clone()));
        let keep = LogRetention {
            min_changes: i64::try_from(options.keep_changes).unwrap_or(i64::MAX),
            min_seconds: options.keep_changes_for.as_secs_f64(),
        };
        let pruning = tokio::spawn(crate::postgres::prune::run_pruning(links.clone(), keep)).abort_handle();
        Ok(PostgresStore {
            connections: links,
            execution: ExecutionState::default(),
            commits: stirred,
            notifier: herald,
            retention: keep,
            prune_task: pruning,
        })
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows, in one transaction.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(RecordTypeId, ChangeKind)],
        lists: &[String],
        mode: MigrationMode,
    ) -> Result<MigrationReport, MigrateError> {
        let session = self.connections.connect_for_maintenance().await;
        let mut session = session.map_err(|trouble| MigrateError::Database(trouble.message))?;
        migrate::postgres::migrate_postgres(&mut session.client, model, logged, lists, mode).await
    }

    /// Waits until no other node brings seeds in; none begins while the answer is held.
    pub async fn lock_seeding(&self) -> Result<SeedLock, MigrateError> {
        let session = self
            .connections
            .connect_for_maintenance()
            .await
            .map_err(|trouble| MigrateError::Database(trouble.message))?;
        for sql in LOCK_SEEDING {
            let done = session.client.batch_execute(sql).await;
            done.map_err(|error| {
                MigrateError::Database(crate::postgres::connections::connect_error::error_message(&error))
            })?;
        }
        Ok(SeedLock { _session: session })
    }

    /// Records that the seeds are in.
    pub async fn mark_seeded(&self) -> Result<(), MigrateError> {
        let link = self
            .connections
            .shared_connection()
            .map_err(|error| MigrateError::Database(error.to_string()))?;
        migrate::postgres::mark_seeded(link.client()).await
    }

    /// Forgets now what need not be kept any longer; else that is done every few seconds. Of several nodes at it, one
    /// does the work.
    pub async fn prune_now(&self) -> Result<()> {
        crate::postgres::prune::prune_all(&self.connections, self.retention).await
    }

    /// All connections to the database.
    pub fn connections(&self) -> &ConnectionManager {
        &self.connections
    }

    /// Statements run so far for jobs, transaction control aside.
    pub fn statement_count(&self) -> u64 {
        self.execution.statement_count()
    }

    /// Something logged was committed here: followers in this process look at once, those on other nodes soon.
    fn signal_commit(&self) {
        self.commits.send_replace(());
        if let Some(herald) = &self.notifier {
            herald.notify();
        }
    }

    async fn ping_shared(&self) -> Result<()> {
        let link = self.connections.shared_connection()?;
        match tokio::time::timeout(PING_TIMEOUT, link.client().check_connection()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(crate::postgres::connections::connect_error::database_unreachable()),
        }
    }
}

impl Store for PostgresStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        Box::pin(self.run_job(job))
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(self.kept_under(key))
    }

    fn begin_bulk_write(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        Box::pin(self.open_bulk_transaction(model.clone()))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.ping_shared())
    }

    /// A question to the database would cost about what most answers cost.
    fn data_version(&self) -> Option<DataVersion> {
        None
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        Box::pin(async { crate::postgres::change_log::read_log(&*self.connections.log_connection()?).await })
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        Box::pin(async move {
            crate::postgres::change_log::read_changes(
                &*self.connections.log_connection()?,
                after,
                until,
                limits,
            )
            .await
        })
    }

    fn commits(&self) -> news::Receiver<()> {
        self.commits.subscribe()
    }

    fn poll_interval(&self) -> Duration {
        if self.notifier.is_some() { Duration::from_secs(1) } else { Duration::from_millis(100) }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.prune_task.abort();
    }
}
