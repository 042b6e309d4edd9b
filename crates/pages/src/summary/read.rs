//! Reads everything that a summary page shows: filter choices and groups, in one snapshot.

use std::ops::Range;

use axum::response::Response;

use trefoil_engine::plan::MAX_GROUP_KEYS;
use trefoil_engine::{AggregateQuery, GroupKey, Operation, ReferencePath};
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::error::{Error, Violation};
use trefoil_model::{Model, RecordTypeId};
use trefoil_resources::list_query::{ListQuery, query_problem};
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::labels::ResourceLabels;
use crate::list::filters::ListFilters;
use crate::snapshot_reads::{TEXT_PREVIEW_BYTES, read_snapshot};
use crate::summary::page::SummaryPage;
use crate::summary::query::SummaryQuery;

/// Adds keys for the title of each record that a key identifies, which makes no more groups. Where these are among the
/// keys, for each of the keys; a title for which there is no room is left out.
fn add_title_keys(
    model: &Model,
    all_labels: &[ResourceLabels],
    record: RecordTypeId,
    query: &mut AggregateQuery,
) -> Vec<Range<usize>> {
    let keys = query.group_keys.clone();
    let mut add_title = |key: &GroupKey| {
        let start = query.group_keys.len();
        let target = key.identified_type(model, record).filter(|_| key.period.is_none())?;
        let title = &all_labels[model.find_record(&target.name)?.0].title;
        if start + title.parts.len() > MAX_GROUP_KEYS {
            return None;
        }
        let mut references = key.path.references.clone();
        if key.path.owner(model, model.record(record)).field(key.path.value.field).kind.is_reference() {
            references.push(key.path.value.field);
        }
        query.group_keys.extend(title.fields().map(|field| {
            let path = ReferencePath { references: references.clone(), value: field.into() };
            GroupKey { text: format!("title of {}", key.text), path, period: None }
        }));
        Some(start..query.group_keys.len())
    };
    keys.iter().map(|key| add_title(key).unwrap_or_default()).collect()
}

impl Pages {
    pub async fn summary_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let (resources, record) = (request.resources, request.collection.record);
        let choices = self.group_choices[record.0].as_ref().ok_or_else(not_found)?;
        let mut query = SummaryQuery::parse(request, choices, record)?;
        let errors = ListFilters::check_filters(resources, record, &query.list);
        let (mut aggregate, mut titles) = (None, Vec::new());
        if let Some(groups) = query.groups.as_ref().filter(|_| errors.is_empty()) {
            let mut read = groups.query.clone();
            titles = add_title_keys(resources.engine.model(), &self.labels, record, &mut read);
            aggregate = Some(Operation::Aggregate { record, query: read });
        }
        let data_version = resources.response_cache.data_version();
        let choice_operations = |list: &ListQuery| {
            let filters = ListFilters { record, hidden_field: None, query: list, errors: Vec::new() };
            filters.choice_operations(self, resources)
        };
        let is_read = aggregate.is_some();
        let operations = choice_operations(&query.list).into_iter().chain(aggregate).collect();
        let (mut found, is_read) =
            match read_snapshot(&resources.engine, operations, TEXT_PREVIEW_BYTES).await {
                Ok(found) => (found, is_read),
                // Only the groups can be wrong here.
                Err(error @ (Error::Limit(_) | Error::Invalid(_))) if is_read => {
                    query.violations.extend(group_violations(error));
                    let operations = choice_operations(&query.list);
                    let found = read_snapshot(&resources.engine, operations, TEXT_PREVIEW_BYTES).await;
                    (found.map_err(query_problem)?, false)
                }
                Err(error) => return Err(query_problem(error)),
            };
        let rows = if is_read { found.pop().map(|found| found.rows) } else { None };
        let filters = ListFilters { record, hidden_field: None, query: &query.list, errors };
        let page = SummaryPage {
            pages: self,
            request,
            choices,
            query: &query,
            filters: &filters,
            filter_choices: found,
            titles,
            rows,
        };
        Ok(CacheableAt::mark_response(data_version, request.with_cache_headers(page.response()?)))
    }
}

/// What the engine refused, as mistakes of the group parameters.
fn group_violations(error: Error) -> Vec<Violation> {
    if let Error::Invalid(violations) = error {
        return violations;
    }
    vec![Violation::new("group", "LIMIT_EXCEEDED", error.to_string())]
}
