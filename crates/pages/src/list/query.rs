//! Reads everything that a list page shows: parent record, filter choices and rows, in one snapshot.

use std::sync::Arc;

use axum::response::Response;

use trefoil_engine::{CountMode, Listing, Operation, Outcome, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::RecordId;
use trefoil_model::error::Error;
use trefoil_resources::collection::{NestedCollection, record_path};
use trefoil_resources::list_query::{ListQuery, ParamSet, query_problem};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::see_other;

use crate::Pages;
use crate::flash;
use crate::list::filters::ListFilters;
use crate::list::page::{ListPage, ListRows, ListTarget};
use crate::list::sums::sum_operation;
use crate::phrases::MAX_COUNT;
use crate::snapshot_reads::{FoundRows, TEXT_PREVIEW_BYTES, read_snapshot};

impl Pages {
    pub async fn list_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let (record, path) = (request.collection.record, request.collection.path.clone());
        self.target_list_page(request, ListTarget { record, path, parent: None }).await
    }

    /// The records in a list of one record; 404 if that does not exist.
    pub async fn nested_list_page(
        &self,
        request: &ResourceRequest<'_>,
        parent_id: &RecordId,
        nested: &NestedCollection,
    ) -> Result<Response, Problem> {
        let path = format!("{}/{}", record_path(&request.collection.path, parent_id), nested.segment);
        let parent = Some((parent_id.clone(), nested.clone()));
        self.target_list_page(request, ListTarget { record: nested.record, path, parent }).await
    }

    async fn target_list_page(
        &self,
        request: &ResourceRequest<'_>,
        target: ListTarget,
    ) -> Result<Response, Problem> {
        let resources = request.resources;
        let mut query = request.parse_query(target.record, ParamSet::Page).await?;
        let is_navigation =
            request.headers().get(flash::FETCH_DEST).is_some_and(|destination| destination == "document");
        let clean = query.url_without_blanks(&target.path, &request.head.uri);
        if let Some(address) = clean.filter(|_| is_navigation) {
            return Ok(see_other(&address));
        }
        let labels = self.labels_of(target.record);
        query.fill_display(&labels.sort_keys, labels.page_size, resources.engine.limits());
        let errors = ListFilters::check_filters(resources, target.record, &query);
        let hidden_field = target.parent_reference().map(|(_, field)| field);
        let filters = ListFilters { record: target.record, hidden_field, query: &query, errors };
        let mut operations: Vec<Operation> = self.parent_operation(request, &target).into_iter().collect();
        operations.extend(filters.choice_operations(self, resources));
        let mut has_sums = false;
        if filters.errors.is_empty() {
            let listing = self.page_listing(request, &target, &query);
            let sums = sum_operation(&resources.engine, target.record, &listing);
            has_sums = sums.is_some();
            let selection = Arc::clone(&self.row_readings[target.record.0].selection);
            operations.extend(sums);
            operations.push(Operation::List { record: target.record, listing, selection });
        }
        let data_version = resources.response_cache.data_version();
        let mut found =
            read_snapshot(&resources.engine, operations, TEXT_PREVIEW_BYTES).await.map_err(query_problem)?;
        let rows = if filters.errors.is_empty() { list_rows(found.pop())? } else { ListRows::default() };
        let sums = if has_sums { found.pop().and_then(|found| found.rows.into_iter().next()) } else { None };
        let parent_row = match &target.parent {
            Some((id, _)) => Some(expect_row(request, id, found.remove(0))?),
            None => None,
        };
        let editable =
            self.editable_records(resources, target.record, &rows.rows).await.map_err(query_problem)?;
        let page = ListPage {
            pages: self,
            request,
            target: &target,
            filters: &filters,
            parent_row,
            filter_choices: found,
            sums,
            rows,
            editable,
        };
        Ok(CacheableAt::mark_response(data_version, request.with_cache_headers(page.response()?)))
    }

    /// Reads the name of the parent record together with the list, to check that it exists.
    fn parent_operation(&self, request: &ResourceRequest<'_>, target: &ListTarget) -> Option<Operation> {
        let record = request.collection.record;
        target.parent.as_ref().map(|(id, _)| Operation::Get {
            record,
            id: id.clone(),
            selection: self.name_selections[record.0].clone(),
        })
    }

    /// The records of the page, counted.
    fn page_listing(&self, request: &ResourceRequest<'_>, target: &ListTarget, query: &ListQuery) -> Listing {
        let mut listing =
            Listing { with_cursors: true, count: CountMode::UpTo(MAX_COUNT), ..query.listing.clone() };
        let owner = request.collection.record;
        listing.conditions.extend(target.parent.as_ref().map(|(id, nested)| nested.condition(owner, id)));
        listing
    }
}

fn expect_row(request: &ResourceRequest<'_>, id: &RecordId, found: FoundRows) -> Result<OwnedRow, Problem> {
    found.rows.into_iter().next().ok_or_else(|| request.not_found(request.collection.record, id))
}

fn list_rows(found: Option<FoundRows>) -> Result<ListRows, Problem> {
    match found {
        Some(FoundRows { rows, outcome: Outcome::Listed { has_more, total } }) => {
            Ok(ListRows { rows, has_more, total: total.unwrap_or_default() })
        }
        other => Err(Error::internal(format!("unexpected outcome of a list: {other:?}")).into()),
    }
}
