//! One record with everything it says and what refers to it.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use crate::Served;
use crate::examples::page::About;
use crate::labels::Subject;
use crate::list::table::Columns;
use crate::multi_read::{Found, look};
use crate::phrases::{MOST_COUNTED, bounded, counted, grouped};
use crate::record_reading::{Reading, name};
use crate::view::{Detail, Head, Link, Related, Table};
use trefoil_engine::{Child, Count, Listing, Operation, Outcome, OwnedRow, Slice};
use trefoil_http::errors::problem::Problem;
use trefoil_model::naming::names;
use trefoil_model::{FieldId, Kind, Model, RecordType, TypeId};
use trefoil_resources::collection::{Nested, is};
use trefoil_resources::list_query::refused;
use trefoil_resources::request::Ask;

/// The first few of the records that refer to one, …
const FEW: i64 = 5;
/// … and of those that it is linked with, which have no list of their own.
const LINKED: i64 = 50;

/// What a record's page reads, and the lists below it.
pub struct Sheet {
    reading: Reading,
    below: Vec<Below>,
}

/// Records of one kind that belong to the one that is shown.
struct Below {
    label: String,
    record: TypeId,
    kind: BelowKind,
}

enum BelowKind {
    /// They refer to it by this field; the segment leads to all of them.
    Referring { reference: FieldId, segment: String },
    /// They are its children at this position, and at the next their ids alone, to be counted.
    Linked { child: usize },
}

impl Sheet {
    pub fn of(model: &Model, subjects: &[Subject], readings: &[Reading], record: TypeId) -> Sheet {
        let owner = model.record(record);
        let stored = owner.fields.iter().enumerate().filter(|(_, field)| field.is_stored());
        let stored: Vec<FieldId> = stored.map(|(i, _)| FieldId(i)).collect();
        let reading = Reading::of(model, subjects, record, &stored);
        let (first, mut children) = (reading.references(), Vec::new());
        let mut below = Vec::new();
        for (i, field) in owner.fields.iter().enumerate() {
            let (record, kind) = match &field.kind {
                Kind::Inverse { of, field: reference } => {
                    let segment = names::segment(&field.name);
                    (*of, BelowKind::Referring { reference: *reference, segment })
                }
                Kind::Link { target, .. } => {
                    let child = first + children.len();
                    let rows = Arc::unwrap_or_clone(readings[target.0].selection.clone());
                    children.push(linked(FieldId(i), LINKED, rows));
                    let ids =
                        trefoil_engine::Selection::new(vec![model.record(*target).id_field()], Vec::new());
                    children.push(linked(FieldId(i), i64::from(MOST_COUNTED) + 1, ids));
                    (*target, BelowKind::Linked { child })
                }
                Kind::Id
                | Kind::Scalar(_)
                | Kind::Enum(_)
                | Kind::Embedded(_)
                | Kind::List(_)
                | Kind::Reference { .. }
                | Kind::Unstored => continue,
            };
            below.push(Below { label: names::label(&field.name), record, kind });
        }
        Sheet { reading: reading.with(children), below }
    }

    /// The lists below are asked for with the record itself.
    fn lists(&self, served: &Served, id: i64) -> Vec<Operation> {
        let list = |below: &Below| match &below.kind {
            BelowKind::Linked { .. } => None,
            BelowKind::Referring { reference, .. } => {
                let listing = Listing {
                    conditions: vec![is(*reference, id)],
                    slice: Slice::First { first: FEW, after: None },
                    count: Count::UpTo(MOST_COUNTED),
                    ..Listing::default()
                };
                let selection = served.readings[below.record.0].selection.clone();
                Some(Operation::List { record: below.record, listing, selection })
            }
        };
        self.below.iter().filter_map(list).collect()
    }
}

fn linked(field: FieldId, first: i64, selection: trefoil_engine::Selection) -> Child {
    let listing = Listing { slice: Slice::First { first, after: None }, ..Listing::default() };
    Child { field, listing, selection }
}

impl Served {
    pub async fn one(&self, ask: &Ask<'_>, id: i64) -> Result<Response, Problem> {
        let record = ask.collection.record;
        let selection = self.sheets[record.0].reading.selection.clone();
        let own = Operation::Get { record, id, selection };
        let mut found = self.found(ask, record, id, vec![own]).await?;
        let resource = &self.subject(record).resource;
        let crumbs = vec![Link { label: resource.plural.clone(), href: resource.path.clone() }];
        self.detail(ask, record, id, found.remove(0), &found, crumbs)
    }

    /// A record of another record's: its reference must lead there.
    pub async fn one_below(
        &self,
        ask: &Ask<'_>,
        above: i64,
        nested: &Nested,
        id: i64,
    ) -> Result<Response, Problem> {
        let (record, parent) = (nested.record, ask.collection.record);
        let conditions = vec![is(self.id_field(ask, record), id), is(nested.reference, above)];
        let slice = Slice::First { first: 1, after: None };
        let listing = Listing { conditions, slice, ..Listing::default() };
        let selection = self.sheets[record.0].reading.selection.clone();
        let own = Operation::List { record, listing, selection };
        let names = self.names[parent.0].clone();
        let above_it = Operation::Get { record: parent, id: above, selection: names };
        let mut found = self.found(ask, record, id, vec![own, above_it]).await?;
        let (own, above_it) = (found.remove(0), found.remove(0));
        let subject = self.subject(parent);
        let row = above_it.rows.first().ok_or_else(|| ask.missing(parent, above))?;
        let (_, label) = name(subject, row, subject.title.is_some());
        let href = format!("{}/{above}", subject.resource.path);
        let list = format!("{href}/{}", nested.segment);
        let crumbs = vec![
            Link { label: subject.resource.plural.clone(), href: subject.resource.path.clone() },
            Link { label, href },
            Link { label: self.subject(record).resource.plural.clone(), href: list },
        ];
        self.detail(ask, record, id, own, &found, crumbs)
    }

