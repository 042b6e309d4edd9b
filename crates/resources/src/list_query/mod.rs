//! The query of a record path: filters, search, order, fields and slice of a list, and URLs of related lists.

pub(crate) mod included_relations;
pub(crate) mod query_params;

use http::Uri;

use trefoil_engine::{
    AccessView, Condition, CountMode, FieldComparison, ListSlice, Listing, PlanLimits, SortKey, list_window,
};
use trefoil_http::errors::problem::{Problem, RequestPart};
use trefoil_http::form_pairs::{self, FormPairs, percent_encode};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, Violation};
use trefoil_model::{FieldId, Model, RecordType, RecordTypeId, Value};

use crate::filter_params::FilterParser;
use crate::forms::typed_values::local_time;
use crate::list_query::query_params::{QueryReader, parse_integer};
use crate::record_shape::IncludedRelation;

pub use crate::filter_params::operators_for;
pub use crate::list_query::included_relations::MAX_INCLUDE_DEPTH;
pub use crate::list_query::query_params::{LIST_PARAMS, ParamSet};

/// A valid query.
#[derive(Debug, Default)]
pub struct ListQuery {
    pub listing: Listing,
    /// The selected fields in the order of the query; `None` for all.
    pub fields: Option<Vec<FieldId>>,
    pub chose_fields: bool,
    /// Without `fields`, links are shown too.
    pub all_fields: bool,
    /// The relations whose records are included.
    pub included: Vec<IncludedRelation>,
    /// The parameter `format`.
    pub format: Option<ResponseFormat>,
    /// The parameter `all` of a write to many records.
    pub all_records: bool,
    /// The parameter `by` of an upsert.
    pub unique_fields: Vec<FieldId>,
    /// A stream starts with the current list.
    pub snapshot: bool,
    /// It is about one record, or those of the body.
    is_single: bool,
    /// The query has `page`, `size` or `after`.
    pub is_sliced: bool,
    /// The parameter `page`, or 1.
    pub page: i64,
    /// The known parameters, for links to other slices.
    pairs: FormPairs,
}

/// The part of a list that an export contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportExtent {
    Page,
    All,
}

impl ListQuery {
    pub fn parse(
        uri: &Uri,
        model: &Model,
        record: &RecordType,
        limits: &PlanLimits,
        params: ParamSet,
    ) -> Result<ListQuery, Problem> {
        let pairs = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?;
        ListQuery::from_pairs(pairs, model, record, limits, params)
    }

    pub fn from_pairs(
        mut pairs: FormPairs,
        model: &Model,
        record: &RecordType,
        limits: &PlanLimits,
        params: ParamSet,
    ) -> Result<ListQuery, Problem> {
        let mut reader = QueryReader::new(model, record, params);
        if params == ParamSet::Conditions {
            // Without one of its conditions a write would reach more records than asked.
            pairs
                .iter()
                .filter(|(_, value)| value.is_empty())
                .for_each(|(name, _)| reader.refuse_empty(name));
        }
        // An empty parameter counts as absent: a form sends all its controls.
        pairs.retain(|(_, value)| !value.is_empty());
        pairs.retain(|(name, value)| reader.take_param(name, value));
        let values = reader.finish().map_err(|violations| query_problem(Error::Invalid(violations)))?;
        let slice = values.slice(limits, params).map_err(slice_problem)?;
        let is_single = matches!(params, ParamSet::Fields | ParamSet::Upsert);
        let is_sliced = values.page.is_some() || values.size.is_some() || values.after.is_some();
        let conditions = list_window::limited_conditions(limits, values.conditions).map_err(query_problem)?;
        let search = values.search.map(|text| list_window::limited_search(limits, "q", text)).transpose();
        let search = search.map_err(query_problem)?;
        let count = if values.count.unwrap_or(false) { CountMode::Exact } else { CountMode::Skip };
        Ok(ListQuery {
            listing: Listing {
                conditions,
                search,
                sort_keys: values.sort_keys,
                slice,
                count,
                with_cursors: false,
            },
            fields: values.fields,
            all_fields: values.all_fields || is_single,
            all_records: values.all_records.unwrap_or(false),
            unique_fields: values.unique_fields,
            // A `format` is one of records, also for a collection that plain clients see as texts.
            chose_fields: values.chose_fields || values.format.is_some() || !values.included.is_empty(),
            included: values.included,
            format: values.format,
            snapshot: values.snapshot.unwrap_or(false),
            is_single,
            is_sliced,
            page: values.page.unwrap_or(1),
            pairs,
        })
    }

