//! What stands behind the `?` of a record path: filters, search, order, fields and the part of the list that is wanted.

use http::Uri;

use trefoil_engine::arguments::{FilterOperator, filter_field, null_condition, parse_sort_key};
use trefoil_engine::{
    ComparisonOp, Condition, CountMode, ListSlice, Listing, PlanLimits, SortKey, list_window, plan,
};
use trefoil_http::errors::problem::{Problem, RequestPart};
use trefoil_http::form_pairs::{self, FormPairs, percent_encode};
use trefoil_http::negotiation::format::{self, ResponseFormat};
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{FieldId, FieldKind, Model, RecordType, Scalar, Value};

use crate::typed_values;

/// Words that mean the list itself; a field of the same name is filtered by with an operator, as in `size.eq=3`.
pub const LIST_PARAMS: [&str; 8] = ["fields", "q", "sort", "page", "size", "after", "count", "format"];

pub const OPERATORS: [&str; 9] = ["eq", "ne", "lt", "lte", "gt", "gte", "contains", "in", "null"];

/// Those that a field can be followed by: only text contains anything.
pub fn operators_for(kind: &FieldKind) -> impl Iterator<Item = &'static str> {
    OPERATORS.into_iter().filter(|op| *op != "contains" || plan::is_text_kind(kind))
}

/// Which parameters an address takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamSet {
    /// All of them.
    List,
    /// The same, leniently: a page ignores what it does not know.
    Page,
    /// `fields` alone.
    Fields,
    /// `fields` and `snapshot`.
    Stream,
    Empty,
}

/// A query that was understood.
#[derive(Debug, Default)]
pub struct ListQuery {
    pub listing: Listing,
    /// In the order asked for; none where all are meant.
    pub fields: Option<Vec<FieldId>>,
    pub chose_fields: bool,
    /// The form that was asked for in so many words.
    pub format: Option<ResponseFormat>,
    /// A stream begins with the list.
    pub snapshot: bool,
    /// A part of the list was asked for in so many words.
    pub is_sliced: bool,
    /// The page that was named, the first otherwise.
    pub page: i64,
    /// As given and understood, for links to other parts.
    given_pairs: FormPairs,
}

/// How much of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportExtent {
    Page,
    All,
}

impl ListQuery {
    pub fn parse(
        uri: &Uri,
        record: &RecordType,
        limits: &PlanLimits,
        takes: ParamSet,
    ) -> Result<ListQuery, Problem> {
        let mut given = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?;
        // An empty parameter counts as absent: a form sends all its controls.
        given.retain(|(_, value)| !value.is_empty());
        let mut reader =
            QueryReader { record, params: takes, values: QueryParams::default(), violations: Vec::new() };
        given.retain(|(name, value)| reader.take_param(name, value));
        let QueryReader { values: words, violations, .. } = reader;
        if !violations.is_empty() {
            return Err(query_problem(Error::Invalid(violations)));
        }
        let sliced = words.page.is_some() || words.size.is_some() || words.after.is_some();
        let slice = words.slice(limits, takes).map_err(slice_problem)?;
        let page = words.page.unwrap_or(1);
        // A format is of records, also where plain clients see texts.
        let chose_fields = words.chose_fields || words.format.is_some();
        let format = words.format;
        let conditions = list_window::limited_conditions(limits, words.conditions).map_err(query_problem)?;
        let (search, order) = (words.search, words.order);
        let count = if words.count.unwrap_or(false) { CountMode::Exact } else { CountMode::Skip };
        let listing = Listing { conditions, search, sort_keys: order, slice, count, with_cursors: false };
        let snapshot = words.snapshot.unwrap_or(false);
        Ok(ListQuery {
            listing,
            fields: words.fields,
            chose_fields,
            format,
            snapshot,
            is_sliced: sliced,
            page,
            given_pairs: given,
        })
    }

    /// The conditions, each with its parameter and the text it was given.
    pub fn filters(&self) -> impl Iterator<Item = (&Condition, &str, &str)> {
        let filters = self.given_pairs.iter().filter(|(name, _)| !LIST_PARAMS.contains(&name.as_str()));
        self.listing
            .conditions
            .iter()
            .zip(filters)
            .map(|(condition, (name, text))| (condition, name.as_str(), text.as_str()))
    }

