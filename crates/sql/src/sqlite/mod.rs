//! Records in an SQLite database: many readers, one writer, nothing acknowledged that is not on disk.

pub(crate) mod bulk_transaction;
pub(crate) mod change_log;
pub(crate) mod connect;
pub(crate) mod constraint_errors;
pub(crate) mod data_version;
pub(crate) mod error;
pub(crate) mod execute_read;
pub(crate) mod execute_write;
pub(crate) mod idempotency_keys;
pub(crate) mod plain_lists;
pub(crate) mod prune;
pub(crate) mod queued_job;
pub(crate) mod read_batcher;
pub(crate) mod readers;
pub(crate) mod session;
pub(crate) mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use trefoil_engine::{
    BulkTransaction, ChangeKind, ChangeLog, DataVersion, IdempotencyKey, JobResult, LogReadLimits,
    RecordChange, Store, StoreJob,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordTypeId};

use crate::migrate;
use crate::migrate::{MigrateError, MigrationMode, MigrationReport};
use crate::sqlite::connect::{ConnectionRole, SqliteLocation, connect};
use crate::sqlite::data_version::DataVersionProbe;
use crate::sqlite::error::{is_locked, locked, store_error};
use crate::sqlite::idempotency_keys::RunningKeys;
use crate::sqlite::queued_job::QueuedJob;
use crate::sqlite::read_batcher::ReadBatcher;
use crate::sqlite::readers::ReaderPool;
use crate::sqlite::session::SqliteSession;
use crate::sqlite::writer::{WriterMessage, WriterThread};
use crate::statements::compile::{Program, ProgramCache};
use crate::statements::dialect::Dialect;

/// How a store is run.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Threads that read.
    pub reader_threads: usize,
    /// Page cache of each connection.
    pub cache_kib: usize,
    /// How long another program's lock is waited for.
    pub busy_timeout: Duration,
    /// How many jobs may wait before those who bring more have to.
    pub queue_length: usize,
    /// The change log keeps at least so many changes …
    pub keep_changes: u64,
    /// … and all that are younger than this.
    pub keep_changes_for: Duration,
}

/// A store in one SQLite file, or in memory. Dropping it finishes what waits and closes the file.
pub struct SqliteStore {
    shared: Arc<SharedState>,
    reader_pool: ReaderPool,
    read_batcher: ReadBatcher,
    version_probe: DataVersionProbe,
    running_keys: RunningKeys,
    /// `None` only while being dropped, and, for readers, in memory: there the writer's connection is the store.
    write_queue: Option<mpsc::Sender<WriterMessage>>,
    read_queue: Option<mpsc::Sender<WriterMessage>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads know.
pub(crate) struct SharedState {
    location: SqliteLocation,
    options: SqliteOptions,
    programs: ProgramCache,
    statement_count: AtomicU64,
    /// Told of every commit that may have been logged.
    commits: watch::Sender<()>,
}

impl SharedState {
    fn session<'c>(&'c self, connection: &'c Connection) -> SqliteSession<'c> {
        SqliteSession { connection, statement_count: &self.statement_count }
    }

    fn is_on_disk(&self) -> bool {
        match self.location {
            SqliteLocation::Memory => false,
            SqliteLocation::File(_) => true,
        }
    }
}

impl SqliteStore {
    /// Opens the file, or a store in memory, and starts the threads. Tables are the migration's business.
    pub fn open(path: Option<&Path>, options: SqliteOptions) -> Result<SqliteStore> {
        let place = path.map_or(SqliteLocation::Memory, |path| SqliteLocation::File(path.to_owned()));
        let programs = ProgramCache::new(Dialect::Sqlite);
        let (statements, stirred) = (AtomicU64::new(0), watch::Sender::new(()));
        let shared = Arc::new(SharedState {
            location: place,
            options,
            programs,
            statement_count: statements,
            commits: stirred,
        });
        let writer = connect(&shared.location, ConnectionRole::Writer, &shared.options)
            .map_err(|error| store_error(&error))?;
        let (write, jobs) = mpsc::channel(shared.options.queue_length.max(1));
        let owned = shared.clone();
        let mut threads =
            vec![spawn_thread("trefoil-writer", move || WriterThread::new(&owned, writer).run(jobs))?];
        let mut read = None;
        if shared.is_on_disk() {
            let (send, jobs) = mpsc::channel(shared.options.queue_length.max(1));
            let jobs = Arc::new(Mutex::new(jobs));
            for _ in 0..shared.options.reader_threads.max(1) {
                let (shared, jobs) = (shared.clone(), jobs.clone());
                threads.push(spawn_thread("trefoil-reader", move || {
                    crate::sqlite::readers::run_reader(&shared, &jobs)
                })?);
            }
            read = Some(send);
        }
        let (pool, gather, witness) =
            (ReaderPool::default(), ReadBatcher::new(), DataVersionProbe::default());
        let running = RunningKeys::default();
        Ok(SqliteStore {
            shared,
            reader_pool: pool,
            read_batcher: gather,
            version_probe: witness,
            running_keys: running,
            write_queue: Some(write),
            read_queue: read,
            threads,
        })
    }

    /// Statements run so far, transaction control aside.
    pub fn statement_count(&self) -> u64 {
        self.shared.statement_count.load(Ordering::Relaxed)
    }

