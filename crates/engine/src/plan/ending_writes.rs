//! What writes may make accounts unusable.

use std::collections::BTreeSet;

use trefoil_model::access::{RecordPath, RuleTest, RuleValue};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId, Relation, StoredValue};

use crate::plan::{NestedStep, Plan, PlanAction, StepAction};

/// What `if` of `@account` asks, and so which writes may make an account unusable.
#[derive(Debug)]
pub struct EndingWrites {
    pub account: RecordTypeId,
    pub usable: RuleTest,
    /// Fields of the account itself.
    fields: Vec<FieldId>,
    /// The types of the other records.
    others: Vec<RecordTypeId>,
    /// The types whose deletions count: the account's, the others, and those that they refer to, as a deletion may go on
    /// to what refers to the record. Empty if only the account's own values count.
    deletable: BTreeSet<RecordTypeId>,
}

/// The accounts that writes may have made unusable.
#[derive(Debug, Default, Clone, PartialEq)]
pub enum TouchedAccounts {
    #[default]
    Nobody,
    These(Vec<RecordId>),
    Anybody,
}

/// How many accounts are remembered by their ids.
const MAX_TOUCHED: usize = 100;

impl TouchedAccounts {
    pub fn add(&mut self, more: TouchedAccounts) {
        *self = match (std::mem::take(self), more) {
            (TouchedAccounts::Nobody, touched) | (touched, TouchedAccounts::Nobody) => touched,
            (TouchedAccounts::These(mut ids), TouchedAccounts::These(more)) => {
                ids.extend(more);
                // Beyond that, those with sessions are found faster than these are asked for one by one.
                if ids.len() > MAX_TOUCHED { TouchedAccounts::Anybody } else { TouchedAccounts::These(ids) }
            }
            (TouchedAccounts::Anybody, _) | (_, TouchedAccounts::Anybody) => TouchedAccounts::Anybody,
        };
    }

    fn anybody_if(may_be: bool) -> TouchedAccounts {
        if may_be { TouchedAccounts::Anybody } else { TouchedAccounts::Nobody }
    }
}

impl EndingWrites {
    /// `None` if there are no accounts, or all of them can always be used.
    pub fn of_model(model: &Model) -> Option<EndingWrites> {
        let account = model.access.as_ref()?.account.as_ref()?;
        if account.usable.as_constant().is_some() {
            return None;
        }
        let (record, usable) = (account.record, account.usable.clone());
        let (fields, others) = (Vec::new(), Vec::new());
        let mut writes = EndingWrites { account: record, usable, fields, others, deletable: BTreeSet::new() };
        writes.add_test(model, &account.usable, &mut vec![record]);
        let is_relation = |field: &FieldId| model.record(record).field(*field).kind.relation().is_some();
        if !writes.others.is_empty() || writes.fields.iter().any(is_relation) {
            writes.deletable = referred_types(model, writes.others.iter().copied().chain([record]));
        }
        Some(writes)
    }

    /// `variables` are the types of the records that the test is about.
    fn add_test(&mut self, model: &Model, test: &RuleTest, variables: &mut Vec<RecordTypeId>) {
        match test {
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                tests.iter().for_each(|test| self.add_test(model, test, variables));
            }
            RuleTest::Not(test) => self.add_test(model, test, variables),
            RuleTest::Related { owner, relation, test } => {
                let owner = self.add_path(model, owner, *relation, variables);
                let target = relation_target(model, owner, *relation);
                self.others.push(target);
                variables.push(target);
                self.add_test(model, test, variables);
                variables.pop();
            }
            RuleTest::Constant(_)
            | RuleTest::SignedIn
            | RuleTest::HasRole(_)
            | RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::OneOf { .. }
            | RuleTest::HasItem { .. } => test.visit_values(&mut |value| {
                if let RuleValue::Field { record, field, .. } = value {
                    self.add_path(model, record, *field, variables);
                }
            }),
        }
    }

    /// Adds a field at the end of a path and what the path leads through. The result is the type that has the field.
    fn add_path(
        &mut self,
        model: &Model,
        path: &RecordPath,
        field: FieldId,
        variables: &[RecordTypeId],
    ) -> RecordTypeId {
        let mut owner = variables.get(path.variable).copied().unwrap_or(self.account);
        if path.variable == 0 {
            self.fields.push(path.references.first().copied().unwrap_or(field));
        }
        for reference in &path.references {
            owner = relation_target(model, owner, *reference);
            self.others.push(owner);
        }
        owner
    }

    pub fn touched_by(&self, plan: &Plan) -> TouchedAccounts {
        let asks = |record: &RecordTypeId| self.others.contains(record);
        match &plan.action {
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_)
            | PlanAction::PlainList(_) => TouchedAccounts::Nobody,
            PlanAction::Create { record, .. } => TouchedAccounts::anybody_if(asks(record)),
            // All of one type.
            PlanAction::CreateMany(plans) => {
                plans.first().map_or(TouchedAccounts::Nobody, |plan| self.touched_by(plan))
            }
            PlanAction::Update { record, id, values, links, .. } => match asks(record) {
                true => TouchedAccounts::Anybody,
                false if self.sets(*record, values, links) => TouchedAccounts::These(vec![id.clone()]),
                false => TouchedAccounts::Nobody,
            },
            PlanAction::UpdateMany { record, values, links, .. }
            | PlanAction::Upsert { record, values, links, .. } => {
                TouchedAccounts::anybody_if(asks(record) || self.sets(*record, values, links))
            }
            PlanAction::Delete { record, .. } | PlanAction::DeleteMany { record, .. } => {
                TouchedAccounts::anybody_if(self.deletable.contains(record))
            }
            PlanAction::Nested(nested) => {
                let may_end = |step: &NestedStep| {
                    let is_deletion = matches!(step.action, StepAction::Delete { .. });
                    step.record == self.account
                        || asks(&step.record)
                        || is_deletion && self.deletable.contains(&step.record)
                };
                TouchedAccounts::anybody_if(nested.steps.iter().any(may_end))
            }
        }
    }

    /// Whether one of the account's fields that count is set.
    fn sets(
        &self,
        record: RecordTypeId,
        values: &[(FieldId, StoredValue)],
        links: &[(FieldId, Vec<RecordId>)],
    ) -> bool {
        let mut set = values.iter().map(|(field, _)| field).chain(links.iter().map(|(field, _)| field));
        record == self.account && set.any(|field| self.fields.contains(field))
    }
}

/// These types, and those that they refer to over any number of references.
fn referred_types(model: &Model, types: impl Iterator<Item = RecordTypeId>) -> BTreeSet<RecordTypeId> {
    let mut found: BTreeSet<RecordTypeId> = types.collect();
    let mut open: Vec<RecordTypeId> = found.iter().copied().collect();
    while let Some(record) = open.pop() {
        let kinds = model.record(record).fields.iter().map(|field| &field.kind);
        let targets = kinds.filter(|kind| kind.is_reference()).filter_map(|kind| kind.relation());
        open.extend(targets.map(Relation::target).filter(|target| found.insert(*target)));
    }
    found
}

fn relation_target(model: &Model, owner: RecordTypeId, relation: FieldId) -> RecordTypeId {
    model.record(owner).field(relation).kind.relation().map_or(owner, Relation::target)
}