    /// What the engine says against a list of these records, with the parameters called as they were given.
    pub fn filter_problem(&self, model: &Model, record: &RecordType, error: Error) -> Problem {
        let wrong = self.filters().flat_map(|(condition, name, _)| {
            let error = plan::plan_predicates(model, record, std::slice::from_ref(condition)).err();
            let named = |found: &Violation| Violation::new(name, found.code, found.message.clone());
            error.iter().flat_map(Error::violations).map(named).collect::<Vec<_>>()
        });
        let wrong: Vec<Violation> = wrong.collect();
        query_problem(if wrong.is_empty() { error } else { Error::Invalid(wrong) })
    }

    /// What a word of the list was given.
    pub fn param(&self, word: &str) -> Option<&str> {
        self.given_pairs.iter().find(|(name, _)| name == word).map(|(_, value)| value.as_str())
    }

    /// Which page this is; nothing where a cursor leads on without a name for where.
    pub fn page_number(&self) -> Option<i64> {
        (self.param("page").is_some() || self.param("after").is_none()).then_some(self.page)
    }

    /// The same records in another order, from the beginning.
    pub fn sorted_url(&self, path: &str, sort: &str) -> String {
        let given = self.given_pairs.iter().filter(|(name, _)| name != "sort").cloned().collect();
        ListQuery { given_pairs: given, ..ListQuery::default() }.url_with(path, &[("sort", sort.to_owned())])
    }

    /// The same list from elsewhere: these parameters in place of those that say where.
    pub fn url_with(&self, path: &str, place: &[(&str, String)]) -> String {
        let kept = self.given_pairs.iter().filter(|(name, _)| !["page", "after"].contains(&name.as_str()));
        let kept = kept.map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)));
        let placed = place.iter().map(|(name, value)| format!("{name}={}", percent_encode(value)));
        let query: Vec<String> = kept.chain(placed).collect();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
    }

    /// What a page shows of this list, or all that matches, in a form for programs.
    pub fn export_url(&self, record: &RecordType, path: &str, format: &str, extent: ExportExtent) -> String {
        let is_place = |name: &str| ["page", "after", "size"].contains(&name);
        let kept = self.given_pairs.iter().filter(|(name, _)| !is_place(name));
        let given = kept.map(|(name, value)| (name.clone(), api_value(record, name, value))).collect();
        let mut place = match (extent, &self.listing.slice) {
            (ExportExtent::Page, ListSlice::Page { page, size }) => {
                vec![("page", page.to_string()), ("size", size.to_string())]
            }
            (ExportExtent::Page, ListSlice::First { first, after }) => {
                let after = after.iter().map(|after| ("after", after.clone()));
                after.chain([("size", first.to_string())]).collect()
            }
            (ExportExtent::Page, ListSlice::All) | (ExportExtent::All, _) => Vec::new(),
        };
        place.push(("format", format.to_owned()));
        ListQuery { given_pairs: given, ..ListQuery::default() }.url_with(path, &place)
    }

    /// The `Link` header: where the other parts of the list are, as far as it is known.
    pub fn link_header(&self, path: &str, next: Option<&str>, total: Option<u64>) -> String {
        let mut links = Vec::new();
        let mut add = |rel: &str, place: &[(&str, String)]| {
            links.push(format!("<{}>; rel=\"{rel}\"", self.url_with(path, place)));
        };
        match &self.listing.slice {
            ListSlice::Page { page, size } => {
                let at = |page: i64| [("page", page.to_string())];
                add("first", &at(1));
                if *page > 1 {
                    add("prev", &at(page - 1));
                }
                if next.is_some() {
                    add("next", &at(page.saturating_add(1)));
                }
                if let Some(total) = total {
                    add("last", &at((total.div_ceil((*size).max(1) as u64) as i64).max(1)));
                }
            }
            ListSlice::First { .. } | ListSlice::All => {
                add("first", &[]);
                if let Some(cursor) = next {
                    add("next", &[("after", cursor.to_owned())]);
                }
            }
        }
        links.join(", ")
    }
}

/// A complaint about the query.
pub fn query_problem(error: Error) -> Problem {
    Problem::from(error).about_part(RequestPart::Query)
}

