//! The values in rules as the parameters of a statement.

use std::borrow::Cow;

use trefoil_engine::{AccessView, FoldedRule, rule_values};
use trefoil_model::access::RuleValue;
use trefoil_model::{CellValue, FieldId, RecordTypeId, StoredValue};

use crate::statements::sql_parameter::SqlParameter;

/// The kind of column that a parameter is compared with: a claim becomes such a value, or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterClass {
    Integer,
    Real,
    Boolean,
    Text,
}

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

/// The parameters of one rule in a statement.
#[derive(Debug, Clone)]
pub struct RuleParameters {
    pub rule: RuleName,
    pub classes: Vec<ParameterClass>,
}

impl RuleParameters {
    /// Appends the values for an actor. `old` are the fields of the record before a change.
    pub fn add_values<'a>(
        &self,
        view: &'a AccessView,
        old: &dyn Fn(FieldId) -> StoredValue,
        into: &mut Vec<SqlParameter<'a>>,
    ) {
        let mut values = Vec::with_capacity(self.classes.len());
        rule_values(&self.rule.of(view).test, &mut values);
        for (value, class) in values.into_iter().zip(&self.classes) {
            into.push(match rule_value(value, *class, view, old) {
                Cow::Borrowed(value) => SqlParameter::Cell(value.as_cell()),
                Cow::Owned(value) => SqlParameter::Owned(value),
            });
        }
    }
}

fn rule_value<'a>(
    value: &'a RuleValue,
    class: ParameterClass,
    view: &'a AccessView,
    old: &dyn Fn(FieldId) -> StoredValue,
) -> Cow<'a, StoredValue> {
    match value {
        RuleValue::Literal(value) => Cow::Borrowed(value),
        RuleValue::Now => Cow::Borrowed(&view.now),
        RuleValue::Today => Cow::Borrowed(&view.today),
        RuleValue::Claim(path) => {
            Cow::Owned(view.claim(path).map_or(StoredValue::Null, |claim| claim_as(claim, class)))
        }
        RuleValue::Old(field) => Cow::Owned(old(*field)),
        // Folded before, and never among the values.
        RuleValue::Actor { .. } | RuleValue::Field { .. } => Cow::Owned(StoredValue::Null),
    }
}

/// A claim as a value of a column; null if it is none.
fn claim_as(claim: StoredValue, class: ParameterClass) -> StoredValue {
    let text = match claim.as_cell() {
        CellValue::Null | CellValue::Unreadable => return StoredValue::Null,
        CellValue::Int(number) => number.to_string(),
        CellValue::Real(number) => number.to_string(),
        CellValue::Text(text) => text.to_owned(),
    };
    match class {
        ParameterClass::Integer => text.parse().map_or(StoredValue::Null, StoredValue::Int),
        ParameterClass::Real => text.parse().map_or(StoredValue::Null, StoredValue::Real),
        ParameterClass::Boolean => match text.as_str() {
            "1" | "true" => StoredValue::Int(1),
            "0" | "false" => StoredValue::Int(0),
            _ => StoredValue::Null,
        },
        ParameterClass::Text => StoredValue::Text(text),
    }
}