    fn id_field(&self, ask: &Ask<'_>, record: TypeId) -> FieldId {
        ask.site.engine.model().record(record).id_field()
    }

    /// What `operations` and the lists below the record find, of one snapshot. What does not exist is told first.
    async fn found(
        &self,
        ask: &Ask<'_>,
        record: TypeId,
        id: i64,
        mut operations: Vec<Operation>,
    ) -> Result<Vec<Found>, Problem> {
        operations.extend(self.sheets[record.0].lists(self, id));
        let found = look(&ask.site.engine, operations, usize::MAX).await.map_err(refused)?;
        match found.first() {
            Some(own) if !own.rows.is_empty() => Ok(found),
            Some(_) | None => Err(ask.missing(record, id)),
        }
    }

    fn detail(
        &self,
        ask: &Ask<'_>,
        record: TypeId,
        id: i64,
        own: Found,
        below: &[Found],
        crumbs: Vec<Link>,
    ) -> Result<Response, Problem> {
        let (sheet, model) = (&self.sheets[record.0], ask.site.engine.model());
        let row = own.rows.first().ok_or_else(|| ask.missing(record, id))?;
        let resource = self.subject(record).resource.clone();
        let (_, title) = sheet.reading.name(&self.subjects, row);
        let version = row.cells[sheet.reading.selection.columns.len()].as_cell().to_i64();
        let detail = Detail {
            edit: format!("{}/{id}/edit", resource.path),
            delete: format!("{}/{id}/delete", resource.path),
            fields: sheet.reading.labelled(model, &self.subjects, row),
            related: self.related(ask, sheet, id, row, below),
            version: version.unwrap_or_default(),
            title: title.clone(),
            resource,
        };
        let section = &self.subject(ask.collection.record).resource.path;
        let mut head = Head::new(title, section, crumbs);
        let address = ask.head.uri.path();
        head.ways = Some(self.ways(ask.site, ask.head, About::Record { record, id, address }));
        Ok(ask.kept(self.show(ask.headers(), StatusCode::OK, head, "detail", &detail)?))
    }

    fn related(
        &self,
        ask: &Ask<'_>,
        sheet: &Sheet,
        id: i64,
        row: &OwnedRow,
        found: &[Found],
    ) -> Vec<Related> {
        let mut lists = found.iter();
        let related = sheet.below.iter().filter_map(|below| {
            let (rows, total): (&[OwnedRow], u64) = match &below.kind {
                BelowKind::Linked { child } => (&row.children[*child], row.children[*child + 1].len() as u64),
                BelowKind::Referring { .. } => {
                    let list = lists.next()?;
                    (&list.rows, total(&list.outcome))
                }
            };
            Some(self.one_related(ask, sheet.reading.record, id, below, rows, total))
        });
        related.collect()
    }

    fn one_related(
        &self,
        ask: &Ask<'_>,
        above: TypeId,
        id: i64,
        below: &Below,
        rows: &[OwnedRow],
        total: u64,
    ) -> Related {
        let subject = self.subject(below.record);
        let (above, own) = (&self.subject(above).resource.path, &subject.resource.path);
        let (href, new, hidden) = match &below.kind {
            BelowKind::Linked { .. } => (None, None, None),
            BelowKind::Referring { reference, segment } => (
                Some(format!("{above}/{id}/{segment}")),
                Some(self.new_address(ask.site, below.record, Some((id, *reference)))),
                Some(*reference),
            ),
        };
        let columns = Columns { record: below.record, hidden, path: href.as_deref().unwrap_or(own) };
        let table = Table {
            caption: few(rows.len(), total, subject),
            columns: self.columns(ask.site, &columns, None),
            rows: rows.iter().map(|row| self.row(ask.site, &columns, row)).collect(),
            live: None,
        };
        let (label, noun) = (below.label.clone(), subject.resource.noun.clone());
        Related { label, noun, count: bounded(total), href, new, table }
    }

    /// The form for a new record, which knows whose it is to be.
    pub fn new_address(
        &self,
        site: &trefoil_resources::Site,
        record: TypeId,
        above: Option<(i64, FieldId)>,
    ) -> String {
        let owner: &RecordType = site.engine.model().record(record);
        let new = format!("{}/new", self.subject(record).resource.path);
        match above {
            Some((id, field)) => format!("{new}?{}={id}", owner.field(field).input_name),
            None => new,
        }
    }
}

fn total(outcome: &Outcome) -> u64 {
    if let Outcome::Listed { total: Some(total), .. } = outcome { *total } else { 0 }
}

/// "The first 5 of 12 orders", "3 orders".
fn few(shown: usize, total: u64, subject: &Subject) -> String {
    if total > shown as u64 {
        return format!("The first {} of {} {}", grouped(shown as u64), bounded(total), subject.nouns);
    }
    counted(total, &subject.resource.noun, &subject.nouns)
}
