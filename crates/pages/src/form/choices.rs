//! The records that the references and links of a form offer: the first few, the chosen ones and search results.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use trefoil_engine::{
    Condition, ListSlice, Listing, Operation, OwnedRow, PlanLimits, PreparedSelection, list_window,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, Model, RecordId, RecordType, RecordTypeId, Value};
use trefoil_resources::ServedResources;
use trefoil_resources::forms::form_input::FormInput;

use crate::Pages;
use crate::detail::display::ValueDisplay;
use crate::record_reading::name_selection;
use crate::snapshot_reads::{FoundRows, TEXT_PREVIEW_BYTES, read_each};

/// Records listed by a control; others are found by searching.
pub const MAX_OPTIONS: usize = 50;

/// Chosen ids that are looked up, however many were typed.
const MAX_CHOSEN: usize = 1_000;

/// Different searches for the records of one field that the rows of a form may run.
const MAX_ROW_SEARCHES: usize = 10;

/// Longer titles are cut, to fit on one line.
const MAX_TITLE_LENGTH: usize = 80;

/// The records that one reference or link offers.
#[derive(Debug, Default)]
pub struct OfferedRecords {
    pub options: Vec<(RecordId, String)>,
    /// True if there are other records.
    pub has_more: bool,
    /// The search text.
    pub search: String,
    /// Number of records listed or found, without the chosen ones.
    pub found_count: usize,
    /// There are too many records to search.
    pub is_refused: bool,
    /// Plural of the target type: "users".
    pub plural: String,
}

pub type ReferenceChoices = HashMap<FieldId, OfferedRecords>;

impl Pages {
    pub async fn reference_choices(
        &self,
        resources: &ServedResources,
        record: RecordTypeId,
        input: &FormInput,
    ) -> Result<ReferenceChoices> {
        Ok(self.choices_of_rows(resources, record, &[input]).await?.pop().unwrap_or_default())
    }

    /// The choices of several records of the same type, one for each input.
    pub async fn choices_of_rows(
        &self,
        resources: &ServedResources,
        record: RecordTypeId,
        inputs: &[&FormInput],
    ) -> Result<Vec<ReferenceChoices>> {
        let (model, display) = (resources.engine.model(), ValueDisplay::of(&resources.engine));
        let fields = model.record(record).fields.iter().enumerate();
        let is_shown = |id: &FieldId| inputs.iter().any(|input| !input.hidden_fields.contains(id));
        let fields = fields
            .filter(|(position, field)| field.is_writable() && is_shown(&FieldId(*position)))
            .filter_map(|(position, field)| Some((FieldId(position), field, field.kind.input_target()?)));
        let fields: Vec<(FieldId, &Field, RecordTypeId)> = fields.collect();
        let mut choices: Vec<ReferenceChoices> = inputs.iter().map(|_| ReferenceChoices::new()).collect();
        if fields.is_empty() {
            return Ok(choices);
        }
        let (mut operations, mut all_searches) = (Vec::new(), Vec::new());
        for (id, field, target) in &fields {
            let searches = distinct_searches(inputs, field);
            for search in &searches {
                operations.push(self.first_records(model, resources.engine.limits(), *target, search));
            }
            let ids = inputs.iter().flat_map(|input| {
                chosen_ids(model.record(*target), input, *id, search_text(input, field).trim())
            });
            let ids = ids.collect::<BTreeSet<RecordId>>().into_iter().take(MAX_CHOSEN).collect();
            operations.push(self.records_by_id(model, *target, ids));
            all_searches.push(searches);
        }
        let mut results = read_each(&resources.engine, operations, TEXT_PREVIEW_BYTES).await?.into_iter();
        for ((id, field, target), searches) in fields.into_iter().zip(all_searches) {
            let found: Vec<Result<FoundRows>> = results.by_ref().take(searches.len()).collect();
            let found = found.into_iter().map(search_result).collect::<Result<Vec<_>>>()?;
            let Some(by_id) = results.next().transpose()? else { break };
            for (input, choices) in inputs.iter().zip(&mut choices) {
                // A search beyond the limit is not run: the control offers what it does without one.
                let text = search_text(input, field);
                let position = searches.iter().position(|search| *search == text.trim());
                let text = if position.is_some() { text } else { "" };
                let chosen = chosen_ids(model.record(target), input, id, text.trim());
                let first = found[position.unwrap_or_default()].as_ref();
                let found = (&by_id, chosen.as_slice());
                let offered = self.offered_records(display, target, first, found, text.to_owned());
                choices.insert(id, offered);
            }
        }
        Ok(choices)
    }

