//! `SummaryQuery`: the address of a summary page, with what it leaves to defaults.

use trefoil_engine::{GroupOrder, OrderTarget};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_model::error::Violation;
use trefoil_model::{RecordTypeId, Scalar, ScalarGroup};
use trefoil_resources::aggregate_query::{GroupQuery, is_group_param};
use trefoil_resources::list_query::{ListQuery, ParamSet};
use trefoil_resources::request::ResourceRequest;

use crate::summary::choices::{DEFAULT_MEASURE, GroupChoices};

/// The parameters of a summary.
pub struct SummaryQuery {
    /// Search and filters, as on the list.
    pub list: ListQuery,
    /// The parameters of groups, with those that were left out.
    pub group_pairs: FormPairs,
    /// What is wrong with them; empty if `groups` are valid.
    pub violations: Vec<Violation>,
    pub groups: Option<GroupQuery>,
}

impl SummaryQuery {
    pub fn parse(
        request: &ResourceRequest<'_>,
        choices: &GroupChoices,
        record: RecordTypeId,
    ) -> Result<SummaryQuery, Problem> {
        let engine = &request.resources.engine;
        let (model, limits) = (engine.model(), engine.limits());
        let query = request.head.uri.query().unwrap_or_default();
        let pairs = form_pairs::parse_urlencoded(query, "the query")?;
        let (mut group_pairs, mut list_pairs): (FormPairs, FormPairs) =
            pairs.into_iter().partition(|(name, _)| is_group_param(name));
        // The page of a list, in an address that was made of it.
        list_pairs.retain(|(name, _)| !["page", "after", "format"].contains(&name.as_str()));
        let list = ListQuery::from_pairs(list_pairs, model, model.record(record), limits, ParamSet::Page)?;
        add_defaults(&mut group_pairs, choices);
        let (mut groups, violations) = match GroupQuery::of_list(&list, &group_pairs, model, record) {
            Ok(groups) => (Some(groups), Vec::new()),
            Err(violations) => (None, violations),
        };
        let has_order = group_pairs.iter().any(|(name, _)| name == "sort");
        if let Some(groups) = groups.as_mut().filter(|_| !has_order) {
            group_pairs.extend(add_default_order(groups));
        }
        Ok(SummaryQuery { list, group_pairs, violations, groups })
    }

    /// The values of a group parameter, which may be several in one text.
    pub fn texts(&self, param: &str) -> Vec<&str> {
        let values = self.group_pairs.iter().filter(|(name, _)| name == param);
        values.flat_map(|(_, value)| value.split(',')).map(str::trim).collect()
    }
}

/// Without any parameter of groups, the usual group key; without a measure, the number of records.
fn add_defaults(pairs: &mut FormPairs, choices: &GroupChoices) {
    let is_new = !pairs.iter().any(|(name, _)| name == "group" || name == "aggregate");
    pairs.retain(|(_, value)| !value.is_empty());
    if is_new {
        pairs.push(("group".to_owned(), choices.default_key.clone()));
    }
    if !pairs.iter().any(|(name, _)| name == "aggregate") {
        pairs.push(("aggregate".to_owned(), DEFAULT_MEASURE.to_owned()));
    }
}

/// Categories begin with the greatest; times, numbers and several keys stay in their own order.
fn add_default_order(groups: &mut GroupQuery) -> Option<(String, String)> {
    let [key] = groups.query.group_keys.as_slice() else { return None };
    let has_order = groups.columns[0].1.scalar().is_some_and(|scalar| match scalar.group() {
        ScalarGroup::Number | ScalarGroup::Time | ScalarGroup::Boolean => true,
        ScalarGroup::Text | ScalarGroup::Uuid | ScalarGroup::Json => false,
    });
    if key.period.is_some() || has_order {
        return None;
    }
    let (measure, value_type) = groups.columns.get(1)?;
    if !value_type.scalar().is_some_and(|scalar: Scalar| scalar.group() == ScalarGroup::Number) {
        return None;
    }
    groups.query.order.push(GroupOrder { target: OrderTarget::Measure(0), descending: true });
    Some(("sort".to_owned(), format!("-{measure}")))
}
