//! The interface of a store: runs plans, passes rows to a sink, and keeps acknowledged writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId};

use crate::access::{AccountChange, AuditOrigin, CredentialStore};
use crate::changes::{ChangeLog, RecordChange};
use crate::plan::{Plan, relation_target};
use crate::row::RowSink;

/// A database of records.
pub trait Store: Send + Sync {
    /// Runs the plans of one request. Reads see one snapshot. Writes run in order, each on its own (or all as one,
    /// see [`StoreJob::atomic`]), and are on disk before this returns.
    ///
    /// An error means that nothing of the job happened, except [`Error::OutcomeUnknown`]: a database that is lost
    /// during a commit may or may not have made it. The store never retries such a job.
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>>;

    /// The response stored under an idempotency key; `None` if the key is new. [`Error::KeyReused`] if the key
    /// belongs to another request, [`Error::KeyInUse`] while that request is running.
    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>>;

    /// Begins a bulk write of many batches. Other writes may have to wait until it ends.
    fn begin_bulk_write(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>>;

    /// Begins a transaction for several jobs of one request, under its idempotency key if it has one. Other writes may
    /// have to wait until it ends.
    fn begin_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>>;

    /// Checks that the store can be reached, for the readiness check.
    fn ping(&self) -> BoxFuture<'_, Result<()>>;

    /// The current version of the data. Equal versions mean that no visible data was changed in between; a write
    /// acknowledged before the call is included. `None` if the store cannot tell.
    fn data_version(&self) -> Option<DataVersion>;

    /// The current state of the change log: every change committed before this call has its number.
    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>>;

    /// The changes with numbers above `after` up to `until`, in order. At most `limits` of them, but at least one
    /// if there is one.
    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>>;

    /// Wakes when the log may have grown. It may wake without a change and does not notice other programs, so
    /// followers also poll every [`Store::poll_interval`].
    fn commits(&self) -> watch::Receiver<()>;

    fn poll_interval(&self) -> Duration;

    /// The credentials that the store keeps; `None` if it only runs jobs, as an open transaction does.
    fn credentials(&self) -> Option<&dyn CredentialStore>;

    /// Makes all changes of accounts or, if one of them finds nothing that it needs, none: then this is false. In an open
    /// transaction they are kept with it, and it cannot be used any more after a false.
    fn change_accounts(&self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        match self.credentials() {
            Some(store) => store.change_accounts(changes),
            None => Box::pin(async { Err(Error::internal("the store keeps no accounts")) }),
        }
    }
}

/// An opaque version of a store's data; only equality is meaningful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataVersion(pub [i64; 2]);

/// A write too long for one [`StoreJob`], kept only if committed. After an error it cannot be used any more.
pub trait BulkTransaction: Send {
    /// Runs the plans of one batch, each on its own: a failed plan does not undo the others. References may point
    /// to records of later batches.
    fn run(&mut self, job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>>;

    /// References of these records to records that do not exist, or not yet.
    fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<RecordId>,
    ) -> BoxFuture<'_, Result<Vec<DanglingReference>>>;

    /// Commits to disk. Refused if a reference still points to a missing record.
    fn commit(&mut self) -> BoxFuture<'_, Result<()>>;
}

/// A transaction that jobs run in one after the other, kept only if committed. Reads see what earlier jobs wrote.
pub trait StoreTransaction: Send {
    /// Runs the plans of a job as [`Store::run`] does. After an error the transaction cannot be used any more.
    fn run(&mut self, job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>>;

    /// Makes changes of accounts as [`Store::change_accounts`] does. Their tables must be there.
    fn change_accounts(&mut self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>>;

    /// Commits to disk. The answer is stored under the idempotency key, if there is one.
    fn commit(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<()>>;
}

pub enum BegunTransaction<'s> {
    Open(Box<dyn StoreTransaction + 's>),
    /// A request with the same key was answered before.
    Replayed(Vec<u8>),
}

/// A reference or link to a missing record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DanglingReference {
    pub id: RecordId,
    pub field: FieldId,
    pub missing_id: RecordId,
}

impl DanglingReference {
    /// The type of the missing record, and a message for the author of the reference.
    pub fn describe(&self, model: &Model, record: RecordTypeId) -> (RecordTypeId, String) {
        let field = model.record(record).field(self.field);
        let target = relation_target(field).unwrap_or(record);
        let name = model.record(target).label().to_lowercase();
        (target, format!("`{}`: there is no {name} with the id {}", field.input_name, self.missing_id))
    }
}

/// Limits of one read of the change log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogReadLimits {
    pub changes: usize,
    /// Bytes of record images; the change that exceeds it is the last.
    pub bytes: usize,
}

/// The plans of one request and the sink for their rows.
pub struct StoreJob {
    /// The model that the plans were made with.
    pub model: Arc<Model>,
    /// Each plan with its position in the request.
    pub plans: Vec<(usize, Plan)>,
    pub sink: Box<dyn RowSink>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// All or nothing: the first failure undoes the others.
    pub atomic: bool,
    /// Nothing is written: the job is refused if its actor would not be allowed its writes now, else [`JobResult::Replayed`].
    pub asks_again: bool,
    pub cancel_flag: CancelFlag,
    /// Whose writes they are; `None` if the audit does not note them.
    pub origin: Option<AuditOrigin>,
}

impl StoreJob {
    /// Reports that a failed plan rolled back an atomic job: resets the sink and finishes each plan in order, the
    /// failed one with its error, the others as `RolledBack`.
    pub fn report_rolled_back(&mut self, failed: usize, error: Error) {
        let mut error = Some(error);
        self.sink.reset();
        for (i, (position, _)) in self.plans.iter().enumerate() {
            let reason = error.take_if(|_| i == failed).unwrap_or(Error::RolledBack);
            self.sink.finish_plan(*position, Err(reason));
        }
    }
}

/// An idempotency key with the fingerprint of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: u128,
}

pub enum JobResult {
    Completed(Box<dyn RowSink>),
    /// A request with the same key was answered before; these are the bytes of [`RowSink::bytes_to_replay`].
    Replayed(Vec<u8>),
}

impl JobResult {
    /// The sink of a request without an idempotency key.
    pub fn into_sink<T: RowSink>(self) -> Result<Box<T>> {
        match self {
            JobResult::Completed(sink) => downcast_sink(sink),
            JobResult::Replayed(_) => {
                Err(Error::internal("a request without an idempotency key was replayed"))
            }
        }
    }
}

/// Downcasts a sink to the type that was passed in.
pub fn downcast_sink<T: RowSink>(sink: Box<dyn RowSink>) -> Result<Box<T>> {
    let any: Box<dyn std::any::Any> = sink;
    any.downcast::<T>().map_err(|_| Error::internal("the store returned the wrong kind of outcome"))
}

/// Set when the caller disconnected or ran out of time; a running query stops soon after.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// A guard that cancels when dropped; keep it in the future that waits for the result.
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

pub struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
