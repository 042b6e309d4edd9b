//! The query of an aggregate: `aggregate=count,sum(total)&group=month(issuedOn)&status=PAID`.

use http::Uri;

use trefoil_engine::arguments::aggregates::AggregateParser;
use trefoil_engine::{AggregateQuery, GroupCondition, PlanLimits, list_window};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::error::{Error, Violation};
use trefoil_model::{Model, RecordType, RecordTypeId, ValueType};

use crate::filter_params::{self, FilterMistake};
use crate::forms::typed_values::typed_value;
use crate::list_query::query_params::{ParamSet, QueryParams, QueryReader};
use crate::list_query::{ListQuery, query_problem};

/// The parameter that makes a list an aggregate, unless a field has its name.
const AGGREGATE_PARAM: &str = "aggregate";

/// The parameters of groups, besides filters, `q` and `format`.
pub const GROUP_PARAMS: [&str; 5] = [AGGREGATE_PARAM, "group", "having", "sort", "size"];

/// A valid query for groups.
#[derive(Debug)]
pub struct GroupQuery {
    pub query: AggregateQuery,
    /// Name and type of each column: the group keys, then the measures.
    pub columns: Vec<(String, ValueType)>,
    /// The parameter `format`.
    pub format: Option<ResponseFormat>,
}

/// True if the query of a list asks for groups of its records.
pub fn asks_for_groups(uri: &Uri, record: &RecordType) -> bool {
    let pairs = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query");
    let is_given = |(name, value): &(String, String)| name == AGGREGATE_PARAM && !value.is_empty();
    record.find_input_field(AGGREGATE_PARAM).is_none() && pairs.is_ok_and(|pairs| pairs.iter().any(is_given))
}

impl GroupQuery {
    pub fn parse(
        uri: &Uri,
        model: &Model,
        record: RecordTypeId,
        limits: &PlanLimits,
    ) -> Result<GroupQuery, Problem> {
        let pairs = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?;
        let mut texts = GroupTexts::default();
        let mut reader = QueryReader::new(model, model.record(record), ParamSet::List);
        for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            match group_param_position(name) {
                Some(position) => texts[position].push(value),
                None => drop(reader.take_param(name, value)),
            }
        }
        let invalid = |violations| query_problem(Error::Invalid(violations));
        let params = reader.finish().map_err(invalid)?;
        refuse_list_params(&params).map_err(|violation| invalid(vec![violation]))?;
        let conditions = list_window::limited_conditions(limits, params.conditions).map_err(query_problem)?;
        let first = params.size.map(|size| list_window::limited_size("size", Some(size), limits));
        let first = first.transpose().map_err(query_problem)?;
        let search = params.search.map(|text| list_window::limited_search(limits, "q", text)).transpose();
        let search = search.map_err(query_problem)?;
        let mut query = AggregateQuery { conditions, search, first, ..AggregateQuery::default() };
        let columns = GroupParts::new(model, record).read(&mut query, texts).map_err(invalid)?;
        Ok(GroupQuery { query, columns, format: params.format })
    }

    /// The groups of the records in a list, by the group parameters beside it.
    pub fn of_list(
        list: &ListQuery,
        group_pairs: &FormPairs,
        model: &Model,
        record: RecordTypeId,
    ) -> Result<GroupQuery, Vec<Violation>> {
        let mut texts = GroupTexts::default();
        for (name, value) in group_pairs {
            if let Some(position) = group_param_position(name) {
                texts[position].push(value);
            }
        }
        let mut query = AggregateQuery {
            conditions: list.listing.conditions.clone(),
            search: list.listing.search.clone(),
            first: list.param("size").and_then(|size| size.parse().ok()),
            ..AggregateQuery::default()
        };
        let columns = GroupParts::new(model, record).read(&mut query, texts)?;
        Ok(GroupQuery { query, columns, format: None })
    }
}

/// The texts of the first four of [`GROUP_PARAMS`]: `size` is read like that of a list.
type GroupTexts<'t> = [Vec<&'t str>; 4];

