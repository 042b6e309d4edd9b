//! Writes a record as JSON or CSV: keys are escaped once, values come straight from the row.

use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use trefoil_engine::{AccessView, ChildSelection, Listing, PreparedSelection, Row, Selection};
use trefoil_model::values::{csv_cell, json_text};
use trefoil_model::{CellValue, FieldId, Model, RecordId, RecordTypeId, Relation, ValueType};

/// Selected fields of a record type, prepared for reading and writing.
#[derive(Debug)]
pub struct RecordShape {
    layout: RowLayout,
    /// Includes the version after the columns.
    pub selection: Arc<PreparedSelection>,
    /// A hash of the store, schema and fields, on which the bytes of a version depend.
    fingerprint: u32,
    /// Includes related records, which change without changing the version.
    has_related_records: bool,
    key: Option<ShapeKey>,
}

/// The key of the records, whether it is selected or not.
#[derive(Debug)]
struct ShapeKey {
    name: String,
    value_type: ValueType,
}

/// A relation whose records are written inside the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludedRelation {
    pub field: FieldId,
    /// The relations of the related records.
    pub nested: Vec<IncludedRelation>,
}

/// The members of a JSON object, which are the cells of a CSV line.
#[derive(Debug, Default)]
struct RowLayout {
    members: Vec<ShapeMember>,
    column_count: usize,
}

#[derive(Debug)]
struct ShapeMember {
    /// The JSON key with its prefix and colon: `{"id":` or `,"name":`.
    key: Vec<u8>,
    name: String,
    content: MemberContent,
}

/// The source of a member's value: a column, or a child of the row.
#[derive(Debug)]
enum MemberContent {
    Column {
        position: usize,
        value_type: ValueType,
        blank: csv_cell::EmptyCell,
    },
    /// The ids of linked records.
    Ids {
        child: usize,
        value_type: ValueType,
    },
    /// The record that a reference points to, or null.
    Record {
        child: usize,
        layout: RowLayout,
    },
    Records {
        child: usize,
        layout: RowLayout,
    },
}

impl RecordShape {
    /// All stored fields in the order of the schema.
    pub fn stored_fields(model: &Model, store_id: &str, record: RecordTypeId) -> RecordShape {
        RecordShape::new((model, None), store_id, record, &stored_fields(model, record), &[])
    }

    /// These fields, and related records after them, with the fields that the actor may see. Links are shown as ids; other
    /// fields without a column are left out.
    pub fn new(
        (model, view): (&Model, Option<&AccessView>),
        store_id: &str,
        record: RecordTypeId,
        fields: &[FieldId],
        included: &[IncludedRelation],
    ) -> RecordShape {
        let mut fingerprint = Xxh3::new();
        fingerprint.update(store_id.as_bytes());
        fingerprint.update(&model.hash.to_le_bytes());
        let (layout, selection) = RowLayout::build((model, view), record, fields, included, &mut fingerprint);
        let owner = model.record(record);
        let key = ShapeKey {
            name: owner.field(owner.id_field()).input_name.clone(),
            value_type: ValueType::Key(owner.key_form()),
        };
        RecordShape {
            layout,
            selection: PreparedSelection::new(selection.with_version()),
            fingerprint: fingerprint.digest() as u32,
            has_related_records: !included.is_empty(),
            key: Some(key),
        }
    }

    /// Columns with these names and types, in the order of the cells of a row; no version follows them.
    pub fn of_columns(named: &[(String, ValueType)]) -> RecordShape {
        let mut layout = RowLayout { members: Vec::new(), column_count: named.len() };
        let mut fingerprint = Xxh3::new();
        for (position, (name, value_type)) in named.iter().enumerate() {
            let (value_type, blank) = (value_type.clone(), csv_cell::EmptyCell::Null);
            let content = MemberContent::Column { position, value_type, blank };
            layout.push(name, content, &mut fingerprint);
        }
        let selection = PreparedSelection::new(Selection::default());
        RecordShape { layout, selection, fingerprint: 0, has_related_records: false, key: None }
    }