    /// Ordered by id: any other order would have to read all records.
    fn first_records(
        &self,
        model: &Model,
        limits: &PlanLimits,
        target: RecordTypeId,
        search: &str,
    ) -> Operation {
        // A search that is no valid one is none.
        let search = Some(search.to_owned()).filter(|search| !search.is_empty());
        let search = search.and_then(|text| list_window::limited_search(limits, "q", text).ok());
        let slice = ListSlice::First { first: MAX_OPTIONS as i64 + 1, after: None };
        let listing = Listing { search, slice, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.title_selection(model, target) }
    }

    fn records_by_id(&self, model: &Model, target: RecordTypeId, ids: Vec<RecordId>) -> Operation {
        let field = model.record(target).id_field();
        let value = Value::List(ids.iter().map(RecordId::to_value).collect());
        let conditions = vec![Condition::one_of(field, value)];
        let listing = Listing { conditions, ..Listing::default() };
        Operation::List { record: target, listing, selection: self.title_selection(model, target) }
    }

    /// Selects the id and the title.
    pub fn title_selection(&self, model: &Model, record: RecordTypeId) -> Arc<PreparedSelection> {
        PreparedSelection::new(name_selection(model, &self.labels, record))
    }

    fn offered_records(
        &self,
        display: ValueDisplay<'_>,
        target: RecordTypeId,
        found: Option<&FoundRows>,
        (by_id, chosen): (&FoundRows, &[RecordId]),
        search: String,
    ) -> OfferedRecords {
        let first = found.map_or(&[][..], |found| &found.rows);
        let has_more = first.len() > MAX_OPTIONS;
        let found_count = first.len().min(MAX_OPTIONS);
        let mut options: Vec<(RecordId, String)> = Vec::new();
        let listed = first.iter().take(MAX_OPTIONS).filter_map(|row| self.row_title(display, target, row));
        let others = by_id.rows.iter().filter_map(|row| self.row_title(display, target, row));
        let chosen: HashSet<&RecordId> = chosen.iter().collect();
        let mut known = HashSet::new();
        for (id, title) in listed.chain(others.filter(|(id, _)| chosen.contains(id))) {
            if known.insert(id.clone()) {
                options.push((id, title));
            }
        }
        if !has_more {
            options.sort_by_cached_key(|(_, title)| title.to_lowercase());
        }
        disambiguate(&mut options);
        let plural = self.labels_of(target).resource.plural.to_lowercase();
        OfferedRecords {
            options,
            has_more: has_more || !search.trim().is_empty(),
            search,
            found_count,
            is_refused: found.is_none(),
            plural,
        }
    }

    /// Id and name in a row of [`Pages::title_selection`].
    pub fn row_title(
        &self,
        display: ValueDisplay<'_>,
        record: RecordTypeId,
        row: &OwnedRow,
    ) -> Option<(RecordId, String)> {
        let id = RecordId::from_cell(row.cells.first()?.as_cell())?;
        let name = cut_title(&self.labels_of(record).record_name(display, &id, row.cells.get(1..)?));
        Some((id, name))
    }
}

/// `None` for a search that would read too many records.
fn search_result(found: Result<FoundRows>) -> Result<Option<FoundRows>> {
    match found {
        Err(Error::Limit(_)) => Ok(None),
        found => found.map(Some),
    }
}

fn search_text<'i>(input: &'i FormInput, field: &Field) -> &'i str {
    input.searches.get(&field.input_name).map_or("", String::as_str)
}

/// The searches for the records of a field, the empty one first.
fn distinct_searches<'i>(inputs: &[&'i FormInput], field: &Field) -> Vec<&'i str> {
    let mut searches = Vec::new();
    if let [input] = inputs {
        searches.push(search_text(input, field).trim());
        return searches;
    }
    searches.push("");
    for text in inputs.iter().map(|input| search_text(input, field).trim()) {
        if searches.len() <= MAX_ROW_SEARCHES && !searches.contains(&text) {
            searches.push(text);
        }
    }
    searches
}

/// The chosen ids, and the search text if it is an id.
fn chosen_ids(target: &RecordType, input: &FormInput, field: FieldId, search: &str) -> Vec<RecordId> {
    let texts = input.nodes.get(&field).into_iter().flat_map(|node| &node.texts);
    let lines = texts.flat_map(|text| text.lines()).map(str::trim).chain([search]);
    lines.filter_map(|text| RecordId::from_text(target.key_form(), text).ok()).take(MAX_CHOSEN).collect()
}

/// Adds the id to titles that several records share.
fn disambiguate(options: &mut [(RecordId, String)]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (_, title) in options.iter() {
        *counts.entry(title.clone()).or_default() += 1;
    }
    for (id, title) in options.iter_mut().filter(|(_, title)| counts[title] > 1) {
        *title = format!("{title} ({id})");
    }
}

fn cut_title(title: &str) -> String {
    match title.char_indices().nth(MAX_TITLE_LENGTH) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_owned(),
    }
}
