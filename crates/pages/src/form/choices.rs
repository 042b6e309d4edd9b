//! What the references and links of a form can lead to: the first few records, those that are chosen, and what was looked for.

use std::collections::HashMap;
use std::sync::Arc;

use trefoil_engine::{ComparisonOp, Condition, ListSlice, Listing, Operation, OwnedRow, Selection};
use trefoil_model::error::Result;
use trefoil_model::{CellValue, Field, FieldId, FieldKind, Model, RecordTypeId, StoredValue, Value};
use trefoil_resources::ServedResources;
use trefoil_resources::form_input::FormInput;

use crate::Pages;
use crate::multi_read::{FoundRows, TEXT_PREVIEW_BYTES, read_all};

/// So many are listed; of more, those that are looked for.
pub const MAX_OPTIONS: usize = 50;

/// So many ids are looked up by number, whatever was typed.
const MAX_CHOSEN: usize = 1_000;

/// Longer titles are cut: a choice is one line.
const MAX_TITLE_LENGTH: usize = 80;

/// What one reference or link can lead to.
#[derive(Debug, Default)]
pub struct OfferedRecords {
    pub options: Vec<(i64, String)>,
    /// There are others.
    pub has_more: bool,
    /// What was looked for.
    pub search: String,
    /// How many were found by it, where that is known.
    pub found_count: usize,
    /// Of the type that it leads to: "users".
    pub plural: String,
}

pub type ReferenceChoices = HashMap<FieldId, OfferedRecords>;

impl Pages {
    pub async fn reference_choices(
        &self,
        resources: &ServedResources,
        record: RecordTypeId,
        filled: &FormInput,
    ) -> Result<ReferenceChoices> {
        let model = resources.engine.model();
        let fields = model.record(record).fields.iter().enumerate();
        let fields = fields.filter(|(_, field)| field.is_writable()).filter_map(|(position, field)| {
            let (FieldKind::Reference { target, .. } | FieldKind::Link { target, .. }) = &field.kind else {
                return None;
            };
            Some((FieldId(position), field, *target))
        });
        let fields: Vec<(FieldId, &Field, RecordTypeId)> = fields.collect();
        let mut operations = Vec::new();
        for (id, field, target) in &fields {
            let sought = filled.searches.get(&field.input_name).map_or("", |text| text.trim());
            operations.push(self.first_records(model, *target, sought));
            operations.push(self.records_by_id(model, *target, chosen_ids(filled, *id, sought)));
        }
        if operations.is_empty() {
            return Ok(ReferenceChoices::new());
        }
        let mut gathered = read_all(&resources.engine, operations, TEXT_PREVIEW_BYTES).await?.into_iter();
        let mut choices = ReferenceChoices::new();
        for (id, field, target) in fields {
            let (Some(first), Some(numbered)) = (gathered.next(), gathered.next()) else { break };
            let sought = filled.searches.get(&field.input_name).cloned().unwrap_or_default();
            choices.insert(id, self.offered_records(target, first, numbered, sought));
        }
        Ok(choices)
    }

    /// In the order of ids: any other would have to look at all of them.
    fn first_records(&self, model: &Model, target: RecordTypeId, sought: &str) -> Operation {
        let search = Some(sought.to_owned()).filter(|sought| !sought.is_empty() && !sought.contains('\0'));
        let slice = ListSlice::First { first: MAX_OPTIONS as i64 + 1, after: None };
        let listing = Listing { search, slice, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.title_selection(model, target) }
    }

    fn records_by_id(&self, model: &Model, target: RecordTypeId, ids: Vec<i64>) -> Operation {
        let field = model.record(target).id_field();
        let value = Value::List(ids.into_iter().map(Value::Int).collect());
        let conditions = vec![Condition { field, op: ComparisonOp::In, value }];
        let listing = Listing { conditions, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.title_selection(model, target) }
    }

    /// The id and, where there is one, the title of each record.
    pub fn title_selection(&self, model: &Model, record: RecordTypeId) -> Arc<Selection> {
        let id = model.record(record).id_field();
        let columns = std::iter::once(id).chain(self.labels_of(record).title_field).collect();
        Arc::new(Selection::new(columns, Vec::new()))
    }

    fn offered_records(
        &self,
        target: RecordTypeId,
        first: FoundRows,
        numbered: FoundRows,
        sought: String,
    ) -> OfferedRecords {
        let more = first.rows.len() > MAX_OPTIONS;
        let found = first.rows.len().min(MAX_OPTIONS);
        let mut options: Vec<(i64, String)> = Vec::new();
        for row in first.rows.iter().take(MAX_OPTIONS).chain(&numbered.rows) {
            if let Some((id, title)) = self.row_title(target, row)
                && !options.iter().any(|(known, _)| *known == id)
            {
                options.push((id, title));
            }
        }
        if !more {
            options.sort_by_cached_key(|(_, title)| title.to_lowercase());
        }
        disambiguate(&mut options);
        let plural = self.labels_of(target).resource.plural.to_lowercase();
        OfferedRecords {
            options,
            has_more: more || !sought.trim().is_empty(),
            search: sought,
            found_count: found,
            plural,
        }
    }

    /// What a row of [`Served::titles`] says.
    pub fn row_title(&self, record: RecordTypeId, row: &OwnedRow) -> Option<(i64, String)> {
        let id = row.cells.first()?.as_cell().to_i64()?;
        let title = row.cells.get(1).map_or(CellValue::Null, StoredValue::as_cell);
        let title = if let CellValue::Text(text) = title { Some(text) } else { None };
        Some((id, cut_title(&self.labels_of(record).record_name(id, title))))
    }
}

/// The ids that are chosen now, and one that was looked for by number.
fn chosen_ids(filled: &FormInput, field: FieldId, sought: &str) -> Vec<i64> {
    let texts = filled.nodes.get(&field).into_iter().flat_map(|node| &node.texts);
    let ids = texts.flat_map(|text| text.lines()).filter_map(|line| line.trim().parse().ok());
    ids.chain(sought.parse().ok()).take(MAX_CHOSEN).collect()
}

/// Two records with one title go by their numbers as well.
fn disambiguate(options: &mut [(i64, String)]) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (_, title) in options.iter() {
        *times.entry(title.clone()).or_default() += 1;
    }
    for (id, title) in options.iter_mut().filter(|(_, title)| times[title] > 1) {
        *title = format!("{title} ({id})");
    }
}

fn cut_title(title: &str) -> String {
    match title.char_indices().nth(MAX_TITLE_LENGTH) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}
