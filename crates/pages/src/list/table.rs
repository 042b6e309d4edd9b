//! Records as the rows of a table, in lists and below the record that they belong to.

use crate::Served;
use crate::detail::display::{BRIEF, Room};
use crate::labels::{label, noun};
use crate::phrases::{bounded, counted, cut, grouped};
use crate::record_reading::Reading;
use crate::view::{Column, Sort, TableRow};
use trefoil_engine::{OwnedRow, Slice};
use trefoil_model::{FieldId, Kind, RecordType, Scalar, TypeId};
use trefoil_resources::Site;
use trefoil_resources::list_query::Query;

/// A list as its table sees it.
pub struct Columns<'a> {
    pub record: TypeId,
    /// All rows have the same here.
    pub hidden: Option<FieldId>,
    /// Where each record's page is: `/users`, `/users/1/orders`.
    pub path: &'a str,
}

impl Served {
    fn reading(&self, record: TypeId) -> &Reading {
        &self.readings[record.0]
    }

    pub fn row(&self, site: &Site, columns: &Columns<'_>, row: &OwnedRow) -> TableRow {
        let (reading, model) = (self.reading(columns.record), site.engine.model());
        let (id, title) = reading.name(&self.subjects, row);
        let resource = &self.subject(columns.record).resource;
        TableRow {
            key: format!("{}-{id}", resource.path.trim_start_matches('/')),
            title: cut(&title, BRIEF).map_or(title.clone(), |part| format!("{part}…")),
            href: format!("{}/{id}", columns.path),
            edit: format!("{}/{id}/edit", resource.path),
            cells: reading.shown(model, &self.subjects, row, columns.hidden, Room::Brief),
        }
    }

    /// The headings; links that sort where there is a query to sort.
    pub fn columns(&self, site: &Site, columns: &Columns<'_>, query: Option<&Query>) -> Vec<Column> {
        let (record, subject) = (site.engine.model().record(columns.record), self.subject(columns.record));
        let column = |id: Option<FieldId>| {
            let field = id.map(|id| record.field(id));
            let sort = |id: FieldId| query.map(|query| sort(record, id, columns.path, query));
            Column {
                label: field.map_or(subject.resource.label.clone(), label),
                numeric: field.is_some_and(|field| is_number(&field.kind)),
                sort: id.or(Some(record.id_field())).and_then(sort),
            }
        };
        let shown = self.reading(columns.record).fields().filter(|field| Some(*field) != columns.hidden);
        std::iter::once(subject.title).chain(shown.map(Some)).map(column).collect()
    }
}

/// Sorts by this field, or the other way round where that is so already.
fn sort(record: &RecordType, id: FieldId, path: &str, query: &Query) -> Sort {
    let name = &record.field(id).input_name;
    let first = query.listing.order.first().filter(|order| order.field == id);
    let (now, word) = match first.map(|order| order.descending) {
        None => ("none", name.clone()),
        Some(false) => ("ascending", format!("-{name}")),
        Some(true) => ("descending", name.clone()),
    };
    Sort { href: query.sorted(path, &word), now }
}

pub fn is_number(kind: &Kind) -> bool {
    match kind {
        Kind::Scalar(scalar) => {
            matches!(scalar, Scalar::Int | Scalar::Float | Scalar::Long | Scalar::Decimal)
        }
        Kind::Id
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => false,
    }
}

/// "1 to 20 of 42 users, by name".
pub fn caption(record: &RecordType, nouns: (&str, &str), query: &Query, shown: usize, total: u64) -> String {
    let size = match query.listing.slice {
        Slice::Page { size, .. } | Slice::First { first: size, .. } => size,
        Slice::All => 0,
    };
    let all = match total {
        1 => counted(1, nouns.0, nouns.1),
        total => format!("{} {}", bounded(total), nouns.1),
    };
    let Some(page) = query.numbered() else {
        return format!("{} more of {all}, by {}", grouped(shown as u64), order(record, query));
    };
    let first = page.saturating_sub(1).saturating_mul(size).unsigned_abs().saturating_add(1);
    let range = match shown as u64 {
        0 => return all,
        1 => grouped(first),
        shown => format!("{} to {}", grouped(first), grouped(first.saturating_add(shown - 1))),
    };
    format!("{range} of {all}, by {}", order(record, query))
}

fn order(record: &RecordType, query: &Query) -> String {
    let words = query.listing.order.iter().map(|order| {
        let name = noun(&label(record.field(order.field)));
        if order.descending { format!("{name} descending") } else { name }
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "ID".to_owned() } else { words.join(", then ") }
}