    /// Runs something of one's own on the only connection that writes, between two transactions. What it
    /// leaves open is rolled back. What was sent is run to its end, whether or not somebody still waits for it.
    pub async fn run_on_writer<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let (message, answered) = writer_call(call);
        self.send_to_writer(message).await?;
        let called = answered.await.map_err(|_| panic_error());
        self.shared.commits.send_replace(());
        called
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows, between two transactions.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(RecordTypeId, ChangeKind)],
        lists: &[String],
        mode: MigrationMode,
    ) -> Result<MigrationReport, MigrateError> {
        let (model, logged, lists) = (model.clone(), logged.to_vec(), lists.to_vec());
        self.run_on_writer(move |connection| {
            migrate::migrate_sqlite(connection, &model, &logged, &lists, mode)
        })
        .await
        .unwrap_or_else(|error| Err(MigrateError::Database(error.to_string())))
    }

    async fn send_to_writer(&self, message: WriterMessage) -> Result<()> {
        let queue = self.write_queue.as_ref().ok_or_else(closed_error)?;
        queue.send(message).await.map_err(|_| closed_error())
    }

    /// To the threads that read, or, in memory, to the one that writes.
    async fn send_reading(&self, message: WriterMessage) -> Result<()> {
        match &self.read_queue {
            Some(queue) => queue.send(message).await.map_err(|_| closed_error()),
            None => self.send_to_writer(message).await,
        }
    }

    /// Looks something up: on the caller's own thread if nothing has to be waited for, else on one that may wait.
    async fn look_up<T: Send + 'static>(
        &self,
        look: impl Fn(SqliteSession<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.read_queue.is_some() {
            match self.reader_pool.with_connection(&self.shared, &look) {
                Err(error) if is_locked(&error) => {}
                found => return found.map_err(|error| store_error(&error)),
            }
        }
        let shared = self.shared.clone();
        let (message, answered) = writer_call(move |connection| look(shared.session(connection)));
        self.send_reading(message).await?;
        // A thread that reads answers nothing when the file cannot even be opened.
        let unanswered = |_| if self.read_queue.is_some() { locked() } else { closed_error() };
        answered.await.map_err(unanswered)?.map_err(|error| store_error(&error))
    }

    async fn run_read(&self, job: StoreJob, programs: Vec<Arc<Program>>) -> Result<JobResult> {
        if let Some(queue) =
            self.read_queue.as_ref().filter(|_| crate::sqlite::readers::is_inline_read(&programs))
        {
            return self.read_batcher.run(&self.reader_pool, &self.shared, queue, job, programs).await;
        }
        let (ticket, answered) = QueuedJob::new(job, programs, None);
        self.send_reading(WriterMessage::Job(Box::new(ticket))).await?;
        answered.await.map_err(|_| closed_error())?
    }

    async fn run_write(&self, job: StoreJob, programs: Vec<Arc<Program>>) -> Result<JobResult> {
        let in_use =
            job.idempotency_key.as_ref().map(|key| self.running_keys.try_enter(&key.key)).transpose()?;
        let (ticket, answered) = QueuedJob::new(job, programs, in_use);
        self.send_to_writer(WriterMessage::Job(Box::new(ticket))).await?;
        answered.await.map_err(|_| closed_error())?
    }
}

impl Store for SqliteStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        Box::pin(async move {
            job.cancel_flag.check()?;
            let programs =
                job.plans.iter().map(|(_, plan)| self.shared.programs.get_or_compile(&job.model, plan));
            let programs = programs.collect::<Result<Vec<_>>>()?;
            if job.plans.iter().any(|(_, plan)| plan.is_write()) {
                self.run_write(job, programs).await
            } else {
                self.run_read(job, programs).await
            }
        })
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(async move {
            let _in_use = self.running_keys.try_enter(&key.key)?;
            let wanted = key.clone();
            self.look_up(move |session| idempotency_keys::find_key(&session, &wanted)).await?.into_replay()
        })
    }

    fn begin_bulk_write(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        let model = model.clone();
        Box::pin(async move { self.open_bulk_transaction(&model).await })
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        const LOOK: &str = "SELECT count(*) FROM sqlite_schema";
        Box::pin(self.look_up(|session| session.query_integer(LOOK, &[]).map(drop)))
    }

    fn data_version(&self) -> Option<DataVersion> {
        if self.shared.is_on_disk() { self.version_probe.data_version(&self.shared) } else { None }
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        Box::pin(async { self.look_up(crate::sqlite::change_log::read_log).await? })
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        Box::pin(
            self.look_up(move |session| {
                crate::sqlite::change_log::read_changes(session, after, until, limits)
            }),
        )
    }

    fn commits(&self) -> watch::Receiver<()> {
        self.shared.commits.subscribe()
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(100)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        (self.write_queue, self.read_queue) = (None, None);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to close.
            let _ = thread.join();
        }
    }
}

/// What an error means, for whoever runs a command.
pub(crate) fn error_message(error: &rusqlite::Error) -> String {
    store_error(error).full_text()
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Error::internal)
}

fn writer_call<T: Send + 'static>(
    call: impl FnOnce(&mut Connection) -> T + Send + 'static,
) -> (WriterMessage, oneshot::Receiver<T>) {
    let (reply, answered) = oneshot::channel();
    // Nobody waits any more: what was done stays done.
    let call = move |connection: &mut Connection| drop(reply.send(call(connection)));
    (WriterMessage::Call(Box::new(call)), answered)
}

fn panic_error() -> Error {
    Error::internal("what was to run on the connection panicked")
}

fn closed_error() -> Error {
    Error::Unavailable { reason: "the store is closing".to_owned(), retry_after: Duration::from_secs(1) }
}
