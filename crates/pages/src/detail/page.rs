//! One record with everything it says and what refers to it.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;

use trefoil_engine::{ChildSelection, CountMode, ListSlice, Listing, Operation, Outcome, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_model::naming::names;
use trefoil_model::{FieldId, FieldKind, Model, RecordType, RecordTypeId};
use trefoil_resources::collection::{NestedCollection, equals_id};
use trefoil_resources::list_query::query_problem;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::examples::page::PageSubject;
use crate::labels::ResourceLabels;
use crate::list::table::TableColumns;
use crate::multi_read::{FoundRows, read_all};
use crate::phrases::{MAX_COUNT, bounded_count, counted_noun, group_thousands};
use crate::record_reading::{RecordReading, record_name};
use crate::view::{DetailView, PageHead, PageLink, RelatedView, TableView};

/// The first few of the records that refer to one, …
const MAX_REFERRING: i64 = 5;
/// … and of those that it is linked with, which have no list of their own.
const MAX_LINKED: i64 = 50;

/// What a record's page reads, and the lists below it.
pub struct DetailLayout {
    reading: RecordReading,
    related_lists: Vec<RelatedList>,
}

/// Records of one kind that belong to the one that is shown.
struct RelatedList {
    label: String,
    record: RecordTypeId,
    kind: RelationKind,
}

enum RelationKind {
    /// They refer to it by this field; the segment leads to all of them.
    Referring { reference: FieldId, segment: String },
    /// They are its children at this position, and at the next their ids alone, to be counted.
    Linked { child: usize },
}

impl DetailLayout {
    pub fn new(
        model: &Model,
        all_labels: &[ResourceLabels],
        readings: &[RecordReading],
        record: RecordTypeId,
    ) -> DetailLayout {
        let owner = model.record(record);
        let stored = owner.fields.iter().enumerate().filter(|(_, field)| field.is_stored());
        let stored: Vec<FieldId> = stored.map(|(i, _)| FieldId(i)).collect();
        let reading = RecordReading::new(model, all_labels, record, &stored);
        let (first, mut children) = (reading.reference_count(), Vec::new());
        let mut below = Vec::new();
        for (i, field) in owner.fields.iter().enumerate() {
            let (record, kind) = match &field.kind {
                FieldKind::Inverse { target: of, field: reference } => {
                    let segment = names::path_segment(&field.name);
                    (*of, RelationKind::Referring { reference: *reference, segment })
                }
                FieldKind::Link { target, .. } => {
                    let child = first + children.len();
                    let rows = Arc::unwrap_or_clone(readings[target.0].selection.clone());
                    children.push(linked_child(FieldId(i), MAX_LINKED, rows));
                    let ids =
                        trefoil_engine::Selection::new(vec![model.record(*target).id_field()], Vec::new());
                    children.push(linked_child(FieldId(i), i64::from(MAX_COUNT) + 1, ids));
                    (*target, RelationKind::Linked { child })
                }
                FieldKind::Id
                | FieldKind::Scalar(_)
                | FieldKind::Enum(_)
                | FieldKind::Embedded(_)
                | FieldKind::List(_)
                | FieldKind::Reference { .. }
                | FieldKind::Unstored => continue,
            };
            below.push(RelatedList { label: names::display_label(&field.name), record, kind });
        }
        DetailLayout { reading: reading.with_children(children), related_lists: below }
    }

    /// The lists below are asked for with the record itself.
    fn list_operations(&self, pages: &Pages, id: i64) -> Vec<Operation> {
        let list = |below: &RelatedList| match &below.kind {
            RelationKind::Linked { .. } => None,
            RelationKind::Referring { reference, .. } => {
                let listing = Listing {
                    conditions: vec![equals_id(*reference, id)],
                    slice: ListSlice::First { first: MAX_REFERRING, after: None },
                    count: CountMode::UpTo(MAX_COUNT),
                    ..Listing::default()
                };
                let selection = pages.row_readings[below.record.0].selection.clone();
                Some(Operation::List { record: below.record, listing, selection })
            }
        };
        self.related_lists.iter().filter_map(list).collect()
    }
}

fn linked_child(field: FieldId, first: i64, selection: trefoil_engine::Selection) -> ChildSelection {
    let listing = Listing { slice: ListSlice::First { first, after: None }, ..Listing::default() };
    ChildSelection { field, listing, selection }
}

impl Pages {
    pub async fn detail_page(&self, request: &ResourceRequest<'_>, id: i64) -> Result<Response, Problem> {
        let record = request.collection.record;
        let selection = self.detail_layouts[record.0].reading.selection.clone();
        let own = Operation::Get { record, id, selection };
        let mut found = self.read_with_related(request, record, id, vec![own]).await?;
        let resource = &self.labels_of(record).resource;
        let crumbs = vec![PageLink { label: resource.plural.clone(), href: resource.path.clone() }];
        self.detail_response(request, record, id, found.remove(0), &found, crumbs)
    }

    /// A record of another record's: its reference must lead there.
    pub async fn nested_detail_page(
        &self,
        request: &ResourceRequest<'_>,
        above: i64,
        nested: &NestedCollection,
        id: i64,
    ) -> Result<Response, Problem> {
        let (record, parent) = (nested.record, request.collection.record);
        let conditions =
            vec![equals_id(self.id_field(request, record), id), equals_id(nested.reference, above)];
        let slice = ListSlice::First { first: 1, after: None };
        let listing = Listing { conditions, slice, ..Listing::default() };
        let selection = self.detail_layouts[record.0].reading.selection.clone();
        let own = Operation::List { record, listing, selection };
        let names = self.name_selections[parent.0].clone();
        let above_it = Operation::Get { record: parent, id: above, selection: names };
        let mut found = self.read_with_related(request, record, id, vec![own, above_it]).await?;
        let (own, above_it) = (found.remove(0), found.remove(0));
        let labels = self.labels_of(parent);
        let row = above_it.rows.first().ok_or_else(|| request.not_found(parent, above))?;
        let (_, label) = record_name(labels, row, labels.title_field.is_some());
        let href = format!("{}/{above}", labels.resource.path);
        let list = format!("{href}/{}", nested.segment);
        let crumbs = vec![
            PageLink { label: labels.resource.plural.clone(), href: labels.resource.path.clone() },
            PageLink { label, href },
            PageLink { label: self.labels_of(record).resource.plural.clone(), href: list },
        ];
        self.detail_response(request, record, id, own, &found, crumbs)
    }

    fn id_field(&self, request: &ResourceRequest<'_>, record: RecordTypeId) -> FieldId {
        request.resources.engine.model().record(record).id_field()
    }

    /// What `operations` and the lists below the record find, of one snapshot. What does not exist is told first.
    async fn read_with_related(
        &self,
        request: &ResourceRequest<'_>,
        record: RecordTypeId,
        id: i64,
        mut operations: Vec<Operation>,
    ) -> Result<Vec<FoundRows>, Problem> {
        operations.extend(self.detail_layouts[record.0].list_operations(self, id));
        let found =
            read_all(&request.resources.engine, operations, usize::MAX).await.map_err(query_problem)?;
        match found.first() {
            Some(own) if !own.rows.is_empty() => Ok(found),
            Some(_) | None => Err(request.not_found(record, id)),
        }
    }

    fn detail_response(
        &self,
        request: &ResourceRequest<'_>,
        record: RecordTypeId,
        id: i64,
        own: FoundRows,
        below: &[FoundRows],
        crumbs: Vec<PageLink>,
    ) -> Result<Response, Problem> {
        let (sheet, model) = (&self.detail_layouts[record.0], request.resources.engine.model());
        let row = own.rows.first().ok_or_else(|| request.not_found(record, id))?;
        let resource = self.labels_of(record).resource.clone();
        let (_, title) = sheet.reading.record_name(&self.labels, row);
        let version = row.cells[sheet.reading.selection.columns.len()].as_cell().to_i64();
        let detail = DetailView {
            edit: format!("{}/{id}/edit", resource.path),
            delete: format!("{}/{id}/delete", resource.path),
            fields: sheet.reading.labelled_values(model, &self.labels, row),
            related: self.related_views(request, sheet, id, row, below),
            version: version.unwrap_or_default(),
            title: title.clone(),
            resource,
        };
        let section = &self.labels_of(request.collection.record).resource.path;
        let mut head = PageHead::new(title, section, crumbs);
        let address = request.head.uri.path();
        head.ways = Some(self.api_examples(
            request.resources,
            request.head,
            PageSubject::Record { record, id, address },
        ));
        Ok(request.with_cache_headers(self.page_response(
            request.headers(),
            StatusCode::OK,
            head,
            "detail",
            &detail,
        )?))
    }

    fn related_views(
        &self,
        request: &ResourceRequest<'_>,
        sheet: &DetailLayout,
        id: i64,
        row: &OwnedRow,
        found: &[FoundRows],
    ) -> Vec<RelatedView> {
        let mut lists = found.iter();
        let related = sheet.related_lists.iter().filter_map(|below| {
            let (rows, total): (&[OwnedRow], u64) = match &below.kind {
                RelationKind::Linked { child } => {
                    (&row.children[*child], row.children[*child + 1].len() as u64)
                }
                RelationKind::Referring { .. } => {
                    let list = lists.next()?;
                    (&list.rows, listed_total(&list.outcome))
                }
            };
            Some(self.related_view(request, sheet.reading.record, id, below, rows, total))
        });
        related.collect()
    }

    fn related_view(
        &self,
        request: &ResourceRequest<'_>,
        above: RecordTypeId,
        id: i64,
        below: &RelatedList,
        rows: &[OwnedRow],
        total: u64,
    ) -> RelatedView {
        let labels = self.labels_of(below.record);
        let (above, own) = (&self.labels_of(above).resource.path, &labels.resource.path);
        let (href, new, hidden) = match &below.kind {
            RelationKind::Linked { .. } => (None, None, None),
            RelationKind::Referring { reference, segment } => (
                Some(format!("{above}/{id}/{segment}")),
                Some(self.new_record_url(request.resources, below.record, Some((id, *reference)))),
                Some(*reference),
            ),
        };
        let columns =
            TableColumns { record: below.record, hidden_field: hidden, path: href.as_deref().unwrap_or(own) };
        let table = TableView {
            caption: related_caption(rows.len(), total, labels),
            columns: self.column_views(request.resources, &columns, None),
            rows: rows.iter().map(|row| self.table_row(request.resources, &columns, row)).collect(),
            live: None,
        };
        let (label, noun) = (below.label.clone(), labels.resource.noun.clone());
        RelatedView { label, noun, count: bounded_count(total), href, new, table }
    }

    /// The form for a new record, which knows whose it is to be.
    pub fn new_record_url(
        &self,
        resources: &trefoil_resources::ServedResources,
        record: RecordTypeId,
        above: Option<(i64, FieldId)>,
    ) -> String {
        let owner: &RecordType = resources.engine.model().record(record);
        let new = format!("{}/new", self.labels_of(record).resource.path);
        match above {
            Some((id, field)) => format!("{new}?{}={id}", owner.field(field).input_name),
            None => new,
        }
    }
}

fn listed_total(outcome: &Outcome) -> u64 {
    if let Outcome::Listed { total: Some(total), .. } = outcome { *total } else { 0 }
}

/// "The first 5 of 12 orders", "3 orders".
fn related_caption(shown: usize, total: u64, labels: &ResourceLabels) -> String {
    if total > shown as u64 {
        return format!(
            "The first {} of {} {}",
            group_thousands(shown as u64),
            bounded_count(total),
            labels.plural_noun
        );
    }
    counted_noun(total, &labels.resource.noun, &labels.plural_noun)
}
