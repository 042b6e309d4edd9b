//! Maps the arguments of a built-in operation to an [`Operation`].

use std::sync::Arc;

use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names;
use trefoil_model::{Argument, FieldId, Model, RecordType, Value, ValueSource};

use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb};
use crate::list_window;
use crate::operation::{ComparisonOp, Condition, ListSlice, Listing, MissingFields, Operation, SortKey};
use crate::plan::{self, PlanLimits, Predicate, PreparedSelection};

/// The role of each argument. A field's name wins over a paging word, so `size` filters if there is such a field.
pub fn argument_roles(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
) -> Vec<(String, ArgumentRole)> {
    let role = |argument: &Argument| {
        let role = argument_role(record, verb, &argument.name);
        if role == ArgumentRole::Unknown && is_input_object(verb, argument) {
            ArgumentRole::Input
        } else {
            role
        }
    };
    arguments.iter().map(|argument| (argument.name.clone(), role(argument))).collect()
}

fn argument_role(record: &RecordType, verb: OperationVerb, name: &str) -> ArgumentRole {
    match verb {
        OperationVerb::Get | OperationVerb::Update | OperationVerb::Delete if name == "id" => {
            ArgumentRole::Id
        }
        OperationVerb::Update | OperationVerb::Delete if name == "expectedVersion" => {
            ArgumentRole::ExpectedVersion
        }
        OperationVerb::List => {
            filter_field(record, name).map_or_else(|| listing_role(name), ArgumentRole::Field)
        }
        OperationVerb::Subscribe(_) => {
            filter_field(record, name).map_or(ArgumentRole::Unknown, ArgumentRole::Field)
        }
        OperationVerb::Create | OperationVerb::Update => {
            write_field(record, name).map_or(ArgumentRole::Unknown, ArgumentRole::Field)
        }
        OperationVerb::Get | OperationVerb::Delete => ArgumentRole::Unknown,
    }
}

/// True for an input object that holds what could also be separate arguments.
fn is_input_object(verb: OperationVerb, argument: &Argument) -> bool {
    let is_write = matches!(verb, OperationVerb::Create | OperationVerb::Update | OperationVerb::Delete);
    is_write && !argument.fields.is_empty() && !argument.ty.is_list()
}

fn listing_role(name: &str) -> ArgumentRole {
    match name {
        "page" => ArgumentRole::Page,
        "size" => ArgumentRole::Size,
        "first" => ArgumentRole::First,
        "after" => ArgumentRole::After,
        "orderBy" => ArgumentRole::OrderBy,
        "where" => ArgumentRole::Where,
        _ => ArgumentRole::Unknown,
    }
}

/// The field that `name` filters by; its column must be comparable.
pub fn filter_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| record.field(*id).kind.is_comparable())
}

/// The field that `name` sets. Fields that the server fills are found too, so that they are refused by name.
fn write_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.find_input_field(name).filter(|id| {
        let field = record.field(*id);
        field.is_writable() || field.value_source != ValueSource::Client
    })
}

/// The arguments of a request by role.
#[derive(Default)]
struct ParsedArguments {
    id: Option<i64>,
    fields: Vec<(FieldId, Value)>,
    expected_version: Option<i64>,
    page: Option<i64>,
    size: Option<i64>,
    first: Option<i64>,
    after: Option<String>,
    sort_keys: Vec<SortKey>,
    conditions: Vec<Condition>,
}

impl BuiltinOperation {
    /// Builds the operation for these arguments, given by position; absent arguments are not in the list.
    pub fn build_operation(
        &self,
        model: &Model,
        limits: &PlanLimits,
        arguments: Vec<(usize, Value)>,
        selection: Arc<PreparedSelection>,
    ) -> Result<Operation> {
        let mut parsed = self.parse_arguments(model, arguments)?;
        let record = self.record;
        let expected_version = parsed.expected_version;
        match self.verb {
            OperationVerb::Get => Ok(Operation::Get { record, id: parsed.required_id()?, selection }),
            OperationVerb::List => {
                let listing = parsed.listing(limits)?;
                Ok(Operation::List { record, listing, selection })
            }
            OperationVerb::Create => {
                Ok(Operation::Create { record, id: None, fields: parsed.fields, selection })
            }
            OperationVerb::Update => {
                let id = parsed.required_id()?;
                let fields = parsed.fields;
                Ok(Operation::Update {
                    record,
                    id,
                    fields,
                    missing_fields: MissingFields::Keep,
                    expected_version,
                    selection,
                })
            }
            OperationVerb::Delete => {
                Ok(Operation::Delete { record, id: parsed.required_id()?, expected_version, selection })
            }
            OperationVerb::Subscribe(_) => Err(Error::internal("a subscription is followed, not run")),
        }
    }

