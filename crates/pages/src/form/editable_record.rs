//! A record as it is kept, on its way into a form and, as far as nobody touched it there, out again.

use std::collections::BTreeSet;
use std::sync::Arc;

use trefoil_engine::{ChildSelection, ListSlice, Listing, Operation, OwnedRow, Selection};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::json_text;
use trefoil_model::{CellValue, FieldId, FieldKind, Model, RecordType, StoredValue, Value};
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::form_input::FormInput;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::typed_values::ControlReader;

use crate::Pages;
use crate::form::value_texts::value_node;
use crate::multi_read::read_all;

/// More links than this are not shown in a form, and stay as they are.
const MAX_LINKS: usize = 1_000;

pub struct EditableRecord {
    pub version: i64,
    pub title: String,
    /// Of the fields that people fill in.
    pub(crate) values: Vec<(FieldId, Value)>,
}

impl Pages {
    /// None where there is no such record.
    pub async fn editable_record(
        &self,
        request: &ResourceRequest<'_>,
        id: i64,
    ) -> Result<Option<EditableRecord>> {
        let (record, of) = (request.record(), request.collection.record);
        let writable = || record.fields.iter().enumerate().filter(|(_, field)| field.is_writable());
        let columns: Vec<FieldId> =
            writable().filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect();
        let links = writable().filter(|(_, field)| matches!(field.kind, FieldKind::Link { .. }));
        let links: Vec<ChildSelection> =
            links.map(|(i, _)| link_child(request, FieldId(i))).collect::<Result<_>>()?;
        let linked: Vec<FieldId> = links.iter().map(|child| child.field).collect();
        let title = self.labels_of(of).title_field;
        let selected = columns.iter().copied().chain(title).collect();
        let selection = Arc::new(Selection::new(selected, links).with_version());
        let found = read_all(
            &request.resources.engine,
            vec![Operation::Get { record: of, id, selection }],
            usize::MAX,
        )
        .await?;
        let Some(row) = found.iter().flat_map(|found| &found.rows).next() else { return Ok(None) };
        let mut values: Vec<(FieldId, Value)> = Vec::new();
        for (field, cell) in columns.iter().zip(&row.cells) {
            values.push((*field, json_text::cell_to_value(&record.field(*field).kind, cell.as_cell())));
        }
        for (field, rows) in linked.iter().zip(&row.children).filter(|(_, rows)| rows.len() <= MAX_LINKS) {
            values.push((*field, Value::List(row_ids(rows).map(Value::Int).collect())));
        }
        let title =
            title.and_then(|_| row.cells.get(columns.len())).map_or(CellValue::Null, StoredValue::as_cell);
        let title = if let CellValue::Text(text) = title { Some(text) } else { None };
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64());
        let version = version.ok_or_else(|| Error::internal("a record without a version"))?;
        Ok(Some(EditableRecord { version, title: self.labels_of(of).record_name(id, title), values }))
    }
}

fn link_child(request: &ResourceRequest<'_>, field: FieldId) -> Result<ChildSelection> {
    let target = trefoil_engine::plan::relation_target(request.record().field(field))?;
    let id = request.resources.engine.model().record(target).id_field();
    let slice = ListSlice::First { first: MAX_LINKS as i64 + 1, after: None };
    let listing = Listing { slice, ..Listing::default() };
    Ok(ChildSelection { field, listing, selection: Selection::new(vec![id], Vec::new()) })
}

fn row_ids(rows: &[OwnedRow]) -> impl Iterator<Item = i64> {
    rows.iter().filter_map(|row| row.cells.first()?.as_cell().to_i64())
}

impl EditableRecord {
    /// A form that says what the record says.
    pub fn to_form_input(&self, model: &Model, record: &RecordType) -> FormInput {
        let nodes = self.values.iter();
        let nodes = nodes.map(|(id, value)| (*id, value_node(model, &record.field(*id).kind, value, 0)));
        FormInput { nodes: nodes.collect(), ..FormInput::default() }
    }

    /// What a form that was made of this record, and came back, changes: a control that says what it said leaves its
    /// field alone, also where it could not show all of it. What did not come back takes its default, or null.
    pub fn changed_fields(&self, model: &Model, record: &RecordType, sent: FieldValues) -> FieldValues {
        let shown = self.to_form_input(model, record);
        let mut changed = FieldValues::new();
        for (id, value) in &sent {
            let field = record.field(*id);
            let before = shown.nodes.get(id).map(|node| ControlReader::new(model).read_field(field, node));
            if !before.is_some_and(|before| is_same_value(&field.kind, before, value)) {
                changed.push((*id, value.clone()));
            }
        }
        for (position, field) in record.fields.iter().enumerate() {
            let id = FieldId(position);
            let is_sent = sent.iter().any(|(sent, _)| *sent == id);
            if field.is_writable() && field.is_stored() && !is_sent {
                changed.push((id, field.default.clone().unwrap_or(Value::Null)));
            }
        }
        changed
    }
}

/// Links have no order, and are there once however often they are named.
fn is_same_value(kind: &FieldKind, before: Value, now: &Value) -> bool {
    match (kind, before, now) {
        (FieldKind::Link { .. }, Value::List(before), Value::List(now)) => {
            let ids = |list: &[Value]| -> BTreeSet<String> {
                list.iter().map(|id| id.to_json().to_string()).collect()
            };
            ids(&before) == ids(now)
        }
        (_, before, now) => before == *now,
    }
}
