//! How a record is written as JSON or CSV: its keys escaped once, its values straight from the row.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::{Row, Selection};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{CellValue, FieldId, FieldKind, Model, RecordTypeId};

/// Some fields of a record type, ready to be read and written.
#[derive(Debug)]
pub struct RecordShape {
    columns: Vec<ShapeColumn>,
    /// With the version behind the columns.
    pub selection: Arc<Selection>,
    /// Differs when the same version of a record would be other bytes.
    fingerprint: u32,
}

#[derive(Debug)]
struct ShapeColumn {
    /// With what stands before it: `{"id":` or `,"name":`.
    key: Vec<u8>,
    name: String,
    kind: FieldKind,
    blank: csv_cell::EmptyCell,
}

impl RecordShape {
    /// Every field that has a column, as the schema orders them.
    pub fn all_fields(model: &Model, store: &str, record: RecordTypeId) -> RecordShape {
        let fields = model.record(record).fields.iter().enumerate();
        RecordShape::with_fields(
            model,
            store,
            record,
            fields.filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect(),
        )
    }

    /// These fields, all of them stored. The versions of another store say nothing about `store`.
    pub fn with_fields(
        model: &Model,
        store: &str,
        record: RecordTypeId,
        fields: Vec<FieldId>,
    ) -> RecordShape {
        let mut mark = Xxh3::new();
        mark.update(store.as_bytes());
        mark.update(&model.hash.to_le_bytes());
        let mut columns = Vec::with_capacity(fields.len());
        for (position, id) in fields.iter().enumerate() {
            let field = model.record(record).field(*id);
            let mut key = vec![if position == 0 { b'{' } else { b',' }];
            json_text::write_text(&mut key, &field.input_name);
            key.push(b':');
            mark.update(&key);
            let (name, kind) = (field.input_name.clone(), field.kind.clone());
            columns.push(ShapeColumn { key, name, kind, blank: csv_cell::EmptyCell::for_field(field) });
        }
        let selection = Arc::new(Selection::new(fields, Vec::new()).with_version());
        RecordShape { columns, selection, fingerprint: mark.digest() as u32 }
    }

    /// How many cells a row has before those of a cursor.
    pub fn cell_count(&self) -> usize {
        self.columns.len() + 1
    }

    pub fn write_json(&self, out: &mut Vec<u8>, row: &dyn Row) {
        for (position, column) in self.columns.iter().enumerate() {
            out.extend_from_slice(&column.key);
            write_value(out, &column.kind, row.cell(position));
        }
        out.push(b'}');
    }

    /// The line that names the columns.
    pub fn write_csv_header(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        self.write_csv_line(out, |_, column, cell| cell.extend_from_slice(column.name.as_bytes()));
    }

    pub fn write_csv(&self, out: &mut Vec<u8>, row: &dyn Row) {
        self.write_csv_line(out, |position, column, cell| {
            if csv_cell::push_cell(cell, &column.kind, column.blank, row.cell(position)).is_err() {
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

    /// Only the first field, without its key.
    pub fn write_first_value(&self, out: &mut Vec<u8>, row: &dyn Row) {
        match self.columns.first() {
            Some(column) => write_value(out, &column.kind, row.cell(0)),
            None => out.extend_from_slice(b"null"),
        }
    }

    pub fn version(&self, row: &dyn Row) -> Option<i64> {
        match row.cell(self.columns.len()) {
            CellValue::Int(version) => Some(version),
            CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => None,
        }
    }

    /// The strong tag of a record at a version, written in this shape.
    pub fn etag(&self, version: i64) -> String {
        format!("\"{version:x}-{:08x}\"", self.fingerprint)
    }
}

/// The version in a tag of any shape, without its quotes: what is written depends on the version alone.
pub fn etag_version(tag: &str) -> Option<i64> {
    let (version, mark) = tag.split_once('-')?;
    if mark.len() != 8 { None } else { i64::from_str_radix(version, 16).ok() }
}

/// What another program wrote and the field cannot hold is shown as null: one bad cell hides no other.
fn write_value(out: &mut Vec<u8>, kind: &FieldKind, cell: CellValue<'_>) {
    let start = out.len();
    if json_text::write_cell(out, kind, cell).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
    // In JSON that another program wrote over several lines; inside of strings there are none.
    for byte in out[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}
