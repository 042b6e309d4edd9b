//! [`AccessView`]: the rules of a schema as they are for one actor.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3;

use trefoil_model::access::{
    AccessAction, AccessModel, AccessRule, AccessVerdict, FieldAccess, RuleTest, RuleValue, TypeAccess,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::date_times::format_timestamp;
use trefoil_model::{
    Field, FieldId, Model, RecordTypeId, Relation, SourceLocation, StoredValue, ZoneOffsets,
};

use crate::access::actor::{ActorFactsView, ActorIdentity, KnownActor};
use crate::operation::ReferencePath;

/// The rules as they are for one actor at the time of a request.
#[derive(Debug)]
pub struct AccessView {
    pub identity: Option<Arc<ActorIdentity>>,
    pub rules: Arc<ActorRules>,
    /// Actors of one class see the same and may do the same.
    pub class: u128,
    pub now: StoredValue,
    pub local_now: StoredValue,
    pub today: StoredValue,
}

/// The rules of a schema for one actor: what is about the actor alone is decided, the rest is about records.
#[derive(Debug)]
pub struct ActorRules {
    /// By [`RecordTypeId`].
    types: Vec<TypeView>,
    /// Equal for rules that differ in nothing but the values that records are compared with.
    pub shape: u128,
    /// A hash of all that the rules used of the actor.
    class: u128,
    /// There are fields or records that the actor never sees.
    hides_fields: bool,
    /// What is allowed changes by itself.
    depends_on_time: bool,
    /// The time of a request matters: to what is allowed, or to what the server fills in.
    needs_time: bool,
    /// Of somebody who makes an account for themselves: they have no credential yet that could be asked for.
    pub is_sign_up: bool,
}

/// What an actor may do with the records of a type.
#[derive(Debug)]
pub struct TypeView {
    pub read: FoldedRule,
    pub create: FoldedRule,
    pub update: FoldedRule,
    /// On the record as it would be.
    pub update_to: FoldedRule,
    pub delete: FoldedRule,
    /// By [`FieldId`].
    pub fields: Vec<FieldView>,
}

/// What an actor may do with a field, besides the rules of its type.
#[derive(Debug)]
pub struct FieldView {
    pub read: FoldedRule,
    pub create: FoldedRule,
    pub update: FoldedRule,
    /// The type of the records that the field leads to.
    pub target: Option<RecordTypeId>,
}

/// The rest of a rule for one actor.
#[derive(Debug)]
pub struct FoldedRule {
    pub test: RuleTest,
    /// Where the rule is written, for the log.
    pub location: Option<SourceLocation>,
}

impl FoldedRule {
    fn of(rule: &AccessRule, actor: &ActorFactsView<'_>) -> FoldedRule {
        FoldedRule { test: rule.test.folded(actor), location: Some(rule.location.clone()) }
    }

    /// A rule that nobody wrote allows what the type allows.
    fn of_field(rule: Option<&AccessRule>, actor: &ActorFactsView<'_>) -> FoldedRule {
        match rule {
            Some(rule) => FoldedRule::of(rule, actor),
            None => FoldedRule { test: RuleTest::Constant(true), location: None },
        }
    }

    pub fn verdict(&self) -> AccessVerdict {
        match self.test.as_constant() {
            Some(false) => AccessVerdict::No,
            Some(true) => AccessVerdict::Yes,
            None => AccessVerdict::Some,
        }
    }
}

impl ActorRules {
    pub(crate) fn new(model: &Model, access: &AccessModel, identity: Option<&ActorIdentity>) -> ActorRules {
        let facts = ActorFactsView { identity, model };
        let types = model.records.iter().zip(&access.types).map(|(record, rules)| {
            let field = |(field, rules): (&Field, &FieldAccess)| FieldView {
                read: FoldedRule::of_field(rules.read.as_ref(), &facts),
                create: FoldedRule::of_field(rules.create.as_ref(), &facts),
                update: FoldedRule::of_field(rules.update.as_ref(), &facts),
                target: field.kind.relation().map(Relation::target),
            };
            let TypeAccess { read, create, update, delete, .. } = rules;
            TypeView {
                read: FoldedRule::of(read, &facts),
                create: FoldedRule::of(create, &facts),
                update: FoldedRule::of(update, &facts),
                update_to: FoldedRule::of(rules.rule(AccessAction::UpdateTo), &facts),
                delete: FoldedRule::of(delete, &facts),
                fields: record.fields.iter().zip(&rules.fields).map(field).collect(),
            }
        });
        // Of operations, plain lists and texts, too: pages that lead to them are kept.
        let own: Vec<RuleTest> = access.actor_rules().map(|rule| rule.test.folded(&facts)).collect();
        let mut rules = ActorRules::of_types(types.collect(), &own);
        // What `me` answers is nobody else's.
        let has_own_account = model.root_fields.iter().any(|root| root.name == "me");
        if let Some(account) =
            identity.and_then(|identity| identity.account.as_ref()).filter(|_| has_own_account)
        {
            let own = format!("{:032x} {}", rules.class, account.id);
            rules.class = xxhash_rust::xxh3::xxh3_128(own.as_bytes());
        }
        ActorRules { needs_time: names_time(model, access), ..rules }
    }

    /// The same, but records of this type may be created, whatever its rule says. Those of its fields hold.
    pub(super) fn with_create_allowed(mut self, record: RecordTypeId) -> ActorRules {
        self.types[record.0].create = FoldedRule { test: RuleTest::Constant(true), location: None };
        self.is_sign_up = true;
        self.class = xxhash_rust::xxh3::xxh3_128(format!("{:032x} and accounts", self.class).as_bytes());
        self
    }

    /// `own` are the rules that are about the actor alone.
    pub(super) fn of_types(types: Vec<TypeView>, own: &[RuleTest]) -> ActorRules {
        let shapes: Vec<RuleTest> =
            types.iter().flat_map(TypeView::tests).map(RuleTest::without_values).collect();
        let shape = xxhash_rust::xxh3::xxh3_128(format!("{shapes:?}").as_bytes());
        let mut values = Vec::new();
        types.iter().flat_map(TypeView::tests).chain(own).for_each(|test| rule_values(test, &mut values));
        let depends_on_time = values.into_iter().any(RuleValue::is_time);
        let class = class_of(&types, own);
        let is_never = |rule: &FoldedRule| rule.verdict() == AccessVerdict::No;
        let mut readings = types.iter().flat_map(|of_type| {
            std::iter::once(&of_type.read).chain(of_type.fields.iter().map(|field| &field.read))
        });
        let hides_fields = readings.any(is_never);
        ActorRules {
            types,
            shape,
            class,
            hides_fields,
            depends_on_time,
            needs_time: depends_on_time,
            is_sign_up: false,
        }
    }
}

impl AccessView {
    /// `zone` is that of the application: it says which day it is, and what clocks show.
    pub(crate) fn new(
        identity: Option<Arc<ActorIdentity>>,
        rules: Arc<ActorRules>,
        now: Timestamp,
        zone: &ZoneOffsets,
    ) -> AccessView {
        let today = StoredValue::Text(zone.day(now));
        // What depends on the time is nobody else's answer, and not for later either.
        let time = if rules.depends_on_time { now.as_nanosecond() as u128 } else { 0 };
        let class = rules.class ^ time;
        let local_now = StoredValue::Text(zone.clock_time(now));
        AccessView { identity, rules, class, now: StoredValue::Text(format_timestamp(now)), local_now, today }
    }

    /// False if the view is the same at any time.
    pub(super) fn needs_time(&self) -> bool {
        self.rules.needs_time
    }

    pub fn of_type(&self, record: RecordTypeId) -> &TypeView {
        &self.rules.types[record.0]
    }

    /// Whether the actor may do this with records of the type.
    pub fn verdict(&self, action: AccessAction, record: RecordTypeId) -> AccessVerdict {
        self.of_type(record).rule(action).verdict()
    }

    /// Whether the actor may read a field of records that they may read. A reference to records that nobody may read is
    /// not read either.
    pub fn field_verdict(&self, record: RecordTypeId, field: FieldId) -> AccessVerdict {
        let view = &self.of_type(record).fields[field.0];
        let target =
            view.target.map_or(AccessVerdict::Yes, |target| self.verdict(AccessAction::Read, target));
        match (view.read.verdict(), target) {
            (AccessVerdict::No, _) | (_, AccessVerdict::No) => AccessVerdict::No,
            (AccessVerdict::Yes, AccessVerdict::Yes) => AccessVerdict::Yes,
            (AccessVerdict::Some, _) | (_, AccessVerdict::Some) => AccessVerdict::Some,
        }
    }

    /// False if there is no field that the actor never sees, of any type.
    pub fn hides_fields(&self) -> bool {
        self.rules.hides_fields
    }

    /// Whether the actor never sees the field.
    pub fn hides_field(&self, record: RecordTypeId, field: FieldId) -> bool {
        self.field_verdict(record, field) == AccessVerdict::No
    }

    /// Whether the actor never sees the value at the end of a path, because something on the way is hidden.
    pub fn hides_path(&self, model: &Model, record: RecordTypeId, path: &ReferencePath) -> bool {
        self.hidden_on_path(model, record, path).is_some()
    }

    /// The first field on a path that the actor never sees, and its type.
    pub fn hidden_on_path(
        &self,
        model: &Model,
        record: RecordTypeId,
        path: &ReferencePath,
    ) -> Option<(RecordTypeId, FieldId)> {
        let mut owner = record;
        for reference in &path.references {
            if self.hides_field(owner, *reference) {
                return Some((owner, *reference));
            }
            let relation = model.record(owner).field(*reference).kind.relation();
            owner = relation.map_or(owner, Relation::target);
        }
        self.hides_field(owner, path.value.field).then_some((owner, path.value.field))
    }

    /// The rule that keeps the actor from reading or setting a field, for the log.
    pub fn field_refusal(
        &self,
        action: AccessAction,
        record: RecordTypeId,
        field: FieldId,
    ) -> Option<Box<SourceLocation>> {
        let view = &self.of_type(record).fields[field.0];
        let rule = match action {
            AccessAction::Read if view.read.verdict() == AccessVerdict::No => &view.read,
            AccessAction::Read => &self.of_type(view.target?).read,
            AccessAction::Create => &view.create,
            AccessAction::Update | AccessAction::UpdateTo | AccessAction::Delete => &view.update,
        };
        rule.location.clone().map(Box::new)
    }

    /// Whether the actor may set the field of some record.
    pub fn may_set(&self, action: AccessAction, record: RecordTypeId, field: FieldId) -> bool {
        let view = &self.of_type(record).fields[field.0];
        let rule = match action {
            AccessAction::Create => &view.create,
            AccessAction::Update | AccessAction::UpdateTo => &view.update,
            AccessAction::Read | AccessAction::Delete => return false,
        };
        rule.verdict() != AccessVerdict::No
    }

    /// Refuses what the actor may do with no record of the type.
    pub fn require(&self, action: AccessAction, record: RecordTypeId) -> Result<()> {
        let rule = self.of_type(record).rule(action);
        match rule.verdict() {
            AccessVerdict::No => Err(self.refusal(Some(rule))),
            AccessVerdict::Some | AccessVerdict::Yes => Ok(()),
        }
    }

    /// Refuses unless a rule about the actor alone holds; what has no rule is refused.
    pub fn require_rule(&self, model: &Model, rule: Option<&AccessRule>) -> Result<()> {
        let facts = ActorFactsView { identity: self.identity.as_deref(), model };
        let facts = KnownActor { facts, now: &self.now, local_now: &self.local_now, today: &self.today };
        match rule.map(|rule| rule.test.verdict(&facts)) {
            Some(AccessVerdict::Yes) => Ok(()),
            Some(AccessVerdict::No | AccessVerdict::Some) | None => {
                let location = rule.map(|rule| rule.location.clone());
                Err(self.refusal_at(location))
            }
        }
    }

    /// The error for what the actor may never do; without a rule, because none allows it.
    pub fn refusal(&self, rule: Option<&FoldedRule>) -> Error {
        self.refusal_at(rule.and_then(|rule| rule.location.clone()))
    }

    fn refusal_at(&self, location: Option<SourceLocation>) -> Error {
        let rule = location.map(Box::new);
        match &self.identity {
            None => Error::Unauthenticated { rule },
            Some(_) => Error::Forbidden { violations: Vec::new(), rule },
        }
    }
}

/// Whether rules or defaults of the schema name `now` or `today`.
fn names_time(model: &Model, access: &AccessModel) -> bool {
    let mut is_named = false;
    let rules = access.type_rules().chain(access.actor_rules());
    rules.for_each(|rule| rule.test.visit_values(&mut |value| is_named |= value.is_time()));
    let mut fields = model.records.iter().flat_map(|record| &record.fields);
    is_named || fields.any(|field| field.default_from.as_ref().is_some_and(RuleValue::is_time))
}

fn class_of(types: &[TypeView], own: &[RuleTest]) -> u128 {
    let mut hash = RuleHash(Xxh3::new());
    for record in types {
        let fields = record.fields.iter().flat_map(|field| [&field.read, &field.create, &field.update]);
        let of_type = AccessAction::ALL.into_iter().map(|action| record.rule(action));
        for rule in of_type.chain(fields) {
            hash.add(&rule.test);
        }
    }
    own.iter().for_each(|test| hash.add(test));
    hash.0.digest128()
}

/// Hashes tests by how they are written for debugging, which tells them all apart.
struct RuleHash(Xxh3);

impl RuleHash {
    fn add(&mut self, test: &RuleTest) {
        match test.as_constant() {
            Some(value) => self.0.update(if value { b"+" } else { b"-" }),
            None => write!(self, "{test:?};").expect("hashing cannot fail"),
        }
    }
}

impl fmt::Write for RuleHash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl TypeView {
    pub fn rule(&self, action: AccessAction) -> &FoldedRule {
        match action {
            AccessAction::Read => &self.read,
            AccessAction::Create => &self.create,
            AccessAction::Update => &self.update,
            AccessAction::UpdateTo => &self.update_to,
            AccessAction::Delete => &self.delete,
        }
    }

    /// Whether what the actor reads of a record depends on one of these fields, besides their own values.
    pub fn reading_looks_at(&self, is_one_of: impl Fn(FieldId) -> bool) -> bool {
        let mut rules = std::iter::once(&self.read).chain(self.fields.iter().map(|field| &field.read));
        rules.any(|rule| rule.test.looks_at(&is_one_of))
    }

    fn tests(&self) -> impl Iterator<Item = &RuleTest> {
        let of_type = [&self.read, &self.create, &self.update, &self.update_to, &self.delete];
        let of_fields = self.fields.iter().flat_map(|field| [&field.read, &field.create, &field.update]);
        of_type.into_iter().chain(of_fields).map(|rule| &rule.test)
    }
}

/// The values in a rule that are not of the record, in the order in which they are written.
pub fn rule_values<'t>(test: &'t RuleTest, into: &mut Vec<&'t RuleValue>) {
    let mut add = |value: &'t RuleValue| match value {
        RuleValue::Field { .. } | RuleValue::Old(_) => {}
        RuleValue::Literal(_)
        | RuleValue::Actor { .. }
        | RuleValue::Claim(_)
        | RuleValue::Now
        | RuleValue::LocalNow
        | RuleValue::Today => into.push(value),
    };
    match test {
        RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => {}
        RuleTest::All(tests) | RuleTest::Any(tests) => {
            tests.iter().for_each(|test| rule_values(test, into));
        }
        RuleTest::Not(inner) => rule_values(inner, into),
        RuleTest::Related { test, .. } => rule_values(test, into),
        RuleTest::Compare { left, right, .. } => [left, right].into_iter().for_each(add),
        RuleTest::IsAbsent(value) | RuleTest::IsTrue(value) => add(value),
        RuleTest::OneOf { value, choices } => std::iter::once(value).chain(choices).for_each(add),
        RuleTest::HasItem { list, item } => [list, item].into_iter().for_each(add),
    }
}