/// A complaint about the part of the list that is asked for; the only limit there is how long it may be.
fn slice_problem(error: Error) -> Problem {
    let size =
        matches!(error, Error::Limit(_)).then(|| Violation::new("size", "LIMIT_EXCEEDED", error.to_string()));
    let problem = query_problem(error);
    match size {
        Some(violation) => problem.with_violations(vec![violation]),
        None => problem,
    }
}

/// The parameters by meaning.
#[derive(Default)]
struct QueryParams {
    conditions: Vec<Condition>,
    search: Option<String>,
    order: Vec<SortKey>,
    fields: Option<Vec<FieldId>>,
    chose_fields: bool,
    format: Option<ResponseFormat>,
    page: Option<i64>,
    size: Option<i64>,
    after: Option<String>,
    count: Option<bool>,
    snapshot: Option<bool>,
}

impl QueryParams {
    /// Without a page, a list goes on by cursor: nothing is skipped or seen twice however it changes.
    /// On a page, a cursor decides and `page` says what it is called.
    fn slice(&self, limits: &PlanLimits, takes: ParamSet) -> Result<ListSlice, Error> {
        match (takes, self.page, &self.after) {
            (ParamSet::Page, page, after) => {
                let numbered = list_window::page_slice(limits, page, self.size)?;
                match after {
                    Some(after) => list_window::cursor_slice(limits, "size", self.size, Some(after.clone())),
                    None => Ok(numbered),
                }
            }
            (_, Some(_), Some(_)) => Err(list_window::mixed_paging_error("`page` or `after`")),
            (_, Some(page), None) => list_window::page_slice(limits, Some(page), self.size),
            (_, None, after) => list_window::cursor_slice(limits, "size", self.size, after.clone()),
        }
    }
}

struct QueryReader<'r> {
    record: &'r RecordType,
    params: ParamSet,
    values: QueryParams,
    violations: Vec<Violation>,
}

