//! The list of a record type: what its page asks the store for.

use std::sync::Arc;

use axum::response::Response;

use trefoil_engine::{CountMode, Listing, Operation, Outcome, OwnedRow};
use trefoil_http::errors::problem::Problem;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::error::Error;
use trefoil_model::{FieldId, RecordTypeId};
use trefoil_resources::collection::{NestedCollection, equals_id};
use trefoil_resources::list_query::{ListQuery, ParamSet, query_problem};
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::list::filters::ListFilters;
use crate::list::page::ListPage;
use crate::multi_read::{FoundRows, TEXT_PREVIEW_BYTES, read_all};
use crate::phrases::MAX_COUNT;

/// Which list a page is of.
pub struct ListTarget {
    pub record: RecordTypeId,
    pub path: String,
    /// The record that it is a part of, and the field that says so.
    pub parent: Option<(i64, FieldId)>,
}

/// What a list found.
#[derive(Default)]
pub struct ListRows {
    pub rows: Vec<OwnedRow>,
    pub has_more: bool,
    pub total: u64,
}

impl Pages {
    pub async fn list_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let (record, path) = (request.collection.record, request.collection.path.clone());
        self.target_list_page(request, ListTarget { record, path, parent: None }).await
    }

    /// The records that refer to one record, which must be there.
    pub async fn nested_list_page(
        &self,
        request: &ResourceRequest<'_>,
        above: i64,
        nested: &NestedCollection,
    ) -> Result<Response, Problem> {
        let path = format!("{}/{above}/{}", request.collection.path, nested.segment);
        let above = Some((above, nested.reference));
        self.target_list_page(request, ListTarget { record: nested.record, path, parent: above }).await
    }

    async fn target_list_page(
        &self,
        request: &ResourceRequest<'_>,
        place: ListTarget,
    ) -> Result<Response, Problem> {
        let (resources, query) = (request.resources, request.parse_query(place.record, ParamSet::Page)?);
        let wrong = ListFilters::check_filters(resources, place.record, &query);
        let hidden = place.parent.map(|(_, field)| field);
        let filters =
            ListFilters { record: place.record, hidden_field: hidden, query: &query, errors: wrong };
        let mut operations: Vec<Operation> = self.parent_operation(request, &place).into_iter().collect();
        operations.extend(filters.choice_operations(self, resources));
        operations.extend(filters.errors.is_empty().then(|| self.list_operation(&place, &query)));
        let before = resources.response_cache.data_version();
        let mut found =
            read_all(&resources.engine, operations, TEXT_PREVIEW_BYTES).await.map_err(query_problem)?;
        let rows = if filters.errors.is_empty() { list_rows(found.pop())? } else { ListRows::default() };
        let above = match place.parent {
            Some((id, _)) => Some(expect_row(request, id, found.remove(0))?),
            None => None,
        };
        let listed = ListPage {
            pages: self,
            request,
            target: &place,
            filters: &filters,
            parent_row: above,
            filter_choices: found,
            rows,
        };
        Ok(CacheableAt::mark_response(before, request.with_cache_headers(listed.response()?)))
    }

    /// The record above is asked for with the list: that it is there, and what it is called.
    fn parent_operation(&self, request: &ResourceRequest<'_>, place: &ListTarget) -> Option<Operation> {
        let record = request.collection.record;
        place.parent.map(|(id, _)| Operation::Get {
            record,
            id,
            selection: self.name_selections[record.0].clone(),
        })
    }

    fn list_operation(&self, place: &ListTarget, query: &ListQuery) -> Operation {
        let mut listing =
            Listing { with_cursors: true, count: CountMode::UpTo(MAX_COUNT), ..query.listing.clone() };
        listing.conditions.extend(place.parent.map(|(id, field)| equals_id(field, id)));
        let selection = Arc::clone(&self.row_readings[place.record.0].selection);
        Operation::List { record: place.record, listing, selection }
    }
}

fn expect_row(request: &ResourceRequest<'_>, id: i64, found: FoundRows) -> Result<OwnedRow, Problem> {
    found.rows.into_iter().next().ok_or_else(|| request.not_found(request.collection.record, id))
}

fn list_rows(found: Option<FoundRows>) -> Result<ListRows, Problem> {
    match found {
        Some(FoundRows { rows, outcome: Outcome::Listed { has_more: more, total } }) => {
            Ok(ListRows { rows, has_more: more, total: total.unwrap_or_default() })
        }
        other => Err(Error::internal(format!("a list ended as {other:?}")).into()),
    }
}