    /// Number of cells of a row before those of a cursor.
    pub fn cell_count(&self) -> usize {
        self.layout.column_count + 1
    }

    pub fn write_json(&self, out: &mut Vec<u8>, row: &dyn Row) {
        self.layout.write_json(out, row);
    }

    /// Writes an object with the id alone.
    pub fn write_id_object(&self, out: &mut Vec<u8>, id: &RecordId) {
        out.push(b'{');
        if let Some(ShapeKey { name, value_type }) = &self.key {
            json_text::write_text(out, name);
            out.push(b':');
            write_value(out, value_type, id.as_cell());
        }
        out.push(b'}');
    }

    /// Writes the line with the column names.
    pub fn write_csv_header(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(csv_cell::BYTE_ORDER_MARK);
        self.write_csv_line(out, |member, cell| cell.extend_from_slice(member.name.as_bytes()));
    }

    pub fn write_csv(&self, out: &mut Vec<u8>, row: &dyn Row) {
        self.write_csv_line(out, |member, cell| match &member.content {
            MemberContent::Column { position, value_type, blank } => {
                if csv_cell::push_cell(cell, value_type, *blank, row.cell(*position)).is_err() {
                    cell.clear();
                }
            }
            content @ (MemberContent::Ids { .. }
            | MemberContent::Record { .. }
            | MemberContent::Records { .. }) => content.write_json(cell, row),
        });
    }

    fn write_csv_line(&self, out: &mut Vec<u8>, mut write: impl FnMut(&ShapeMember, &mut Vec<u8>)) {
        let members = &self.layout.members;
        let push = if members.len() == 1 { csv_cell::push_only_cell } else { csv_cell::push_quoted };
        let mut cell = Vec::new();
        for (position, member) in members.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            cell.clear();
            write(member, &mut cell);
            push(out, &cell);
        }
        out.extend_from_slice(csv_cell::LINE_END);
    }

    /// Writes the value of the first field, without its key.
    pub fn write_first_value(&self, out: &mut Vec<u8>, row: &dyn Row) {
        match self.layout.members.first() {
            Some(member) => member.content.write_json(out, row),
            None => out.extend_from_slice(b"null"),
        }
    }

    pub fn version(&self, row: &dyn Row) -> Option<i64> {
        if !self.selection.includes_version {
            return None;
        }
        match row.cell(self.layout.column_count) {
            CellValue::Int(version) => Some(version),
            CellValue::Null | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => None,
        }
    }

    /// The strong ETag of a version of a record in this shape, whose bytes are `encoded`, for actors of a class. What rules
    /// hide may depend on other records, which change without changing the version.
    pub fn etag(&self, class: Option<u128>, version: i64, encoded: &[u8]) -> String {
        match class {
            Some(class) => {
                let mut hash = Xxh3::new();
                hash.update(&class.to_le_bytes());
                hash.update(&self.fingerprint.to_le_bytes());
                hash.update(encoded);
                format!("\"{version:x}-{:016x}\"", hash.digest())
            }
            None if self.has_related_records => format!("\"{version:x}-{:016x}\"", xxh3_64(encoded)),
            None => format!("\"{version:x}-{:08x}\"", self.fingerprint),
        }
    }
}

/// The fields of a record type that have a column.
fn stored_fields(model: &Model, record: RecordTypeId) -> Vec<FieldId> {
    let fields = model.record(record).fields.iter().enumerate();
    fields.filter(|(_, field)| field.is_stored()).map(|(position, _)| FieldId(position)).collect()
}

