//! A record as it is kept, on its way into a form and, as far as nobody touched it there, out again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Served;
use crate::form::value_texts::spell;
use crate::multi_read::look;
use trefoil_engine::{Child, Listing, Operation, OwnedRow, Selection, Slice};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::json_text;
use trefoil_model::{Cell, FieldId, Kind, Model, RecordType, Stored, Value};
use trefoil_resources::field_values::Fields;
use trefoil_resources::form_input::Filled;
use trefoil_resources::request::Ask;
use trefoil_resources::typed_values::Reader;

/// More links than this are not shown in a form, and stay as they are.
const MOST_LINKS: usize = 1_000;

pub struct Kept {
    pub version: i64,
    pub title: String,
    /// Of the fields that people fill in.
    pub(crate) values: Vec<(FieldId, Value)>,
}

impl Served {
    /// None where there is no such record.
    pub async fn kept(&self, ask: &Ask<'_>, id: i64) -> Result<Option<Kept>> {
        let (record, of) = (ask.record(), ask.collection.record);
        let writable = || record.fields.iter().enumerate().filter(|(_, field)| field.is_writable());
        let columns: Vec<FieldId> =
            writable().filter(|(_, field)| field.is_stored()).map(|(i, _)| FieldId(i)).collect();
        let links = writable().filter(|(_, field)| matches!(field.kind, Kind::Link { .. }));
        let links: Vec<Child> = links.map(|(i, _)| child(ask, FieldId(i))).collect::<Result<_>>()?;
        let linked: Vec<FieldId> = links.iter().map(|child| child.field).collect();
        let title = self.subject(of).title;
        let selected = columns.iter().copied().chain(title).collect();
        let selection = Arc::new(Selection::new(selected, links).with_version());
        let found =
            look(&ask.site.engine, vec![Operation::Get { record: of, id, selection }], usize::MAX).await?;
        let Some(row) = found.iter().flat_map(|found| &found.rows).next() else { return Ok(None) };
        let mut values: Vec<(FieldId, Value)> = Vec::new();
        for (field, cell) in columns.iter().zip(&row.cells) {
            values.push((*field, json_text::value_of(&record.field(*field).kind, cell.as_cell())));
        }
        for (field, rows) in linked.iter().zip(&row.children).filter(|(_, rows)| rows.len() <= MOST_LINKS) {
            values.push((*field, Value::List(ids(rows).map(Value::Int).collect())));
        }
        let title = title.and_then(|_| row.cells.get(columns.len())).map_or(Cell::Null, Stored::as_cell);
        let title = if let Cell::Text(text) = title { Some(text) } else { None };
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64());
        let version = version.ok_or_else(|| Error::internal("a record without a version"))?;
        Ok(Some(Kept { version, title: self.subject(of).name(id, title), values }))
    }
}

fn child(ask: &Ask<'_>, field: FieldId) -> Result<Child> {
    let target = trefoil_engine::plan::target(ask.record().field(field))?;
    let id = ask.site.engine.model().record(target).id_field();
    let slice = Slice::First { first: MOST_LINKS as i64 + 1, after: None };
    let listing = Listing { slice, ..Listing::default() };
    Ok(Child { field, listing, selection: Selection::new(vec![id], Vec::new()) })
}

fn ids(rows: &[OwnedRow]) -> impl Iterator<Item = i64> {
    rows.iter().filter_map(|row| row.cells.first()?.as_cell().to_i64())
}

impl Kept {
    /// A form that says what the record says.
    pub fn filled(&self, model: &Model, record: &RecordType) -> Filled {
        let nodes = self.values.iter();
        let nodes = nodes.map(|(id, value)| (*id, spell(model, &record.field(*id).kind, value, 0)));
        Filled { nodes: nodes.collect(), ..Filled::default() }
    }

    /// What a form that was made of this record, and came back, changes: a control that says what it said leaves its
    /// field alone, also where it could not show all of it. What did not come back takes its default, or null.
    pub fn changed(&self, model: &Model, record: &RecordType, sent: Fields) -> Fields {
        let shown = self.filled(model, record);
        let mut changed = Fields::new();
        for (id, value) in &sent {
            let field = record.field(*id);
            let before = shown.nodes.get(id).map(|node| Reader::new(model).field(field, node));
            if !before.is_some_and(|before| is_same(&field.kind, before, value)) {
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
fn is_same(kind: &Kind, before: Value, now: &Value) -> bool {
    match (kind, before, now) {
        (Kind::Link { .. }, Value::List(before), Value::List(now)) => {
            let ids = |list: &[Value]| -> BTreeSet<String> {
                list.iter().map(|id| id.to_json().to_string()).collect()
            };
            ids(&before) == ids(now)
        }
        (_, before, now) => before == *now,
    }
}
