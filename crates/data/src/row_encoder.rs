//! Encodes rows of the store as lines of NDJSON or CSV.

use std::sync::Arc;

use trefoil_engine::{Listing, Operation, PlainListAction, PlainListOperation, Row};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{CellValue, Field, Model, RecordId, RecordTypeId, ValueType};

use crate::file_columns::{ColumnSource, FileColumn, FileColumns};
use crate::{DataFormat, DataResource};

/// The read operation of one resource and the encoding of its rows.
pub struct RowEncoder {
    format: DataFormat,
    layout: RowLayout,
    /// The text before and after each line of a stream with several resources.
    envelope: Option<(Vec<u8>, &'static [u8])>,
    scratch: Vec<u8>,
}

enum RowLayout {
    /// With the encoded keys of the JSON object.
    Records {
        resource: RecordTypeId,
        columns: FileColumns,
        keys: Vec<Vec<u8>>,
    },
    List {
        name: Arc<str>,
    },
}

/// The value of a field in the store is not valid for it; another program must have written it.
#[derive(Debug)]
pub struct UnreadableFieldError {
    pub field: String,
}

impl RowEncoder {
    pub fn new(model: &Model, resource: &DataResource, format: DataFormat) -> RowEncoder {
        let layout = match resource {
            DataResource::Records(record) => {
                let columns = FileColumns::for_record(model, *record);
                let names = columns
                    .columns
                    .iter()
                    .map(|column| &model.record(*record).field(column.field).input_name);
                let key = |(i, name): (usize, &String)| {
                    let mut key = if i == 0 { vec![b'{'] } else { vec![b','] };
                    json_text::write_text(&mut key, name);
                    key.push(b':');
                    key
                };
                let keys = names.enumerate().map(key).collect();
                RowLayout::Records { resource: *record, columns, keys }
            }
            DataResource::List(name) => RowLayout::List { name: name.clone() },
        };
        RowEncoder { format, layout, envelope: None, scratch: Vec::new() }
    }

    /// Makes each line name its resource.
    pub fn with_envelope(mut self, path: &str) -> RowEncoder {
        let mut before = b"{\"resource\":".to_vec();
        json_text::write_text(&mut before, path);
        before.extend_from_slice(match self.layout {
            RowLayout::Records { .. } => b",\"record\":".as_slice(),
            RowLayout::List { .. } => b",\"value\":".as_slice(),
        });
        self.envelope = Some((before, b"}"));
        self
    }

    /// The operation that reads all rows.
    pub fn read_operation(&self) -> Operation {
        match &self.layout {
            RowLayout::Records { resource, columns, .. } => Operation::List {
                record: *resource,
                listing: Listing::default(),
                selection: columns.selection.clone(),
            },
            RowLayout::List { name } => {
                let action = PlainListAction::Read { from: None, max_bytes: usize::MAX };
                Operation::PlainList(PlainListOperation { list: name.clone(), action })
            }
        }
    }

    /// Writes the header line of CSV.
    pub fn write_header(&self, model: &Model, out: &mut Vec<u8>) {
        if self.format == DataFormat::Ndjson {
            return;
        }
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        match &self.layout {
            RowLayout::List { .. } => out.extend_from_slice(b"value"),
            RowLayout::Records { resource, columns, .. } => {
                for (i, column) in columns.columns.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    let name = &model.record(*resource).field(column.field).input_name;
                    csv_cell::push_quoted(out, name.as_bytes());
                }
            }
        }
        out.extend_from_slice(csv_cell::LINE_END);
    }

    pub fn write_row(
        &mut self,
        model: &Model,
        row: &dyn Row,
        out: &mut Vec<u8>,
    ) -> Result<(), UnreadableFieldError> {
        let RowEncoder { format, layout, envelope, scratch } = self;
        let format = *format;
        if let Some((before, _)) = envelope {
            out.extend_from_slice(before);
        }
        match (layout, format) {
            (RowLayout::Records { resource, columns, keys }, DataFormat::Ndjson) => {
                for (column, key) in columns.columns.iter().zip(keys) {
                    out.extend_from_slice(key);
                    let field = model.record(*resource).field(column.field);
                    push_json(out, field, column, row).map_err(|_| unreadable_field(field))?;
                }
                out.push(b'}');
            }
            (RowLayout::Records { resource, columns, .. }, DataFormat::Csv) => {
                for (i, column) in columns.columns.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    let field = model.record(*resource).field(column.field);
                    scratch.clear();
                    push_csv_cell(scratch, field, column, row).map_err(|_| unreadable_field(field))?;
                    csv_cell::push_quoted(out, scratch);
                }
            }
            (RowLayout::List { .. }, format) => push_list_value(out, scratch, format, row.cell(0))?,
        }
        if let Some((_, after)) = envelope {
            out.extend_from_slice(after);
        }
        out.extend_from_slice(if format == DataFormat::Csv { csv_cell::LINE_END } else { b"\n" });
        Ok(())
    }
}

fn unreadable_field(field: &Field) -> UnreadableFieldError {
    UnreadableFieldError { field: field.input_name.clone() }
}

fn push_list_value(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    format: DataFormat,
    value: CellValue<'_>,
) -> Result<(), UnreadableFieldError> {
    let CellValue::Text(text) = value else { return Err(UnreadableFieldError { field: "value".to_owned() }) };
    match format {
        DataFormat::Ndjson => json_text::write_text(out, text),
        DataFormat::Csv => {
            scratch.clear();
            csv_cell::push_escaped(scratch, text);
            csv_cell::push_only_cell(out, scratch);
        }
    }
    Ok(())
}

fn push_json(
    out: &mut Vec<u8>,
    field: &Field,
    column: &FileColumn,
    row: &dyn Row,
) -> Result<(), json_text::UnreadableCellError> {
    match column.source {
        ColumnSource::Cell(position) => json_text::write_cell(out, cell_type(field)?, row.cell(position)),
        ColumnSource::LinkedIds(child) => {
            push_ids(out, child, row);
            Ok(())
        }
    }
}

fn push_csv_cell(
    out: &mut Vec<u8>,
    field: &Field,
    column: &FileColumn,
    row: &dyn Row,
) -> Result<(), json_text::UnreadableCellError> {
    match column.source {
        ColumnSource::Cell(position) => csv_cell::push_cell(
            out,
            cell_type(field)?,
            csv_cell::EmptyCell::for_field(field),
            row.cell(position),
        ),
        ColumnSource::LinkedIds(child) => {
            push_ids(out, child, row);
            Ok(())
        }
    }
}

fn cell_type(field: &Field) -> Result<&ValueType, json_text::UnreadableCellError> {
    field.kind.value_type().ok_or(json_text::UnreadableCellError)
}

/// Such as `["1","7"]`.
fn push_ids(out: &mut Vec<u8>, child: usize, row: &dyn Row) {
    out.push(b'[');
    let mut is_first = true;
    row.each_child(child, &mut |linked| {
        if let Some(id) = RecordId::from_cell(linked.cell(0)) {
            out.extend_from_slice(if std::mem::take(&mut is_first) { b"" } else { b"," });
            json_text::write_id(out, &id);
        }
    });
    out.push(b']');
}
