//! The conditions in `where`: members such as `price_gte`.

use trefoil_model::error::Violation;
use trefoil_model::{FieldId, RecordType, Value};

use crate::arguments::digit_texts::number_for_field;
use crate::arguments::filter_operator::FilterOperator;
use crate::arguments::roles::{self, filter_field};
use crate::arguments::values::{expect_object, unknown_field_violation};
use crate::operation::{ComparisonOp, Condition};

pub(super) fn parse_conditions(
    record: &RecordType,
    name: &str,
    value: Value,
) -> Result<Vec<Condition>, Vec<Violation>> {
    expect_object(name, value)?
        .into_iter()
        .map(|(key, value)| parse_condition(record, name, &key, value))
        .collect()
}

/// Parses a member of `where`, such as `price_gte` and its value.
fn parse_condition(
    record: &RecordType,
    argument: &str,
    key: &str,
    value: Value,
) -> Result<Condition, Vec<Violation>> {
    let Some((field, operator)) = parse_condition_key(record, key) else {
        return Err(unknown_field_violation(record, argument, key, "filter by"));
    };
    match (operator, value) {
        (FilterOperator::Compare(op), value) => {
            Ok(Condition { field, op, value: number_for_field(record, field, value) })
        }
        (FilterOperator::IsNull, Value::Bool(is_null)) => Ok(null_condition(field, is_null)),
        (FilterOperator::IsNull, other) => {
            let message = format!("`{key}` must be true or false, not {}", other.type_noun());
            Err(vec![Violation::new(argument, "TYPE", message)])
        }
    }
}

/// The field and operator of a key: `price`, `price_gte`, `price_null`.
fn parse_condition_key(record: &RecordType, key: &str) -> Option<(FieldId, FilterOperator)> {
    if let Some(field) = filter_field(record, key) {
        return Some((field, FilterOperator::Compare(ComparisonOp::Eq)));
    }
    let exact = || {
        let (field, suffix) = key.rsplit_once('_')?;
        Some((filter_field(record, field)?, FilterOperator::from_name(suffix)?))
    };
    exact().or_else(|| roles::comparison(record, key).map(|(field, op)| (field, FilterOperator::Compare(op))))
}

pub fn null_condition(field: FieldId, is_null: bool) -> Condition {
    Condition { field, op: if is_null { ComparisonOp::Eq } else { ComparisonOp::Ne }, value: Value::Null }
}

/// The message for an unknown member of `where`, `None` if it is known.
pub(crate) fn unknown_condition_message(record: &RecordType, key: &str) -> Option<String> {
    if parse_condition_key(record, key).is_some() {
        return None;
    }
    let violations = unknown_field_violation(record, "where", key, "filter by");
    violations.into_iter().next().map(|violation| violation.message)
}
