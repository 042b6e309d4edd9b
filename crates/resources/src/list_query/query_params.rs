//! Reads the query parameters of a record path one by one.

use trefoil_engine::arguments::sort_keys::parse_sort_key;
use trefoil_engine::arguments::unique_fields::parse_unique_fields;
use trefoil_engine::{Condition, ListSlice, PlanLimits, SortKey, list_window};
use trefoil_http::negotiation::format::{self, ResponseFormat};
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::name_suggestion;
use trefoil_model::{Field, FieldId, Model, RecordType, Value};

use crate::filter_params::{FilterMistake, FilterParser};
use crate::list_query::included_relations;
use crate::record_shape::IncludedRelation;

/// Parameters of the list itself. A field of the same name can be filtered with an operator, as in `size.eq=3`.
pub const LIST_PARAMS: [&str; 9] =
    ["fields", "include", "q", "sort", "page", "size", "after", "count", "format"];

/// The parameters that a path accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamSet {
    /// All list parameters and filters.
    List,
    /// The same for a page, which ignores unknown parameters.
    Page,
    /// Only `fields` and `include`.
    Fields,
    /// Only `fields` and `snapshot`.
    Stream,
    /// Only filters, or `all`: the records that a write changes.
    Conditions,
    /// Only `by`, `fields` and `include`: the unique fields that a write finds its record by.
    Upsert,
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
    pub all_fields: bool,
    pub included: Vec<IncludedRelation>,
    pub format: Option<ResponseFormat>,
    pub page: Option<i64>,
    pub size: Option<i64>,
    pub after: Option<String>,
    pub count: Option<bool>,
    pub snapshot: Option<bool>,
    /// The write is meant for all records.
    pub all_records: Option<bool>,
    pub unique_fields: Vec<FieldId>,
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
    model: &'r Model,
    record: &'r RecordType,
    params: ParamSet,
    values: QueryParams,
    violations: Vec<Violation>,
}