    /// The predicates that the arguments of a subscription filter by.
    pub(crate) fn subscription_predicates(
        &self,
        model: &Model,
        arguments: Vec<(usize, Value)>,
    ) -> Result<Vec<(FieldId, Predicate)>> {
        let conditions = self.parse_arguments(model, arguments)?.conditions;
        let predicates = plan::plan_predicates(model, model.record(self.record), &conditions)?;
        Ok(conditions.iter().map(|condition| condition.field).zip(predicates).collect())
    }

    fn parse_arguments(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<ParsedArguments> {
        let mut parsed = ParsedArguments::default();
        let mut violations = Vec::new();
        let record = model.record(self.record);
        for (position, value) in arguments {
            let (name, role) = &self.argument_roles[position];
            if let Err(violation) = parsed.accept(record, self.verb, name, role, value) {
                violations.extend(violation);
            }
        }
        if violations.is_empty() { Ok(parsed) } else { Err(Error::Invalid(violations)) }
    }
}

/// The listing for the arguments of a relation field.
pub fn listing_from_arguments(
    record: &RecordType,
    limits: &PlanLimits,
    arguments: Vec<(String, Value)>,
) -> Result<Listing> {
    let mut parsed = ParsedArguments::default();
    parsed.accept_named(record, OperationVerb::List, arguments).map_err(Error::Invalid)?;
    parsed.listing(limits)
}

impl ParsedArguments {
    fn accept(
        &mut self,
        record: &RecordType,
        verb: OperationVerb,
        name: &str,
        role: &ArgumentRole,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        // An explicit null counts as absent, except where null is a value: "is null", "set to null".
        if value.is_null() && !matches!(role, ArgumentRole::Field(_) | ArgumentRole::Id) {
            return Ok(());
        }
        match role {
            ArgumentRole::Id => self.id = Some(expect_integer(name, &value)?),
            ArgumentRole::Field(field) => match verb {
                OperationVerb::List | OperationVerb::Subscribe(_) => {
                    self.conditions.push(Condition { field: *field, op: ComparisonOp::Eq, value });
                }
                OperationVerb::Create
                | OperationVerb::Update
                | OperationVerb::Get
                | OperationVerb::Delete => self.fields.push((*field, value)),
            },
            ArgumentRole::Input => self.accept_named(record, verb, expect_object(name, value)?)?,
            ArgumentRole::ExpectedVersion => self.expected_version = Some(expect_integer(name, &value)?),
            ArgumentRole::Page => self.page = Some(expect_integer(name, &value)?),
            ArgumentRole::Size => self.size = Some(expect_integer(name, &value)?),
            ArgumentRole::First => self.first = Some(expect_integer(name, &value)?),
            ArgumentRole::After => self.after = Some(expect_text(name, value)?),
            ArgumentRole::OrderBy => parse_sort_keys(record, name, value)?
                .into_iter()
                .for_each(|sort_key| sort_key.append_to(&mut self.sort_keys)),
            ArgumentRole::Where => self.conditions.extend(parse_conditions(record, name, value)?),
            ArgumentRole::Unknown => {
                return Err(vec![Violation::new(
                    name,
                    "UNKNOWN",
                    unknown_argument_message(record, verb, name),
                )]);
            }
        }
        Ok(())
    }

