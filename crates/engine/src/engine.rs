//! [`Engine`]: a schema with its resolvers and its store, which runs operations.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId, Relation, Value};

use crate::abstract_operation::AbstractOperation;
use crate::access::{
    AccessView, AccountChange, Actor, AskedWrites, AuditOrigin, Authority, CredentialStore, IdentityCheck,
    RuleCache,
};
use crate::builtin_operation::{BuiltinOperation, OperationVerb};
use crate::changes::{ChangeFeed, ImageRow, RelationTestMap, VersionProbe};
use crate::operation::{Condition, Operation, Outcome};
use crate::plan::{
    EndingWrites, MeasuredLengths, Plan, PlanLimits, RequestTime, check_conditions, check_operation,
    plan_predicates,
};
use crate::row::RowSink;
use crate::store::{CancelFlag, DataVersion, IdempotencyKey, JobResult, Store, StoreJob};

/// A model with its resolvers and its store. Cheap to clone; a request uses one engine from start to end.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
    authority: Authority,
    /// Where the actor's identity is not confirmed yet.
    check: Option<IdentityCheck>,
    /// Its writes are only asked about, see [`Engine::asking_again`].
    asks_again: Option<AskedWrites>,
    /// Whose writes they are.
    origin: AuditOrigin,
    audits_writes: bool,
}

struct EngineInner {
    model: Arc<Model>,
    bindings: Vec<ResolverBinding>,
    registry: ResolverRegistry,
    store: Arc<dyn Store>,
    feed: ChangeFeed,
    limits: PlanLimits,
    measured_lengths: Arc<MeasuredLengths>,
    relation_tests: Arc<RelationTestMap>,
    version_probe: Arc<VersionProbe>,
    /// `None` for an open application.
    rule_cache: Option<Arc<RuleCache>>,
    /// What makes accounts unusable.
    ending_writes: Option<Arc<EndingWrites>>,
    /// The generation of the tables that its plans are for, see [`crate::SchemaGate`].
    generation: u64,
}

impl Engine {
    /// The feed belongs to the store and stays when the model is replaced. The tables must fit the model already.
    /// The bindings are those of [`crate::binding::bind_root_fields`].
    pub fn new(
        model: Arc<Model>,
        bindings: Vec<ResolverBinding>,
        registry: ResolverRegistry,
        feed: ChangeFeed,
        limits: PlanLimits,
    ) -> Engine {
        let (store, generation) = (feed.store().clone(), feed.gate().generation());
        model.set_time_zone(limits.time_zone.clone());
        let access = model.access.as_ref().map(|access| RuleCache::new(&model, access, &limits.time_zone));
        let zone = &limits.time_zone;
        let authority =
            access.as_ref().map_or_else(Authority::operator, |rules| rules.authority(&model, None, zone));
        let ending_writes = EndingWrites::of_model(&model).map(Arc::new);
        let inner = Arc::new(EngineInner {
            model,
            bindings,
            registry,
            store,
            feed,
            limits,
            measured_lengths: Arc::default(),
            relation_tests: Arc::default(),
            version_probe: Arc::default(),
            rule_cache: access.map(Arc::new),
            ending_writes,
            generation,
        });
        let (origin, audits_writes) = (AuditOrigin::default(), false);
        Engine { inner, authority, check: None, asks_again: None, origin, audits_writes }
    }

    /// The engine with an audit of what it writes, if there are rules.
    pub fn auditing_writes(self) -> Engine {
        Engine { audits_writes: self.inner.rule_cache.is_some(), ..self }
    }

    /// The engine for what others ask for, as far as the audit tells.
    pub fn with_origin(&self, origin: AuditOrigin) -> Engine {
        Engine { origin, ..self.clone() }
    }

    pub fn origin(&self) -> &AuditOrigin {
        &self.origin
    }

    /// Whose writes the audit notes; `None` if it does not.
    pub(crate) fn audited_origin(&self) -> Option<AuditOrigin> {
        self.audits_writes.then(|| self.origin.clone())
    }

    /// The engine on behalf of an actor: what the rules leave to them. A new engine is anonymous.
    pub fn for_actor(&self, actor: &Actor) -> Engine {
        let (identity, zone) = (actor.identity.as_ref(), &self.limits().time_zone);
        let authority = match &self.inner.rule_cache {
            None => Authority::operator(),
            Some(rules) => rules.authority(self.model(), identity, zone),
        };
        let origin = match self.inner.rule_cache {
            Some(_) => AuditOrigin::of_actor(actor),
            None => AuditOrigin::default(),
        };
        Engine { authority, check: actor.check.clone(), origin, ..self.clone() }
    }

