//! The fields of a record on their way in: names as bodies and forms give them, found in the schema.

use crate::parsed_body::Object;
use trefoil_model::error::Violation;
use trefoil_model::naming::names::{label, nearest};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, FilledBy, Kind, RecordType, Value};

pub type Fields = Vec<(FieldId, Value)>;

/// What a body is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Create,
    /// The whole record with this id, which may have come from here as it is: what only the server fills is ignored.
    Replace(i64),
    Change(i64),
}

/// The fields that are known, and what is wrong with the names; values are the engine's to judge.
pub fn of_object(record: &RecordType, object: Object, deed: Deed) -> (Fields, Vec<Violation>) {
    let mut fields = Fields::with_capacity(object.len());
    let mut violations = Vec::new();
    for (name, value) in object {
        match of_name(record, &name, &value, deed) {
            Ok(Some(field)) => fields.push((field, value)),
            Ok(None) => {}
            Err(violation) => violations.push(violation),
        }
        if violations.len() == coerce::MOST {
            break;
        }
    }
    (fields, violations)
}

fn of_name(record: &RecordType, name: &str, value: &Value, deed: Deed) -> Result<Option<FieldId>, Violation> {
    let Some(id) = record.input_field(name) else {
        let known = record.fields.iter().filter(|field| field.is_writable());
        let near = nearest(name, known.map(|field| field.input_name.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("{} has no field `{name}`{hint}", record.name);
        return Err(Violation::new(name, "UNKNOWN", message));
    };
    let field = record.field(id);
    let read_only = |why: &str| {
        Err(Violation::new(&field.input_name, "READ_ONLY", format!("{} {why}", label(&field.name))))
    };
    match (&field.kind, deed) {
        (Kind::Id, Deed::Create) => read_only("is given by the store and cannot be set"),
        (Kind::Id, Deed::Replace(own) | Deed::Change(own)) if value.as_i64() == Some(own) => Ok(None),
        (Kind::Id, Deed::Replace(_) | Deed::Change(_)) => read_only("cannot be changed"),
        (Kind::Inverse { .. } | Kind::Unstored, _) => read_only("cannot be set"),
        (
            Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Link { .. },
            deed,
        ) => {
            let is_ours = field.filled_by != FilledBy::Client;
            Ok(if is_ours && matches!(deed, Deed::Replace(_)) { None } else { Some(id) })
        }
    }
}
