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

pub use crate::bulk_write::{Long, Step};
pub use crate::changes::{Change, Epoch, Feed, Image, Log, Stretch, Watch};
pub use crate::operation::{
    Absent, Child, Condition, Count, Deed, Listing, Op, Operation, Order, Outcome, Selection, Slice,
};
pub use crate::owned_records::OwnedRow;
pub use crate::plain_list::{ListAct, OnList, Place};
pub use crate::plan::{Arrival, Plan, PlanLimits};
pub use crate::resolvers::{Actor, Binding, Builtin, Call, Gives, Registry, Resolved, Resolver, Verb};
pub use crate::schema_gate::{ClosedGate, SchemaGate, SchemaLease};
pub use crate::store::{Answer, Cancel, Done, Job, Key, LongWrite, LooseEnd, ReadLimits, Row, State, Store};

use trefoil_model::Model;
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;

/// One schema with what answers it, and the store behind. Cheap to clone; a request holds one to its end.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

struct Parts {
    model: Arc<Model>,
    bindings: Vec<Binding>,
    registry: Registry,
    store: Arc<dyn Store>,
    feed: Feed,
    limits: PlanLimits,
    /// The form of the tables that its plans are for, see [`SchemaGate`].
    generation: u64,
}

impl Engine {
    /// The feed is the store's, and stays when the model is exchanged. The tables must fit the model already.
    pub fn new(model: Arc<Model>, registry: Registry, feed: Feed, limits: PlanLimits) -> Engine {
        let (bindings, store) = (crate::resolvers::bind(&model, &registry), feed.store().clone());
        let generation = feed.gate().generation();
        Engine(Arc::new(Parts { model, bindings, registry, store, feed, limits, generation }))
    }

    /// Whether the tables are still those of the model. What was read since the last time that they were, may be wrong.
    pub fn check_tables(&self) -> Result<()> {
        self.0.feed.gate().check(self.0.generation)
    }

    /// The changes of the store.
    pub fn feed(&self) -> &Feed {
        &self.0.feed
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.0.model
    }

    /// What answers each of [`Model::roots`], by the same position.
    pub fn bindings(&self) -> &[Binding] {
        &self.0.bindings
    }

    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub fn limits(&self) -> &PlanLimits {
        &self.0.limits
    }

    pub async fn ping(&self) -> Result<()> {
        self.0.store.ping().await
    }

    /// The state of the data now, see [`Store::state`].
    pub fn state(&self) -> Option<State> {
        self.0.store.state()
    }

    /// What was kept under an idempotency key, see [`Store::replay`].
    pub async fn replay(&self, key: &Key) -> Result<Option<Vec<u8>>> {
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
    pub async fn run(&self, operations: Vec<Result<Operation>>, request: Request) -> Result<Done> {
        let Request { mut answer, key, atomic } = request;
        let now = jiff::Timestamp::now();
        let mut plans = Vec::with_capacity(operations.len());
        let mut refused = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            if atomic && refused.len() >= coerce::MOST {
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
            answer.done(number, Err(error));
        }
        if plans.is_empty() {
            return Ok(Done::Answered(answer));
        }
        answer.begin();
        if let [(number, plan)] = plans.as_slice()
            && let Some(row) = crate::changes::Told::of(self.model(), &plan.action)
        {
            answer.row(*number, &row);
            answer.done(*number, Ok(Outcome::Found));
            return Ok(Done::Answered(answer));
        }
        self.check_tables()?;
        let cancel = Cancel::default();
        let _cancel_when_dropped = cancel.on_drop();
        let job = Job { model: self.0.model.clone(), plans, answer, key, atomic, cancel };
        self.0.store.run(job).await
    }
}

/// Who is answered, and how the operations of a request belong together.
pub struct Request {
    pub answer: Box<dyn Answer>,
    pub key: Option<Key>,
    /// All or nothing: the first failure undoes the others.
    pub atomic: bool,
}

impl Request {
    pub fn new(answer: Box<dyn Answer>) -> Request {
        Request { answer, key: None, atomic: false }
    }
}

/// Takes the answer back as the type it was given as.
pub fn answer_as<T: Answer>(answer: Box<dyn Answer>) -> Result<Box<T>> {
    let any: Box<dyn std::any::Any> = answer;
    any.downcast::<T>().map_err(|_| Error::internal("the store returned another answer than it was given"))
}
