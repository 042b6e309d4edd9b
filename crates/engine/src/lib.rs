//! What is done, without HTTP and without SQL: operations in, outcomes out.

pub mod argument_warnings;
pub mod arguments;
mod bulk_write;
pub mod changes;
pub mod cursor;
pub mod graphql_document;
pub mod list_window;
mod operation;
mod owned_records;
pub mod plain_list;
pub mod plan;
pub mod resolvers;
mod schema_gate;
mod store;
mod text_search;

use std::sync::Arc;

pub use crate::bulk_write::{BulkStep, BulkWrite};
pub use crate::changes::{
    ChangeBatch, ChangeFeed, ChangeFilter, ChangeLog, LogEpoch, RecordChange, RecordImage,
};
pub use crate::operation::{
    ChangeKind, ChildSelection, ComparisonOp, Condition, CountMode, ListSlice, Listing, MissingFields,
    Operation, Outcome, Selection, SortKey,
};
pub use crate::owned_records::OwnedRow;
pub use crate::plain_list::{PlainListAction, PlainListOperation, PlainListPosition};
pub use crate::plan::{ImportRecord, Plan, PlanLimits};
pub use crate::resolvers::{
    Actor, BuiltinOperation, Call, OperationVerb, Resolved, ResolverBinding, ResolverFn, ResolverRegistry,
    ResultShape,
};
pub use crate::schema_gate::{ClosedGate, SchemaGate, SchemaLease};
pub use crate::store::{
    BulkTransaction, CancelFlag, DanglingReference, DataVersion, IdempotencyKey, JobResult, LogReadLimits,
    Row, RowSink, Store, StoreJob,
};

use trefoil_model::Model;
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;

/// One schema with what answers it, and the store behind. Cheap to clone; a request holds one to its end.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    model: Arc<Model>,
    bindings: Vec<ResolverBinding>,
    registry: ResolverRegistry,
    store: Arc<dyn Store>,
    feed: ChangeFeed,
    limits: PlanLimits,
    /// The form of the tables that its plans are for, see [`SchemaGate`].
    generation: u64,
}

impl Engine {
    /// The feed is the store's, and stays when the model is exchanged. The tables must fit the model already.
    pub fn new(
        model: Arc<Model>,
        registry: ResolverRegistry,
        feed: ChangeFeed,
        limits: PlanLimits,
    ) -> Engine {
        let (bindings, store) = (crate::resolvers::bind_root_fields(&model, &registry), feed.store().clone());
        let generation = feed.gate().generation();
        Engine(Arc::new(EngineInner { model, bindings, registry, store, feed, limits, generation }))
    }

    /// Whether the tables are still those of the model. What was read since the last time that they were, may be wrong.
    pub fn check_tables(&self) -> Result<()> {
        self.0.feed.gate().check(self.0.generation)
    }

    /// The changes of the store.
    pub fn feed(&self) -> &ChangeFeed {
        &self.0.feed
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.0.model
    }

    /// What answers each of [`Model::roots`], by the same position.
    pub fn bindings(&self) -> &[ResolverBinding] {
        &self.0.bindings
    }

    pub fn registry(&self) -> &ResolverRegistry {
        &self.0.registry
    }

    pub fn limits(&self) -> &PlanLimits {
        &self.0.limits
    }

    pub async fn ping(&self) -> Result<()> {
        self.0.store.ping().await
    }

    /// The state of the data now, see [`Store::state`].
    pub fn data_version(&self) -> Option<DataVersion> {
        self.0.store.data_version()
    }

    /// What was kept under an idempotency key, see [`Store::replay`].
    pub async fn replay(&self, key: &IdempotencyKey) -> Result<Option<Vec<u8>>> {
        self.0.store.replay(key).await
    }

    /// What is wrong with an operation, as far as it can be told without the store.
    pub fn violations(&self, operation: Operation) -> Vec<Violation> {
        match Plan::prove(self.model(), operation, jiff::Timestamp::now()) {
            Err(Error::Invalid(violations)) => violations,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Runs the operations of one request. One that cannot be planned gets its error and leaves the others alone.
    pub async fn run(&self, operations: Vec<Result<Operation>>, request: EngineRequest) -> Result<JobResult> {
        let EngineRequest { sink: mut answer, idempotency_key: key, atomic } = request;
        let now = jiff::Timestamp::now();
        let mut plans = Vec::with_capacity(operations.len());
        let mut refused = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            if atomic && refused.len() >= coerce::MAX_VIOLATIONS {
                refused.push((number, Error::Cancelled));
                continue;
            }
            match operation.and_then(|operation| Plan::prove(self.model(), operation, now)) {
                Ok(plan) => plans.push((number, plan)),
                Err(error) => refused.push((number, error)),
            }
        }
        if atomic && !refused.is_empty() {
            refused.extend(plans.drain(..).map(|(number, _)| (number, Error::Cancelled)));
        }
        for (number, error) in refused {
            answer.finish_plan(number, Err(error));
        }
        if plans.is_empty() {
            return Ok(JobResult::Completed(answer));
        }
        answer.checkpoint();
        if let [(number, plan)] = plans.as_slice()
            && let Some(row) = crate::changes::ImageRow::from_action(self.model(), &plan.action)
        {
            answer.row(*number, &row);
            answer.finish_plan(*number, Ok(Outcome::Found));
            return Ok(JobResult::Completed(answer));
        }
        self.check_tables()?;
        let cancel = CancelFlag::default();
        let _cancel_when_dropped = cancel.cancel_on_drop();
        let job = StoreJob {
            model: self.0.model.clone(),
            plans,
            sink: answer,
            idempotency_key: key,
            atomic,
            cancel_flag: cancel,
        };
        self.0.store.run(job).await
    }
}

/// Who is answered, and how the operations of a request belong together.
pub struct EngineRequest {
    pub sink: Box<dyn RowSink>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// All or nothing: the first failure undoes the others.
    pub atomic: bool,
}

impl EngineRequest {
    pub fn new(answer: Box<dyn RowSink>) -> EngineRequest {
        EngineRequest { sink: answer, idempotency_key: None, atomic: false }
    }
}

/// Takes the answer back as the type it was given as.
pub fn downcast_sink<T: RowSink>(answer: Box<dyn RowSink>) -> Result<Box<T>> {
    let any: Box<dyn std::any::Any> = answer;
    any.downcast::<T>().map_err(|_| Error::internal("the store returned another answer than it was given"))
}
