//! `EditableRecord`: the stored values behind a form, and which of them a submitted form changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use trefoil_engine::plan::relation_target;
use trefoil_engine::{
    ChildSelection, Condition, Engine, ListSlice, Listing, Operation, OwnedRow, PreparedSelection, Selection,
};
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, Result};
use trefoil_model::{
    CellValue, FieldId, FieldKind, Model, RecordId, RecordTitle, RecordType, RecordTypeId, StoredValue, Value,
};
use trefoil_resources::collection::NestedCollection;
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::forms::edited_lists::{MAX_ROWS, edited_lists};
use trefoil_resources::forms::form_input::{ChildRow, FormInput};
use trefoil_resources::forms::form_tree::ControlNode;
use trefoil_resources::forms::typed_values::ControlReader;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::detail::display::ValueDisplay;
use crate::form::closed_fields::{closed_fields, is_list_open};
use crate::form::value_texts::value_node;
use crate::snapshot_reads::{FoundRows, read_snapshot};

/// A link field with more records than this is left out of the form and stays as it is.
const MAX_LINKS: usize = 1_000;

/// The texts in the rows of a list, together. A form with more might be too long to be sent.
const MAX_LIST_BYTES: usize = 256 * 1024;

/// A stored record to be edited.
pub struct EditableRecord {
    pub version: i64,
    pub title: String,
    /// Values of the writable fields.
    pub(crate) values: Vec<(FieldId, Value)>,
    /// The fields that the actor may not see or set.
    pub(crate) closed: Vec<FieldId>,
    /// The records that belong to it.
    pub lists: Vec<StoredList>,
}

/// The records of a list that a form edits.
pub struct StoredList {
    pub list: NestedCollection,
    pub rows: Vec<(RecordId, EditableRecord)>,
    /// There are too many of them for a form, or their texts are too long.
    pub is_too_long: bool,
}

/// The records of lists that are read along with a record.
#[derive(Clone, Copy)]
pub enum ReadRows<'i> {
    /// Those that a form shows.
    All,
    /// Those that a submitted form names.
    Named(&'i FormInput),
}

/// The columns and links that are read of a record: its id, the writable fields, its title and its version.
struct EditLayout {
    record: RecordTypeId,
    columns: Vec<FieldId>,
    links: Vec<FieldId>,
    selection: Arc<PreparedSelection>,
}

impl EditLayout {
    fn new(model: &Model, record: RecordTypeId, title: &RecordTitle) -> Result<EditLayout> {
        let owner = model.record(record);
        let writable = || owner.fields.iter().enumerate().filter(|(_, field)| field.is_writable());
        let columns: Vec<FieldId> =
            writable().filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect();
        let links = writable().filter(|(_, field)| field.kind.is_link());
        let links: Vec<ChildSelection> =
            links.map(|(i, _)| link_child(model, owner, FieldId(i))).collect::<Result<_>>()?;
        let link_fields = links.iter().map(|child| child.field).collect();
        let selected = std::iter::once(owner.id_field()).chain(columns.iter().copied()).chain(title.fields());
        let selection = PreparedSelection::new(Selection::new(selected.collect(), links).with_version());
        Ok(EditLayout { record, columns, links: link_fields, selection })
    }

    fn list_operation(&self, conditions: Vec<Condition>) -> Operation {
        let slice = ListSlice::First { first: MAX_ROWS as i64 + 1, after: None };
        let listing = Listing { conditions, slice, ..Listing::default() };
        Operation::List { record: self.record, listing, selection: self.selection.clone() }
    }
}

impl Pages {
    /// The stored record; `None` if it does not exist.
    pub async fn editable_record(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        read_rows: ReadRows<'_>,
    ) -> Result<Option<EditableRecord>> {
        let (model, record) = (request.resources.engine.model(), request.collection.record);
        let layout = EditLayout::new(model, record, &self.labels_of(record).title)?;
        let selection = layout.selection.clone();
        let mut operations = vec![Operation::Get { record, id: id.clone(), selection }];
        let mut lists = Vec::new();
        let engine = &request.resources.engine;
        for list in edited_lists(model, request.record()).filter(|list| is_list_open(engine, record, list)) {
            let layout = EditLayout::new(model, list.record, &self.labels_of(list.record).title)?;
            let belongs = list.condition(record, id);
            operations.push(layout.list_operation(vec![belongs.clone()]));
            if let ReadRows::Named(input) = read_rows {
                let named = Condition::one_of(
                    model.record(list.record).id_field(),
                    named_ids(model.record(list.record), input.rows(list.field)),
                );
                operations.push(layout.list_operation(vec![belongs, named]));
            }
            lists.push((list, layout));
        }
        let mut found = read_snapshot(&request.resources.engine, operations, usize::MAX).await?.into_iter();
        let row = found.next().and_then(|found| found.rows.into_iter().next());
        let Some(row) = row else { return Ok(None) };
        let (_, mut stored) = self.editable_row(engine, &layout, &row)?;
        for (list, layout) in lists {
            let (Some(all), named) = (found.next(), matches!(read_rows, ReadRows::Named(_))) else { break };
            let is_too_long = is_too_long(&all);
            let shown = match (named, is_too_long) {
                (true, _) => found.next().map(|named| named.rows).unwrap_or_default(),
                (false, true) => Vec::new(),
                (false, false) => all.rows,
            };
            let rows =
                shown.iter().map(|row| self.editable_row(engine, &layout, row)).collect::<Result<_>>()?;
            stored.lists.push(StoredList { list, rows, is_too_long });
        }
        Ok(Some(stored))
    }

