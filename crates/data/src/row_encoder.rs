//! A row of the store as a line of NDJSON or CSV.

use crate::file_columns::{At, Column, Columns};
use crate::{Format, Resource};
use trefoil_engine::{ListAct, Listing, OnList, Operation, Row};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{Cell, Field, Model};

/// What is asked of one resource, and how its rows are spelled.
pub struct Encoder {
    format: Format,
    spelled: Spelled,
    /// What stands around each line of a stream that holds several resources.
    around: Option<(Vec<u8>, &'static [u8])>,
    scratch: Vec<u8>,
}

enum Spelled {
    /// With the keys of an object, ready to be copied.
    Records {
        resource: trefoil_model::TypeId,
        columns: Columns,
        keys: Vec<Vec<u8>>,
    },
    List {
        name: std::sync::Arc<str>,
    },
}

/// Another program has written what the field cannot hold.
#[derive(Debug)]
pub struct Unreadable {
    pub field: String,
}

impl Encoder {
    pub fn new(model: &Model, resource: &Resource, format: Format) -> Encoder {
        let spelled = match resource {
            Resource::Records(record) => {
                let columns = Columns::of(model, *record);
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
                Spelled::Records { resource: *record, columns, keys }
            }
            Resource::List(name) => Spelled::List { name: name.clone() },
        };
        Encoder { format, spelled, around: None, scratch: Vec::new() }
    }

    /// Each line names its resource.
    pub fn within_stream(mut self, path: &str) -> Encoder {
        let mut before = b"{\"resource\":".to_vec();
        json_text::write_text(&mut before, path);
        before.extend_from_slice(match self.spelled {
            Spelled::Records { .. } => b",\"record\":".as_slice(),
            Spelled::List { .. } => b",\"value\":".as_slice(),
        });
        self.around = Some((before, b"}"));
        self
    }

    /// What gives all its rows.
    pub fn operation(&self) -> Operation {
        match &self.spelled {
            Spelled::Records { resource, columns, .. } => Operation::List {
                record: *resource,
                listing: Listing::default(),
                selection: columns.selection.clone(),
            },
            Spelled::List { name } => {
                let act = ListAct::Read { from: None, bytes: usize::MAX };
                Operation::Plain(OnList { list: name.clone(), act })
            }
        }
    }

    /// What stands before the first row.
    pub fn head(&self, model: &Model, out: &mut Vec<u8>) {
        if self.format == Format::Ndjson {
            return;
        }
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        match &self.spelled {
            Spelled::List { .. } => out.extend_from_slice(b"value"),
            Spelled::Records { resource, columns, .. } => {
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

    pub fn row(&mut self, model: &Model, row: &dyn Row, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let Encoder { format, spelled, around, scratch } = self;
        let format = *format;
        if let Some((before, _)) = around {
            out.extend_from_slice(before);
        }
        match (spelled, format) {
            (Spelled::Records { resource, columns, keys }, Format::Ndjson) => {
                for (column, key) in columns.columns.iter().zip(keys) {
                    out.extend_from_slice(key);
                    let field = model.record(*resource).field(column.field);
                    push_json(out, field, column, row).map_err(|_| unreadable(field))?;
                }
                out.push(b'}');
            }
            (Spelled::Records { resource, columns, .. }, Format::Csv) => {
                for (i, column) in columns.columns.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    let field = model.record(*resource).field(column.field);
                    scratch.clear();
                    push_cell(scratch, field, column, row).map_err(|_| unreadable(field))?;
                    csv_cell::push_quoted(out, scratch);
                }
            }
            (Spelled::List { .. }, format) => push_value(out, scratch, format, row.cell(0))?,
        }
        if let Some((_, after)) = around {
            out.extend_from_slice(after);
        }
        out.extend_from_slice(if format == Format::Csv { csv_cell::LINE_END } else { b"\n" });
        Ok(())
    }
}

fn unreadable(field: &Field) -> Unreadable {
    Unreadable { field: field.input_name.clone() }
}

fn push_value(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    format: Format,
    value: Cell<'_>,
) -> Result<(), Unreadable> {
    let Cell::Text(text) = value else { return Err(Unreadable { field: "value".to_owned() }) };
    match format {
        Format::Ndjson => json_text::write_text(out, text),
        Format::Csv => {
            scratch.clear();
            csv_cell::push_marked(scratch, text);
            csv_cell::push_alone(out, scratch);
        }
    }
    Ok(())
}

fn push_json(
    out: &mut Vec<u8>,
    field: &Field,
    column: &Column,
    row: &dyn Row,
) -> Result<(), json_text::Unreadable> {
    match column.at {
        At::Cell(position) => json_text::write_cell(out, &field.kind, row.cell(position)),
        At::Ids(child) => {
            push_ids(out, child, row);
            Ok(())
        }
    }
}

fn push_cell(
    out: &mut Vec<u8>,
    field: &Field,
    column: &Column,
    row: &dyn Row,
) -> Result<(), json_text::Unreadable> {
    match column.at {
        At::Cell(position) => {
            csv_cell::push_cell(out, &field.kind, csv_cell::Blank::of(field), row.cell(position))
        }
        At::Ids(child) => {
            push_ids(out, child, row);
            Ok(())
        }
    }
}

/// `["1","7"]`
fn push_ids(out: &mut Vec<u8>, child: usize, row: &dyn Row) {
    out.push(b'[');
    let mut is_first = true;
    row.each_child(child, &mut |other| {
        if let Some(id) = other.cell(0).to_i64() {
            out.extend_from_slice(if std::mem::take(&mut is_first) { b"\"" } else { b",\"" });
            json_text::write_int(out, id);
            out.push(b'"');
        }
    });
    out.push(b']');
}
