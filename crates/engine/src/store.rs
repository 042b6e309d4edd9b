//! What the engine needs of a store: run proven plans, hand rows to whoever answers, keep what it acknowledges.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::changes::{ChangeLog, RecordChange};
use crate::{Outcome, Plan};
use trefoil_model::error::{Error, Result};
use trefoil_model::naming::names;
use trefoil_model::{CellValue, FieldId, Model, RecordTypeId};

/// A place where records are kept.
pub trait Store: Send + Sync {
    /// Runs the plans of one request. Reads see one snapshot; writes are in order, each its own unit
    /// (or all of them one, see [`Job::atomic`]), and are on disk before this returns.
    ///
    /// An error here means that nothing of the job happened, unless it says that nobody knows: a database that is lost
    /// in the middle of a commit may or may not have made it. Such a job is never run again by the store.
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>>;

    /// What was kept under an idempotency key by the request that it belongs to; `None` where there was no such request.
    /// [`Error::KeyReused`] when the key belongs to another one, [`Error::KeyInUse`] while that has not finished.
    fn replay<'s>(&'s self, key: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>>;

    /// Begins a long write, made of many batches. Others' writes may have to wait until it ends.
    fn begin_bulk_write(&self, model: &Arc<Model>) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>>;

    /// Whether the store can be reached, for the readiness check.
    fn ping(&self) -> BoxFuture<'_, Result<()>>;

    /// The state of the data now. Two that are equal say that nothing a reader could see was changed between them, by
    /// nobody; a write that was acknowledged before the call is in it. `None` where that cannot be told.
    fn data_version(&self) -> Option<DataVersion>;

    /// The change log as it stands: every change committed before this call has its number.
    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>>;

    /// The changes with numbers above `after` and not above `until`, in order. At most `limits` of them, but at least
    /// one where there is one.
    fn read_changes(
        &self,
        after: i64,
        until: i64,
        limits: LogReadLimits,
    ) -> BoxFuture<'_, Result<Vec<RecordChange>>>;

    /// Wakes when something may have been added to the log. It may wake for nothing, and it knows nothing of other
    /// programs, so whoever follows the log also looks every [`Store::look_every`].
    fn commits(&self) -> watch::Receiver<()>;

    fn poll_interval(&self) -> Duration;
}

/// What a store calls a state of its data; only equality means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataVersion(pub [i64; 2]);

/// A write too long for one [`Job`]: all of it is kept by its commit, and nothing when it is dropped before.
/// After an error nothing more can be done with it.
pub trait BulkTransaction: Send {
    /// Runs the plans of one batch, each its own unit: one that fails leaves the others standing. References may lead
    /// to what a later batch brings.
    fn run(&mut self, job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>>;

    /// What these records refer to and is not there, or not yet.
    fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<i64>,
    ) -> BoxFuture<'_, Result<Vec<DanglingReference>>>;

    /// On disk when this returns. Refused when a reference still leads to nothing.
    fn commit(&mut self) -> BoxFuture<'_, Result<()>>;
}

/// A reference or link to a record that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DanglingReference {
    pub id: i64,
    pub field: FieldId,
    pub missing_id: i64,
}

impl DanglingReference {
    /// The type of the record that is not there, and a line for whoever wrote the reference.
    pub fn told(&self, model: &Model, record: RecordTypeId) -> (RecordTypeId, String) {
        let field = model.record(record).field(self.field);
        let target = crate::plan::relation_target(field).unwrap_or(record);
        let name = names::display_label(&model.record(target).name).to_lowercase();
        (target, format!("`{}`: there is no {name} with the id {}", field.input_name, self.missing_id))
    }
}

/// How much of the log is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogReadLimits {
    pub changes: usize,
    /// Of their images; the one that goes beyond is the last.
    pub bytes: usize,
}

/// The plans of one request and who answers it.
pub struct StoreJob {
    /// The model that the plans were made with.
    pub model: Arc<Model>,
    /// With the number each has in the request.
    pub plans: Vec<(usize, Plan)>,
    pub sink: Box<dyn RowSink>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// All or nothing: the first failure undoes the others.
    pub atomic: bool,
    pub cancel_flag: CancelFlag,
}

impl StoreJob {
    /// When one plan of an atomic job failed and all was undone: the answer forgets everything and is told of each
    /// plan, in order: the failure of the one that failed, `Cancelled` for those that were undone or never begun.
    pub fn report_rolled_back(&mut self, failed: usize, error: Error) {
        let mut error = Some(error);
        self.sink.reset();
        for (i, (number, _)) in self.plans.iter().enumerate() {
            let reason = error.take_if(|_| i == failed).unwrap_or(Error::Cancelled);
            self.sink.finish_plan(*number, Err(reason));
        }
    }
}

/// An idempotency key, and what the request looked like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: u128,
}

pub enum JobResult {
    Completed(Box<dyn RowSink>),
    /// The request was answered before under the same key; these are the bytes [`Answer::keep`] gave then.
    Replayed(Vec<u8>),
}

/// Takes rows while they are read. A face encodes them at once; nothing is copied for it.
pub trait RowSink: Any + Send {
    /// One record of plan number `plan`; plans come in order.
    fn row(&mut self, plan: usize, row: &dyn Row);

    /// Exactly once for each plan, after its rows.
    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>);

    /// What comes from here on may come again: [`Answer::reset`] goes back to here.
    fn checkpoint(&mut self) {}

    /// What to keep under the idempotency key; `None` keeps nothing, so that a retry runs again.
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>>;

    /// Forget everything since [`Answer::begin`]: the plans are about to be run again.
    fn reset(&mut self);
}

/// One record, borrowed from the store while it is read.
pub trait Row {
    /// The selected column at this position.
    fn cell(&self, column: usize) -> CellValue<'_>;

    /// Visits the records of the selected child at this position, in order.
    fn each_child(&self, child: usize, visit: &mut dyn FnMut(&dyn Row));
}

/// Set when the caller went away or ran out of time; a running query stops soon after.
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

    /// Cancels when dropped: keep it in the future that waits for the answer.
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