    /// The engine on behalf of somebody who makes an account for themselves. Whoever they are, they act as nobody does, but
    /// may create a record of this type: what they refer to must be readable for everybody.
    pub fn for_sign_up(&self, record: RecordTypeId) -> Engine {
        let authority = match &self.inner.rule_cache {
            None => Authority::operator(),
            Some(rules) => rules.authority_to_create(self.model(), record, &self.limits().time_zone),
        };
        self.with_authority(authority)
    }

    /// The engine on behalf of the operator, for whom the rules of the schema do not apply.
    pub fn as_operator(&self) -> Engine {
        self.with_authority(Authority::operator())
    }

    pub(crate) fn with_authority(&self, authority: Authority) -> Engine {
        Engine { authority, ..self.clone() }
    }

    /// The engine for what happens now in a long request: rules may compare with the time.
    pub fn at_present(&self) -> Engine {
        self.with_authority(self.authority.clone().at_present(&self.limits().time_zone))
    }

    /// Waits until it is known that the actor is who they were taken for. It comes before everything that is not undone by
    /// throwing the answer away: writes, and resolvers written in Rust. Where the HTTP service made the check, the error is never
    /// seen: it drops what it has and answers the request again. Whoever else makes a check must do so too, or gives the error.
    pub async fn confirm_actor(&self) -> Result<()> {
        match &self.check {
            Some(check) if !check.holds().await => Err(Error::Unauthenticated { rule: None }),
            Some(_) | None => Ok(()),
        }
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The rules as they are for the actor; `None` if none apply.
    pub fn access_view(&self) -> Option<&Arc<AccessView>> {
        self.authority.view()
    }

    /// The class of the actor, see [`AccessView::class`]; `None` if no rules apply.
    pub fn access_class(&self) -> Option<u128> {
        self.access_view().map(|view| view.class)
    }

    /// Refuses what the actor may do with no record of the type.
    pub fn require(&self, action: AccessAction, record: RecordTypeId) -> Result<()> {
        self.access_view().map_or(Ok(()), |view| view.require(action, record))
    }

    /// Whether there may be records of the type with which the actor may do this.
    pub fn may(&self, action: AccessAction, record: RecordTypeId) -> bool {
        self.access_view().is_none_or(|view| view.verdict(action, record) != AccessVerdict::No)
    }

    /// Whether the actor may run such operations on some records of the type.
    pub fn may_run(&self, verb: OperationVerb, record: RecordTypeId) -> bool {
        verb.actions().iter().all(|action| self.may(*action, record))
    }

    /// Whether there may be records of the type of which the actor may read this field.
    pub fn shows_field(&self, record: RecordTypeId, field: FieldId) -> bool {
        self.access_view().is_none_or(|view| !view.hides_field(record, field))
    }

    /// The same for a field of the records that a relation leads to.
    pub fn shows_related_field(&self, record: RecordTypeId, relation: FieldId, field: FieldId) -> bool {
        let target = self.model().record(record).field(relation).kind.relation().map(Relation::target);
        self.shows_field(record, relation) && target.is_none_or(|target| self.shows_field(target, field))
    }

    /// Whether there may be records of the type of which the actor may set this field.
    pub fn may_set(&self, action: AccessAction, record: RecordTypeId, field: FieldId) -> bool {
        self.access_view().is_none_or(|view| view.may_set(action, record, field))
    }

    /// The key as one of the actor: another's same key is another key.
    pub(crate) fn actor_key(&self, key: IdempotencyKey) -> IdempotencyKey {
        let identity = self.access_view().and_then(|view| view.identity.as_ref());
        match identity {
            // A key that a client sends has no line break.
            Some(identity) => IdempotencyKey { key: format!("{}\n{}", identity.name, key.key), ..key },
            None => key,
        }
    }

    /// An engine for a request that was answered before: its writes change nothing. They are refused if the actor would not
    /// be allowed them now; otherwise `asked` is told, and they end as rolled back.
    pub fn asking_again(&self, asked: &AskedWrites) -> Engine {
        Engine { asks_again: Some(asked.clone()), ..self.clone() }
    }

    /// An error for an engine whose writes are only asked about, before what would really write.
    pub(crate) fn require_writing(&self) -> Result<()> {
        if self.asks_again.is_some() {
            return Err(Error::internal("a request that is asked about again begins no transaction"));
        }
        Ok(())
    }

    /// The same engine on another store.
    pub(crate) fn with_store(&self, store: Arc<dyn Store>) -> Engine {
        let inner = &*self.inner;
        let inner = Arc::new(EngineInner {
            model: inner.model.clone(),
            bindings: inner.bindings.clone(),
            registry: inner.registry.clone(),
            store,
            feed: inner.feed.clone(),
            limits: inner.limits.clone(),
            measured_lengths: inner.measured_lengths.clone(),
            relation_tests: inner.relation_tests.clone(),
            version_probe: Arc::default(),
            rule_cache: inner.rule_cache.clone(),
            ending_writes: inner.ending_writes.clone(),
            generation: inner.generation,
        });
        Engine { inner, ..self.clone() }
    }

    /// Refuses if the tables no longer fit the model. Rows read since the last successful check may be wrong.
    pub fn check_tables(&self) -> Result<()> {
        self.inner.feed.gate().check(self.inner.generation)
    }

    /// The change feed of the store.
    pub fn feed(&self) -> &ChangeFeed {
        &self.inner.feed
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.inner.model
    }

    /// The resolver of each of [`Model::root_fields`], by position.
    pub fn bindings(&self) -> &[ResolverBinding] {
        &self.inner.bindings
    }

    pub fn registry(&self) -> &ResolverRegistry {
        &self.inner.registry
    }

    pub fn limits(&self) -> &PlanLimits {
        &self.inner.limits
    }

    pub(crate) fn measured_lengths(&self) -> &MeasuredLengths {
        &self.inner.measured_lengths
    }

    /// The tests of related records in the filters of its subscriptions.
    pub(crate) fn relation_tests(&self) -> &RelationTestMap {
        &self.inner.relation_tests
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub(crate) fn ending_writes(&self) -> Option<&EndingWrites> {
        self.inner.ending_writes.as_deref()
    }

    /// The credentials that the store keeps.
    pub fn credentials(&self) -> Result<&dyn CredentialStore> {
        self.inner.store.credentials().ok_or_else(|| Error::internal("a transaction has no credentials"))
    }

    /// Changes what accounts sign in with, see [`Store::change_accounts`].
    pub async fn change_accounts(&self, changes: Vec<AccountChange>) -> Result<bool> {
        self.inner.store.change_accounts(changes).await
    }

    pub async fn ping(&self) -> Result<()> {
        self.inner.store.ping().await
    }

    /// The current version of the data, see [`Store::data_version`].
    pub fn data_version(&self) -> Option<DataVersion> {
        self.inner.store.data_version()
    }

    /// The version of the data at some time since this was called, read once for all who ask at the same time.
    pub async fn shared_data_version(&self) -> Option<DataVersion> {
        self.inner.version_probe.read(&*self.inner.store).await
    }

    /// The response stored under an idempotency key, see [`Store::replay`].
    pub async fn replay(&self, key: &IdempotencyKey) -> Result<Option<Vec<u8>>> {
        match self.access_view() {
            Some(_) => {
                self.confirm_actor().await?;
                self.inner.store.replay(&self.actor_key(key.clone())).await
            }
            None => self.inner.store.replay(key).await,
        }
    }

    /// Refuses what the actor may do with no record. It goes before all else that is wrong with a request.
    pub fn check_access(&self, operation: &Operation) -> Result<()> {
        self.access_view().map_or(Ok(()), |view| check_operation(self.model(), view, operation))
    }

    /// Refuses conditions that the actor may not name, or with operands that do not fit.
    pub fn check_conditions(&self, record: RecordTypeId, conditions: &[Condition]) -> Result<()> {
        if let Some(view) = self.access_view() {
            check_conditions(self.model(), view, record, conditions)?;
        }
        plan_predicates(self.model(), self.model().record(record), conditions).map(drop)
    }

    /// The violations of an operation that can be found without the store.
    pub fn violations(&self, operation: Operation) -> Vec<Violation> {
        match Plan::prove(self.model(), self.limits(), &self.authority, operation, &RequestTime::default()) {
            Err(Error::Invalid(violations)) => violations,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Runs the operations of one request. An operation that cannot be planned gets its error and does not affect
    /// the others.
    pub async fn run(&self, operations: Vec<Result<Operation>>, request: EngineRequest) -> Result<JobResult> {
        let EngineRequest { mut sink, idempotency_key, atomic } = request;
        let time = RequestTime::default();
        let mut plans = Vec::with_capacity(operations.len());
        let mut refused = Vec::new();
        for (position, operation) in operations.into_iter().enumerate() {
            if atomic && refused.len() >= coerce::MAX_VIOLATIONS {
                refused.push((position, Error::RolledBack));
                continue;
            }
            match operation.and_then(|operation| {
                Plan::prove(self.model(), self.limits(), &self.authority, operation, &time)
            }) {
                Ok(plan) => plans.push((position, plan)),
                Err(error) => refused.push((position, error)),
            }
        }
        if atomic && !refused.is_empty() {
            refused.extend(plans.drain(..).map(|(position, _)| (position, Error::RolledBack)));
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
        if self.check.is_some() && plans.iter().any(|(_, plan)| plan.is_write()) {
            self.confirm_actor().await?;
        }
        self.check_tables()?;
        let cancel_flag = CancelFlag::default();
        let _cancel_when_dropped = cancel_flag.cancel_on_drop();
        let idempotency_key = idempotency_key.map(|key| self.actor_key(key));
        let model = self.inner.model.clone();
        let asked = self.asks_again.as_ref().filter(|_| plans.iter().any(|(_, plan)| plan.is_write()));
        let asks_again = asked.is_some();
        let is_audited = self.audits_writes && plans.iter().any(|(_, plan)| plan.is_write());
        let origin = is_audited.then(|| self.origin.clone());
        let touched = self.touched_accounts(&plans);
        let job = StoreJob { model, plans, sink, idempotency_key, atomic, asks_again, cancel_flag, origin };
        let store = self.inner.store.clone();
        let result = self.end_unusable_after(touched, async move { store.run(job).await }).await?;
        let Some(asked) = asked else { return Ok(result) };
        asked.allow();
        Err(Error::RolledBack)
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

/// The resolver of a root field.
#[derive(Clone)]
pub enum ResolverBinding {
    Builtin(Arc<BuiltinOperation>),
    /// An operation on each type of an interface or union.
    Abstract(Arc<AbstractOperation>),
    Registered(ResolverFn),
    /// No resolver; requests get an error with this explanation.
    Missing(String),
}

/// A resolver written in Rust.
pub type ResolverFn = Arc<dyn Fn(ResolverCall) -> BoxFuture<'static, Result<ResolverResult>> + Send + Sync>;

/// The input of a registered resolver.
pub struct ResolverCall {
    /// The object of the field with its stored fields by name; null for root fields.
    pub parent: Value,
    /// Arguments as coerced by the schema: with defaults, without absent ones.
    pub arguments: Value,
    pub actor: Actor,
    pub engine: Engine,
}

/// The result of a registered resolver.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolverResult {
    /// A value; objects have their fields by name, and `__typename` where the type is an interface or union.
    Value(Value),
    /// A record of the store, read with the fields that the request selects.
    Record { type_name: String, id: RecordId },
    /// A list of values or records.
    List(Vec<ResolverResult>),
}

/// Resolvers that a program registered, by type and field name.
#[derive(Clone, Default)]
pub struct ResolverRegistry(HashMap<String, ResolverFn>);

impl ResolverRegistry {
    /// `field` is written as in the schema: `Query.search`, `User.avatar`.
    pub fn register(&mut self, field: &str, resolver: ResolverFn) {
        self.0.insert(field.to_owned(), resolver);
    }

    pub fn get(&self, type_name: &str, field: &str) -> Option<&ResolverFn> {
        if self.0.is_empty() { None } else { self.0.get(&format!("{type_name}.{field}")) }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for ResolverBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolverBinding::Builtin(builtin) => write!(f, "{:?} of {:?}", builtin.verb, builtin.record),
            ResolverBinding::Abstract(operation) => {
                write!(f, "{:?} of {}", operation.verb, operation.type_name)
            }
            ResolverBinding::Registered(_) => f.write_str("registered"),
            ResolverBinding::Missing(why) => write!(f, "missing: {why}"),
        }
    }
}
