//! The fields that rules look at or protect: no value is assumed for them.

use std::collections::BTreeSet;

use crate::access::access_rule::{RuleTest, RuleValue};
use crate::{FieldId, Model, RecordType, RecordTypeId, Relation};

impl Model {
    /// Whether the answer of a rule may depend on the field, or a rule says who may write it. Asked first when operations
    /// are bound, after the rules of the manifest have been added.
    pub fn is_ruled(&self, record: RecordTypeId, field: FieldId) -> bool {
        self.ruled_fields.get_or_init(|| self.collect_ruled_fields()).contains(&(record, field))
    }

    fn collect_ruled_fields(&self) -> BTreeSet<(RecordTypeId, FieldId)> {
        let mut ruled = RuledFields { records: &self.records, found: BTreeSet::new() };
        let Some(access) = &self.access else { return ruled.found };
        for (position, rules) in access.types.iter().enumerate() {
            let record = RecordTypeId(position);
            for rule in rules.rules() {
                ruled.add_test(&rule.test, &mut vec![record]);
            }
            for (field, own) in rules.fields.iter().enumerate() {
                if own.create.iter().chain(&own.update).any(|rule| !rule.test.is_always()) {
                    ruled.found.insert((record, FieldId(field)));
                }
            }
        }
        if let Some(account) = &access.account {
            ruled.found.extend(account.roles.map(|roles| (account.record, roles)));
            for test in [&account.usable, &account.manage] {
                ruled.add_test(test, &mut vec![account.record]);
            }
            for path in access.actor_paths() {
                ruled.add_path(account.record, &path.references, path.field);
            }
        }
        ruled.found
    }
}

struct RuledFields<'m> {
    records: &'m [RecordType],
    found: BTreeSet<(RecordTypeId, FieldId)>,
}

impl RuledFields<'_> {
    /// `variables` are the types of the variables of the test.
    fn add_test(&mut self, test: &RuleTest, variables: &mut Vec<RecordTypeId>) {
        match test {
            RuleTest::All(tests) | RuleTest::Any(tests) => {
                tests.iter().for_each(|test| self.add_test(test, variables));
            }
            RuleTest::Not(inner) => self.add_test(inner, variables),
            RuleTest::Related { owner, relation, test } => {
                let start = variables[owner.variable];
                if let Some(target) = self.add_path(start, &owner.references, *relation) {
                    variables.push(target);
                    self.add_test(test, variables);
                    variables.pop();
                }
            }
            RuleTest::Compare { .. }
            | RuleTest::IsAbsent(_)
            | RuleTest::IsTrue(_)
            | RuleTest::OneOf { .. }
            | RuleTest::HasItem { .. } => test.visit_values(&mut |value| self.add_value(value, variables)),
            RuleTest::Constant(_) | RuleTest::SignedIn | RuleTest::HasRole(_) => {}
        }
    }

    fn add_value(&mut self, value: &RuleValue, variables: &[RecordTypeId]) {
        match value {
            RuleValue::Field { record, field, .. } => {
                self.add_path(variables[record.variable], &record.references, *field);
            }
            RuleValue::Old(field) => {
                self.found.insert((variables[0], *field));
            }
            // The paths of the actor are added for all rules together.
            RuleValue::Actor { .. }
            | RuleValue::Literal(_)
            | RuleValue::Claim(_)
            | RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today => {}
        }
    }

    /// Adds the references of a path and the field at its end; the type that this leads to, if it is a relation.
    fn add_path(
        &mut self,
        start: RecordTypeId,
        references: &[FieldId],
        last: FieldId,
    ) -> Option<RecordTypeId> {
        let mut at = Some(start);
        for field in references.iter().chain([&last]) {
            let record = at?;
            self.found.insert((record, *field));
            at = self.records[record.0].field(*field).kind.relation().map(Relation::target);
        }
        at
    }
}
