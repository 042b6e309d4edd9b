//! What is read of a record to show some of its fields: its columns, and the titles of the records it refers to.

use std::sync::Arc;

use crate::detail::display::{Room, fitted, shown};
use crate::labels::{Subject, label};
use crate::view::{Labelled, Shown};
use trefoil_engine::{Child, Listing, OwnedRow, Selection};
use trefoil_model::{Cell, Field, FieldId, Kind, Model, RecordType, TypeId};

/// Some fields of a record type, ready to be read.
#[derive(Debug)]
pub struct Reading {
    pub record: TypeId,
    /// The id, then the title where the type has one, then the rest.
    pub selection: Arc<Selection>,
    fields: Vec<(FieldId, From)>,
    has_title: bool,
}

/// Where in a row a field is.
#[derive(Debug, Clone, Copy)]
enum From {
    Column(usize),
    /// A reference: its own column, and the record it leads to.
    Child(usize, usize),
}

impl Reading {
    /// These fields, all of them stored.
    pub fn of(model: &Model, subjects: &[Subject], record: TypeId, shown: &[FieldId]) -> Reading {
        let (owner, title) = (model.record(record), subjects[record.0].title);
        let mut columns = vec![owner.id_field()];
        columns.extend(title);
        let (mut fields, mut children) = (Vec::new(), Vec::new());
        for field in shown {
            let column = columns.iter().position(|known| known == field).unwrap_or_else(|| {
                columns.push(*field);
                columns.len() - 1
            });
            let from = match &owner.field(*field).kind {
                Kind::Reference { target, .. } => {
                    let selection = names(model, subjects, *target);
                    children.push(Child { field: *field, listing: Listing::default(), selection });
                    From::Child(column, children.len() - 1)
                }
                Kind::Id
                | Kind::Scalar(_)
                | Kind::Enum(_)
                | Kind::Embedded(_)
                | Kind::List(_)
                | Kind::Inverse { .. }
                | Kind::Link { .. }
                | Kind::Unstored => From::Column(column),
            };
            fields.push((*field, from));
        }
        let selection = Arc::new(Selection::new(columns, children));
        Reading { record, selection, fields, has_title: title.is_some() }
    }

    /// The same, with the version behind the columns and these children behind the references.
    pub fn with(self, more: Vec<Child>) -> Reading {
        let Selection { columns, children, .. } = &*self.selection;
        let children = children.iter().cloned().chain(more).collect();
        let selection = Arc::new(Selection::new(columns.clone(), children).with_version());
        Reading { selection, ..self }
    }

    /// How many of the children are references; others come behind them.
    pub fn references(&self) -> usize {
        self.fields.iter().filter(|(_, from)| matches!(from, From::Child(..))).count()
    }

    pub fn fields(&self) -> impl Iterator<Item = FieldId> {
        self.fields.iter().map(|(field, _)| *field)
    }

    /// A record's id and what it is called.
    pub fn name(&self, subjects: &[Subject], row: &OwnedRow) -> (i64, String) {
        name(&subjects[self.record.0], row, self.has_title)
    }

    /// The fields of a row, but the one that is hidden.
    pub fn shown(
        &self,
        model: &Model,
        subjects: &[Subject],
        row: &OwnedRow,
        hidden: Option<FieldId>,
        room: Room,
    ) -> Vec<Shown> {
        let owner = model.record(self.record);
        let fields = self.fields.iter().filter(|(field, _)| Some(*field) != hidden);
        fields
            .map(|(field, from)| match from {
                From::Column(column) => shown(model, owner.field(*field), row.cells[*column].as_cell(), room),
                From::Child(column, child) => {
                    let found = row.children[*child].first();
                    referred(subjects, owner.field(*field), row.cells[*column].as_cell(), found, room)
                }
            })
            .collect()
    }

    pub fn labelled(&self, model: &Model, subjects: &[Subject], row: &OwnedRow) -> Vec<Labelled> {
        let owner = model.record(self.record);
        let labels = self.fields.iter().map(|(field, _)| label(owner.field(*field)));
        let values = self.shown(model, subjects, row, None, Room::Whole);
        labels.zip(values).map(|(label, value)| Labelled { label, value }).collect()
    }
}

/// What is read of a record of which only the name is shown.
pub fn names(model: &Model, subjects: &[Subject], record: TypeId) -> Selection {
    let columns = std::iter::once(model.record(record).id_field()).chain(subjects[record.0].title);
    Selection::new(columns.collect(), Vec::new())
}

/// The id and the name in a row whose first cells they are.
pub fn name(subject: &Subject, row: &OwnedRow, has_title: bool) -> (i64, String) {
    let id = row.cells[0].as_cell().to_i64().unwrap_or_default();
    let title = match row.cells.get(1).map(|cell| cell.as_cell()) {
        Some(Cell::Text(text)) if has_title => Some(text),
        Some(Cell::Text(_) | Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Unreadable) | None => None,
    };
    (id, subject.name(id, title))
}

/// The record that a reference leads to; one that another program has removed is still told by its number.
fn referred(
    subjects: &[Subject],
    field: &Field,
    cell: Cell<'_>,
    found: Option<&OwnedRow>,
    room: Room,
) -> Shown {
    match (&field.kind, found, cell.to_i64()) {
        (Kind::Reference { target, .. }, Some(row), _) => {
            let subject = &subjects[target.0];
            let (id, text) = name(subject, row, subject.title.is_some());
            let (text, is_cut) = fitted(&text, room);
            let text = if is_cut { format!("{text}…") } else { text };
            Shown::Record { href: format!("{}/{id}", subject.resource.path), text }
        }
        (_, None, Some(id)) => Shown::Code { text: id.to_string() },
        (_, _, _) => Shown::Nothing,
    }
}

/// The fields of a list besides the title: few, short ones first. What is kept as JSON has no room in a table.
pub fn columns(record: &RecordType, title: Option<FieldId>) -> Vec<FieldId> {
    const MOST: usize = 6;
    let fields = record.fields.iter().enumerate().map(|(i, field)| (FieldId(i), field));
    let fields = fields.filter(|(id, field)| {
        field.is_stored() && field.kind.is_comparable() && field.kind != Kind::Id && Some(*id) != title
    });
    let (long, short): (Vec<_>, Vec<_>) = fields.partition(|(_, field)| crate::labels::is_long(field));
    short.into_iter().chain(long).map(|(id, _)| id).take(MOST).collect()
}