    /// Accepts arguments by name, of a relation or inside an input object.
    fn accept_named(
        &mut self,
        record: &RecordType,
        verb: OperationVerb,
        arguments: Vec<(String, Value)>,
    ) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        for (name, value) in arguments {
            if let Err(found) = self.accept(record, verb, &name, &argument_role(record, verb, &name), value) {
                violations.extend(found);
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    fn required_id(&mut self) -> Result<i64> {
        self.id.ok_or_else(|| Error::invalid("id", "REQUIRED", "argument `id` is required"))
    }

    fn listing(self, limits: &PlanLimits) -> Result<Listing> {
        let slice = self.slice(limits)?;
        let conditions = list_window::limited_conditions(limits, self.conditions)?;
        Ok(Listing { conditions, sort_keys: self.sort_keys, slice, ..Listing::default() })
    }

    fn slice(&self, limits: &PlanLimits) -> Result<ListSlice> {
        let paged = self.page.is_some() || self.size.is_some();
        let cursored = self.first.is_some() || self.after.is_some();
        match (paged, cursored) {
            (false, false) => Ok(ListSlice::All),
            (true, false) => list_window::page_slice(limits, self.page, self.size),
            (false, true) => list_window::cursor_slice(limits, "first", self.first, self.after.clone()),
            (true, true) => Err(list_window::mixed_paging_error("`page` and `size` or `first` and `after`")),
        }
    }
}

/// The message for an argument without a role.
pub(crate) fn unknown_argument_message(record: &RecordType, verb: OperationVerb, name: &str) -> String {
    let record = &record.name;
    match verb {
        OperationVerb::Create | OperationVerb::Update => {
            format!("{record} has no field `{name}` that can be set")
        }
        OperationVerb::List | OperationVerb::Subscribe(_) => {
            format!("{record} has no field `{name}` to filter by")
        }
        OperationVerb::Get | OperationVerb::Delete => {
            format!("`{name}` does not identify a {record}; use `id`")
        }
    }
}

fn expect_integer(name: &str, value: &Value) -> Result<i64, Vec<Violation>> {
    let violation = || Violation::new(name, "TYPE", format!("argument `{name}` must be a 64-bit integer"));
    value.as_i64().ok_or_else(|| vec![violation()])
}

fn expect_object(name: &str, value: Value) -> Result<Vec<(String, Value)>, Vec<Violation>> {
    value
        .into_fields()
        .map_err(|noun| vec![Violation::new(name, "TYPE", format!("`{name}` must be an object, not {noun}"))])
}

fn expect_text(name: &str, value: Value) -> Result<String, Vec<Violation>> {
    match value {
        Value::String(text) => Ok(text),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::List(_)
        | Value::Object(_)) => Err(vec![Violation::new(
            name,
            "TYPE",
            format!("argument `{name}` must be text, not {}", other.type_noun()),
        )]),
    }
}

/// The items of a list; a single value counts as a list of one.
fn list_or_single(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        single @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![single],
    }
}

fn parse_sort_keys(record: &RecordType, name: &str, value: Value) -> Result<Vec<SortKey>, Vec<Violation>> {
    list_or_single(value)
        .into_iter()
        .map(|item| parse_sort_key(record, name, &expect_text(name, item)?))
        .collect()
}

/// Parses `name` (ascending) or `-name` (descending).
pub fn parse_sort_key(record: &RecordType, argument: &str, word: &str) -> Result<SortKey, Vec<Violation>> {
    let (descending, field) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    match filter_field(record, field) {
        Some(field) => Ok(SortKey { field, descending }),
        None => Err(unknown_field_violation(record, argument, field, "sort by")),
    }
}

fn parse_conditions(record: &RecordType, name: &str, value: Value) -> Result<Vec<Condition>, Vec<Violation>> {
    expect_object(name, value)?
        .into_iter()
        .map(|(key, value)| parse_condition(record, name, &key, value))
        .collect()
}

/// Parses a member of `where`, such as `price_gte` and its value.
fn parse_condition(
    record: &RecordType,
    argument: &str,
    key: &str,
    value: Value,
) -> Result<Condition, Vec<Violation>> {
    let Some((field, operator)) = parse_condition_key(record, key) else {
        return Err(unknown_field_violation(record, argument, key, "filter by"));
    };
    match (operator, value) {
        (FilterOperator::Compare(op), value) => Ok(Condition { field, op, value }),
        (FilterOperator::IsNull, Value::Bool(is_null)) => Ok(null_condition(field, is_null)),
        (FilterOperator::IsNull, other) => {
            let message = format!("`{key}` must be true or false, not {}", other.type_noun());
            Err(vec![Violation::new(argument, "TYPE", message)])
        }
    }
}

/// The field and operator of a key: `price`, `price_gte`, `price_null`.
fn parse_condition_key(record: &RecordType, key: &str) -> Option<(FieldId, FilterOperator)> {
    if let Some(field) = filter_field(record, key) {
        return Some((field, FilterOperator::Compare(ComparisonOp::Eq)));
    }
    let (field, suffix) = key.rsplit_once('_')?;
    Some((filter_field(record, field)?, FilterOperator::from_name(suffix)?))
}

/// An operator in a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOperator {
    Compare(ComparisonOp),
    /// Tests for null; the operand is true or false.
    IsNull,
}

