//! Plain keys in place of the global ids that arguments may give, for records and for those that they refer to.

use trefoil_model::error::Violation;
use trefoil_model::{FieldId, Model, RecordType, Value};

use crate::global_id;

/// Replaces the global ids in the values of fields.
pub(super) fn replace_global_ids<'v>(
    model: &Model,
    record: &RecordType,
    values: impl Iterator<Item = (FieldId, &'v mut Value)>,
) -> Result<(), Vec<Violation>> {
    for (field, value) in values {
        let field = record.field(field);
        let target = field.kind.relation().map(|relation| model.record(relation.target()));
        if let Some(target) = target.or_else(|| field.kind.is_id().then_some(record)) {
            *value = global_id::plain_keys(target, &field.input_name, std::mem::replace(value, Value::Null))?;
        }
    }
    Ok(())
}
