//! How a record is written as JSON or CSV: its keys escaped once, its values straight from the row.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::{Row, Selection};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{Cell, FieldId, Kind, Model, TypeId};

/// Some fields of a record type, ready to be read and written.
#[derive(Debug)]
pub struct Shape {
    columns: Vec<Column>,
    /// With the version behind the columns.
    pub selection: Arc<Selection>,
    /// Differs when the same version of a record would be other bytes.
    mark: u32,
}

#[derive(Debug)]
struct Column {
    /// With what stands before it: `{"id":` or `,"name":`.
    key: Vec<u8>,
    name: String,
    kind: Kind,
    blank: csv_cell::Blank,
}

impl Shape {
    /// Every field that has a column, as the schema orders them.
    pub fn whole(model: &Model, store: &str, record: TypeId) -> Shape {
        let fields = model.record(record).fields.iter().enumerate();
        Shape::of(
            model,
            store,
            record,
            fields.filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect(),
        )
    }

    /// These fields, all of them stored. The versions of another store say nothing about `store`.
    pub fn of(model: &Model, store: &str, record: TypeId, fields: Vec<FieldId>) -> Shape {
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
            columns.push(Column { key, name, kind, blank: csv_cell::Blank::of(field) });
        }
        let selection = Arc::new(Selection::new(fields, Vec::new()).with_version());
        Shape { columns, selection, mark: mark.digest() as u32 }
    }

    /// How many cells a row has before those of a cursor.
    pub fn width(&self) -> usize {
        self.columns.len() + 1
    }

    pub fn write(&self, out: &mut Vec<u8>, row: &dyn Row) {
        for (position, column) in self.columns.iter().enumerate() {
            out.extend_from_slice(&column.key);
            write_value(out, &column.kind, row.cell(position));
        }
        out.push(b'}');
    }

    /// The line that names the columns.
    pub fn write_names(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        self.write_line(out, |_, column, cell| cell.extend_from_slice(column.name.as_bytes()));
    }

    pub fn write_csv(&self, out: &mut Vec<u8>, row: &dyn Row) {
        self.write_line(out, |position, column, cell| {
            if csv_cell::push_cell(cell, &column.kind, column.blank, row.cell(position)).is_err() {
                cell.clear();
            }
        });
    }

    fn write_line(&self, out: &mut Vec<u8>, mut write: impl FnMut(usize, &Column, &mut Vec<u8>)) {
        let push = if self.columns.len() == 1 { csv_cell::push_alone } else { csv_cell::push_quoted };
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
    pub fn write_first(&self, out: &mut Vec<u8>, row: &dyn Row) {
        match self.columns.first() {
            Some(column) => write_value(out, &column.kind, row.cell(0)),
            None => out.extend_from_slice(b"null"),
        }
    }

    pub fn version(&self, row: &dyn Row) -> Option<i64> {
        match row.cell(self.columns.len()) {
            Cell::Int(version) => Some(version),
            Cell::Null | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable => None,
        }
    }

    /// The strong tag of a record at a version, written in this shape.
    pub fn tag(&self, version: i64) -> String {
        format!("\"{version:x}-{:08x}\"", self.mark)
    }
}

/// The version in a tag of any shape, without its quotes: what is written depends on the version alone.
pub fn tagged_version(tag: &str) -> Option<i64> {
    let (version, mark) = tag.split_once('-')?;
    if mark.len() != 8 { None } else { i64::from_str_radix(version, 16).ok() }
}

/// What another program wrote and the field cannot hold is shown as null: one bad cell hides no other.
fn write_value(out: &mut Vec<u8>, kind: &Kind, cell: Cell<'_>) {
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
