//! The values in rules as the parameters of a statement.

use trefoil_engine::{AccessView, FoldedRule, rule_values};
use trefoil_model::access::{RuleTest, RuleValue};
use trefoil_model::{FieldId, RecordTypeId, StoredValue};

use crate::statements::sql_parameter::SqlParameter;

/// A rule that a statement asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleName {
    Read(RecordTypeId),
    Create(RecordTypeId),
    Update(RecordTypeId),
    UpdateTo(RecordTypeId),
    Delete(RecordTypeId),
    ReadField(RecordTypeId, FieldId),
    CreateField(RecordTypeId, FieldId),
    UpdateField(RecordTypeId, FieldId),
}

impl RuleName {
    pub fn of(self, view: &AccessView) -> &FoldedRule {
        let field = |record, field: FieldId| &view.of_type(record).fields[field.0];
        match self {
            RuleName::Read(record) => &view.of_type(record).read,
            RuleName::Create(record) => &view.of_type(record).create,
            RuleName::Update(record) => &view.of_type(record).update,
            RuleName::UpdateTo(record) => &view.of_type(record).update_to,
            RuleName::Delete(record) => &view.of_type(record).delete,
            RuleName::ReadField(record, id) => &field(record, id).read,
            RuleName::CreateField(record, id) => &field(record, id).create,
            RuleName::UpdateField(record, id) => &field(record, id).update,
        }
    }
}

impl RuleName {
    /// Appends the values of the rule for an actor, in the order of its parameters.
    pub fn add_values<'a>(self, view: &'a AccessView, into: &mut Vec<SqlParameter<'a>>) {
        let values = test_values(&self.of(view).test, view);
        into.extend(values.map(|value| SqlParameter::Cell(value.as_cell())));
    }
}

/// The values of a test, in the order of its parameters.
pub fn test_values<'a>(test: &'a RuleTest, view: &'a AccessView) -> impl Iterator<Item = &'a StoredValue> {
    let mut values = Vec::new();
    rule_values(test, &mut values);
    values.into_iter().map(|value| match value {
        RuleValue::Literal(value) => value,
        RuleValue::Now => &view.now,
        RuleValue::LocalNow => &view.local_now,
        RuleValue::Today => &view.today,
        // Fields are columns; what is about the actor or the record before a change was folded before.
        RuleValue::Field { .. } | RuleValue::Actor { .. } | RuleValue::Claim(_) | RuleValue::Old(_) => {
            &StoredValue::Null
        }
    })
}
