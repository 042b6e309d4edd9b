//! The SQLite store: many readers, one writer, and no write acknowledged before it is on disk.

// Connections, and the sessions that run statements on them.
pub(crate) mod connect;
pub(crate) mod error;
pub(crate) mod session;

// The threads that run jobs, and their queues.
pub(crate) mod queued_job;
pub(crate) mod read_batcher;
pub(crate) mod readers;
pub(crate) mod writer;

// Execution of programs.
pub(crate) mod constraint_errors;
pub(crate) mod execute_guarded;
mod execute_many;
pub(crate) mod execute_read;
pub(crate) mod execute_write;
pub(crate) mod plain_lists;

// Long transactions, idempotency keys, the change log and its limits.
pub(crate) mod change_log;
pub(crate) mod data_version;
pub(crate) mod idempotency_keys;
pub(crate) mod prune;
pub(crate) mod transactions;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use trefoil_engine::{
    AuditOrigin, BegunTransaction, BulkTransaction, ChangeKind, ChangeLog, CredentialStore, DataVersion,
    IdempotencyKey, JobResult, LogReadLimits, RecordChange, Store, StoreJob,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordTypeId};

use crate::audit::write_audit::WriteAudit;
use crate::migrate::{self, MigrateError, MigrationMode, MigrationReport};
use crate::options::SqliteOptions;
use crate::sqlite::connect::file_identity::FileIdentity;
use crate::sqlite::connect::{ConnectionRole, SqliteLocation, connect};
use crate::sqlite::data_version::DataVersionProbe;
use crate::sqlite::error::{is_locked, locked, store_error};
use crate::sqlite::idempotency_keys::RunningKeys;
use crate::sqlite::queued_job::{JobPrograms, QueuedJob, ThreadMessage};
use crate::sqlite::read_batcher::ReadBatcher;
use crate::sqlite::readers::{ReaderPool, is_inline_read, run_reader};
use crate::sqlite::session::{SharedState, SqliteSession};
use crate::sqlite::writer::WriterThread;
use crate::statements::compile::ProgramCache;
use crate::statements::dialect::Dialect;

/// A store in one SQLite file, or in memory. Dropping it finishes queued jobs and closes the file.
pub struct SqliteStore {
    shared: Arc<SharedState>,
    reader_pool: ReaderPool,
    read_batcher: ReadBatcher,
    version_probe: DataVersionProbe,
    running_keys: RunningKeys,
    /// The version of the schema that is known to log changes of API keys.
    pub(crate) logs_keys: AtomicI64,
    /// `None` only while being dropped.
    write_queue: Option<mpsc::Sender<ThreadMessage>>,
    /// `None` also for a store in memory, where the only connection is the writer's.
    read_queue: Option<mpsc::Sender<ThreadMessage>>,
    threads: Vec<JoinHandle<()>>,
}

impl SqliteStore {
    /// Opens the file, or a store in memory, and starts the threads. Tables are created by [`SqliteStore::migrate`].
    pub fn open(path: Option<&Path>, options: SqliteOptions) -> Result<SqliteStore> {
        let location = path.map_or(SqliteLocation::Memory, |path| SqliteLocation::File(path.to_owned()));
        let writer =
            connect(&location, ConnectionRole::Writer, &options).map_err(|error| store_error(&error))?;
        let shared = Arc::new(SharedState {
            file: path.map(FileIdentity::of).transpose()?,
            location,
            options,
            programs: ProgramCache::new(Dialect::Sqlite),
            statement_count: AtomicU64::new(0),
            commits: watch::Sender::new(()),
            audit: WriteAudit::default(),
        });
        shared.audit.register(&writer).map_err(|error| store_error(&error))?;
        let (write_queue, jobs) = mpsc::channel(shared.options.queue_length.max(1));
        let writer_state = shared.clone();
        let mut threads =
            vec![spawn_thread("trefoil-writer", move || WriterThread::new(&writer_state, writer).run(jobs))?];
        let mut read_queue = None;
        if shared.is_on_disk() {
            let (queue, jobs) = mpsc::channel(shared.options.queue_length.max(1));
            let jobs = Arc::new(Mutex::new(jobs));
            for _ in 0..shared.options.reader_threads.max(1) {
                let (shared, jobs) = (shared.clone(), jobs.clone());
                threads.push(spawn_thread("trefoil-reader", move || run_reader(&shared, &jobs))?);
            }
            read_queue = Some(queue);
        }
        Ok(SqliteStore {
            shared,
            reader_pool: ReaderPool::default(),
            read_batcher: ReadBatcher::new(),
            version_probe: DataVersionProbe::default(),
            running_keys: RunningKeys::default(),
            logs_keys: AtomicI64::new(i64::MIN),
            write_queue: Some(write_queue),
            read_queue,
            threads,
        })
    }

    /// Number of statements run so far, without transaction control.
    pub fn statement_count(&self) -> u64 {
        self.shared.statement_count.load(Ordering::Relaxed)
    }