impl RowLayout {
    fn build(
        (model, view): (&Model, Option<&AccessView>),
        record: RecordTypeId,
        fields: &[FieldId],
        included: &[IncludedRelation],
        fingerprint: &mut Xxh3,
    ) -> (RowLayout, Selection) {
        let owner = model.record(record);
        let (mut layout, mut selection) = (RowLayout::default(), Selection::default());
        for id in fields {
            let field = owner.field(*id);
            if let Some(value_type) = field.kind.value_type().cloned() {
                let position = selection.columns.len();
                let blank = csv_cell::EmptyCell::for_field(field);
                selection.columns.push(*id);
                let content = MemberContent::Column { position, value_type, blank };
                layout.push(&field.input_name, content, fingerprint);
            } else if let Some(link) = field.kind.link() {
                let ids = Selection::new(vec![model.record(link.target).id_field()], Vec::new());
                let (child, value_type) = (selection.children.len(), ValueType::Key(link.key_form));
                selection.children.push(child_selection(*id, ids));
                layout.push(&field.input_name, MemberContent::Ids { child, value_type }, fingerprint);
            }
        }
        for IncludedRelation { field: id, nested } in included {
            let field = owner.field(*id);
            let Some(relation) = field.kind.relation() else { continue };
            let target = relation.target();
            let is_shown = |field: &FieldId| view.is_none_or(|view| !view.hides_field(target, *field));
            let fields: Vec<FieldId> =
                stored_fields(model, target).into_iter().filter(|field| is_shown(field)).collect();
            let (inner, columns) = RowLayout::build((model, view), target, &fields, nested, fingerprint);
            let child = selection.children.len();
            selection.children.push(child_selection(*id, columns));
            let content = match relation {
                Relation::Reference(_) => MemberContent::Record { child, layout: inner },
                Relation::Inverse(_) | Relation::Link(_) => MemberContent::Records { child, layout: inner },
            };
            layout.push(&field.name, content, fingerprint);
        }
        layout.column_count = selection.columns.len();
        (layout, selection)
    }

    fn push(&mut self, name: &str, content: MemberContent, fingerprint: &mut Xxh3) {
        let mut key = vec![if self.members.is_empty() { b'{' } else { b',' }];
        json_text::write_text(&mut key, name);
        key.push(b':');
        fingerprint.update(&key);
        self.members.push(ShapeMember { key, name: name.to_owned(), content });
    }

    fn write_json(&self, out: &mut Vec<u8>, row: &dyn Row) {
        for member in &self.members {
            out.extend_from_slice(&member.key);
            member.content.write_json(out, row);
        }
        out.push(b'}');
    }
}

fn child_selection(field: FieldId, selection: Selection) -> ChildSelection {
    ChildSelection::new(field, Listing::default(), selection)
}

impl MemberContent {
    fn write_json(&self, out: &mut Vec<u8>, row: &dyn Row) {
        match self {
            MemberContent::Column { position, value_type, .. } => {
                write_value(out, value_type, row.cell(*position));
            }
            MemberContent::Ids { child, value_type } => {
                write_array(out, row, *child, |out, linked| write_value(out, value_type, linked.cell(0)));
            }
            MemberContent::Records { child, layout } => {
                write_array(out, row, *child, |out, related| layout.write_json(out, related));
            }
            MemberContent::Record { child, layout } => {
                let start = out.len();
                row.each_child(*child, &mut |related| layout.write_json(out, related));
                if out.len() == start {
                    out.extend_from_slice(b"null");
                }
            }
        }
    }
}

fn write_array(out: &mut Vec<u8>, row: &dyn Row, child: usize, write: impl Fn(&mut Vec<u8>, &dyn Row)) {
    out.push(b'[');
    let mut is_first = true;
    row.each_child(child, &mut |related| {
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        write(out, related);
    });
    out.push(b']');
}

/// The version in an unquoted ETag of any shape: a write depends on the version only.
pub fn etag_version(tag: &str) -> Option<i64> {
    let (version, fingerprint) = tag.split_once('-')?;
    matches!(fingerprint.len(), 8 | 16).then(|| i64::from_str_radix(version, 16).ok()).flatten()
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
