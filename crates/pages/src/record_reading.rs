//! What is read of a record to show some of its fields: its columns, and the titles of the records it refers to.

use std::sync::Arc;

use trefoil_engine::{ChildSelection, Listing, OwnedRow, Selection};
use trefoil_model::{CellValue, Field, FieldId, FieldKind, Model, RecordType, RecordTypeId};

use crate::detail::display::{DisplaySize, display_cell, fit_text};
use crate::labels::{ResourceLabels, field_label};
use crate::view::{DisplayValue, LabelledValue};

/// Some fields of a record type, ready to be read.
#[derive(Debug)]
pub struct RecordReading {
    pub record: RecordTypeId,
    /// The id, then the title where the type has one, then the rest.
    pub selection: Arc<Selection>,
    fields: Vec<(FieldId, CellSource)>,
    has_title: bool,
}

/// Where in a row a field is.
#[derive(Debug, Clone, Copy)]
enum CellSource {
    Column(usize),
    /// A reference: its own column, and the record it leads to.
    Reference(usize, usize),
}

impl RecordReading {
    /// These fields, all of them stored.
    pub fn new(
        model: &Model,
        all_labels: &[ResourceLabels],
        record: RecordTypeId,
        shown: &[FieldId],
    ) -> RecordReading {
        let (owner, title) = (model.record(record), all_labels[record.0].title_field);
        let mut columns = vec![owner.id_field()];
        columns.extend(title);
        let (mut fields, mut children) = (Vec::new(), Vec::new());
        for field in shown {
            let column = columns.iter().position(|known| known == field).unwrap_or_else(|| {
                columns.push(*field);
                columns.len() - 1
            });
            let from = match &owner.field(*field).kind {
                FieldKind::Reference { target, .. } => {
                    let selection = name_selection(model, all_labels, *target);
                    children.push(ChildSelection { field: *field, listing: Listing::default(), selection });
                    CellSource::Reference(column, children.len() - 1)
                }
                FieldKind::Id
                | FieldKind::Scalar(_)
                | FieldKind::Enum(_)
                | FieldKind::Embedded(_)
                | FieldKind::List(_)
                | FieldKind::Inverse { .. }
                | FieldKind::Link { .. }
                | FieldKind::Unstored => CellSource::Column(column),
            };
            fields.push((*field, from));
        }
        let selection = Arc::new(Selection::new(columns, children));
        RecordReading { record, selection, fields, has_title: title.is_some() }
    }

    /// The same, with the version behind the columns and these children behind the references.
    pub fn with_children(self, more: Vec<ChildSelection>) -> RecordReading {
        let Selection { columns, children, .. } = &*self.selection;
        let children = children.iter().cloned().chain(more).collect();
        let selection = Arc::new(Selection::new(columns.clone(), children).with_version());
        RecordReading { selection, ..self }
    }

    /// How many of the children are references; others come behind them.
    pub fn reference_count(&self) -> usize {
        self.fields.iter().filter(|(_, from)| matches!(from, CellSource::Reference(..))).count()
    }

    pub fn fields(&self) -> impl Iterator<Item = FieldId> {
        self.fields.iter().map(|(field, _)| *field)
    }

    /// A record's id and what it is called.
    pub fn record_name(&self, all_labels: &[ResourceLabels], row: &OwnedRow) -> (i64, String) {
        record_name(&all_labels[self.record.0], row, self.has_title)
    }

    /// The fields of a row, but the one that is hidden.
    pub fn display_values(
        &self,
        model: &Model,
        all_labels: &[ResourceLabels],
        row: &OwnedRow,
        hidden: Option<FieldId>,
        room: DisplaySize,
    ) -> Vec<DisplayValue> {
        let owner = model.record(self.record);
        let fields = self.fields.iter().filter(|(field, _)| Some(*field) != hidden);
        fields
            .map(|(field, from)| match from {
                CellSource::Column(column) => {
                    display_cell(model, owner.field(*field), row.cells[*column].as_cell(), room)
                }
                CellSource::Reference(column, child) => {
                    let found = row.children[*child].first();
                    display_reference(
                        all_labels,
                        owner.field(*field),
                        row.cells[*column].as_cell(),
                        found,
                        room,
                    )
                }
            })
            .collect()
    }

    pub fn labelled_values(
        &self,
        model: &Model,
        all_labels: &[ResourceLabels],
        row: &OwnedRow,
    ) -> Vec<LabelledValue> {
        let owner = model.record(self.record);
        let field_labels = self.fields.iter().map(|(field, _)| field_label(owner.field(*field)));
        let values = self.display_values(model, all_labels, row, None, DisplaySize::Full);
        field_labels.zip(values).map(|(label, value)| LabelledValue { label, value }).collect()
    }
}

/// What is read of a record of which only the name is shown.
pub fn name_selection(model: &Model, all_labels: &[ResourceLabels], record: RecordTypeId) -> Selection {
    let columns = std::iter::once(model.record(record).id_field()).chain(all_labels[record.0].title_field);
    Selection::new(columns.collect(), Vec::new())
}

/// The id and the name in a row whose first cells they are.
pub fn record_name(labels: &ResourceLabels, row: &OwnedRow, has_title: bool) -> (i64, String) {
    let id = row.cells[0].as_cell().to_i64().unwrap_or_default();
    let title = match row.cells.get(1).map(|cell| cell.as_cell()) {
        Some(CellValue::Text(text)) if has_title => Some(text),
        Some(
            CellValue::Text(_)
            | CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Unreadable,
        )
        | None => None,
    };
    (id, labels.record_name(id, title))
}

/// The record that a reference leads to; one that another program has removed is still told by its number.
fn display_reference(
    all_labels: &[ResourceLabels],
    field: &Field,
    cell: CellValue<'_>,
    found: Option<&OwnedRow>,
    room: DisplaySize,
) -> DisplayValue {
    match (&field.kind, found, cell.to_i64()) {
        (FieldKind::Reference { target, .. }, Some(row), _) => {
            let labels = &all_labels[target.0];
            let (id, text) = record_name(labels, row, labels.title_field.is_some());
            let (text, is_cut) = fit_text(&text, room);
            let text = if is_cut { format!("{text}…") } else { text };
            DisplayValue::Record { href: format!("{}/{id}", labels.resource.path), text }
        }
        (_, None, Some(id)) => DisplayValue::Code { text: id.to_string() },
        (_, _, _) => DisplayValue::Nothing,
    }
}

/// The fields of a list besides the title: few, short ones first. What is kept as JSON has no room in a table.
pub fn list_columns(record: &RecordType, title: Option<FieldId>) -> Vec<FieldId> {
    const MOST: usize = 6;
    let fields = record.fields.iter().enumerate().map(|(i, field)| (FieldId(i), field));
    let fields = fields.filter(|(id, field)| {
        field.is_stored() && field.kind.is_comparable() && field.kind != FieldKind::Id && Some(*id) != title
    });
    let (long, short): (Vec<_>, Vec<_>) = fields.partition(|(_, field)| crate::labels::is_long_text(field));
    short.into_iter().chain(long).map(|(id, _)| id).take(MOST).collect()
}