    fn editable_row(
        &self,
        engine: &Engine,
        layout: &EditLayout,
        row: &OwnedRow,
    ) -> Result<(RecordId, EditableRecord)> {
        let record = engine.model().record(layout.record);
        let id = row.cells.first().and_then(|cell| RecordId::from_cell(cell.as_cell()));
        let id = id.ok_or_else(|| Error::internal("a record without an id"))?;
        let mut values: Vec<(FieldId, Value)> = Vec::new();
        for (field, cell) in layout.columns.iter().zip(row.cells.iter().skip(1)) {
            values.push((*field, record.field(*field).cell_value(cell.as_cell())));
        }
        let links = layout.links.iter().zip(&row.children);
        for (field, rows) in links.filter(|(_, rows)| rows.len() <= MAX_LINKS) {
            values.push((*field, Value::List(linked_ids(rows).collect())));
        }
        let title_cells = row.cells.get(layout.columns.len() + 1..).unwrap_or_default();
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64());
        let version = version.ok_or_else(|| Error::internal("a record without a version"))?;
        let title = self.labels_of(layout.record).record_name(ValueDisplay::of(engine), &id, title_cells);
        let closed = closed_fields(engine, AccessAction::Update, layout.record);
        Ok((id, EditableRecord { version, title, values, closed, lists: Vec::new() }))
    }
}

fn link_child(model: &Model, owner: &RecordType, field: FieldId) -> Result<ChildSelection> {
    let target = relation_target(owner.field(field))?;
    let id = model.record(target).id_field();
    let slice = ListSlice::First { first: MAX_LINKS as i64 + 1, after: None };
    let listing = Listing { slice, ..Listing::default() };
    Ok(ChildSelection::new(field, listing, Selection::new(vec![id], Vec::new())))
}

fn linked_ids(rows: &[OwnedRow]) -> impl Iterator<Item = Value> {
    let ids = rows.iter().filter_map(|row| RecordId::from_cell(row.cells.first()?.as_cell()));
    ids.map(|id| id.to_value())
}

/// The ids in the rows of a form; a text that is none names no record.
fn named_ids(child: &RecordType, rows: &[ChildRow]) -> Value {
    let ids = rows.iter().filter_map(|row| RecordId::from_text(child.key_form(), row.id.as_deref()?).ok());
    Value::List(ids.map(|id| id.to_value()).collect())
}

fn is_too_long(found: &FoundRows) -> bool {
    let text_length =
        |cell: &StoredValue| if let CellValue::Text(text) = cell.as_cell() { text.len() } else { 0 };
    let bytes: usize = found.rows.iter().flat_map(|row| &row.cells).map(text_length).sum();
    found.rows.len() > MAX_ROWS || bytes > MAX_LIST_BYTES
}

impl EditableRecord {
    /// Form input with the values of the record and of those that belong to it.
    pub fn to_form_input(&self, model: &Model, record: &RecordType) -> FormInput {
        let rows = |StoredList { list, rows, .. }: &StoredList| {
            let child = model.record(list.record);
            let rows = rows.iter().map(|(id, stored)| ChildRow {
                id: Some(id.to_string()),
                input: stored.to_form_input(model, child),
                ..ChildRow::default()
            });
            (list.field, rows.collect())
        };
        FormInput {
            nodes: self.displayed_nodes(model, record).collect(),
            version: Some(self.version.to_string()),
            child_rows: self.lists.iter().map(rows).collect(),
            ..FormInput::default()
        }
    }

    pub fn displayed_nodes(
        &self,
        model: &Model,
        record: &RecordType,
    ) -> impl Iterator<Item = (FieldId, ControlNode)> {
        let values = self.values.iter();
        values.map(move |(id, value)| (*id, value_node(model, &record.field(*id).kind, value, 0)))
    }

    /// The fields that a submitted form of this record changes. An untouched control leaves its field alone, even if it
    /// could not show the whole value. A field without a control in the form is reset to its default or null, but for
    /// those that the actor may not see or set.
    pub fn changed_fields(&self, model: &Model, record: &RecordType, submitted: FieldValues) -> FieldValues {
        let displayed: HashMap<FieldId, ControlNode> = self.displayed_nodes(model, record).collect();
        let mut changed = FieldValues::new();
        for (id, value) in &submitted {
            let field = record.field(*id);
            let before = displayed.get(id).map(|node| ControlReader::new(model).read_field(field, node));
            if !before.is_some_and(|before| is_same_value(&field.kind, before, value)) {
                changed.push((*id, value.clone()));
            }
        }
        for (position, field) in record.fields.iter().enumerate() {
            let id = FieldId(position);
            let is_submitted = submitted.iter().any(|(known, _)| *known == id);
            if field.is_writable() && field.is_stored() && !is_submitted && !self.closed.contains(&id) {
                changed.push((id, field.default.clone().unwrap_or(Value::Null)));
            }
        }
        changed
    }
}

/// True if the values are equal. Links have no order and no duplicates.
fn is_same_value(kind: &FieldKind, before: Value, now: &Value) -> bool {
    match (before, now) {
        (Value::List(before), Value::List(now)) if kind.is_link() => {
            let ids = |list: &[Value]| -> BTreeSet<String> {
                list.iter().map(|id| id.to_json().to_string()).collect()
            };
            ids(&before) == ids(now)
        }
        (before, now) => before == *now,
    }
}