impl QueryReader<'_> {
    /// Says whether the parameter means something here.
    fn take_param(&mut self, name: &str, value: &str) -> bool {
        let taken = match (self.params, name) {
            (ParamSet::Page, "fields" | "count") => return false,
            (ParamSet::Page, word) if LIST_PARAMS.contains(&word) => self.take_list_param(word, value),
            (ParamSet::Page, name) => match self.filter_target(name) {
                Some(_) => self.take_condition(name, value),
                None => return false,
            },
            (ParamSet::List | ParamSet::Fields | ParamSet::Stream, "fields") => self.take_fields(value),
            (ParamSet::Stream, "snapshot") => self.take_list_param(name, value),
            (ParamSet::List, word) if LIST_PARAMS.contains(&word) => self.take_list_param(word, value),
            (ParamSet::List, name) => self.take_condition(name, value),
            (ParamSet::Fields | ParamSet::Stream | ParamSet::Empty, name) => Err(self.unknown_param(name)),
        };
        if let Err(violation) = taken {
            self.violations.push(violation);
        }
        true
    }

    fn take_list_param(&mut self, name: &str, value: &str) -> Result<(), Violation> {
        match name {
            "q" => set_once(name, &mut self.values.search, value.to_owned()),
            "sort" => self.take_sort(value),
            "page" => set_once(name, &mut self.values.page, parse_integer(name, value)?),
            "size" => set_once(name, &mut self.values.size, parse_integer(name, value)?),
            "after" => set_once(name, &mut self.values.after, value.to_owned()),
            "format" => self.take_format(value),
            "count" => set_once(name, &mut self.values.count, parse_flag(name, value)?),
            "snapshot" => set_once(name, &mut self.values.snapshot, parse_flag(name, value)?),
            _ => Err(self.unknown_param(name)),
        }
    }

    fn take_format(&mut self, value: &str) -> Result<(), Violation> {
        let Some(wanted) = format::named_format(value) else {
            let own =
                self.record.find_input_field("format").map(|_| "; the field is asked for as `format.eq`");
            let message =
                format!("`format` must be csv, ndjson or json, not {value:?}{}", own.unwrap_or_default());
            return Err(Violation::new("format", "TYPE", message));
        };
        set_once("format", &mut self.values.format, wanted)
    }

    fn take_sort(&mut self, value: &str) -> Result<(), Violation> {
        for word in split_names("sort", value)? {
            let order = parse_sort_key(self.record, "sort", word).map_err(|mut wrong| wrong.remove(0))?;
            order.append_to(&mut self.values.order);
        }
        Ok(())
    }

    fn take_fields(&mut self, value: &str) -> Result<(), Violation> {
        self.values.chose_fields = true;
        let names = split_names("fields", value)?;
        let is_all = names.contains(&"*");
        for name in names.into_iter().filter(|name| *name != "*") {
            let found = self.record.find_input_field(name).filter(|id| self.record.field(*id).is_stored());
            let Some(field) = found else {
                let stored = self.record.fields.iter().filter(|field| field.is_stored());
                let hint = suggestion(name, stored.map(|field| field.input_name.as_str()));
                let message = format!("{} has no field `{name}` to show{hint}", self.record.name);
                return Err(Violation::new("fields", "UNKNOWN_FIELD", message));
            };
            let fields = self.values.fields.get_or_insert_default();
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        if is_all {
            self.values.fields = None;
        }
        Ok(())
    }

    /// `price=1`, `price.gte=1`, `status.in=NEW,PAID`, `price.null=true`.
    fn take_condition(&mut self, name: &str, text: &str) -> Result<(), Violation> {
        let Some((id, asks)) = self.filter_target(name) else { return Err(self.unknown_param(name)) };
        let kind = &self.record.field(id).kind;
        let text = match (self.params, kind, asks) {
            (ParamSet::Page, FieldKind::Scalar(Scalar::DateTime), FilterOperator::Compare(op)) => {
                &day_boundary(op, text)
            }
            _ => text,
        };
        let compared = |op, value| Condition { field: id, op, value };
        self.values.conditions.push(match asks {
            FilterOperator::IsNull => null_condition(id, parse_flag(name, text)?),
            FilterOperator::Compare(op @ ComparisonOp::In) => compared(
                op,
                Value::List(text.split(',').map(|item| typed_values::typed_value(kind, item)).collect()),
            ),
            FilterOperator::Compare(
                op @ (ComparisonOp::Eq
                | ComparisonOp::Ne
                | ComparisonOp::Lt
                | ComparisonOp::Lte
                | ComparisonOp::Gt
                | ComparisonOp::Gte
                | ComparisonOp::Contains),
            ) => compared(op, typed_values::typed_value(kind, text)),
        });
        Ok(())
    }

    /// The field that a parameter names, where it names one, and what is asked of it.
    fn filter_target(&self, name: &str) -> Option<(FieldId, FilterOperator)> {
        let (field, asks) = split_operator(name)?;
        Some((filter_field(self.record, field)?, asks))
    }

    fn unknown_param(&self, name: &str) -> Violation {
        let message = match self.params {
            ParamSet::Empty => format!("unknown parameter `{name}`; this address takes none"),
            ParamSet::Fields => format!("unknown parameter `{name}`; this address takes `fields` alone"),
            ParamSet::Stream => {
                format!("unknown parameter `{name}`; a stream takes `fields` and `snapshot` alone")
            }
            ParamSet::List | ParamSet::Page => self.unknown_filter_message(name),
        };
        Violation::new(name, "UNKNOWN", message)
    }

    /// Why nothing is filtered by this parameter, and what could have been meant.
    fn unknown_filter_message(&self, name: &str) -> String {
        let (field, op) = name.split_once('.').map_or((name, None), |(field, op)| (field, Some(op)));
        let own = self.record.find_input_field(field).map(|id| self.record.field(id));
        let filters = self.record.fields.iter().filter(|field| field.kind.is_comparable());
        let filters = filters.map(|field| field.input_name.as_str());
        let hint = match (own, op) {
            (Some(own), _) if !own.kind.is_comparable() => return format!("`{field}` cannot be filtered by"),
            (Some(own), Some(op)) => match nearest_name(op, operators_for(&own.kind)) {
                Some(near) => format!("; did you mean `{field}.{near}`?"),
                None => {
                    let known: Vec<&str> = operators_for(&own.kind).collect();
                    format!("; `{field}` can be followed by .{}", known.join(", ."))
                }
            },
            (None, Some(op)) => match nearest_name(field, filters) {
                Some(near) if OPERATORS.contains(&op) => format!("; did you mean `{near}.{op}`?"),
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            },
            (Some(_) | None, None) => suggestion(name, filters.chain(LIST_PARAMS)),
        };
        format!("unknown parameter `{name}`{hint}")
    }
}