    /// Sets the order and the size of a page where the query says none.
    pub fn fill_display(&mut self, sort_keys: &[SortKey], page_size: Option<i64>, limits: &PlanLimits) {
        if self.param("sort").is_none() {
            self.listing.sort_keys = sort_keys.to_vec();
        }
        let Some(wanted) = page_size.filter(|_| self.param("size").is_none()) else { return };
        let wanted = wanted.min(limits.max_page_size);
        match &mut self.listing.slice {
            ListSlice::Page { size, .. }
            | ListSlice::First { first: size, .. }
            | ListSlice::Between { count: size, .. } => *size = wanted,
            ListSlice::All | ListSlice::Range { .. } => {}
        }
    }

    /// The parameter `sort` with the order of the list, if the query does not have it.
    pub fn filled_order(&self, model: &Model, record: &RecordType) -> Option<(&'static str, String)> {
        let keys =
            Some(&self.listing.sort_keys).filter(|keys| !keys.is_empty() && self.param("sort").is_none())?;
        let words: Vec<String> = keys.iter().map(|key| key.word(model, record)).collect();
        Some(("sort", words.join(",")))
    }

    /// The number of records that the answer has at most; 1 where the body says how many.
    pub(crate) fn max_records(&self) -> i64 {
        self.listing.slice.max_count().filter(|_| !self.is_single).unwrap_or(1)
    }

    /// Refuses fields and relations that are named and that the actor never sees.
    pub fn check_shown(&self, model: &Model, view: &AccessView, record: RecordTypeId) -> Result<(), Error> {
        let owner = model.record(record);
        // With a credential there may be more to see.
        let closed = included_relations::closed_target(model, view, record, &self.included);
        if let Some(closed) = closed.filter(|_| view.identity.is_none()) {
            view.require(AccessAction::Read, closed)?;
        }
        let hidden = |param: &str, name: &str| {
            Violation::new(param, "FORBIDDEN", format!("`{name}` may not be read by you"))
        };
        let mut places: Vec<(RecordTypeId, FieldId)> = Vec::new();
        let mut violations: Vec<Violation> = Vec::new();
        for field in self.fields.iter().flatten().filter(|field| view.hides_field(record, **field)) {
            places.push((record, *field));
            violations.push(hidden("fields", &owner.field(*field).input_name));
        }
        let included = self.included.iter().map(|included| included.field);
        places.extend(included.filter(|field| view.hides_field(record, *field)).map(|field| (record, field)));
        for name in included_relations::hidden_names(model, view, record, &self.included) {
            violations.push(hidden("include", &name));
        }
        for key in &self.listing.sort_keys {
            let place = key.value.path().and_then(|path| view.hidden_on_path(model, record, path));
            if let Some(place) = place {
                places.push(place);
                violations.push(hidden("sort", &key.value.name(model, owner)));
            }
        }
        if violations.is_empty() {
            return Ok(());
        }
        let first = places.first();
        let rule = first.and_then(|(owner, field)| view.field_refusal(AccessAction::Read, *owner, *field));
        Err(Error::Forbidden { violations, rule })
    }

    /// The conditions, each with the name and text of its parameter.
    pub fn filters(&self) -> impl Iterator<Item = (&Condition, &str, &str)> {
        let filters = self.pairs.iter().filter(|(name, _)| !LIST_PARAMS.contains(&name.as_str()));
        self.listing
            .conditions
            .iter()
            .zip(filters)
            .map(|(condition, (name, text))| (condition, name.as_str(), text.as_str()))
    }

