//! `EditableRecord`: the stored values behind a form, and which of them a submitted form changes.

use std::collections::BTreeSet;

use trefoil_engine::plan::relation_target;
use trefoil_engine::{ChildSelection, ListSlice, Listing, Operation, OwnedRow, PreparedSelection, Selection};
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, FieldId, FieldKind, Model, RecordId, RecordType, StoredValue, Value};
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::forms::form_input::FormInput;
use trefoil_resources::forms::typed_values::ControlReader;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::form::value_texts::value_node;
use crate::multi_read::read_snapshot;

/// A link field with more records than this is left out of the form and stays as it is.
const MAX_LINKS: usize = 1_000;

/// A stored record to be edited.
pub struct EditableRecord {
    pub version: i64,
    pub title: String,
    /// Values of the writable fields.
    pub(crate) values: Vec<(FieldId, Value)>,
}

impl Pages {
    /// The stored record; `None` if it does not exist.
    pub async fn editable_record(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
    ) -> Result<Option<EditableRecord>> {
        let (record, record_type) = (request.record(), request.collection.record);
        let writable = || record.fields.iter().enumerate().filter(|(_, field)| field.is_writable());
        let columns: Vec<FieldId> =
            writable().filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect();
        let links = writable().filter(|(_, field)| field.kind.is_link());
        let links: Vec<ChildSelection> =
            links.map(|(i, _)| link_child(request, FieldId(i))).collect::<Result<_>>()?;
        let link_fields: Vec<FieldId> = links.iter().map(|child| child.field).collect();
        let title = self.labels_of(record_type).title_field;
        let selected_columns = columns.iter().copied().chain(title).collect();
        let selection = PreparedSelection::new(Selection::new(selected_columns, links).with_version());
        let found = read_snapshot(
            &request.resources.engine,
            vec![Operation::Get { record: record_type, id: id.clone(), selection }],
            usize::MAX,
        )
        .await?;
        let Some(row) = found.iter().flat_map(|found| &found.rows).next() else { return Ok(None) };
        let mut values: Vec<(FieldId, Value)> = Vec::new();
        for (field, cell) in columns.iter().zip(&row.cells) {
            values.push((*field, record.field(*field).cell_value(cell.as_cell())));
        }
        for (field, rows) in link_fields.iter().zip(&row.children).filter(|(_, rows)| rows.len() <= MAX_LINKS)
        {
            values.push((*field, Value::List(row_ids(rows).map(Value::Int).collect())));
        }
        let title =
            title.and_then(|_| row.cells.get(columns.len())).map_or(CellValue::Null, StoredValue::as_cell);
        let title = if let CellValue::Text(text) = title { Some(text) } else { None };
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64());
        let version = version.ok_or_else(|| Error::internal("a record without a version"))?;
        Ok(Some(EditableRecord {
            version,
            title: self.labels_of(record_type).record_name(id, title),
            values,
        }))
    }
}

fn link_child(request: &ResourceRequest<'_>, field: FieldId) -> Result<ChildSelection> {
    let target = relation_target(request.record().field(field))?;
    let id = request.resources.engine.model().record(target).id_field();
    let slice = ListSlice::First { first: MAX_LINKS as i64 + 1, after: None };
    let listing = Listing { slice, ..Listing::default() };
    Ok(ChildSelection::new(field, listing, Selection::new(vec![id], Vec::new())))
}

fn row_ids(rows: &[OwnedRow]) -> impl Iterator<Item = i64> {
    rows.iter().filter_map(|row| row.cells.first()?.as_cell().to_i64())
}

impl EditableRecord {
    /// Form input with the values of the record.
    pub fn to_form_input(&self, model: &Model, record: &RecordType) -> FormInput {
        let nodes = self.values.iter();
        let nodes = nodes.map(|(id, value)| (*id, value_node(model, &record.field(*id).kind, value, 0)));
        FormInput { nodes: nodes.collect(), ..FormInput::default() }
    }

    /// The fields that a submitted form of this record changes. An untouched control leaves its field alone, even if it
    /// could not show the whole value. A field without a control in the form is reset to its default or null.
    pub fn changed_fields(&self, model: &Model, record: &RecordType, submitted: FieldValues) -> FieldValues {
        let displayed = self.to_form_input(model, record);
        let mut changed = FieldValues::new();
        for (id, value) in &submitted {
            let field = record.field(*id);
            let before =
                displayed.nodes.get(id).map(|node| ControlReader::new(model).read_field(field, node));
            if !before.is_some_and(|before| is_same_value(&field.kind, before, value)) {
                changed.push((*id, value.clone()));
            }
        }
        for (position, field) in record.fields.iter().enumerate() {
            let id = FieldId(position);
            let is_submitted = submitted.iter().any(|(known, _)| *known == id);
            if field.is_writable() && field.is_stored() && !is_submitted {
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
