//! Replaces global ids in arguments by plain keys, for the record itself and for its references.

use trefoil_model::error::Violation;
use trefoil_model::{FieldId, Model, RecordType, Value};

use crate::global_id;
use crate::operation::Condition;

/// Replaces the global ids in the values of fields.
pub(super) fn replace_in_fields<'v>(
    model: &Model,
    record: &RecordType,
    values: impl Iterator<Item = (FieldId, &'v mut Value)>,
) -> Result<(), Vec<Violation>> {
    for (field, value) in values {
        replace_in_field(model, record, field, value)?;
    }
    Ok(())
}

/// Replaces the global ids that conditions compare with.
pub(super) fn replace_in_conditions(
    model: &Model,
    record: &RecordType,
    conditions: &mut [Condition],
) -> Result<(), Vec<Violation>> {
    for condition in conditions {
        match condition {
            Condition::Compare(comparison) if comparison.path.members.is_empty() => {
                replace_in_field(model, record, comparison.path.field, &mut comparison.operand)?;
            }
            Condition::Compare(_) | Condition::HasId(_) | Condition::LinkedFrom { .. } => {}
            Condition::All(inner) | Condition::Any(inner) => replace_in_conditions(model, record, inner)?,
            Condition::Not(inner) => replace_in_conditions(model, record, std::slice::from_mut(inner))?,
            Condition::Related { relation, conditions } => {
                let relation = record.field(*relation).kind.relation();
                if let Some(target) = relation.map(|relation| model.record(relation.target())) {
                    replace_in_conditions(model, target, conditions)?;
                }
            }
        }
    }
    Ok(())
}

fn replace_in_field(
    model: &Model,
    record: &RecordType,
    field: FieldId,
    value: &mut Value,
) -> Result<(), Vec<Violation>> {
    let field = record.field(field);
    let target = field.kind.relation().map(|relation| model.record(relation.target()));
    if let Some(target) = target.or_else(|| field.kind.is_id().then_some(record)) {
        *value = global_id::plain_keys(target, &field.input_name, std::mem::replace(value, Value::Null))?;
    }
    Ok(())
}