    /// The search and the filters, without order, page and format.
    pub fn filter_pairs(&self) -> impl Iterator<Item = &(String, String)> {
        self.pairs.iter().filter(|(name, _)| name == "q" || !LIST_PARAMS.contains(&name.as_str()))
    }

    /// The value of a list parameter.
    pub fn param(&self, param: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == param).map(|(_, value)| value.as_str())
    }

    /// The page number; `None` after a cursor without a number.
    pub fn page_number(&self) -> Option<i64> {
        (self.param("page").is_some() || self.param("after").is_none()).then_some(self.page)
    }

    /// The URL of the first page in another order.
    pub fn sorted_url(&self, path: &str, sort: &str) -> String {
        self.url_without("sort", path, &[("sort", sort.to_owned())])
    }

    /// The URL of this page without what has no meaning, if the request has an empty parameter: a form sends all its
    /// controls.
    pub fn url_without_blanks(&self, path: &str, uri: &Uri) -> Option<String> {
        let mut sent = uri.query()?.split('&');
        let pairs = self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        sent.any(|pair| pair.ends_with('=')).then(|| query_url(path, pairs))
    }

    /// The URL of the first page with another number of records, or with the usual one.
    pub fn resized_url(&self, path: &str, size: &str) -> String {
        let size = Some(("size", size.to_owned())).filter(|(_, size)| !size.is_empty());
        self.url_without("size", path, size.as_slice())
    }

    /// The URL of the first page without a parameter.
    pub fn url_without(&self, param: &str, path: &str, others: &[(&str, String)]) -> String {
        let pairs = self.pairs.iter().filter(|(name, _)| name != param).cloned().collect();
        ListQuery { pairs, ..ListQuery::default() }.url_with(path, others)
    }

    /// The URL of another slice of this list: `position` replaces `page` and `after`.
    pub fn url_with(&self, path: &str, position: &[(&str, String)]) -> String {
        let others = self.pairs.iter().filter(|(name, _)| !["page", "after"].contains(&name.as_str()));
        let others = others.map(|(name, value)| (name.as_str(), value.as_str()));
        query_url(path, others.chain(position.iter().map(|(name, value)| (*name, value.as_str()))))
    }

    /// The URL of this page, or of the whole list, in a format of the API.
    pub fn export_url(
        &self,
        model: &Model,
        record: &RecordType,
        path: &str,
        format: &str,
        extent: ExportExtent,
    ) -> String {
        let is_position = |name: &str| ["page", "after", "size"].contains(&name);
        let others = self.pairs.iter().filter(|(name, _)| !is_position(name));
        let pairs =
            others.map(|(name, value)| (name.clone(), api_value(model, record, name, value))).collect();
        let mut position = match (extent, &self.listing.slice) {
            (ExportExtent::Page, ListSlice::Page { page, size }) => {
                vec![("page", page.to_string()), ("size", size.to_string())]
            }
            (ExportExtent::Page, ListSlice::First { first, after }) => {
                let after = after.iter().map(|after| ("after", after.clone()));
                after.chain([("size", first.to_string())]).collect()
            }
            (ExportExtent::Page, ListSlice::All | ListSlice::Between { .. } | ListSlice::Range { .. })
            | (ExportExtent::All, _) => Vec::new(),
        };
        position.extend(self.filled_order(model, record));
        position.push(("format", format.to_owned()));
        ListQuery { pairs, ..ListQuery::default() }.url_with(path, &position)
    }

    /// The `Link` header with the URLs of other slices, as far as they are known.
    pub fn link_header(&self, path: &str, next: Option<&str>, total: Option<u64>) -> String {
        let mut links = Vec::new();
        let mut add = |rel: &str, position: &[(&str, String)]| {
            links.push(format!("<{}>; rel=\"{rel}\"", self.url_with(path, position)));
        };
        match &self.listing.slice {
            ListSlice::Page { page, size } => {
                let page_param = |page: i64| [("page", page.to_string())];
                add("first", &page_param(1));
                if *page > 1 {
                    add("prev", &page_param(page - 1));
                }
                if next.is_some() {
                    add("next", &page_param(page.saturating_add(1)));
                }
                if let Some(total) = total {
                    add("last", &page_param((total.div_ceil((*size).max(1) as u64) as i64).max(1)));
                }
            }
            ListSlice::First { .. }
            | ListSlice::Between { .. }
            | ListSlice::Range { .. }
            | ListSlice::All => {
                add("first", &[]);
                if let Some(cursor) = next {
                    add("next", &[("after", cursor.to_owned())]);
                }
            }
        }
        links.join(", ")
    }
}