impl FilterOperator {
    /// The operator by its name: `gte` in `price_gte` and `price.gte`.
    pub fn from_name(name: &str) -> Option<FilterOperator> {
        Some(FilterOperator::Compare(match name {
            "eq" => ComparisonOp::Eq,
            "ne" => ComparisonOp::Ne,
            "lt" => ComparisonOp::Lt,
            "lte" => ComparisonOp::Lte,
            "gt" => ComparisonOp::Gt,
            "gte" => ComparisonOp::Gte,
            "contains" => ComparisonOp::Contains,
            "in" => ComparisonOp::In,
            "null" => return Some(FilterOperator::IsNull),
            _ => return None,
        }))
    }

    /// The name that [`FilterOperator::from_name`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            FilterOperator::Compare(ComparisonOp::Eq) => "eq",
            FilterOperator::Compare(ComparisonOp::Ne) => "ne",
            FilterOperator::Compare(ComparisonOp::Lt) => "lt",
            FilterOperator::Compare(ComparisonOp::Lte) => "lte",
            FilterOperator::Compare(ComparisonOp::Gt) => "gt",
            FilterOperator::Compare(ComparisonOp::Gte) => "gte",
            FilterOperator::Compare(ComparisonOp::Contains) => "contains",
            FilterOperator::Compare(ComparisonOp::In) => "in",
            FilterOperator::IsNull => "null",
        }
    }
}

pub fn null_condition(field: FieldId, is_null: bool) -> Condition {
    Condition { field, op: if is_null { ComparisonOp::Eq } else { ComparisonOp::Ne }, value: Value::Null }
}

/// The message for an unknown member of `where`, `None` if it is known.
pub(crate) fn unknown_condition_message(record: &RecordType, key: &str) -> Option<String> {
    if parse_condition_key(record, key).is_some() {
        return None;
    }
    let violations = unknown_field_violation(record, "where", key, "filter by");
    violations.into_iter().next().map(|violation| violation.message)
}

/// The message for an unknown field of an input object, `None` if it is known. `id` is allowed, because operations
/// often share one input type.
pub(crate) fn unknown_input_message(record: &RecordType, verb: OperationVerb, key: &str) -> Option<String> {
    let is_unknown = key != "id" && argument_role(record, verb, key) == ArgumentRole::Unknown;
    is_unknown.then(|| unknown_argument_message(record, verb, key))
}

fn unknown_field_violation(
    record: &RecordType,
    argument: &str,
    field: &str,
    purpose: &str,
) -> Vec<Violation> {
    let known =
        record.fields.iter().filter(|field| field.kind.is_comparable()).map(|field| field.name.as_str());
    let hint = names::nearest_name(field, known).map(|name| format!("; did you mean `{name}`?"));
    let message = format!("{} has no field `{field}` to {purpose}{}", record.name, hint.unwrap_or_default());
    vec![Violation::new(argument, "UNKNOWN_FIELD", message)]
}

/// The fields of an object by id, for seeds and embedding programs.
pub fn fields_from_object(record: &RecordType, value: Value) -> Result<Vec<(FieldId, Value)>> {
    let mut parsed = ParsedArguments::default();
    let fields = expect_object("input", value)
        .and_then(|fields| parsed.accept_named(record, OperationVerb::Create, fields));
    fields.map_err(Error::Invalid)?;
    Ok(parsed.fields)
}
