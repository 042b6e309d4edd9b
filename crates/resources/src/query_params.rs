//! Reads the query parameters of a record path one by one.

use trefoil_engine::arguments::roles::filter_field;
use trefoil_engine::arguments::sort_keys::parse_sort_key;
use trefoil_engine::arguments::{FilterOperator, null_condition};
use trefoil_engine::{ComparisonOp, Condition, ListSlice, PlanLimits, SortKey, list_window};
use trefoil_http::negotiation::format::{self, ResponseFormat};
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{FieldId, FieldKind, RecordType, Scalar, Value};

use crate::typed_values;

/// Parameters of the list itself. A field of the same name can be filtered with an operator, as in `size.eq=3`.
pub const LIST_PARAMS: [&str; 8] = ["fields", "q", "sort", "page", "size", "after", "count", "format"];

pub const OPERATORS: [&str; 9] = ["eq", "ne", "lt", "lte", "gt", "gte", "contains", "in", "null"];

/// The operators of a field: `contains` is for text only.
pub fn operators_for(kind: &FieldKind) -> impl Iterator<Item = &'static str> {
    OPERATORS.into_iter().filter(|op| *op != "contains" || kind.is_text())
}

/// The parameters that a path accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamSet {
    /// All list parameters and filters.
    List,
    /// The same for a page, which ignores unknown parameters.
    Page,
    /// Only `fields`.
    Fields,
    /// Only `fields` and `snapshot`.
    Stream,
    Empty,
}

/// The parsed parameters.
#[derive(Default)]
pub(crate) struct QueryParams {
    pub conditions: Vec<Condition>,
    pub search: Option<String>,
    pub sort_keys: Vec<SortKey>,
    pub fields: Option<Vec<FieldId>>,
    pub chose_fields: bool,
    pub format: Option<ResponseFormat>,
    pub page: Option<i64>,
    pub size: Option<i64>,
    pub after: Option<String>,
    pub count: Option<bool>,
    pub snapshot: Option<bool>,
}