fn group_param_position(name: &str) -> Option<usize> {
    GROUP_PARAMS[..4].iter().position(|param| *param == name)
}

/// True for a parameter that only groups have. A field of the same name can be filtered with an operator.
pub fn is_group_param(name: &str) -> bool {
    group_param_position(name).is_some()
}

/// The parameters that only lists of records have.
fn refuse_list_params(params: &QueryParams) -> Result<(), Violation> {
    let given = [
        ("fields", params.chose_fields),
        ("include", !params.included.is_empty()),
        ("page", params.page.is_some()),
        ("after", params.after.is_some()),
        ("count", params.count.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            let message = format!("`{name}` is for records; with `aggregate` the answer has groups");
            Err(Violation::new(name, "AGGREGATE", message))
        }
        None => Ok(()),
    }
}

/// Reads the texts of group parameters.
struct GroupParts<'m> {
    model: &'m Model,
    reader: AggregateParser<'m>,
}

impl<'m> GroupParts<'m> {
    fn new(model: &'m Model, record: RecordTypeId) -> GroupParts<'m> {
        GroupParts { model, reader: AggregateParser { model, record } }
    }

    /// Adds the parts to the query; the columns of the answer.
    fn read(
        &self,
        query: &mut AggregateQuery,
        [measures, groups, having, sort]: GroupTexts<'_>,
    ) -> Result<Vec<(String, ValueType)>, Vec<Violation>> {
        let (reader, mut violations, mut columns) =
            (self.reader, Vec::new(), Vec::<(String, ValueType)>::new());
        let mut note = |param: &str, result: Result<(), String>| {
            violations.extend(result.err().map(|message| Violation::new(param, "AGGREGATE", message)));
        };
        for text in items(&groups) {
            if query.group_keys.iter().any(|key| key.text == text) {
                continue;
            }
            let key = reader.group_key(text).map(|key| {
                columns.push((text.to_owned(), key.value_type(self.model, reader.record)));
                query.group_keys.push(key);
            });
            note("group", key);
        }
        for text in items(&measures) {
            let measure = reader.measure(text).map(|measure| {
                let value_type = measure.value_type(self.model, reader.record);
                let is_new = query.add_measure(measure) + 1 + query.group_keys.len() > columns.len();
                if is_new {
                    columns.push((text.to_owned(), value_type));
                }
            });
            note("aggregate", measure);
        }
        for text in having {
            match split_conditions(text) {
                Ok(conditions) => {
                    conditions.into_iter().for_each(|text| note("having", self.add_condition(query, text)));
                }
                Err(message) => note("having", Err(message)),
            }
        }
        for text in items(&sort) {
            let order = reader.order(query, text).map(|order| query.order.push(order));
            note("sort", order);
        }
        if violations.is_empty() { Ok(columns) } else { Err(violations) }
    }

    /// `sum(total).gte=5`.
    fn add_condition(&self, query: &mut AggregateQuery, text: &str) -> Result<(), String> {
        let Some((name, operand)) = text.split_once('=') else {
            return Err(format!("must have a condition such as count.gte=2, not {text:?}"));
        };
        let (measure, op) = self.reader.compared_measure(name.trim())?;
        let scalar = measure.value_type(self.model, self.reader.record).scalar();
        let operand = filter_params::unquote(operand.trim()).map_err(having_message)?;
        let operand = typed_value(scalar, &operand);
        let measure = query.add_measure(measure);
        query.having.push(GroupCondition { measure, op, operand });
        Ok(())
    }
}

/// The texts between commas.
fn items<'t>(values: &'t [&str]) -> impl Iterator<Item = &'t str> {
    values.iter().flat_map(|value| value.split(',')).map(str::trim)
}

/// The conditions between commas, with or without parentheses around them.
fn split_conditions(text: &str) -> Result<Vec<&str>, String> {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    filter_params::split_items(inner.unwrap_or(text)).map_err(having_message)
}

fn having_message(mistake: FilterMistake) -> String {
    let (FilterMistake::Name(message) | FilterMistake::Value(message)) = mistake;
    format!("`having` {message}")
}
