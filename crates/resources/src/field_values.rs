//! The fields of a record on their way in: names as bodies and forms give them, found in the schema.

use trefoil_model::error::Violation;
use trefoil_model::naming::names::{display_label, nearest_name};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, FieldKind, RecordType, Value, ValueSource};

use crate::parsed_body::RecordObject;

pub type FieldValues = Vec<(FieldId, Value)>;

/// What a body is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    Create,
    /// The whole record with this id, which may have come from here as it is: what only the server fills is ignored.
    Replace(i64),
    Patch(i64),
}

/// The fields that are known, and what is wrong with the names; values are the engine's to judge.
pub fn resolve_object(
    record: &RecordType,
    object: RecordObject,
    deed: WriteMode,
) -> (FieldValues, Vec<Violation>) {
    let mut fields = FieldValues::with_capacity(object.len());
    let mut violations = Vec::new();
    for (name, value) in object {
        match resolve_name(record, &name, &value, deed) {
            Ok(Some(field)) => fields.push((field, value)),
            Ok(None) => {}
            Err(violation) => violations.push(violation),
        }
        if violations.len() == coerce::MAX_VIOLATIONS {
            break;
        }
    }
    (fields, violations)
}

fn resolve_name(
    record: &RecordType,
    name: &str,
    value: &Value,
    deed: WriteMode,
) -> Result<Option<FieldId>, Violation> {
    let Some(id) = record.find_input_field(name) else {
        let known = record.fields.iter().filter(|field| field.is_writable());
        let near = nearest_name(name, known.map(|field| field.input_name.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("{} has no field `{name}`{hint}", record.name);
        return Err(Violation::new(name, "UNKNOWN", message));
    };
    let field = record.field(id);
    let read_only = |why: &str| {
        Err(Violation::new(&field.input_name, "READ_ONLY", format!("{} {why}", display_label(&field.name))))
    };
    match (&field.kind, deed) {
        (FieldKind::Id, WriteMode::Create) => read_only("is given by the store and cannot be set"),
        (FieldKind::Id, WriteMode::Replace(own) | WriteMode::Patch(own)) if value.as_i64() == Some(own) => {
            Ok(None)
        }
        (FieldKind::Id, WriteMode::Replace(_) | WriteMode::Patch(_)) => read_only("cannot be changed"),
        (FieldKind::Inverse { .. } | FieldKind::Unstored, _) => read_only("cannot be set"),
        (
            FieldKind::Scalar(_)
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Reference { .. }
            | FieldKind::Link { .. },
            deed,
        ) => {
            let is_ours = field.value_source != ValueSource::Client;
            Ok(if is_ours && matches!(deed, WriteMode::Replace(_)) { None } else { Some(id) })
        }
    }
}