/// `price.gte` taken apart.
pub fn split_operator(name: &str) -> Option<(&str, FilterOperator)> {
    match name.split_once('.') {
        Some((field, word)) => Some((field, FilterOperator::from_name(word)?)),
        None => Some((name, FilterOperator::Compare(ComparisonOp::Eq))),
    }
}

/// A parameter of a page as other addresses take it.
pub fn api_value(record: &RecordType, name: &str, text: &str) -> String {
    let found = split_operator(name).filter(|_| !LIST_PARAMS.contains(&name));
    match found.and_then(|(field, asks)| Some((filter_field(record, field)?, asks))) {
        Some((id, FilterOperator::Compare(op)))
            if record.field(id).kind == FieldKind::Scalar(Scalar::DateTime) =>
        {
            day_boundary(op, text)
        }
        Some((_, FilterOperator::Compare(_) | FilterOperator::IsNull)) | None => text.to_owned(),
    }
}

/// A day that is typed where a time is kept: its beginning, or its end where it bounds from above; in UTC.
fn day_boundary(op: ComparisonOp, text: &str) -> String {
    let is_day = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    match op {
        ComparisonOp::Lte | ComparisonOp::Gt if is_day => format!("{text}T23:59:59.999999Z"),
        ComparisonOp::Eq
        | ComparisonOp::Ne
        | ComparisonOp::Lt
        | ComparisonOp::Gte
        | ComparisonOp::Lte
        | ComparisonOp::Gt
        | ComparisonOp::Contains
        | ComparisonOp::In
            if is_day =>
        {
            format!("{text}T00:00:00Z")
        }
        ComparisonOp::Eq
        | ComparisonOp::Ne
        | ComparisonOp::Lt
        | ComparisonOp::Gte
        | ComparisonOp::Lte
        | ComparisonOp::Gt
        | ComparisonOp::Contains
        | ComparisonOp::In => text.to_owned(),
    }
}

/// The page and its size that a query names for a list that has nothing else to ask for.
pub fn page_and_size(uri: &Uri, limits: &PlanLimits) -> Result<(i64, i64), Problem> {
    let given = form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?;
    let number = |wanted: &str| {
        let found = given.iter().rev().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(name, value)| parse_integer(name, value)).transpose()
    };
    let invalid = |violation| query_problem(Error::Invalid(vec![violation]));
    let (page, size) = (number("page").map_err(invalid)?, number("size").map_err(invalid)?);
    match list_window::page_slice(limits, page, size).map_err(slice_problem)? {
        ListSlice::Page { page, size } => Ok((page, size)),
        ListSlice::All | ListSlice::First { .. } => Err(Error::internal("a page that is none").into()),
    }
}

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The names between the commas; with none between two of them something was forgotten.
fn split_names<'v>(parameter: &str, value: &'v str) -> Result<Vec<&'v str>, Violation> {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.trim_start_matches('-').is_empty()) {
        let message = format!("`{parameter}` must be names with a comma between two, not {value:?}");
        return Err(Violation::new(parameter, "EMPTY_NAME", message));
    }
    Ok(names)
}

fn set_once<T>(name: &str, place: &mut Option<T>, value: T) -> Result<(), Violation> {
    if place.is_some() {
        return Err(Violation::new(name, "TWICE", format!("`{name}` is given twice")));
    }
    *place = Some(value);
    Ok(())
}

/// A number that the window then judges.
fn parse_integer(name: &str, value: &str) -> Result<i64, Violation> {
    let digits = !value.starts_with('+');
    value.parse().ok().filter(|_| digits).ok_or_else(|| {
        Violation::new(
            name,
            "TYPE",
            format!("`{name}` must be a positive whole number of 64 bits, not {value:?}"),
        )
    })
}

fn parse_flag(name: &str, value: &str) -> Result<bool, Violation> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Violation::new(name, "TYPE", format!("`{name}` must be true or false, not {value:?}"))),
    }
}
