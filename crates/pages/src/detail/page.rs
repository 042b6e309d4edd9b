//! The detail page of a record: its fields, the records that refer to it and those linked with it.

use axum::response::Response;
use http::StatusCode;

use trefoil_engine::{AllowedRecords, KeyAccount, ListSlice, Listing, Operation, Outcome};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::percent_encode;
use trefoil_model::access::AccessAction;
use trefoil_model::{FieldId, RecordId, RecordType, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{NestedCollection, equals_id, record_path};
use trefoil_resources::list_query::query_problem;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::detail::display::ValueDisplay;
use crate::detail::layout::{DetailLayout, RelatedList};
use crate::examples::page::PageSubject;
use crate::labels::ResourceLabels;
use crate::list::table::TableColumns;
use crate::phrases::{bounded_count, counted_noun, group_thousands};
use crate::record_reading::record_name;
use crate::snapshot_reads::{FoundRows, read_snapshot};
use crate::template_data::{DetailView, ManageView, PageHead, PageLink, RelatedView, TableView};

impl Pages {
    pub async fn detail_page(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
    ) -> Result<Response, Problem> {
        let record = request.collection.record;
        let selection = self.detail_layouts[record.0].reading.selection.clone();
        let get = Operation::Get { record, id: id.clone(), selection };
        let mut found = self.read_with_related(request, record, id, vec![get]).await?;
        let resource = &self.labels_of(record).resource;
        let crumbs = vec![PageLink { label: resource.plural.clone(), href: resource.path.clone() }];
        self.detail_response(request, record, id, found.remove(0), &found, crumbs).await
    }

    /// A record below another one, to which its reference must point.
    pub async fn nested_detail_page(
        &self,
        request: &ResourceRequest<'_>,
        parent_id: &RecordId,
        nested: &NestedCollection,
        id: &RecordId,
    ) -> Result<Response, Problem> {
        let (record, parent_type) = (nested.record, request.collection.record);
        let own_id = request.resources.engine.model().record(record).id_field();
        let conditions = vec![equals_id(own_id, id), nested.condition(parent_type, parent_id)];
        let slice = ListSlice::First { first: 1, after: None };
        let listing = Listing { conditions, slice, ..Listing::default() };
        let selection = self.detail_layouts[record.0].reading.selection.clone();
        let own = Operation::List { record, listing, selection };
        let names = self.name_selections[parent_type.0].clone();
        let parent = Operation::Get { record: parent_type, id: parent_id.clone(), selection: names };
        let mut found = self.read_with_related(request, record, id, vec![own, parent]).await?;
        let (own, parent) = (found.remove(0), found.remove(0));
        let labels = self.labels_of(parent_type);
        let row = parent.rows.first().ok_or_else(|| request.not_found(parent_type, parent_id))?;
        let display = ValueDisplay::of(&request.resources.engine);
        let (_, label) = record_name(display, labels, row);
        let href = record_path(&labels.resource.path, parent_id);
        let list = format!("{href}/{}", nested.segment);
        let crumbs = vec![
            PageLink { label: labels.resource.plural.clone(), href: labels.resource.path.clone() },
            PageLink { label, href },
            PageLink { label: self.labels_of(record).resource.plural.clone(), href: list },
        ];
        self.detail_response(request, record, id, own, &found, crumbs).await
    }

    /// Reads `operations` and the related lists in one snapshot. 404 if the first operation finds nothing.
    async fn read_with_related(
        &self,
        request: &ResourceRequest<'_>,
        record: RecordTypeId,
        id: &RecordId,
        mut operations: Vec<Operation>,
    ) -> Result<Vec<FoundRows>, Problem> {
        operations.extend(self.detail_layouts[record.0].list_operations(&self.row_readings, id));
        let found =
            read_snapshot(&request.resources.engine, operations, usize::MAX).await.map_err(query_problem)?;
        match found.first() {
            Some(own) if !own.rows.is_empty() => Ok(found),
            Some(_) | None => Err(request.not_found(record, id)),
        }
    }

    async fn detail_response(
        &self,
        request: &ResourceRequest<'_>,
        record: RecordTypeId,
        id: &RecordId,
        record_rows: FoundRows,
        related_rows: &[FoundRows],
        crumbs: Vec<PageLink>,
    ) -> Result<Response, Problem> {
        let (layout, display) = (&self.detail_layouts[record.0], ValueDisplay::of(&request.resources.engine));
        let row = record_rows.rows.first().ok_or_else(|| request.not_found(record, id))?;
        let resource = self.labels_of(record).resource.clone();
        let (_, title) = layout.reading.record_name(display, &self.labels, row);
        let version = row.cells[layout.reading.selection.columns.len()].as_cell().to_i64();
        let engine = &request.resources.engine;
        let allowed = async |action| engine.allowed_records(action, record, || vec![id.clone()]).await;
        let is_editable = allowed(AccessAction::Update).await?.contains(id);
        let is_deletable = allowed(AccessAction::Delete).await?.contains(id);
        let fields = layout.reading.labelled_values(display, &self.labels, row);
        let detail = DetailView {
            edit: is_editable.then(|| format!("{}/edit", record_path(&resource.path, id))),
            delete: is_deletable.then(|| format!("{}/delete", record_path(&resource.path, id))),
            manage: self.manage_view(request, record, id).await?,
            groups: layout.reading.value_groups(display.model, &fields),
            fields,
            related: self.related_views(request, layout, id, related_rows).await?,
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

    /// What may be done with an account besides editing its record.
    async fn manage_view(
        &self,
        request: &ResourceRequest<'_>,
        record: RecordTypeId,
        id: &RecordId,
    ) -> Result<Option<ManageView>, Problem> {
        let engine = &request.resources.engine;
        let account = engine.model().access.as_ref().and_then(|access| access.account.as_ref());
        let Some(account) = account.filter(|account| account.record == record) else { return Ok(None) };
        if !engine.record_meets_for_actor(record, id, &account.manage).await? {
            return Ok(None);
        }
        let path = record_path("/_/accounts", id);
        let (link, end_sessions) = (format!("{path}/link"), format!("{path}/end-sessions"));
        let type_name = engine.model().record(record).name.clone();
        let sessions = self.sessions_of(engine, &KeyAccount { type_name, id: id.clone() }).await?;
        Ok(Some(ManageView { link, end_sessions, sessions }))
    }

    async fn related_views(
        &self,
        request: &ResourceRequest<'_>,
        layout: &DetailLayout,
        id: &RecordId,
        found: &[FoundRows],
    ) -> Result<Vec<RelatedView>, Problem> {
        let mut views = Vec::with_capacity(found.len());
        for (related, found) in layout.related_lists.iter().zip(found) {
            let editable =
                self.editable_records(request.resources, related.nested.record, &found.rows).await?;
            views.push(self.related_view(request, layout.reading.record, id, related, (found, &editable)));
        }
        Ok(views)
    }

    fn related_view(
        &self,
        request: &ResourceRequest<'_>,
        parent: RecordTypeId,
        id: &RecordId,
        RelatedList { label, nested }: &RelatedList,
        (found, editable): (&FoundRows, &AllowedRecords),
    ) -> RelatedView {
        let (rows, total) = (&found.rows, listed_total(&found.outcome));
        let labels = self.labels_of(nested.record);
        let (parent_path, own_path) = (&self.labels_of(parent).resource.path, &labels.resource.path);
        let href = format!("{}/{}", record_path(parent_path, id), nested.segment);
        let reference = nested.reference();
        let new = reference.and_then(|reference| {
            self.new_record_url(request.resources, nested.record, Some((id, reference)))
        });
        let columns = TableColumns {
            record: nested.record,
            hidden_field: reference,
            path: if reference.is_some() { &href } else { own_path },
            editable,
        };
        let table = TableView {
            caption: related_caption(rows.len(), total, labels),
            columns: self.column_views(request.resources, &columns, None),
            rows: rows.iter().map(|row| self.table_row(request.resources, &columns, row)).collect(),
            live: None,
        };
        let (label, noun) = (label.clone(), labels.resource.noun.clone());
        RelatedView { label, noun, count: bounded_count(total), href, new, table }
    }

    /// URL of the form for a new record, with the reference to its parent filled in; `None` if the actor may create none.
    pub fn new_record_url(
        &self,
        resources: &ServedResources,
        record: RecordTypeId,
        parent: Option<(&RecordId, FieldId)>,
    ) -> Option<String> {
        let (engine, create) = (&resources.engine, AccessAction::Create);
        let may_set = parent.is_none_or(|(_, field)| engine.may_set(create, record, field));
        if !(engine.may(create, record) && may_set) {
            return None;
        }
        let owner: &RecordType = resources.engine.model().record(record);
        let new = format!("{}/new", self.labels_of(record).resource.path);
        Some(match parent {
            Some((id, field)) => {
                format!("{new}?{}={}", owner.field(field).input_name, percent_encode(&id.to_string()))
            }
            None => new,
        })
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
