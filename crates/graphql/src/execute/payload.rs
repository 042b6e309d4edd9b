//! Writes a payload: the record of a write or a change, and what else its type says about it.

use trefoil_engine::changes::image_cell;
use trefoil_engine::{ChangeKind, RecordChange, global_id};
use trefoil_model::values::json_text;
use trefoil_model::{ChangePart, PayloadPart, RecordId, RecordType, Value};

use crate::execute::connection::{NodeWriter, write_entries, write_literal};
use crate::execute::path::ResponsePath;
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::shape::{ConnectionEntry, PayloadField, PayloadShape};
use crate::registered_resolvers::resolved_tree::ResolvedFields;

/// What is known of a write or a change besides its record.
#[derive(Clone, Copy)]
pub struct PayloadContext<'a> {
    /// False for a read that found nothing.
    pub is_done: bool,
    /// The written record, if it is the payload of a write.
    pub id: Option<&'a RecordId>,
    /// Its type, if ids are global.
    pub global_type: Option<&'a str>,
    pub client_mutation_id: Option<&'a str>,
    pub change: Option<&'a ChangeSummary>,
}

/// What an event tells of a change.
pub struct ChangeSummary {
    kind: &'static str,
    /// The id as JSON.
    id_json: Vec<u8>,
    version: i64,
    changed_fields: Vec<String>,
}

impl ChangeSummary {
    pub fn new(record: &RecordType, change: &RecordChange) -> ChangeSummary {
        let key = record.field(record.id_field());
        let (mut id_json, cell) = (Vec::new(), image_cell(&change.image, &key.column));
        let is_written = key
            .kind
            .value_type()
            .is_some_and(|value_type| json_text::write_cell(&mut id_json, value_type, cell).is_ok());
        if record.has_global_ids
            && let Some(id) = RecordId::from_cell(image_cell(&change.image, &key.column))
        {
            id_json.clear();
            write_id(&mut id_json, &id, Some(&record.name));
        }
        ChangeSummary {
            kind: match change.kind {
                ChangeKind::Created => "CREATED",
                ChangeKind::Updated => "UPDATED",
                ChangeKind::Deleted => "DELETED",
            },
            id_json: if is_written { id_json } else { b"null".to_vec() },
            version: change.version,
            changed_fields: change.changed_fields(record).into_iter().map(str::to_owned).collect(),
        }
    }
}

impl PayloadShape {
    /// True if it repeats a text of the request.
    pub fn has_client_mutation_id(&self) -> bool {
        let is_repeated = |entry: &ConnectionEntry<PayloadField>| {
            matches!(entry.field, PayloadField::Part(PayloadPart::ClientMutationId))
        };
        self.entries.list.iter().any(is_repeated)
    }

    /// True if it cannot be written without a record.
    pub fn requires_record(&self) -> bool {
        let is_required = |entry: &ConnectionEntry<PayloadField>| {
            entry.required && matches!(entry.field, PayloadField::Record(_))
        };
        self.entries.list.iter().any(is_required)
    }
}

/// Writes the id of a record; `global_type` is its type, if ids are global.
pub fn write_id(out: &mut Vec<u8>, id: &RecordId, global_type: Option<&str>) {
    match global_type {
        Some(type_name) => json_text::write_text(out, &global_id::encode(type_name, &id.to_string())),
        None => json_text::write_id(out, id),
    }
}

/// The records of a payload while the outcome is not known yet; one for each field that selects it.
#[derive(Default)]
pub struct PayloadWriter(Vec<(ResponseWriter, WriteResult)>);

impl PayloadWriter {
    pub fn add_row(&mut self, payload: &PayloadShape, path: &ResponsePath, node: &mut NodeWriter) {
        for entry in &payload.entries.list {
            if let PayloadField::Record(object) = &entry.field {
                let mut writer = ResponseWriter::default();
                let path = path.field(&entry.label.response_key);
                let result = writer.stop_null(entry.required, |writer| node(writer, object, &path));
                self.0.push((writer, result));
            }
        }
    }

    /// Writes the payload of a write that succeeded, or of a read.
    pub fn finish(
        self,
        payload: &PayloadShape,
        writer: &mut ResponseWriter,
        path: &ResponsePath,
        context: PayloadContext<'_>,
        resolved: &ResolvedFields,
    ) -> WriteResult {
        let mut records = self.0.into_iter();
        let done = |yes: &'static [u8], no: &'static [u8]| if context.is_done { yes } else { no };
        write_entries(writer, &payload.entries, path, |writer, entry, at| match &entry.field {
            PayloadField::Typename(name) => write_literal(writer, name),
            PayloadField::Resolver(field) => resolved.write(writer, field, 0, at),
            PayloadField::Record(_) => match records.next() {
                Some((record, result)) => {
                    writer.errors.extend(record.errors);
                    writer.out.extend_from_slice(&record.out);
                    result
                }
                None => writer.write_null(entry.required, at),
            },
            PayloadField::Part(part) => {
                match part {
                    PayloadPart::Id => match context.id {
                        Some(id) => write_id(&mut writer.out, id, context.global_type),
                        None => writer.out.extend_from_slice(b"null"),
                    },
                    PayloadPart::True => writer.out.extend_from_slice(done(b"true", b"false")),
                    PayloadPart::Message => writer.out.extend_from_slice(done(b"\"OK\"", b"\"not found\"")),
                    PayloadPart::Code => writer.out.extend_from_slice(done(b"200", b"404")),
                    PayloadPart::CodeText => {
                        writer.out.extend_from_slice(done(b"\"OK\"", b"\"NOT_FOUND\""));
                    }
                    PayloadPart::Count => writer.out.extend_from_slice(done(b"1", b"0")),
                    PayloadPart::ClientMutationId => match context.client_mutation_id {
                        Some(text) => json_text::write_text(&mut writer.out, text),
                        // It must not cost the whole payload.
                        None if entry.required => writer.out.extend_from_slice(b"\"\""),
                        None => writer.out.extend_from_slice(b"null"),
                    },
                    PayloadPart::EmptyList => writer.out.extend_from_slice(b"[]"),
                    PayloadPart::Null => writer.out.extend_from_slice(b"null"),
                }
                Ok(())
            }
            PayloadField::Change(part) => {
                let Some(change) = context.change else { return writer.write_null(entry.required, at) };
                match part {
                    ChangePart::Kind => json_text::write_text(&mut writer.out, change.kind),
                    ChangePart::Id => writer.out.extend_from_slice(&change.id_json),
                    ChangePart::Version => json_text::write_int(&mut writer.out, change.version),
                    ChangePart::ChangedFields => {
                        let names = change.changed_fields.iter().cloned().map(Value::String).collect();
                        json_text::write_value(&mut writer.out, &Value::List(names));
                    }
                    ChangePart::Record => writer.out.extend_from_slice(b"null"),
                }
                Ok(())
            }
            PayloadField::Missing(why) => writer.fail_missing_resolver(entry.required, why, at),
        })
    }
}
