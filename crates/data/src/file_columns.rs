//! Which fields of a record travel, under which names, and how a name that arrives is understood.

use std::sync::Arc;

use trefoil_engine::{Child, Listing, Selection};
use trefoil_model::naming::names::nearest;
use trefoil_model::{Field, FieldId, FilledBy, Kind, Model, RecordType, TypeId};

/// A column of a file.
#[derive(Debug)]
pub struct Column {
    pub field: FieldId,
    pub at: At,
}

/// Where the store gives it.
#[derive(Debug, Clone, Copy)]
pub enum At {
    Cell(usize),
    /// The ids of this child.
    Ids(usize),
}

/// Everything of a record type that travels.
pub struct Columns {
    pub columns: Vec<Column>,
    pub selection: Arc<Selection>,
}

impl Columns {
    /// In the order of the schema. Without what only counts changes (`@version`) and what the other side tells.
    pub fn of(model: &Model, record: TypeId) -> Columns {
        let (mut columns, mut cells, mut children) = (Vec::new(), Vec::new(), Vec::new());
        for (i, field) in model.record(record).fields.iter().enumerate() {
            let id = FieldId(i);
            if let Kind::Link { target, .. } = &field.kind {
                if carries(model, record, id) {
                    columns.push(Column { field: id, at: At::Ids(children.len()) });
                    let selection = Selection::new(vec![model.record(*target).id_field()], Vec::new());
                    children.push(Child { field: id, listing: Listing::default(), selection });
                }
            } else if field.is_stored() && field.filled_by != FilledBy::Version {
                columns.push(Column { field: id, at: At::Cell(cells.len()) });
                cells.push(id);
            }
        }
        Columns { columns, selection: Arc::new(Selection::new(cells, children)) }
    }
}

/// A link has two sides and travels once, with the one that the schema has first.
pub fn carries(model: &Model, record: TypeId, field: FieldId) -> bool {
    let Kind::Link { table, .. } = &model.record(record).field(field).kind else { return false };
    let sides = model.records.iter().enumerate().flat_map(|(owner, of)| {
        of.fields.iter().enumerate().filter_map(move |(i, field)| match &field.kind {
            Kind::Link { table: other, .. } if other == table => Some((TypeId(owner), FieldId(i))),
            Kind::Link { .. }
            | Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Unstored => None,
        })
    });
    sides.min() == Some((record, field))
}

/// What a name in a file stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Id,
    Field(FieldId),
    /// Shown by the server and kept by nobody: a version.
    Nothing,
}

/// The error is what to tell whoever wrote the name.
pub fn named(record: &RecordType, name: &str) -> Result<Named, String> {
    let Some(id) = record.input_field(name) else {
        let known =
            record.fields.iter().filter(|field| travels(field)).map(|field| field.input_name.as_str());
        let hint = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("`{}` has no field `{name}`{hint}", record.path));
    };
    let field = record.field(id);
    match &field.kind {
        Kind::Id => Ok(Named::Id),
        _ if field.filled_by == FilledBy::Version => Ok(Named::Nothing),
        Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Link { .. } => Ok(Named::Field(id)),
        Kind::Inverse { .. } => {
            Err(format!("`{name}` of `{}` is told by the records that refer to it", record.path))
        }
        Kind::Unstored => Err(format!("`{name}` of `{}` is computed and not kept", record.path)),
    }
}

fn travels(field: &Field) -> bool {
    match &field.kind {
        Kind::Id | Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_) => true,
        Kind::Reference { .. } | Kind::Link { .. } => true,
        Kind::Inverse { .. } | Kind::Unstored => false,
    }
}
