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

pub use crate::postgres::connections::connection::Link;
pub use crate::postgres::connections::manager::Links;
pub use crate::postgres::connections::pool::Own;

use crate::migrate;
use crate::migrate::{MigrateError, Mode, Report};
use crate::postgres::notify::Herald;
use crate::postgres::prune::Keep;
use crate::postgres::run_job::Runs;
use trefoil_config::PostgresUrl;
use trefoil_engine::{Change, Deed, Done, Job, Key, Log, LongWrite, ReadLimits, State, Store};
use trefoil_model::error::Result;
use trefoil_model::{Model, TypeId};

/// What nodes listen to and announce on.
const CHANNEL: &str = "trefoil_changes";
/// The lock that every node shares for as long as it serves, so that nobody moves or replaces the store meanwhile.
pub(crate) const SERVING: &str = "hashtextextended('trefoil serving ' || current_schema(), 0)";
/// A shared connection that gives no sign of life within this is as good as none for whoever asks.
const PING: Duration = Duration::from_secs(2);

/// How a store on PostgreSQL is run.
#[derive(Debug, Clone)]
pub struct Options {
    pub url: PostgresUrl,
    /// Own connections at most, beside the shared ones.
    pub connections: usize,
    /// How long one of them is waited for.
    pub patience: Duration,
    /// Nodes wake each other by LISTEN and NOTIFY; else they look often.
    pub notify: bool,
    /// The change log keeps at least so many changes …
    pub keep_changes: u64,
    /// … and all that are younger than this.
    pub keep_changes_for: Duration,
}

impl Options {
    pub fn at(url: PostgresUrl) -> Options {
        Options {
            url,
            connections: 8,
            patience: Duration::from_secs(5),
            notify: true,
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The turn to bring seeds in, over when it is dropped.
pub struct Seeding {
    _session: crate::postgres::connections::connect::Session,
}

/// A row of its own: the migration's lock is taken while this one is held.
const SEEDING: [&str; 2] = [
    "INSERT INTO trefoil_meta (key, value) VALUES ('seeding', '') ON CONFLICT DO NOTHING",
    "BEGIN; SET LOCAL lock_timeout = '60s'; SELECT 1 FROM trefoil_meta WHERE key = 'seeding' FOR UPDATE",
];

/// A connection for a command that copies a whole store; the error is a line for whoever runs it.
pub(crate) async fn alone(url: &PostgresUrl) -> Result<tokio_postgres::Client, String> {
    let session = crate::postgres::connections::connect::Target::new(url)?
        .connect(crate::postgres::connections::connect::Purpose::Alone, |_| {})
        .await;
    session.map(|session| session.client).map_err(|trouble| trouble.words)
}

/// A store in a PostgreSQL database. Dropping it closes its connections.
pub struct PostgresStore {
    links: Arc<Links>,
    runs: Runs,
    stirred: news::Sender<()>,
    /// None in polling mode.
    herald: Option<Herald>,
    keep: Keep,
    pruning: AbortHandle,
}

impl PostgresStore {
    /// Connects; the error is a line for whoever starts the server. Tables are the migration's business.
    pub async fn open(options: Options) -> Result<PostgresStore, String> {
        let stirred = news::Sender::new(());
        if !options.url.is_local() && options.url.tls == trefoil_config::Tls::Prefer {
            tracing::warn!(
                "nothing proves that the database is who it says: sslmode=verify-full checks its certificate"
            );
        }
        let links = Arc::new(Links::open(&options, stirred.clone()).await?);
        let herald = options.notify.then(|| Herald::start(links.clone()));
        let keep = Keep {
            changes: i64::try_from(options.keep_changes).unwrap_or(i64::MAX),
            seconds: options.keep_changes_for.as_secs_f64(),
        };
        let pruning = tokio::spawn(crate::postgres::prune::prune(links.clone(), keep)).abort_handle();
        Ok(PostgresStore { links, runs: Runs::default(), stirred, herald, keep, pruning })
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows, in one transaction.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(TypeId, Deed)],
        lists: &[String],
        mode: Mode,
    ) -> Result<Report, MigrateError> {
        let session = self.links.alone().await;
        let mut session = session.map_err(|trouble| MigrateError::Database(trouble.words))?;
        migrate::postgres::prepare(&mut session.client, model, logged, lists, mode).await
    }

    /// Waits until no other node brings seeds in; none begins while the answer is held.
    pub async fn seeding(&self) -> Result<Seeding, MigrateError> {
        let session = self.links.alone().await.map_err(|trouble| MigrateError::Database(trouble.words))?;
        for sql in SEEDING {
            let done = session.client.batch_execute(sql).await;
            done.map_err(|error| {
                MigrateError::Database(crate::postgres::connections::connect_error::words(&error))
            })?;
        }
        Ok(Seeding { _session: session })
    }

    /// Records that the seeds are in.
    pub async fn seeded(&self) -> Result<(), MigrateError> {
        let link = self.links.shared().map_err(|error| MigrateError::Database(error.to_string()))?;
        migrate::postgres::seeded(link.client()).await
    }

    /// Forgets now what need not be kept any longer; else that is done every few seconds. Of several nodes at it, one
    /// does the work.
    pub async fn tidy(&self) -> Result<()> {
        crate::postgres::prune::all(&self.links, self.keep).await
    }

    /// All connections to the database.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Statements run so far for jobs, transaction control aside.
    pub fn statements(&self) -> u64 {
        self.runs.statements()
    }

    /// Something logged was committed here: followers in this process look at once, those on other nodes soon.
    fn stir(&self) {
        self.stirred.send_replace(());
        if let Some(herald) = &self.herald {
            herald.announce();
        }
    }

    async fn answers(&self) -> Result<()> {
        let link = self.links.shared()?;
        match tokio::time::timeout(PING, link.client().check_connection()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(crate::postgres::connections::connect_error::away()),
        }
    }
}

impl Store for PostgresStore {
    fn run(&self, job: Job) -> BoxFuture<'_, Result<Done>> {
        Box::pin(self.carry_out(job))
    }

    fn replay<'s>(&'s self, key: &'s Key) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(self.kept_under(key))
    }

    fn begin(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn LongWrite + '_>>> {
        Box::pin(self.begin_long(model.clone()))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.answers())
    }

    /// A question to the database would cost about what most answers cost.
    fn state(&self) -> Option<State> {
        None
    }

    fn log(&self) -> BoxFuture<'_, Result<Log>> {
        Box::pin(async { crate::postgres::change_log::read(&*self.links.log()?).await })
    }

    fn changes(&self, after: i64, until: i64, limits: ReadLimits) -> BoxFuture<'_, Result<Vec<Change>>> {
        Box::pin(async move {
            crate::postgres::change_log::changes(&*self.links.log()?, after, until, limits).await
        })
    }

    fn stirred(&self) -> news::Receiver<()> {
        self.stirred.subscribe()
    }

    fn look_every(&self) -> Duration {
        if self.herald.is_some() { Duration::from_secs(1) } else { Duration::from_millis(100) }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.pruning.abort();
    }
}