    /// Runs `call` on the writer's connection, between two transactions. A transaction that it leaves open is rolled back.
    /// Once sent it runs to its end, even if the returned future is dropped.
    pub async fn run_on_writer<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let (message, result) = call_message(call);
        self.send_to_writer(message).await?;
        let result = result.await.map_err(|_| panic_error());
        self.shared.commits.send_replace(());
        result
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
        let shared = self.shared.clone();
        self.run_on_writer(move |connection| {
            // The tables that they name may get other names and columns.
            shared.audit.drop_triggers(connection)?;
            migrate::migrate_sqlite(connection, &model, &logged, &lists, mode)
        })
        .await
        .unwrap_or_else(|error| Err(MigrateError::Database(error.to_string())))
    }

    async fn send_to_writer(&self, message: ThreadMessage) -> Result<()> {
        let queue = self.write_queue.as_ref().ok_or_else(closed_error)?;
        queue.send(message).await.map_err(|_| closed_error())
    }

    /// Sends a message to the reader threads or, for a store in memory, to the writer.
    async fn send_to_reader(&self, message: ThreadMessage) -> Result<()> {
        match &self.read_queue {
            Some(queue) => queue.send(message).await.map_err(|_| closed_error()),
            None => self.send_to_writer(message).await,
        }
    }

    /// Runs a look-up on the caller's thread or, if that would have to wait for a lock, on a reader thread.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        query: impl Fn(SqliteSession<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.read_queue.is_some() {
            match self.reader_pool.with_connection(&self.shared, &query) {
                Err(error) if is_locked(&error) => {}
                found => return found.map_err(|error| store_error(&error)),
            }
        }
        let shared = self.shared.clone();
        let (message, result) = call_message(move |connection| query(shared.session(connection)));
        self.send_to_reader(message).await?;
        // A reader thread drops the reply channel if the file cannot be opened.
        let no_reply = |_| if self.read_queue.is_some() { locked() } else { closed_error() };
        result.await.map_err(no_reply)?.map_err(|error| store_error(&error))
    }

    /// Runs a look-up on the caller's thread. It fails if it would have to wait.
    pub(crate) fn read_now<T>(
        &self,
        query: impl FnOnce(SqliteSession<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.reader_pool.with_connection(&self.shared, query)
    }

    fn programs_of(&self, job: &StoreJob) -> Result<JobPrograms> {
        job.cancel_flag.check()?;
        let program = |plan| self.shared.programs.get_or_compile(&job.model, plan);
        Ok(match job.plans.as_slice() {
            [(_, plan)] => JobPrograms::One([program(plan)?]),
            plans => JobPrograms::Many(plans.iter().map(|(_, plan)| program(plan)).collect::<Result<_>>()?),
        })
    }

    async fn run_long_read(&self, job: StoreJob, programs: JobPrograms) -> Result<JobResult> {
        let (queued, result) = QueuedJob::new(job, programs, None);
        self.send_to_reader(ThreadMessage::Job(Box::new(queued))).await?;
        result.await.map_err(|_| closed_error())?
    }

    async fn run_write(&self, job: StoreJob, programs: JobPrograms) -> Result<JobResult> {
        let key_guard =
            job.idempotency_key.as_ref().map(|key| self.running_keys.try_enter(&key.key)).transpose()?;
        let (queued, result) = QueuedJob::new(job, programs, key_guard);
        self.send_to_writer(ThreadMessage::Job(Box::new(queued))).await?;
        result.await.map_err(|_| closed_error())?
    }
}

impl Store for SqliteStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        let programs = match self.programs_of(&job) {
            Ok(programs) => programs,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        // Each has a future of its own: a job is large, and would be moved into one that is as large as the largest.
        if job.plans.iter().any(|(_, plan)| plan.is_write()) {
            return Box::pin(self.run_write(job, programs));
        }
        match self.read_queue.as_ref().filter(|_| is_inline_read(&programs)) {
            Some(queue) => {
                Box::pin(self.read_batcher.run(&self.reader_pool, &self.shared, queue, job, programs))
            }
            None => Box::pin(self.run_long_read(job, programs)),
        }
    }

    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(async move {
            let _guard = self.running_keys.try_enter(&key.key)?;
            let key = key.clone();
            self.look_up(move |session| idempotency_keys::find_key(&session, &key)).await?.into_replay()
        })
    }

    fn begin_bulk_write(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        let model = model.clone();
        Box::pin(async move { self.open_bulk_transaction(&model, origin).await })
    }

    fn begin_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>> {
        Box::pin(self.open_transaction(key, origin))
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        const READ_SCHEMA: &str = "SELECT count(*) FROM sqlite_schema";
        Box::pin(async {
            self.shared.check_file()?;
            self.look_up(|session| session.query_integer(READ_SCHEMA, &[]).map(drop)).await
        })
    }

    fn data_version(&self) -> Option<DataVersion> {
        if self.shared.is_on_disk() { self.version_probe.data_version(&self.shared) } else { None }
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        Box::pin(async { self.look_up(change_log::read_log).await? })
    }

    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        Box::pin(self.look_up(move |session| change_log::read_changes(session, after, until, limits)))
    }

    fn commits(&self) -> watch::Receiver<()> {
        self.shared.commits.subscribe()
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(100)
    }

    fn credentials(&self) -> Option<&dyn CredentialStore> {
        Some(self)
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

/// The text of an error, for commands.
pub(crate) fn error_message(error: &rusqlite::Error) -> String {
    store_error(error).full_text()
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Error::internal)
}

/// A message that runs `call`, and the receiver of its result.
fn call_message<T: Send + 'static>(
    call: impl FnOnce(&mut Connection) -> T + Send + 'static,
) -> (ThreadMessage, oneshot::Receiver<T>) {
    let (reply, result) = oneshot::channel();
    // If the caller is gone, the work stays done.
    let call = move |connection: &mut Connection| drop(reply.send(call(connection)));
    (ThreadMessage::Call(Box::new(call)), result)
}

fn panic_error() -> Error {
    Error::internal("a job on the connection panicked")
}

fn closed_error() -> Error {
    Error::Unavailable { reason: "the store is closing".to_owned(), retry_after: Duration::from_secs(1) }
}