impl<'r> QueryReader<'r> {
    pub fn new(model: &'r Model, record: &'r RecordType, params: ParamSet) -> QueryReader<'r> {
        QueryReader { model, record, params, values: QueryParams::default(), violations: Vec::new() }
    }

    /// The parameters, or all violations.
    pub fn finish(self) -> Result<QueryParams, Vec<Violation>> {
        if self.violations.is_empty() { Ok(self.values) } else { Err(self.violations) }
    }

    pub fn refuse_empty(&mut self, name: &str) {
        let message = format!("`{name}` is empty: give it a value, or leave it out");
        self.violations.push(Violation::new(name, "REQUIRED", message));
    }

    /// Reads a parameter; false if it is ignored.
    pub fn take_param(&mut self, name: &str, value: &str) -> bool {
        let result = match (self.params, name) {
            (ParamSet::Page, "fields" | "include" | "count") => return false,
            (ParamSet::Page, name) if LIST_PARAMS.contains(&name) => self.take_list_param(name, value),
            (ParamSet::Page, name) => match self.filters().is_filter(self.record, name) {
                true => self.take_condition(name, value),
                false => return false,
            },
            (ParamSet::List | ParamSet::Fields | ParamSet::Stream, "fields") => self.take_fields(value),
            (ParamSet::Upsert, "fields") => self.take_fields(value),
            (ParamSet::Upsert, "by") => self.take_unique_fields(value),
            (ParamSet::Fields | ParamSet::Upsert, "include") => self.take_list_param(name, value),
            (ParamSet::Conditions, "all") => {
                parse_flag(name, value).and_then(|all| set_once(name, &mut self.values.all_records, all))
            }
            (ParamSet::Stream, "snapshot") => self.take_list_param(name, value),
            (ParamSet::List, name) if LIST_PARAMS.contains(&name) => self.take_list_param(name, value),
            (ParamSet::Conditions, name) if LIST_PARAMS.contains(&name) => Err(self.unknown_param(name)),
            (ParamSet::List | ParamSet::Conditions, name) => self.take_condition(name, value),
            (ParamSet::Fields | ParamSet::Stream | ParamSet::Upsert | ParamSet::Empty, name) => {
                Err(self.unknown_param(name))
            }
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
            "include" => self.take_include(value),
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
            let key =
                parse_sort_key(self.model, self.record, "sort", name).map_err(|mut list| list.remove(0))?;
            key.append_to(&mut self.values.sort_keys);
        }
        Ok(())
    }

    fn take_unique_fields(&mut self, value: &str) -> Result<(), Violation> {
        let names = split_names("by", value)?.into_iter().map(Value::from).collect();
        let fields = parse_unique_fields(self.record, "by", Value::List(names));
        self.values.unique_fields = fields.map_err(|mut violations| violations.remove(0))?;
        Ok(())
    }

    fn take_include(&mut self, value: &str) -> Result<(), Violation> {
        for path in split_names("include", value)? {
            included_relations::add_path(self.model, self.record, path, &mut self.values.included)?;
        }
        Ok(())
    }

    fn take_fields(&mut self, value: &str) -> Result<(), Violation> {
        self.values.chose_fields = true;
        let names = split_names("fields", value)?;
        let is_all = names.contains(&"*");
        for name in names.into_iter().filter(|name| *name != "*") {
            // The events of a stream have the columns of a record, without its links.
            let is_readable = |field: &Field| {
                field.is_stored() || (field.kind.is_link() && self.params != ParamSet::Stream)
            };
            let found = self.record.find_input_field(name).filter(|id| is_readable(self.record.field(*id)));
            let Some(field) = found else {
                let is_offered = |field: &&Field| is_readable(field) && self.model.is_shown_to_all(field);
                let readable = self.record.fields.iter().filter(is_offered);
                let hint = name_suggestion(name, readable.map(|field| field.input_name.as_str()));
                let message = format!("{} has no readable field `{name}`{hint}", self.record.name);
                return Err(Violation::new("fields", "UNKNOWN_FIELD", message));
            };
            let fields = self.values.fields.get_or_insert_default();
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        if is_all {
            (self.values.fields, self.values.all_fields) = (None, self.params != ParamSet::Stream);
        }
        Ok(())
    }

    fn take_condition(&mut self, name: &str, text: &str) -> Result<(), Violation> {
        match self.filters().parse(self.record, name, text) {
            Ok(condition) => {
                self.values.conditions.push(condition);
                Ok(())
            }
            Err(FilterMistake::Name(hint)) => {
                Err(Violation::new(name, "UNKNOWN", self.unknown_filter_message(name, hint)))
            }
            Err(FilterMistake::Value(message)) => {
                Err(Violation::new(name, "TYPE", format!("`{name}` {message}")))
            }
        }
    }

    fn filters(&self) -> FilterParser<'r> {
        FilterParser::new(self.model, self.params == ParamSet::Page)
    }

    fn unknown_param(&self, name: &str) -> Violation {
        let message = match self.params {
            ParamSet::Empty | ParamSet::List | ParamSet::Page => {
                format!("unknown parameter `{name}`; no parameters are allowed here")
            }
            ParamSet::Fields => {
                format!("unknown parameter `{name}`; only `fields` and `include` are allowed here")
            }
            ParamSet::Conditions => {
                format!("unknown parameter `{name}`; only conditions are allowed here, or `all=true`")
            }
            ParamSet::Upsert => {
                format!("unknown parameter `{name}`; only `by`, `fields` and `include` are allowed here")
            }
            ParamSet::Stream => {
                format!("unknown parameter `{name}`; only `fields` and `snapshot` are allowed for a stream")
            }
        };
        Violation::new(name, "UNKNOWN", message)
    }

    /// The error message for a name that is neither a filter nor a parameter of the list.
    fn unknown_filter_message(&self, name: &str, hint: String) -> String {
        let is_plain = hint.is_empty() && !name.contains('.');
        let hint = if is_plain { name_suggestion(name, LIST_PARAMS) } else { hint };
        format!("unknown parameter `{name}`{hint}")
    }
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
