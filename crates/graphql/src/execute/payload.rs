//! Writes a payload: the record of a write and what else its type says about it.

use trefoil_model::values::json_text;
use trefoil_model::{PayloadPart, RecordId};

use crate::execute::connection::{WriteNode, write_entries, write_literal};
use crate::execute::path::ResponsePath;
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::shape::{PayloadField, PayloadShape};

/// The records of a payload while the outcome is not known yet; one for each field that selects it.
#[derive(Default)]
pub struct PayloadWriter(Vec<(ResponseWriter, WriteResult)>);

impl PayloadWriter {
    pub fn add_row(&mut self, payload: &PayloadShape, path: &ResponsePath, node: &mut WriteNode) {
        for entry in &payload.entries.list {
            if let PayloadField::Record(object) = &entry.field {
                let mut writer = ResponseWriter::default();
                let path = path.field(&entry.label.response_key);
                let result = writer.stop_null(entry.required, |writer| node(writer, object, &path));
                self.0.push((writer, result));
            }
        }
    }

    /// Writes the payload of a write that succeeded.
    pub fn finish(
        self,
        payload: &PayloadShape,
        writer: &mut ResponseWriter,
        path: &ResponsePath,
        id: &RecordId,
    ) -> WriteResult {
        let mut records = self.0.into_iter();
        write_entries(writer, &payload.entries, path, |writer, entry, at| match &entry.field {
            PayloadField::Typename(name) => write_literal(writer, name),
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
                    PayloadPart::Id => json_text::write_id(&mut writer.out, id),
                    PayloadPart::True => writer.out.extend_from_slice(b"true"),
                    PayloadPart::Message => writer.out.extend_from_slice(b"\"OK\""),
                    PayloadPart::Code => writer.out.extend_from_slice(b"200"),
                    PayloadPart::Count => writer.out.extend_from_slice(b"1"),
                    PayloadPart::EmptyList => writer.out.extend_from_slice(b"[]"),
                    PayloadPart::Record | PayloadPart::Null => writer.out.extend_from_slice(b"null"),
                }
                Ok(())
            }
            PayloadField::Missing(why) => writer.fail_missing_resolver(entry.required, why, at),
        })
    }
}
