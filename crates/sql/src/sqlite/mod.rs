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

use crate::migrate;
use crate::migrate::{MigrateError, Mode, Report};
use crate::sqlite::connect::{Place, Role, connect};
use crate::sqlite::data_version::Witness;
use crate::sqlite::error::{is_locked, locked, to_error};
use crate::sqlite::idempotency_keys::Running;
use crate::sqlite::queued_job::Ticket;
use crate::sqlite::read_batcher::Gather;
use crate::sqlite::readers::Pool;
use crate::sqlite::session::Session;
use crate::sqlite::writer::{Message, Writer};
use crate::statements::compile::{Program, Programs};
use crate::statements::dialect::Dialect;
use trefoil_engine::{Change, Deed, Done, Job, Key, Log, LongWrite, ReadLimits, State, Store};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, TypeId};

/// How a store is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read.
    pub readers: usize,
    /// Page cache of each connection.
    pub cache_kib: usize,
    /// How long another program's lock is waited for.
    pub busy_timeout: Duration,
    /// How many jobs may wait before those who bring more have to.
    pub queue: usize,
    /// The change log keeps at least so many changes …
    pub keep_changes: u64,
    /// … and all that are younger than this.
    pub keep_changes_for: Duration,
}

/// A store in one SQLite file, or in memory. Dropping it finishes what waits and closes the file.
pub struct SqliteStore {
    shared: Arc<Shared>,
    pool: Pool,
    gather: Gather,
    witness: Witness,
    running: Running,
    /// `None` only while being dropped, and, for readers, in memory: there the writer's connection is the store.
    write: Option<mpsc::Sender<Message>>,
    read: Option<mpsc::Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads know.
pub(crate) struct Shared {
    place: Place,
    options: Options,
    programs: Programs,
    statements: AtomicU64,
    /// Told of every commit that may have been logged.
    stirred: watch::Sender<()>,
}

impl Shared {
    fn session<'c>(&'c self, connection: &'c Connection) -> Session<'c> {
        Session { connection, statements: &self.statements }
    }

    fn is_on_disk(&self) -> bool {
        match self.place {
            Place::Memory => false,
            Place::File(_) => true,
        }
    }
}

impl SqliteStore {
    /// Opens the file, or a store in memory, and starts the threads. Tables are the migration's business.
    pub fn open(path: Option<&Path>, options: Options) -> Result<SqliteStore> {
        let place = path.map_or(Place::Memory, |path| Place::File(path.to_owned()));
        let programs = Programs::new(Dialect::Sqlite);
        let (statements, stirred) = (AtomicU64::new(0), watch::Sender::new(()));
        let shared = Arc::new(Shared { place, options, programs, statements, stirred });
        let writer =
            connect(&shared.place, Role::Writer, &shared.options).map_err(|error| to_error(&error))?;
        let (write, jobs) = mpsc::channel(shared.options.queue.max(1));
        let owned = shared.clone();
        let mut threads = vec![spawn("trefoil-writer", move || Writer::new(&owned, writer).work(jobs))?];
        let mut read = None;
        if shared.is_on_disk() {
            let (send, jobs) = mpsc::channel(shared.options.queue.max(1));
            let jobs = Arc::new(Mutex::new(jobs));
            for _ in 0..shared.options.readers.max(1) {
                let (shared, jobs) = (shared.clone(), jobs.clone());
                threads.push(spawn("trefoil-reader", move || crate::sqlite::readers::work(&shared, &jobs))?);
            }
            read = Some(send);
        }
        let (pool, gather, witness) = (Pool::default(), Gather::new(), Witness::default());
        let running = Running::default();
        Ok(SqliteStore { shared, pool, gather, witness, running, write: Some(write), read, threads })
    }

