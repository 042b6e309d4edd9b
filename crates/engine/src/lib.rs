//! Runs operations on records, without HTTP and without SQL.
//!
//! GraphQL, REST and the HTML pages build an [`Operation`]; [`Plan::prove`] validates it against the model, and a
//! [`Store`] runs the plan and passes rows to the caller's [`RowSink`]. The SQL crate implements the store for both
//! databases. The crate also binds root fields to operations and follows the log of changes for subscriptions.

// Input and result of the engine.
mod operation;
pub mod plain_list;

// Validation: an operation becomes a plan.
pub mod cursor;
pub mod plan;
mod text_search;

// The interface to the databases.
mod store;

// Longer writes, and reads into owned values.
mod bulk_write;
mod owned_records;

// Root fields of the schema and their arguments.
pub mod argument_warnings;
pub mod arguments;
pub mod list_window;
pub mod resolvers;

// Operations written as GraphQL documents.
pub mod graphql_document;

// The change log, for subscriptions.
pub mod changes;

// Reloading the schema while requests run.
mod schema_gate;

use std::sync::Arc;

use trefoil_model::Model;
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;

use crate::changes::ImageRow;

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

/// A model with its resolvers and its store. Cheap to clone; a request uses one engine from start to end.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    model: Arc<Model>,
    bindings: Vec<ResolverBinding>,
    registry: ResolverRegistry,
    store: Arc<dyn Store>,
    feed: ChangeFeed,
    limits: PlanLimits,
    /// The generation of the tables that its plans are for, see [`SchemaGate`].
    generation: u64,
}

impl Engine {
    /// The feed belongs to the store and stays when the model is replaced. The tables must fit the model already.
    pub fn new(
        model: Arc<Model>,
        registry: ResolverRegistry,
        feed: ChangeFeed,
        limits: PlanLimits,
    ) -> Engine {
        let (bindings, store) = (resolvers::bind_root_fields(&model, &registry), feed.store().clone());
        let generation = feed.gate().generation();
        Engine(Arc::new(EngineInner { model, bindings, registry, store, feed, limits, generation }))
    }

    /// Refuses if the tables no longer fit the model. Rows read since the last successful check may be wrong.
    pub fn check_tables(&self) -> Result<()> {
        self.0.feed.gate().check(self.0.generation)
    }

    /// The change feed of the store.
    pub fn feed(&self) -> &ChangeFeed {
        &self.0.feed
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.0.model
    }

    /// The resolver of each of [`Model::root_fields`], by position.
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

    /// The current version of the data, see [`Store::data_version`].
    pub fn data_version(&self) -> Option<DataVersion> {
        self.0.store.data_version()
    }

    /// The response stored under an idempotency key, see [`Store::replay`].
    pub async fn replay(&self, key: &IdempotencyKey) -> Result<Option<Vec<u8>>> {
        self.0.store.replay(key).await
    }

    /// The violations of an operation that can be found without the store.
    pub fn violations(&self, operation: Operation) -> Vec<Violation> {
        match Plan::prove(self.model(), operation, jiff::Timestamp::now()) {
            Err(Error::Invalid(violations)) => violations,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Runs the operations of one request. An operation that cannot be planned gets its error and does not affect
    /// the others.
    pub async fn run(&self, operations: Vec<Result<Operation>>, request: EngineRequest) -> Result<JobResult> {
        let EngineRequest { mut sink, idempotency_key, atomic } = request;
        let now = jiff::Timestamp::now();
        let mut plans = Vec::with_capacity(operations.len());
        let mut refused = Vec::new();
        for (position, operation) in operations.into_iter().enumerate() {
            if atomic && refused.len() >= coerce::MAX_VIOLATIONS {
                refused.push((position, Error::Cancelled));
                continue;
            }
            match operation.and_then(|operation| Plan::prove(self.model(), operation, now)) {
                Ok(plan) => plans.push((position, plan)),
                Err(error) => refused.push((position, error)),
            }
        }
        if atomic && !refused.is_empty() {
            refused.extend(plans.drain(..).map(|(position, _)| (position, Error::Cancelled)));
        }
        for (position, error) in refused {
            sink.finish_plan(position, Err(error));
        }
        if plans.is_empty() {
            return Ok(JobResult::Completed(sink));
        }
        sink.checkpoint();
        if let [(position, plan)] = plans.as_slice()
            && let Some(row) = ImageRow::from_action(self.model(), &plan.action)
        {
            sink.row(*position, &row);
            sink.finish_plan(*position, Ok(Outcome::Found));
            return Ok(JobResult::Completed(sink));
        }
        self.check_tables()?;
        let cancel_flag = CancelFlag::default();
        let _cancel_when_dropped = cancel_flag.cancel_on_drop();
        let job = StoreJob { model: self.0.model.clone(), plans, sink, idempotency_key, atomic, cancel_flag };
        self.0.store.run(job).await
    }
}

/// The sink for the rows, and how the operations of a request belong together.
pub struct EngineRequest {
    pub sink: Box<dyn RowSink>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// All or nothing: the first failure undoes the others.
    pub atomic: bool,
}

impl EngineRequest {
    pub fn new(sink: Box<dyn RowSink>) -> EngineRequest {
        EngineRequest { sink, idempotency_key: None, atomic: false }
    }
}

/// Downcasts a sink to the type that was passed in.
pub fn downcast_sink<T: RowSink>(sink: Box<dyn RowSink>) -> Result<Box<T>> {
    let any: Box<dyn std::any::Any> = sink;
    any.downcast::<T>().map_err(|_| Error::internal("the store returned the wrong kind of outcome"))
}
