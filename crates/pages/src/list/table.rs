//! Records as table rows, in lists and on the detail page of a related record.

use trefoil_engine::{AllowedRecords, ListSlice, OwnedRow};
use trefoil_model::access::AccessAction;
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::record_path;
use trefoil_resources::list_query::ListQuery;

use crate::Pages;
use crate::detail::display::{BRIEF_LENGTH, DisplaySize, ValueDisplay};
use crate::labels::{ResourceLabels, field_label};
use crate::list::order::{ColumnOrder, order_phrase};
use crate::phrases::{bounded_count, counted_noun, cut_text, group_thousands};
use crate::record_reading::{RecordReading, row_id};
use crate::template_data::{ColumnView, TableRow};

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
        let (reading, display) = (self.row_reading(columns.record), ValueDisplay::of(&resources.engine));
        let (id, title) = reading.record_name(display, &self.labels, row);
        let resource = &self.labels_of(columns.record).resource;
        TableRow {
            key: format!("{}-{id}", resource.path.trim_start_matches('/')),
            title: cut_text(&title, BRIEF_LENGTH).map_or(title.clone(), |part| format!("{part}…")),
            href: record_path(columns.path, &id),
            edit: columns
                .editable
                .contains(&id)
                .then(|| format!("{}/edit", record_path(&resource.path, &id))),
            cells: reading.display_values(
                display,
                &self.labels,
                row,
                columns.hidden_field,
                DisplaySize::Brief,
            ),
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
        let model = resources.engine.model();
        let column = |(field, order): (Option<FieldId>, ColumnOrder)| {
            let field = field.map(|field| record.field(field));
            ColumnView {
                label: field.map_or(labels.resource.label.clone(), field_label),
                numeric: field.is_some_and(|field| field.kind.is_number()),
                sort: query.map(|query| order.link(model, record, columns.path, query)),
            }
        };
        let title = (labels.title.only_field(), ColumnOrder::of_title(record, labels));
        let fields =
            self.row_reading(columns.record).fields().filter(|field| Some(*field) != columns.hidden_field);
        let fields = fields.map(|field| (Some(field), ColumnOrder::of_field(record, field, &self.labels)));
        std::iter::once(title).chain(fields).map(column).collect()
    }
}

/// "1 to 20 of 42 users, by name".
pub fn table_caption(
    model: &Model,
    labels: (&ResourceLabels, &[ResourceLabels]),
    query: &ListQuery,
    shown: usize,
    total: u64,
) -> String {
    let (labels, all_labels) = labels;
    let nouns = (labels.resource.noun.as_str(), labels.plural_noun.as_str());
    let order = order_phrase(model, model.record(labels.record), all_labels, query);
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
        return format!("{} more of {all}, by {order}", group_thousands(shown as u64));
    };
    let first = page.saturating_sub(1).saturating_mul(size).unsigned_abs().saturating_add(1);
    let range = match shown as u64 {
        0 => return all,
        1 => group_thousands(first),
        shown => {
            format!("{} to {}", group_thousands(first), group_thousands(first.saturating_add(shown - 1)))
        }
    };
    format!("{range} of {all}, by {order}")
}
