//! Writes a record as JSON or CSV: keys are escaped once, values come straight from the row.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::{PreparedSelection, Row, Selection};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{CellValue, FieldId, Model, RecordTypeId, ValueType};

/// Selected fields of a record type, prepared for reading and writing.
#[derive(Debug)]
pub struct RecordShape {
    columns: Vec<ShapeColumn>,
    /// Includes the version after the columns.
    pub selection: Arc<PreparedSelection>,
    /// A hash of the store, schema and fields, on which the bytes of a version depend.
    fingerprint: u32,
}

#[derive(Debug)]
struct ShapeColumn {
    /// The JSON key with its prefix and colon: `{"id":` or `,"name":`.
    key: Vec<u8>,
    name: String,
    value_type: ValueType,
    blank: csv_cell::EmptyCell,
}

impl RecordShape {
    /// All stored fields in the order of the schema.
    pub fn all_fields(model: &Model, store_id: &str, record: RecordTypeId) -> RecordShape {
        let fields = model.record(record).fields.iter().enumerate();
        RecordShape::with_fields(
            model,
            store_id,
            record,
            fields.filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect(),
        )
    }

    /// Those of these fields that are stored.
    pub fn with_fields(
        model: &Model,
        store_id: &str,
        record: RecordTypeId,
        fields: Vec<FieldId>,
    ) -> RecordShape {
        let mut fingerprint = Xxh3::new();
        fingerprint.update(store_id.as_bytes());
        fingerprint.update(&model.hash.to_le_bytes());
        let (mut columns, mut selected) =
            (Vec::with_capacity(fields.len()), Vec::with_capacity(fields.len()));
        for id in fields {
            let field = model.record(record).field(id);
            let Some(value_type) = field.kind.value_type().cloned() else { continue };
            let mut key = vec![if columns.is_empty() { b'{' } else { b',' }];
            json_text::write_text(&mut key, &field.input_name);
            key.push(b':');
            fingerprint.update(&key);
            let (name, blank) = (field.input_name.clone(), csv_cell::EmptyCell::for_field(field));
            columns.push(ShapeColumn { key, name, value_type, blank });
            selected.push(id);
        }
        let selection = PreparedSelection::new(Selection::new(selected, Vec::new()).with_version());
        RecordShape { columns, selection, fingerprint: fingerprint.digest() as u32 }
    }

    /// Columns with these names and types, in the order of the cells of a row; no version follows them.
    pub fn of_columns(named: &[(String, ValueType)]) -> RecordShape {
        let mut columns = Vec::with_capacity(named.len());
        for (name, value_type) in named {
            let mut key = vec![if columns.is_empty() { b'{' } else { b',' }];
            json_text::write_text(&mut key, name);
            key.push(b':');
            let (name, value_type) = (name.clone(), value_type.clone());
            columns.push(ShapeColumn { key, name, value_type, blank: csv_cell::EmptyCell::Null });
        }
        RecordShape { columns, selection: PreparedSelection::new(Selection::default()), fingerprint: 0 }
    }

    /// Number of cells of a row before those of a cursor.
    pub fn cell_count(&self) -> usize {
        self.columns.len() + 1
    }

    pub fn write_json(&self, out: &mut Vec<u8>, row: &dyn Row) {
        for (position, column) in self.columns.iter().enumerate() {
            out.extend_from_slice(&column.key);
            write_value(out, &column.value_type, row.cell(position));
        }
        out.push(b'}');
    }

    /// Writes the line with the column names.
    pub fn write_csv_header(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        self.write_csv_line(out, |_, column, cell| cell.extend_from_slice(column.name.as_bytes()));
    }

    pub fn write_csv(&self, out: &mut Vec<u8>, row: &dyn Row) {
        self.write_csv_line(out, |position, column, cell| {
            if csv_cell::push_cell(cell, &column.value_type, column.blank, row.cell(position)).is_err() {
                cell.clear();
            }
        });
    }

    fn write_csv_line(&self, out: &mut Vec<u8>, mut write: impl FnMut(usize, &ShapeColumn, &mut Vec<u8>)) {
        let push = if self.columns.len() == 1 { csv_cell::push_only_cell } else { csv_cell::push_quoted };
        let mut cell = Vec::new();
        for (position, column) in self.columns.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            cell.clear();
            write(position, column, &mut cell);
            push(out, &cell);
        }
        out.extend_from_slice(csv_cell::LINE_END);
    }

    /// Writes the value of the first field, without its key.
    pub fn write_first_value(&self, out: &mut Vec<u8>, row: &dyn Row) {
        match self.columns.first() {
            Some(column) => write_value(out, &column.value_type, row.cell(0)),
            None => out.extend_from_slice(b"null"),
        }
    }

    pub fn version(&self, row: &dyn Row) -> Option<i64> {
        if !self.selection.includes_version {
            return None;
        }
        match row.cell(self.columns.len()) {
            CellValue::Int(version) => Some(version),
            CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => None,
        }
    }

    /// The strong ETag of a version of a record in this shape.
    pub fn etag(&self, version: i64) -> String {
        format!("\"{version:x}-{:08x}\"", self.fingerprint)
    }
}

/// The version in an unquoted ETag of any shape: a write depends on the version only.
pub fn etag_version(tag: &str) -> Option<i64> {
    let (version, fingerprint) = tag.split_once('-')?;
    if fingerprint.len() != 8 { None } else { i64::from_str_radix(version, 16).ok() }
}

/// Writes a cell as JSON; as null if another program stored a value that does not fit the type.
fn write_value(out: &mut Vec<u8>, value_type: &ValueType, cell: CellValue<'_>) {
    let start = out.len();
    if json_text::write_cell(out, value_type, cell).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
    // JSON stored by another program may contain line breaks, but not within strings.
    for byte in out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}
