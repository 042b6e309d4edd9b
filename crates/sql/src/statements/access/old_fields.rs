//! A record before a change, for rules that compare it with what it would be.

use trefoil_model::access::{ActorFact, ActorFacts, RuleTest, RuleValue, TextComparison};
use trefoil_model::{FieldId, Model, RecordTypeId, StoredValue};

/// A record before a change, for the rest of a rule that was folded for its actor.
pub struct OldFields<'a> {
    pub model: &'a Model,
    pub record: RecordTypeId,
    pub values: &'a [(FieldId, StoredValue)],
}

impl ActorFacts for OldFields<'_> {
    fn is_signed_in(&self) -> bool {
        false
    }

    fn has_role(&self, _: &str) -> bool {
        false
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        let RuleValue::Old(field) = value else { return ActorFact::Unknown };
        match self.values.iter().find(|(known, _)| known == field) {
            Some((_, StoredValue::Null)) | None => ActorFact::Absent,
            Some((_, value)) => ActorFact::Known(value.clone()),
        }
    }

    fn text_comparison(&self, value: &RuleValue) -> TextComparison {
        match value {
            RuleValue::Old(field) => TextComparison::for_field(self.model.record(self.record).field(*field)),
            RuleValue::Actor { .. }
            | RuleValue::Claim(_)
            | RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Literal(_)
            | RuleValue::Field { .. } => TextComparison::Exact,
        }
    }
}

/// The fields whose value before a change a rule asks.
pub fn old_fields(test: &RuleTest) -> Vec<FieldId> {
    let mut fields: Vec<FieldId> = Vec::new();
    test.visit_values(&mut |value| {
        if let RuleValue::Old(field) = value
            && !fields.contains(field)
        {
            fields.push(*field);
        }
    });
    fields
}