    /// Statements run so far, transaction control aside.
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Ordering::Relaxed)
    }

    /// Runs something of one's own on the only connection that writes, between two transactions. What it
    /// leaves open is rolled back. What was sent is run to its end, whether or not somebody still waits for it.
    pub async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T> {
        let (message, answered) = message(call);
        self.send(message).await?;
        let called = answered.await.map_err(|_| panicked());
        self.shared.stirred.send_replace(());
        called
    }

    /// Brings the tables to the model and these plain lists, as far as `mode` allows, between two transactions.
    pub async fn migrate(
        &self,
        model: &Arc<Model>,
        logged: &[(TypeId, Deed)],
        lists: &[String],
        mode: Mode,
    ) -> Result<Report, MigrateError> {
        let (model, logged, lists) = (model.clone(), logged.to_vec(), lists.to_vec());
        self.call(move |connection| migrate::prepare(connection, &model, &logged, &lists, mode))
            .await
            .unwrap_or_else(|error| Err(MigrateError::Database(error.to_string())))
    }

    async fn send(&self, message: Message) -> Result<()> {
        let queue = self.write.as_ref().ok_or_else(closed)?;
        queue.send(message).await.map_err(|_| closed())
    }

    /// To the threads that read, or, in memory, to the one that writes.
    async fn send_reading(&self, message: Message) -> Result<()> {
        match &self.read {
            Some(queue) => queue.send(message).await.map_err(|_| closed()),
            None => self.send(message).await,
        }
    }

    /// Looks something up: on the caller's own thread if nothing has to be waited for, else on one that may wait.
    async fn look_up<T: Send + 'static>(
        &self,
        look: impl Fn(Session<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.read.is_some() {
            match self.pool.with(&self.shared, &look) {
                Err(error) if is_locked(&error) => {}
                found => return found.map_err(|error| to_error(&error)),
            }
        }
        let shared = self.shared.clone();
        let (message, answered) = message(move |connection| look(shared.session(connection)));
        self.send_reading(message).await?;
        // A thread that reads answers nothing when the file cannot even be opened.
        let unanswered = |_| if self.read.is_some() { locked() } else { closed() };
        answered.await.map_err(unanswered)?.map_err(|error| to_error(&error))
    }

    async fn read(&self, job: Job, programs: Vec<Arc<Program>>) -> Result<Done> {
        if let Some(queue) = self.read.as_ref().filter(|_| crate::sqlite::readers::is_quick(&programs)) {
            return self.gather.run(&self.pool, &self.shared, queue, job, programs).await;
        }
        let (ticket, answered) = Ticket::new(job, programs, None);
        self.send_reading(Message::Job(Box::new(ticket))).await?;
        answered.await.map_err(|_| closed())?
    }

    async fn write(&self, job: Job, programs: Vec<Arc<Program>>) -> Result<Done> {
        let in_use = job.key.as_ref().map(|key| self.running.enter(&key.key)).transpose()?;
        let (ticket, answered) = Ticket::new(job, programs, in_use);
        self.send(Message::Job(Box::new(ticket))).await?;
        answered.await.map_err(|_| closed())?
    }
}

impl Store for SqliteStore {
    fn run(&self, job: Job) -> BoxFuture<'_, Result<Done>> {
        Box::pin(async move {
            job.cancel.check()?;
            let programs = job.plans.iter().map(|(_, plan)| self.shared.programs.of(&job.model, plan));
            let programs = programs.collect::<Result<Vec<_>>>()?;
            if job.plans.iter().any(|(_, plan)| plan.writes()) {
                self.write(job, programs).await
            } else {
                self.read(job, programs).await
            }
        })
    }

    fn replay<'s>(&'s self, key: &'s Key) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(async move {
            let _in_use = self.running.enter(&key.key)?;
            let wanted = key.clone();
            self.look_up(move |session| idempotency_keys::look_up(&session, &wanted)).await?.into_replay()
        })
    }

    fn begin(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn LongWrite + '_>>> {
        let model = model.clone();
        Box::pin(async move { self.begin_long(&model).await })
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        const LOOK: &str = "SELECT count(*) FROM sqlite_schema";
        Box::pin(self.look_up(|session| session.number(LOOK, &[]).map(drop)))
    }

    fn state(&self) -> Option<State> {
        if self.shared.is_on_disk() { self.witness.state(&self.shared) } else { None }
    }

    fn log(&self) -> BoxFuture<'_, Result<Log>> {
        Box::pin(async { self.look_up(crate::sqlite::change_log::read).await? })
    }

    fn changes(&self, after: i64, until: i64, limits: ReadLimits) -> BoxFuture<'_, Result<Vec<Change>>> {
        Box::pin(
            self.look_up(move |session| crate::sqlite::change_log::changes(session, after, until, limits)),
        )
    }

    fn stirred(&self) -> watch::Receiver<()> {
        self.shared.stirred.subscribe()
    }

    fn look_every(&self) -> Duration {
        Duration::from_millis(100)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        (self.write, self.read) = (None, None);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to close.
            let _ = thread.join();
        }
    }
}

/// What an error means, for whoever runs a command.
pub(crate) fn words(error: &rusqlite::Error) -> String {
    to_error(error).full_text()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Error::internal)
}

fn message<T: Send + 'static>(
    call: impl FnOnce(&mut Connection) -> T + Send + 'static,
) -> (Message, oneshot::Receiver<T>) {
    let (reply, answered) = oneshot::channel();
    // Nobody waits any more: what was done stays done.
    let call = move |connection: &mut Connection| drop(reply.send(call(connection)));
    (Message::Call(Box::new(call)), answered)
}

fn panicked() -> Error {
    Error::internal("what was to run on the connection panicked")
}

fn closed() -> Error {
    Error::Unavailable { reason: "the store is closing".to_owned(), retry_after: Duration::from_secs(1) }
}
