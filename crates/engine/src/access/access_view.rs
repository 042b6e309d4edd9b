//! [`AccessView`]: the rules of a schema as they are for one actor.

use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::{
    AccessAction, AccessModel, AccessRule, AccessVerdict, FieldAccess, RuleTest, TypeAccess,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Model, RecordTypeId, Relation, SourceLocation, ZoneOffsets};

use crate::access::actor::{Actor, ActorAtTime};

/// The rules for one actor at one time: what is about the actor alone is decided, the rest is about records.
#[derive(Debug)]
pub struct AccessView {
    pub actor: Actor,
    now: Timestamp,
    zone: Arc<ZoneOffsets>,
    /// By [`RecordTypeId`].
    pub types: Vec<TypeView>,
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
    /// `zone` is that of the application: it says which day it is.
    pub fn new(
        model: &Model,
        access: &AccessModel,
        actor: Actor,
        now: Timestamp,
        zone: &Arc<ZoneOffsets>,
    ) -> AccessView {
        let at_time = ActorAtTime { actor: &actor, now, zone };
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
        let types = types.collect();
        AccessView { actor, now, zone: zone.clone(), types }
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

    /// Refuses unless a rule about the actor alone holds; what has no rule is refused.
    pub fn require(&self, rule: Option<&AccessRule>) -> Result<()> {
        let at_time = ActorAtTime { actor: &self.actor, now: self.now, zone: &self.zone };
        let folded = match rule {
            Some(rule) => FoldedRule::of(rule, &at_time),
            None => FoldedRule { test: RuleTest::Constant(false), location: None },
        };
        match folded.verdict() {
            AccessVerdict::Yes => Ok(()),
            AccessVerdict::No | AccessVerdict::Some => Err(self.refusal(&folded)),
        }
    }

    /// The error for what the actor may never do.
    pub fn refusal(&self, rule: &FoldedRule) -> Error {
        match &self.actor.identity {
            None => Error::Unauthenticated,
            Some(_) => Error::Forbidden { violations: Vec::new(), rule: rule.location.clone().map(Box::new) },
        }
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
