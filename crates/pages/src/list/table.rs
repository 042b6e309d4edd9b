//! Records as the rows of a table, in lists and below the record that they belong to.

use trefoil_engine::{ListSlice, OwnedRow};
use trefoil_model::{FieldId, FieldKind, RecordType, RecordTypeId, Scalar};
use trefoil_resources::ServedResources;
use trefoil_resources::list_query::ListQuery;

use crate::Pages;
use crate::detail::display::{BRIEF_LENGTH, DisplaySize};
use crate::labels::{field_label, noun_form};
use crate::phrases::{bounded_count, counted_noun, cut_text, group_thousands};
use crate::record_reading::RecordReading;
use crate::view::{ColumnView, SortLink, TableRow};

/// A list as its table sees it.
pub struct TableColumns<'a> {
    pub record: RecordTypeId,
    /// All rows have the same here.
    pub hidden_field: Option<FieldId>,
    /// Where each record's page is: `/users`, `/users/1/orders`.
    pub path: &'a str,
}

impl Pages {
    fn row_reading(&self, record: RecordTypeId) -> &RecordReading {
        &self.row_readings[record.0]
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
            href: format!("{}/{id}", columns.path),
            edit: format!("{}/{id}/edit", resource.path),
            cells: reading.display_values(model, &self.labels, row, columns.hidden_field, DisplaySize::Brief),
        }
    }

    /// The headings; links that sort where there is a query to sort.
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
                numeric: field.is_some_and(|field| is_number(&field.kind)),
                sort: id.or(Some(record.id_field())).and_then(sort),
            }
        };
        let shown =
            self.row_reading(columns.record).fields().filter(|field| Some(*field) != columns.hidden_field);
        std::iter::once(labels.title_field).chain(shown.map(Some)).map(column).collect()
    }
}

/// Sorts by this field, or the other way round where that is so already.
fn sort_link(record: &RecordType, id: FieldId, path: &str, query: &ListQuery) -> SortLink {
    let name = &record.field(id).input_name;
    let first = query.listing.sort_keys.first().filter(|order| order.field == id);
    let (now, word) = match first.map(|order| order.descending) {
        None => ("none", name.clone()),
        Some(false) => ("ascending", format!("-{name}")),
        Some(true) => ("descending", name.clone()),
    };
    SortLink { href: query.sorted_url(path, &word), now }
}

pub fn is_number(kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Scalar(scalar) => {
            matches!(scalar, Scalar::Int | Scalar::Float | Scalar::Long | Scalar::Decimal)
        }
        FieldKind::Id
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => false,
    }
}

/// "1 to 20 of 42 users, by name".
pub fn table_caption(
    record: &RecordType,
    nouns: (&str, &str),
    query: &ListQuery,
    shown: usize,
    total: u64,
) -> String {
    let size = match query.listing.slice {
        ListSlice::Page { size, .. } | ListSlice::First { first: size, .. } => size,
        ListSlice::All => 0,
    };
    let all = match total {
        1 => counted_noun(1, nouns.0, nouns.1),
        total => format!("{} {}", bounded_count(total), nouns.1),
    };
    let Some(page) = query.page_number() else {
        return format!(
            "{} more of {all}, by {}",
            group_thousands(shown as u64),
            order_phrase(record, query)
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
    format!("{range} of {all}, by {}", order_phrase(record, query))
}

fn order_phrase(record: &RecordType, query: &ListQuery) -> String {
    let words = query.listing.sort_keys.iter().map(|order| {
        let name = noun_form(&field_label(record.field(order.field)));
        if order.descending { format!("{name} descending") } else { name }
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "ID".to_owned() } else { words.join(", then ") }
}