/// A path with these parameters.
pub fn query_url<'p>(path: &str, pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let pairs = pairs.map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)));
    let query: Vec<String> = pairs.collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// A problem that names the query as its part of the request.
pub fn query_problem(error: Error) -> Problem {
    Problem::from(error).about_part(RequestPart::Query)
}

/// A problem about the slice. The only limit of a slice is its size.
fn slice_problem(error: Error) -> Problem {
    let size =
        matches!(error, Error::Limit(_)).then(|| Violation::new("size", "LIMIT_EXCEEDED", error.to_string()));
    let problem = query_problem(error);
    match size {
        Some(violation) => problem.with_violations(vec![violation]),
        None => problem,
    }
}

/// A filter value of a page as the API expects it: days and local times stand for times on pages only.
pub fn api_value(model: &Model, record: &RecordType, name: &str, text: &str) -> String {
    let parser = FilterParser::new(model, true);
    let condition = parser.parse(record, name, text).ok().filter(|_| !LIST_PARAMS.contains(&name));
    match condition.as_ref().and_then(single_comparison).map(|comparison| &comparison.operand) {
        Some(Value::String(value)) => value.clone(),
        Some(Value::List(items)) => {
            let items: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            items.map_or_else(|| text.to_owned(), |items| items.join(","))
        }
        Some(_) | None => text.to_owned(),
    }
}

/// What is wrong with the filter of a page that asks for a time which clocks skip or show twice.
pub fn time_mistake(model: &Model, condition: &Condition) -> Option<String> {
    let operand = &single_comparison(condition)?.operand;
    let texts = match operand {
        Value::List(items) => items.iter().filter_map(Value::as_str).collect(),
        operand @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => Vec::from_iter(operand.as_str()),
    };
    let mistake = |text: &str| local_time(model.time_zone(), text)?.mistake(text);
    texts.into_iter().find_map(mistake)
}

/// The comparison of a condition that is no more than one, perhaps of a related record.
fn single_comparison(condition: &Condition) -> Option<&FieldComparison> {
    match condition {
        Condition::Compare(comparison) => Some(comparison),
        Condition::Related { conditions, .. } => match conditions.as_slice() {
            [inner] => single_comparison(inner),
            _ => None,
        },
        Condition::All(_)
        | Condition::Any(_)
        | Condition::Not(_)
        | Condition::HasId(_)
        | Condition::LinkedFrom { .. } => None,
    }
}

/// The parameters `page` and `size`, for a list without other parameters.
pub fn page_and_size(uri: &Uri, limits: &PlanLimits) -> Result<(i64, i64), Problem> {
    let pairs = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?;
    let number = |param: &str| {
        let pair = pairs.iter().rev().find(|(name, value)| name == param && !value.is_empty());
        pair.map(|(name, value)| parse_integer(name, value)).transpose()
    };
    let invalid = |violation| query_problem(Error::Invalid(vec![violation]));
    let (page, size) = (number("page").map_err(invalid)?, number("size").map_err(invalid)?);
    match list_window::page_slice(limits, page, size).map_err(slice_problem)? {
        ListSlice::Page { page, size } => Ok((page, size)),
        ListSlice::All | ListSlice::First { .. } | ListSlice::Between { .. } | ListSlice::Range { .. } => {
            Err(Error::internal("a page that is none").into())
        }
    }
}
