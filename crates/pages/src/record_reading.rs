//! `RecordReading`: the selection behind some fields of a record, with the titles of referenced records, and their display.

use std::sync::Arc;

use trefoil_engine::{ChildSelection, Listing, OwnedRow, PreparedSelection, Selection};
use trefoil_model::{CellValue, Field, FieldId, Model, RecordId, RecordTitle, RecordType, RecordTypeId};

use trefoil_resources::collection::record_path;

use crate::detail::display::{DisplaySize, ValueDisplay, display_cell, fit_text};
use crate::labels::{ResourceLabels, field_label, grouped, is_long_text, ordered_fields};
use crate::template_data::{DisplayValue, LabelledValue, ValueGroup};

/// Some fields of a record type and the selection that reads them.
#[derive(Debug)]
pub struct RecordReading {
    pub record: RecordTypeId,
    /// The id, then the fields of the title, then the other columns.
    pub selection: Arc<PreparedSelection>,
    fields: Vec<(FieldId, CellSource)>,
}

/// The place of a field in a row.
#[derive(Debug, Clone, Copy)]
enum CellSource {
    Column(usize),
    /// A reference: its own column, and the child with the record that it points to.
    Reference(usize, usize),
}

impl RecordReading {
    /// Reads these fields, all of which must be stored.
    pub fn new(
        model: &Model,
        all_labels: &[ResourceLabels],
        record: RecordTypeId,
        displayed: &[FieldId],
    ) -> RecordReading {
        let owner = model.record(record);
        let mut columns = vec![owner.id_field()];
        columns.extend(all_labels[record.0].title.fields());
        let (mut fields, mut children) = (Vec::new(), Vec::new());
        for field in displayed {
            let column = columns.iter().position(|known| known == field).unwrap_or_else(|| {
                columns.push(*field);
                columns.len() - 1
            });
            let source = match owner.field(*field).kind.reference() {
                Some(reference) => {
                    let selection = name_selection(model, all_labels, reference.target);
                    children.push(ChildSelection::new(*field, Listing::default(), selection));
                    CellSource::Reference(column, children.len() - 1)
                }
                None => CellSource::Column(column),
            };
            fields.push((*field, source));
        }
        let selection = PreparedSelection::new(Selection::new(columns, children));
        RecordReading { record, selection, fields }
    }

    /// The same with the version after the columns.
    pub fn with_version(self) -> RecordReading {
        let selection = PreparedSelection::new(Selection::clone(&self.selection).with_version());
        RecordReading { selection, ..self }
    }

    pub fn fields(&self) -> impl Iterator<Item = FieldId> {
        self.fields.iter().map(|(field, _)| *field)
    }

    /// Id and name of the record in a row.
    pub fn record_name(
        &self,
        display: ValueDisplay<'_>,
        all_labels: &[ResourceLabels],
        row: &OwnedRow,
    ) -> (RecordId, String) {
        record_name(display, &all_labels[self.record.0], row)
    }

    /// The fields of a row, without the hidden one.
    pub fn display_values(
        &self,
        display: ValueDisplay<'_>,
        all_labels: &[ResourceLabels],
        row: &OwnedRow,
        hidden: Option<FieldId>,
        size: DisplaySize,
    ) -> Vec<DisplayValue> {
        let owner = display.model.record(self.record);
        let fields = self.fields.iter().filter(|(field, _)| Some(*field) != hidden);
        fields
            .map(|(field, source)| match source {
                CellSource::Column(column) => {
                    display_cell(display, owner.field(*field), row.cells[*column].as_cell(), size)
                }
                CellSource::Reference(column, child) => {
                    let found = row.children[*child].first();
                    display_reference(
                        (display, all_labels),
                        owner.field(*field),
                        row.cells[*column].as_cell(),
                        found,
                        size,
                    )
                }
            })
            .collect()
    }

    pub fn labelled_values(
        &self,
        display: ValueDisplay<'_>,
        all_labels: &[ResourceLabels],
        row: &OwnedRow,
    ) -> Vec<LabelledValue> {
        let owner = display.model.record(self.record);
        let field_labels = self.fields.iter().map(|(field, _)| field_label(owner.field(*field)));
        let values = self.display_values(display, all_labels, row, None, DisplaySize::Full);
        field_labels.zip(values).map(|(label, value)| LabelledValue { label, value }).collect()
    }

    /// The values by the groups of their fields.
    pub fn value_groups(&self, model: &Model, values: &[LabelledValue]) -> Vec<ValueGroup> {
        let owner = model.record(self.record);
        let group = |(field, _): &(FieldId, CellSource)| owner.field(*field).display.group.clone();
        let groups = grouped(self.fields.iter().map(group).zip(values.iter().cloned()));
        groups.into_iter().map(|(label, fields)| ValueGroup { label, fields }).collect()
    }
}

/// Selects the id and the title, for records of which only the name is shown.
pub fn name_selection(model: &Model, all_labels: &[ResourceLabels], record: RecordTypeId) -> Selection {
    let columns = std::iter::once(model.record(record).id_field()).chain(all_labels[record.0].title.fields());
    Selection::new(columns.collect(), Vec::new())
}

/// Id and name in a row that begins with the id and the fields of the title.
pub fn record_name(display: ValueDisplay<'_>, labels: &ResourceLabels, row: &OwnedRow) -> (RecordId, String) {
    let id = row_id(row);
    let name = labels.record_name(display, &id, row.cells.get(1..).unwrap_or_default());
    (id, name)
}

/// A link to the record that a reference points to, or its id if another program has removed the record.
fn display_reference(
    (display, all_labels): (ValueDisplay<'_>, &[ResourceLabels]),
    field: &Field,
    cell: CellValue<'_>,
    found: Option<&OwnedRow>,
    size: DisplaySize,
) -> DisplayValue {
    match (field.kind.reference(), found, RecordId::from_cell(cell)) {
        (Some(reference), Some(row), _) => {
            let labels = &all_labels[reference.target.0];
            let (id, text) = record_name(display, labels, row);
            let (text, is_cut) = fit_text(&text, size);
            let text = if is_cut { format!("{text}…") } else { text };
            DisplayValue::Record { href: record_path(&labels.resource.path, &id), text }
        }
        (_, None, Some(id)) => DisplayValue::Code { text: id.to_string() },
        (_, _, _) => DisplayValue::Nothing,
    }
}

/// The columns of a list besides the title: those that the type names, or else at most six, short ones first. Values
/// stored as JSON do not fit into a table.
pub fn list_columns(
    record: &RecordType,
    title: &RecordTitle,
    is_shown: impl Fn(&FieldId) -> bool,
) -> Vec<FieldId> {
    const MAX_COLUMNS: usize = 6;
    if !record.display.columns.is_empty() {
        let named = record.display.columns.iter().filter_map(|name| record.find_field(name));
        return named.filter(is_shown).collect();
    }
    let fields = ordered_fields(record).into_iter().filter(|(id, field)| {
        field.is_stored()
            && !field.display.off.list
            && field.kind.is_comparable()
            && !field.kind.is_id()
            && !title.has_field(*id)
            && is_shown(id)
    });
    let (long, short): (Vec<_>, Vec<_>) =
        fields.partition(|(_, field)| field.display.order.is_none() && is_long_text(field));
    short.into_iter().chain(long).map(|(id, _)| id).take(MAX_COLUMNS).collect()
}

/// The id of a row that begins with it.
pub fn row_id(row: &OwnedRow) -> RecordId {
    // Another program may have written something that is no id.
    RecordId::from_cell(row.cells[0].as_cell()).unwrap_or(RecordId::Number(0))
}
