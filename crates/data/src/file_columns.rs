//! The columns of a record type in files: which fields are exported, and what a column name means on import.

use std::sync::Arc;

use trefoil_engine::{ChildSelection, Listing, PreparedSelection, Selection};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{FieldId, FieldKind, Model, RecordType, RecordTypeId, Relation, ValueSource};

/// A column of a file.
#[derive(Debug)]
pub struct FileColumn {
    pub field: FieldId,
    pub source: ColumnSource,
}

/// Where the value is in a row of the store.
#[derive(Debug, Clone, Copy)]
pub enum ColumnSource {
    Cell(usize),
    /// The ids of the records in this child selection.
    LinkedIds(usize),
}

/// All columns of a record type.
pub struct FileColumns {
    pub columns: Vec<FileColumn>,
    pub selection: Arc<PreparedSelection>,
}

impl FileColumns {
    /// In the order of the schema. Excludes versions (`@version`) and fields that the other side of a relation stores.
    pub fn for_record(model: &Model, record: RecordTypeId) -> FileColumns {
        let (mut columns, mut cells, mut children) = (Vec::new(), Vec::new(), Vec::new());
        for (i, field) in model.record(record).fields.iter().enumerate() {
            let id = FieldId(i);
            if let Some(link) = field.kind.link() {
                if carries_link(model, record, id) {
                    columns.push(FileColumn { field: id, source: ColumnSource::LinkedIds(children.len()) });
                    let selection = Selection::new(vec![model.record(link.target).id_field()], Vec::new());
                    children.push(ChildSelection::new(id, Listing::default(), selection));
                }
            } else if field.is_stored() && field.value_source != ValueSource::RecordVersion {
                columns.push(FileColumn { field: id, source: ColumnSource::Cell(cells.len()) });
                cells.push(id);
            }
        }
        FileColumns { columns, selection: PreparedSelection::new(Selection::new(cells, children)) }
    }
}

/// Whether this side of a link is exported: of the two, the one that comes first in the schema.
pub fn carries_link(model: &Model, record: RecordTypeId, field: FieldId) -> bool {
    let Some(link) = model.record(record).field(field).kind.link() else { return false };
    let sides = model.records.iter().enumerate().flat_map(|(owner, record_type)| {
        record_type.fields.iter().enumerate().filter_map(move |(i, field)| {
            let is_side = field.kind.link().is_some_and(|other| other.table == link.table);
            is_side.then_some((RecordTypeId(owner), FieldId(i)))
        })
    });
    sides.min() == Some((record, field))
}

/// The meaning of a column name in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMeaning {
    Id,
    Field(FieldId),
    /// Part of responses but never imported: a version.
    Ignored,
}

/// The meaning of a column of a CSV file, whose name may be written in any case and with spaces, `_` and `-`, if only one
/// field can be meant.
pub fn csv_column_meaning(record: &RecordType, name: &str) -> Result<ColumnMeaning, String> {
    if record.find_input_field(name).is_none() {
        let inputs = record.fields.iter().filter(|field| field.kind.is_id() || field.kind.has_input());
        let mut alike = inputs.filter(|field| plain_letters(&field.input_name) == plain_letters(name));
        if let (Some(field), None) = (alike.next(), alike.next()) {
            return column_meaning(record, &field.input_name);
        }
    }
    column_meaning(record, name)
}

fn plain_letters(name: &str) -> String {
    let letters = name.chars().filter(|letter| !letter.is_whitespace() && !"_-".contains(*letter));
    letters.flat_map(char::to_lowercase).collect()
}

/// The meaning of a column name, or a message for the user.
pub fn column_meaning(record: &RecordType, name: &str) -> Result<ColumnMeaning, String> {
    let Some(id) = record.find_input_field(name) else {
        let known = record
            .fields
            .iter()
            .filter(|field| field.kind.is_id() || field.kind.has_input())
            .map(|field| field.input_name.as_str());
        let hint = nearest_name(name, known)
            .map(|nearest| format!("; did you mean `{nearest}`?"))
            .unwrap_or_default();
        return Err(format!("`{}` has no field `{name}`{hint}", record.path));
    };
    let field = record.field(id);
    match &field.kind {
        FieldKind::Id(_) => Ok(ColumnMeaning::Id),
        _ if field.value_source == ValueSource::RecordVersion => Ok(ColumnMeaning::Ignored),
        FieldKind::Value(_) | FieldKind::Relation(Relation::Reference(_) | Relation::Link(_)) => {
            Ok(ColumnMeaning::Field(id))
        }
        FieldKind::Relation(Relation::Inverse(_)) => Err(format!(
            "`{name}` of `{}` cannot be imported; it follows from the records that refer to it",
            record.path
        )),
        FieldKind::Unstored => {
            Err(format!("`{name}` of `{}` cannot be imported; it is computed", record.path))
        }
    }
}
