//! Resolves the field names of a body or form to the fields of a record type.

use trefoil_model::error::Violation;
use trefoil_model::naming::names::{display_label, nearest_name};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, RecordId, RecordType, Value, ValueSource};

use crate::parsed_body::RecordObject;

pub type FieldValues = Vec<(FieldId, Value)>;

/// The kind of write that a body is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode<'a> {
    Create,
    /// The whole record with this id. Fields that the server fills are ignored, since a client may send back what it read.
    Replace(&'a RecordId),
    Patch(&'a RecordId),
    /// The same change to many records.
    PatchMany,
}

/// The known fields, and violations for the other names. Values are checked by the engine.
pub fn resolve_object(
    record: &RecordType,
    object: RecordObject,
    mode: WriteMode<'_>,
) -> (FieldValues, Vec<Violation>) {
    let mut fields = FieldValues::with_capacity(object.len());
    let mut violations = Vec::new();
    for (name, value) in object {
        match resolve_name(record, &name, &value, mode) {
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
    mode: WriteMode<'_>,
) -> Result<Option<FieldId>, Violation> {
    let Some(id) = record.find_input_field(name) else {
        let writable = record.fields.iter().filter(|field| field.is_writable());
        let near = nearest_name(name, writable.map(|field| field.input_name.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("{} has no field `{name}`{hint}", record.name);
        return Err(Violation::new(name, "UNKNOWN", message));
    };
    let field = record.field(id);
    let read_only = |why: &str| {
        Err(Violation::new(&field.input_name, "READ_ONLY", format!("{} {why}", display_label(&field.name))))
    };
    if field.kind.has_input() {
        let server_fills = field.value_source != ValueSource::Client;
        return Ok(if server_fills && matches!(mode, WriteMode::Replace(_)) { None } else { Some(id) });
    }
    if !field.kind.is_id() {
        return read_only("cannot be set");
    }
    match mode {
        WriteMode::Create if record.accepts_given_key() => Ok(Some(id)),
        WriteMode::Create => read_only("is assigned by the store and cannot be set"),
        WriteMode::PatchMany => read_only("belongs to one record and cannot be changed"),
        WriteMode::Replace(own) | WriteMode::Patch(own) => {
            let is_own = RecordId::from_value(record.key_form(), value).as_ref() == Ok(own);
            if is_own { Ok(None) } else { read_only("cannot be changed") }
        }
    }
}
