//! The conditions that an object of operators says about a field.

use trefoil_model::error::Violation;
use trefoil_model::{ComparisonOp, FieldId, FilterOperator, TextPart, Value};

use crate::arguments::conditions::{ConditionOwner, ConditionParser};
use crate::arguments::numeric_strings::number_for_field;
use crate::arguments::operator_members::{OperatorMember, any_case_operator, ignores_case};
use crate::operation::{Condition, FieldComparison};

impl<'m> ConditionParser<'m> {
    /// `{ gte: 3, lt: 5 }`: the value of the field meets all of them. `None` without any: it says nothing.
    pub(super) fn parse_operators(
        &mut self,
        owner: &ConditionOwner<'m>,
        field: FieldId,
        members: Vec<(String, Value)>,
        any_case: bool,
    ) -> Result<Option<Condition>, Vec<Violation>> {
        let definition = owner.field(field);
        let any_case = any_case || ignores_case(&members);
        let mut conditions = Vec::with_capacity(members.len());
        let mut violations = Vec::new();
        for (name, value) in members {
            let member = OperatorMember::for_field(&name, definition, &value);
            let condition = match (member, value) {
                (None, _) => {
                    let message = format!("`{}` cannot be compared by `{name}`", definition.name);
                    Err(self.violation("UNKNOWN_FIELD", message))
                }
                (Some(OperatorMember::CaseMode), _) => continue,
                (Some(OperatorMember::Not), Value::Object(inner)) => {
                    let parse = |parser: &mut Self| parser.parse_operators(owner, field, inner, any_case);
                    self.parse_inside(&name, parse).map(|inner| inner.map(Condition::negated))
                }
                (Some(OperatorMember::Not), value) => {
                    let operator = FilterOperator::Compare(ComparisonOp::Ne);
                    self.compare(owner, field, operator, (&name, value), any_case).map(Some)
                }
                (Some(OperatorMember::Compare(operator)), value) => {
                    self.compare(owner, field, operator, (&name, value), any_case).map(Some)
                }
            };
            match condition {
                Ok(condition) => conditions.extend(condition),
                Err(found) => violations.extend(found),
            }
        }
        if !violations.is_empty() {
            return Err(violations);
        }
        Ok(match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(Condition::All(conditions)),
        })
    }

    /// A comparison of a field, perhaps without the case of letters.
    fn compare(
        &self,
        owner: &ConditionOwner<'m>,
        field: FieldId,
        operator: FilterOperator,
        (name, value): (&str, Value),
        any_case: bool,
    ) -> Result<Condition, Vec<Violation>> {
        let definition = owner.field(field);
        let comparison = |operator: FilterOperator, value: Value| {
            let (path, operand) = (owner.value_path(field), number_for_field(definition, value));
            Condition::Compare(FieldComparison { path, operator, operand, place: self.place(name) })
        };
        if !any_case || value.is_null() {
            return Ok(comparison(operator, value));
        }
        let any_of = |values: Vec<Value>| {
            let equal = |value: Value| match value.is_null() {
                true => comparison(FilterOperator::EQUAL, value),
                false => comparison(any_case_operator(TextPart::Whole), value),
            };
            Condition::Any(values.into_iter().map(equal).collect())
        };
        match (operator, value) {
            (FilterOperator::EQUAL, value) => Ok(comparison(any_case_operator(TextPart::Whole), value)),
            (FilterOperator::Compare(ComparisonOp::Ne), value) => {
                Ok(comparison(any_case_operator(TextPart::Whole), value).negated())
            }
            (FilterOperator::In, Value::List(values)) => Ok(any_of(values)),
            (FilterOperator::NotIn, Value::List(values)) => Ok(any_of(values).negated()),
            (FilterOperator::Text(text), value) => Ok(comparison(any_case_operator(text.part), value)),
            (FilterOperator::IsNull, value) => Ok(comparison(FilterOperator::IsNull, value)),
            (operator, _) => {
                let message = format!("`{}` cannot be combined with `mode: insensitive`", operator.name());
                Err(self.violation("OPERATOR", message))
            }
        }
    }
}