impl QueryParams {
    /// The API pages by cursor unless `page` is given, so that changes in between neither skip nor repeat records.
    /// On an HTML page a cursor takes precedence and `page` is only its number.
    pub fn slice(&self, limits: &PlanLimits, params: ParamSet) -> Result<ListSlice, Error> {
        match (params, self.page, &self.after) {
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

pub(crate) struct QueryReader<'r> {
    record: &'r RecordType,
    params: ParamSet,
    values: QueryParams,
    violations: Vec<Violation>,
}

impl<'r> QueryReader<'r> {
    pub fn new(record: &'r RecordType, params: ParamSet) -> QueryReader<'r> {
        QueryReader { record, params, values: QueryParams::default(), violations: Vec::new() }
    }

    /// The parameters, or all violations.
    pub fn finish(self) -> Result<QueryParams, Vec<Violation>> {
        if self.violations.is_empty() { Ok(self.values) } else { Err(self.violations) }
    }

    /// Reads a parameter; false if it is ignored.
    pub fn take_param(&mut self, name: &str, value: &str) -> bool {
        let result = match (self.params, name) {
            (ParamSet::Page, "fields" | "count") => return false,
            (ParamSet::Page, name) if LIST_PARAMS.contains(&name) => self.take_list_param(name, value),
            (ParamSet::Page, name) => match self.filter_target(name) {
                Some(_) => self.take_condition(name, value),
                None => return false,
            },
            (ParamSet::List | ParamSet::Fields | ParamSet::Stream, "fields") => self.take_fields(value),
            (ParamSet::Stream, "snapshot") => self.take_list_param(name, value),
            (ParamSet::List, name) if LIST_PARAMS.contains(&name) => self.take_list_param(name, value),
            (ParamSet::List, name) => self.take_condition(name, value),
            (ParamSet::Fields | ParamSet::Stream | ParamSet::Empty, name) => Err(self.unknown_param(name)),
        };
        if let Err(violation) = result {
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
        let Some(format) = format::named_format(value) else {
            let hint =
                self.record.find_input_field("format").map(|_| "; to filter by the field, use `format.eq`");
            let message =
                format!("`format` must be csv, ndjson or json, not {value:?}{}", hint.unwrap_or_default());
            return Err(Violation::new("format", "TYPE", message));
        };
        set_once("format", &mut self.values.format, format)
    }

    fn take_sort(&mut self, value: &str) -> Result<(), Violation> {
        for name in split_names("sort", value)? {
            let key = parse_sort_key(self.record, "sort", name).map_err(|mut list| list.remove(0))?;
            key.append_to(&mut self.values.sort_keys);
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
                let message = format!("{} has no readable field `{name}`{hint}", self.record.name);
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
        let Some((id, operator)) = self.filter_target(name) else { return Err(self.unknown_param(name)) };
        let scalar = self.record.field(id).kind.scalar();
        let text = match (self.params, scalar, operator) {
            (ParamSet::Page, Some(Scalar::DateTime), FilterOperator::Compare(op)) => &day_boundary(op, text),
            _ => text,
        };
        let condition = |op, value| Condition { field: id, op, value };
        self.values.conditions.push(match operator {
            FilterOperator::IsNull => null_condition(id, parse_flag(name, text)?),
            FilterOperator::Compare(op @ ComparisonOp::In) => condition(
                op,
                Value::List(text.split(',').map(|item| typed_values::typed_value(scalar, item)).collect()),
            ),
            FilterOperator::Compare(
                op @ (ComparisonOp::Eq
                | ComparisonOp::Ne
                | ComparisonOp::Lt
                | ComparisonOp::Lte
                | ComparisonOp::Gt
                | ComparisonOp::Gte
                | ComparisonOp::Contains),
            ) => condition(op, typed_values::typed_value(scalar, text)),
        });
        Ok(())
    }

    /// The field and operator of a filter parameter.
    fn filter_target(&self, name: &str) -> Option<(FieldId, FilterOperator)> {
        let (field, operator) = split_operator(name)?;
        Some((filter_field(self.record, field)?, operator))
    }

    fn unknown_param(&self, name: &str) -> Violation {
        let message = match self.params {
            ParamSet::Empty => format!("unknown parameter `{name}`; no parameters are allowed here"),
            ParamSet::Fields => format!("unknown parameter `{name}`; only `fields` is allowed here"),
            ParamSet::Stream => {
                format!("unknown parameter `{name}`; only `fields` and `snapshot` are allowed for a stream")
            }
            ParamSet::List | ParamSet::Page => self.unknown_filter_message(name),
        };
        Violation::new(name, "UNKNOWN", message)
    }

    /// The error message for an unknown filter, with a suggestion.
    fn unknown_filter_message(&self, name: &str) -> String {
        let (field, op) = name.split_once('.').map_or((name, None), |(field, op)| (field, Some(op)));
        let known_field = self.record.find_input_field(field).map(|id| self.record.field(id));
        let filters = self.record.fields.iter().filter(|field| field.kind.is_comparable());
        let filters = filters.map(|field| field.input_name.as_str());
        let hint = match (known_field, op) {
            (Some(known_field), _) if !known_field.kind.is_comparable() => {
                return format!("filtering by `{field}` is not supported");
            }
            (Some(known_field), Some(op)) => match nearest_name(op, operators_for(&known_field.kind)) {
                Some(near) => format!("; did you mean `{field}.{near}`?"),
                None => {
                    let known: Vec<&str> = operators_for(&known_field.kind).collect();
                    format!("; `{field}` supports .{}", known.join(", ."))
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

/// The field and operator in a name such as `price.gte`.
pub fn split_operator(name: &str) -> Option<(&str, FilterOperator)> {
    match name.split_once('.') {
        Some((field, operator)) => Some((field, FilterOperator::from_name(operator)?)),
        None => Some((name, FilterOperator::Compare(ComparisonOp::Eq))),
    }
}

/// The boundary of a day that filters a DateTime field: its end for `lte` and `gt`, otherwise its start, in UTC.
pub(crate) fn day_boundary(op: ComparisonOp, text: &str) -> String {
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

fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The names in a comma-separated list; an empty name is an error.
fn split_names<'v>(parameter: &str, value: &'v str) -> Result<Vec<&'v str>, Violation> {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    if names.iter().any(|name| name.trim_start_matches('-').is_empty()) {
        let message = format!("`{parameter}` must be a comma-separated list of names, not {value:?}");
        return Err(Violation::new(parameter, "EMPTY_NAME", message));
    }
    Ok(names)
}

fn set_once<T>(name: &str, slot: &mut Option<T>, value: T) -> Result<(), Violation> {
    if slot.is_some() {
        return Err(Violation::new(name, "TWICE", format!("`{name}` is given more than once")));
    }
    *slot = Some(value);
    Ok(())
}

/// Any 64-bit integer; the range is checked with the slice.
pub(crate) fn parse_integer(name: &str, value: &str) -> Result<i64, Violation> {
    let digits = !value.starts_with('+');
    value.parse().ok().filter(|_| digits).ok_or_else(|| {
        Violation::new(name, "TYPE", format!("`{name}` must be a positive 64-bit integer, not {value:?}"))
    })
}

fn parse_flag(name: &str, value: &str) -> Result<bool, Violation> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Violation::new(name, "TYPE", format!("`{name}` must be true or false, not {value:?}"))),
    }
}
