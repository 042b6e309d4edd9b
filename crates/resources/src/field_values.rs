//! Resolves the field names of a body or form to the fields of a record type.

use trefoil_engine::RecordInput;
use trefoil_engine::arguments::related_records::{
    InputPurpose, RecordReader, RelatedValue, describes_records, read_related,
};
use trefoil_model::error::Violation;
use trefoil_model::naming::names::nearest_name;
use trefoil_model::values::coerce;
use trefoil_model::{Field, FieldId, Model, RecordId, RecordType, RecordTypeId, Value, ValueSource};

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

/// The known fields and related records, and violations for the other names. Values are checked by the engine.
pub fn resolve_object(
    model: &Model,
    record: &RecordType,
    object: RecordObject,
    mode: WriteMode<'_>,
) -> (RecordInput, Vec<Violation>) {
    resolve_members(model, record, object, NamedRecord::from(mode), 0)
}

/// The record that an object describes.
#[derive(Debug, Clone, Copy)]
enum NamedRecord<'a> {
    Mode(WriteMode<'a>),
    /// A change of a related record, whose id stands beside the object.
    RelatedChange,
}

impl<'a> From<WriteMode<'a>> for NamedRecord<'a> {
    fn from(mode: WriteMode<'a>) -> Self {
        NamedRecord::Mode(mode)
    }
}

impl NamedRecord<'_> {
    fn purpose(self) -> InputPurpose {
        match self {
            NamedRecord::Mode(WriteMode::Create) => InputPurpose::Create,
            NamedRecord::Mode(WriteMode::Replace(_) | WriteMode::Patch(_) | WriteMode::PatchMany)
            | NamedRecord::RelatedChange => InputPurpose::Update,
        }
    }
}

fn resolve_members(
    model: &Model,
    record: &RecordType,
    object: RecordObject,
    named: NamedRecord<'_>,
    depth: usize,
) -> (RecordInput, Vec<Violation>) {
    let mut input = RecordInput::default();
    let mut violations = Vec::new();
    for (name, value) in object {
        match resolve_name(model, record, &name, &value, named) {
            Ok(Some(field)) if record.field(field).kind.relation().is_some() && describes_records(&value) => {
                match read_related(&BodyReader(model), record, field, value, named.purpose(), depth) {
                    Ok(RelatedValue::Id(id)) => input.fields.push((field, id)),
                    Ok(RelatedValue::Records(related)) => input.related.push(related),
                    Err(found) => violations.extend(found),
                }
            }
            Ok(Some(field)) => input.fields.push((field, value)),
            Ok(None) => {}
            Err(violation) => violations.push(violation),
        }
        if violations.len() >= coerce::MAX_VIOLATIONS {
            violations.truncate(coerce::MAX_VIOLATIONS);
            break;
        }
    }
    (input, violations)
}

/// Reads records inside a body by the names that the body of a record has.
struct BodyReader<'a>(&'a Model);

impl RecordReader for BodyReader<'_> {
    fn takes_single_values(&self) -> bool {
        false
    }

    fn model(&self) -> &Model {
        self.0
    }

    fn read_record(
        &self,
        record: RecordTypeId,
        members: RecordObject,
        purpose: InputPurpose,
        depth: usize,
    ) -> Result<RecordInput, Vec<Violation>> {
        let named = match purpose {
            InputPurpose::Create => NamedRecord::Mode(WriteMode::Create),
            InputPurpose::Update => NamedRecord::RelatedChange,
        };
        let (input, violations) = resolve_members(self.0, self.0.record(record), members, named, depth);
        if violations.is_empty() { Ok(input) } else { Err(violations) }
    }

    fn read_id(&self, record: &RecordType, name: &str, value: &Value) -> Result<RecordId, Vec<Violation>> {
        let label = record.label();
        RecordId::from_value(record.key_form(), value)
            .map_err(|help| vec![Violation::new(name, "TYPE", format!("the id of a {label} {help}"))])
    }
}

fn resolve_name(
    model: &Model,
    record: &RecordType,
    name: &str,
    value: &Value,
    named: NamedRecord<'_>,
) -> Result<Option<FieldId>, Violation> {
    let Some(id) = record.find_input_field(name) else {
        let is_written = |field: &&Field| field.is_writable() || field.kind.inverse().is_some();
        let is_offered =
            |field: &&Field| model.is_shown_to_all(field) && !model.may_be_refused(record, field);
        let writable = record.fields.iter().filter(is_written).filter(is_offered);
        let near = nearest_name(name, writable.map(|field| field.input_name.as_str()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("{} has no field `{name}`{hint}", record.name);
        return Err(Violation::new(name, "UNKNOWN", message));
    };
    let field = record.field(id);
    let read_only =
        |why: &str| Err(Violation::new(&field.input_name, "READ_ONLY", format!("{} {why}", field.label())));
    if field.kind.has_input() {
        let server_fills = field.value_source != ValueSource::Client;
        let is_ignored = server_fills && matches!(named, NamedRecord::Mode(WriteMode::Replace(_)));
        return Ok(if is_ignored { None } else { Some(id) });
    }
    if field.kind.inverse().is_some() && describes_records(value) {
        return Ok(Some(id));
    }
    let is_empty = matches!(value, Value::List(items) if items.is_empty());
    if field.kind.inverse().is_some() && is_empty && named.purpose() == InputPurpose::Create {
        return Ok(None);
    }
    if !field.kind.is_id() {
        return read_only("cannot be set");
    }
    let mode = match named {
        NamedRecord::Mode(mode) => mode,
        NamedRecord::RelatedChange => return read_only("cannot be changed"),
    };
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
