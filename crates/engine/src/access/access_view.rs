//! [`AccessView`]: the rules of a schema as they are for one actor.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3;

use trefoil_model::access::{
    AccessAction, AccessModel, AccessRule, AccessVerdict, FieldAccess, RuleTest, TypeAccess,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Model, RecordTypeId, Relation, SourceLocation};

use crate::access::actor::{Actor, ActorAtTime};
use crate::operation::ReferencePath;

/// The rules for one actor at one time: what is about the actor alone is decided, the rest is about records.
#[derive(Debug)]
pub struct AccessView {
    pub actor: Actor,
    /// By [`RecordTypeId`].
    pub types: Vec<TypeView>,
    /// A hash of all that the rules used of the actor: actors of one class see the same and may do the same.
    pub class: u128,
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
    fn of(rule: &AccessRule, actor: &ActorAtTime<'_>) -> FoldedRule {
        FoldedRule { test: rule.test.folded(actor), location: Some(rule.location.clone()) }
    }

    /// A rule that nobody wrote allows what the type allows.
    fn of_field(rule: Option<&AccessRule>, actor: &ActorAtTime<'_>) -> FoldedRule {
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

impl AccessView {
    pub fn new(model: &Model, access: &AccessModel, actor: Actor, now: Timestamp) -> AccessView {
        let at_time = ActorAtTime { actor: &actor, now };
        let types = model.records.iter().zip(&access.types).map(|(record, rules)| {
            let field = |(field, rules): (&trefoil_model::Field, &FieldAccess)| FieldView {
                read: FoldedRule::of_field(rules.read.as_ref(), &at_time),
                create: FoldedRule::of_field(rules.create.as_ref(), &at_time),
                update: FoldedRule::of_field(rules.update.as_ref(), &at_time),
                target: field.kind.relation().map(Relation::target),
            };
            let TypeAccess { read, create, update, delete, .. } = rules;
            TypeView {
                read: FoldedRule::of(read, &at_time),
                create: FoldedRule::of(create, &at_time),
                update: FoldedRule::of(update, &at_time),
                update_to: FoldedRule::of(rules.rule(AccessAction::UpdateTo), &at_time),
                delete: FoldedRule::of(delete, &at_time),
                fields: record.fields.iter().zip(&rules.fields).map(field).collect(),
            }
        });
        let types: Vec<TypeView> = types.collect();
        let class = class_of(&types);
        AccessView { types, class, actor }
    }

    pub fn of_type(&self, record: RecordTypeId) -> &TypeView {
        &self.types[record.0]
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

    /// Whether the actor never sees the field.
    pub fn hides_field(&self, record: RecordTypeId, field: FieldId) -> bool {
        self.field_verdict(record, field) == AccessVerdict::No
    }

    /// Whether the actor never sees the value at the end of a path, because something on the way is hidden.
    pub fn hides_path(&self, model: &Model, record: RecordTypeId, path: &ReferencePath) -> bool {
        let mut owner = record;
        for reference in &path.references {
            if self.hides_field(owner, *reference) {
                return true;
            }
            let relation = model.record(owner).field(*reference).kind.relation();
            owner = relation.map_or(owner, Relation::target);
        }
        self.hides_field(owner, path.value.field)
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

    /// The error for what the actor may never do; without a rule, because none allows it.
    pub fn refusal(&self, rule: Option<&FoldedRule>) -> Error {
        let location = rule.and_then(|rule| rule.location.clone());
        match &self.actor.identity {
            None => Error::Unauthenticated,
            Some(_) => Error::Forbidden { violations: Vec::new(), rule: location.map(Box::new) },
        }
    }
}

fn class_of(types: &[TypeView]) -> u128 {
    let mut hash = RuleHash(Xxh3::new());
    for record in types {
        let fields = record.fields.iter().flat_map(|field| [&field.read, &field.create, &field.update]);
        let of_type = AccessAction::ALL.into_iter().map(|action| record.rule(action));
        for rule in of_type.chain(fields) {
            hash.add(&rule.test);
        }
    }
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
}
