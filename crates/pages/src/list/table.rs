//! Records as table rows, in lists and on the detail page of a related record.

use trefoil_engine::{AllowedRecords, ListSlice, OwnedRow};
use trefoil_model::access::AccessAction;
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model, RecordType, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::record_path;
use trefoil_resources::list_query::ListQuery;

use crate::Pages;
use crate::detail::display::{BRIEF_LENGTH, DisplaySize};
use crate::labels::{field_label, noun_form};
use crate::phrases::{bounded_count, counted_noun, cut_text, group_thousands};
use crate::record_reading::{RecordReading, row_id};
use crate::template_data::{ColumnView, SortLink, TableRow};

/// The table of a list.
pub struct TableColumns<'a> {
    pub record: RecordTypeId,
    /// Not shown, because all rows have the same value.
    pub hidden_field: Option<FieldId>,
    /// Path of the list, below which its records are: `/users`, `/users/1/orders`.
    pub path: &'a str,
    /// The records that the actor may change.
    pub editable: &'a AllowedRecords,
}

impl Pages {
    fn row_reading(&self, record: RecordTypeId) -> &RecordReading {
        &self.row_readings[record.0]
    }

    /// Those of these records that the actor may change.
    pub async fn editable_records(
        &self,
        resources: &ServedResources,
        record: RecordTypeId,
        rows: &[OwnedRow],
    ) -> Result<AllowedRecords> {
        let ids = || rows.iter().map(row_id).collect();
        resources.engine.allowed_records(AccessAction::Update, record, ids).await
    }

    pub fn table_row(
        &self,
        resources: &ServedResources,
        columns: &TableColumns<'_>,
        row: &OwnedRow,
    ) -> TableRow {
        let (reading, model) = (self.row_reading(columns.record), resources.engine.model());
        let (id, title) = reading.record_name(&self.labels, row);
        let resource = &self.labels_of(columns.record).resource;
        TableRow {
            key: format!("{}-{id}", resource.path.trim_start_matches('/')),
            title: cut_text(&title, BRIEF_LENGTH).map_or(title.clone(), |part| format!("{part}…")),
            href: record_path(columns.path, &id),
            edit: columns
                .editable
                .contains(&id)
                .then(|| format!("{}/edit", record_path(&resource.path, &id))),
            cells: reading.display_values(model, &self.labels, row, columns.hidden_field, DisplaySize::Brief),
        }
    }

    /// The column headings, with links that sort if there is a query.
    pub fn column_views(
        &self,
        resources: &ServedResources,
        columns: &TableColumns<'_>,
        query: Option<&ListQuery>,
    ) -> Vec<ColumnView> {
        let (record, labels) =
            (resources.engine.model().record(columns.record), self.labels_of(columns.record));
        let column = |id: Option<FieldId>| {
            let field = id.map(|id| record.field(id));
            let sort = |id: FieldId| query.map(|query| sort_link(record, id, columns.path, query));
            ColumnView {
                label: field.map_or(labels.resource.label.clone(), field_label),
                numeric: field.is_some_and(|field| field.kind.is_number()),
                sort: id.or(Some(record.id_field())).and_then(sort),
            }
        };
        let fields =
            self.row_reading(columns.record).fields().filter(|field| Some(*field) != columns.hidden_field);
        std::iter::once(labels.title_field).chain(fields.map(Some)).map(column).collect()
    }
}

/// Link that sorts by the field, or reverses the order if the list is sorted by it.
fn sort_link(record: &RecordType, id: FieldId, path: &str, query: &ListQuery) -> SortLink {
    let name = &record.field(id).input_name;
    let first = query.listing.sort_keys.first().filter(|key| key.value.own_field() == Some(id));
    let (now, sort) = match first.map(|key| key.descending) {
        None => ("none", name.clone()),
        Some(false) => ("ascending", format!("-{name}")),
        Some(true) => ("descending", name.clone()),
    };
    SortLink { href: query.sorted_url(path, &sort), now }
}

/// "1 to 20 of 42 users, by name".
pub fn table_caption(
    model: &Model,
    record: RecordTypeId,
    nouns: (&str, &str),
    query: &ListQuery,
    shown: usize,
    total: u64,
) -> String {
    let size = match query.listing.slice {
        ListSlice::Page { size, .. }
        | ListSlice::First { first: size, .. }
        | ListSlice::Between { count: size, .. } => size,
        ListSlice::All | ListSlice::Range { .. } => 0,
    };
    let all = match total {
        1 => counted_noun(1, nouns.0, nouns.1),
        total => format!("{} {}", bounded_count(total), nouns.1),
    };
    let Some(page) = query.page_number() else {
        return format!(
            "{} more of {all}, by {}",
            group_thousands(shown as u64),
            order_phrase(model, model.record(record), query)
        );
    };
    let first = page.saturating_sub(1).saturating_mul(size).unsigned_abs().saturating_add(1);
    let range = match shown as u64 {
        0 => return all,
        1 => group_thousands(first),
        shown => {
            format!("{} to {}", group_thousands(first), group_thousands(first.saturating_add(shown - 1)))
        }
    };
    format!("{range} of {all}, by {}", order_phrase(model, model.record(record), query))
}

fn order_phrase(model: &Model, record: &RecordType, query: &ListQuery) -> String {
    let words = query.listing.sort_keys.iter().map(|key| {
        let Some(path) = key.value.path() else {
            return if key.descending { "relevance" } else { "relevance, the least first" }.to_owned();
        };
        let fields = path.fields(model, record).into_iter();
        let name = fields.map(|field| noun_form(&field_label(field))).collect::<Vec<_>>().join(" ");
        if key.descending { format!("{name} descending") } else { name }
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "ID".to_owned() } else { words.join(", then ") }
}
