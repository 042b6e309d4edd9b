//! What the arguments of a built-in operation mean, and how a request's values become an [`Operation`].

use std::sync::Arc;

use crate::list_window;
use crate::operation::{Absent, Condition, Listing, Op, Operation, Order, Selection, Slice};
use crate::plan;
use crate::plan::{PlanLimits, Test};
use crate::resolvers::{Builtin, Verb};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names;
use trefoil_model::{Argument, FieldId, FilledBy, Model, RecordType, Value};

/// The meaning of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Id,
    /// Filters by equality in lists and subscriptions, sets the field in writes.
    Field(FieldId),
    /// One object that holds the fields to set.
    Input,
    ExpectedVersion,
    Page,
    Size,
    First,
    After,
    OrderBy,
    Where,
    /// Means nothing here; `check` names it and a request that gives it is refused.
    Unknown,
}

/// Names each argument's meaning. A field's name wins over a paging word, so a `size` field filters.
pub fn roles(record: &RecordType, verb: Verb, arguments: &[Argument]) -> Vec<(String, Role)> {
    let role = |argument: &Argument| {
        let role = role(record, verb, &argument.name);
        if role == Role::Unknown && is_input(verb, argument) { Role::Input } else { role }
    };
    arguments.iter().map(|argument| (argument.name.clone(), role(argument))).collect()
}

fn role(record: &RecordType, verb: Verb, name: &str) -> Role {
    match verb {
        Verb::Get | Verb::Update | Verb::Delete if name == "id" => Role::Id,
        Verb::Update | Verb::Delete if name == "expectedVersion" => Role::ExpectedVersion,
        Verb::List => filter_field(record, name).map_or_else(|| listing_role(name), Role::Field),
        Verb::Watch(_) => filter_field(record, name).map_or(Role::Unknown, Role::Field),
        Verb::Create | Verb::Update => write_field(record, name).map_or(Role::Unknown, Role::Field),
        Verb::Get | Verb::Delete => Role::Unknown,
    }
}

/// One object that holds what the other arguments could say.
fn is_input(verb: Verb, argument: &Argument) -> bool {
    let writes = matches!(verb, Verb::Create | Verb::Update | Verb::Delete);
    writes && !argument.fields.is_empty() && !argument.ty.is_list()
}

fn listing_role(name: &str) -> Role {
    match name {
        "page" => Role::Page,
        "size" => Role::Size,
        "first" => Role::First,
        "after" => Role::After,
        "orderBy" => Role::OrderBy,
        "where" => Role::Where,
        _ => Role::Unknown,
    }
}

/// The field that `name` filters by: one with a column that can be compared.
pub fn filter_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.input_field(name).filter(|id| record.field(*id).kind.is_comparable())
}

/// The field that `name` sets. One that the server fills is found too, so that it can be refused by its name.
fn write_field(record: &RecordType, name: &str) -> Option<FieldId> {
    record.input_field(name).filter(|id| {
        let field = record.field(*id);
        field.is_writable() || field.filled_by != FilledBy::Client
    })
}

/// What a request's arguments say, gathered by meaning.
#[derive(Default)]
struct Given {
    id: Option<i64>,
    fields: Vec<(FieldId, Value)>,
    expected_version: Option<i64>,
    page: Option<i64>,
    size: Option<i64>,
    first: Option<i64>,
    after: Option<String>,
    order: Vec<Order>,
    conditions: Vec<Condition>,
}

impl Builtin {
    /// The operation that these arguments ask for; absent arguments are not in the list.
    pub fn operation(
        &self,
        model: &Model,
        limits: &PlanLimits,
        arguments: Vec<(usize, Value)>,
        selection: Arc<Selection>,
    ) -> Result<Operation> {
        let mut given = self.gather(model, arguments)?;
        let record = self.record;
        let expected_version = given.expected_version;
        match self.verb {
            Verb::Get => Ok(Operation::Get { record, id: given.needed_id()?, selection }),
            Verb::List => {
                let listing = given.listing(limits)?;
                Ok(Operation::List { record, listing, selection })
            }
            Verb::Create => Ok(Operation::Create { record, id: None, fields: given.fields, selection }),
            Verb::Update => {
                let id = given.needed_id()?;
                let fields = given.fields;
                Ok(Operation::Update {
                    record,
                    id,
                    fields,
                    absent: Absent::Keep,
                    expected_version,
                    selection,
                })
            }
            Verb::Delete => {
                Ok(Operation::Delete { record, id: given.needed_id()?, expected_version, selection })
            }
            Verb::Watch(_) => Err(Error::internal("a subscription is followed, not run")),
        }
    }

    /// What the arguments of a subscription filter by.
    pub(crate) fn filters(
        &self,
        model: &Model,
        arguments: Vec<(usize, Value)>,
    ) -> Result<Vec<(FieldId, Test)>> {
        let conditions = self.gather(model, arguments)?.conditions;
        let tests = plan::tests(model, model.record(self.record), &conditions)?;
        Ok(conditions.iter().map(|condition| condition.field).zip(tests).collect())
    }

    fn gather(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<Given> {
        let mut given = Given::default();
        let mut violations = Vec::new();
        let record = model.record(self.record);
        for (position, value) in arguments {
            let (name, role) = &self.roles[position];
            if let Err(violation) = given.take(record, self.verb, name, role, value) {
                violations.extend(violation);
            }
        }
        if violations.is_empty() { Ok(given) } else { Err(Error::Invalid(violations)) }
    }
}

/// The listing that arguments of a relation field ask for.
pub fn child_listing(
    record: &RecordType,
    limits: &PlanLimits,
    arguments: Vec<(String, Value)>,
) -> Result<Listing> {
    let mut given = Given::default();
    given.take_all(record, Verb::List, arguments).map_err(Error::Invalid)?;
    given.listing(limits)
}

impl Given {
    fn take(
        &mut self,
        record: &RecordType,
        verb: Verb,
        name: &str,
        role: &Role,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        // An explicit null asks for nothing, except where it is itself a value: "is null", "set to null".
        if value.is_null() && !matches!(role, Role::Field(_) | Role::Id) {
            return Ok(());
        }
        match role {
            Role::Id => self.id = Some(integer(name, &value)?),
            Role::Field(field) => match verb {
                Verb::List | Verb::Watch(_) => {
                    self.conditions.push(Condition { field: *field, op: Op::Eq, value });
                }
                Verb::Create | Verb::Update | Verb::Get | Verb::Delete => self.fields.push((*field, value)),
            },
            Role::Input => self.take_all(record, verb, object(name, value)?)?,
            Role::ExpectedVersion => self.expected_version = Some(integer(name, &value)?),
            Role::Page => self.page = Some(integer(name, &value)?),
            Role::Size => self.size = Some(integer(name, &value)?),
            Role::First => self.first = Some(integer(name, &value)?),
            Role::After => self.after = Some(text(name, value)?),
            Role::OrderBy => {
                orders(record, name, value)?.into_iter().for_each(|one| one.follow(&mut self.order))
            }
            Role::Where => self.conditions.extend(conditions(record, name, value)?),
            Role::Unknown => return Err(vec![Violation::new(name, "UNKNOWN", unknown(record, verb, name))]),
        }
        Ok(())
    }

    /// Arguments by name: those of a relation, or those inside an input object.
    fn take_all(
        &mut self,
        record: &RecordType,
        verb: Verb,
        arguments: Vec<(String, Value)>,
    ) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        for (name, value) in arguments {
            if let Err(wrong) = self.take(record, verb, &name, &role(record, verb, &name), value) {
                violations.extend(wrong);
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    fn needed_id(&mut self) -> Result<i64> {
        self.id.ok_or_else(|| Error::invalid("id", "REQUIRED", "argument `id` is required"))
    }

    fn listing(self, limits: &PlanLimits) -> Result<Listing> {
        let slice = self.slice(limits)?;
        let conditions = list_window::conditions(limits, self.conditions)?;
        Ok(Listing { conditions, order: self.order, slice, ..Listing::default() })
    }

    fn slice(&self, limits: &PlanLimits) -> Result<Slice> {
        let paged = self.page.is_some() || self.size.is_some();
        let cursored = self.first.is_some() || self.after.is_some();
        match (paged, cursored) {
            (false, false) => Ok(Slice::All),
            (true, false) => list_window::page(limits, self.page, self.size),
            (false, true) => list_window::first(limits, "first", self.first, self.after.clone()),
            (true, true) => Err(list_window::both("`page` and `size` or `first` and `after`")),
        }
    }
}

/// Why an argument means nothing.
pub(crate) fn unknown(record: &RecordType, verb: Verb, name: &str) -> String {
    let record = &record.name;
    match verb {
        Verb::Create | Verb::Update => format!("{record} has no field `{name}` that can be set"),
        Verb::List | Verb::Watch(_) => format!("{record} has no field `{name}` to filter by"),
        Verb::Get | Verb::Delete => format!("`{name}` says nothing about which {record} is meant, `id` does"),
    }
}

fn integer(name: &str, value: &Value) -> Result<i64, Vec<Violation>> {
    let wrong = || Violation::new(name, "TYPE", format!("argument `{name}` must be a 64-bit integer"));
    value.as_i64().ok_or_else(|| vec![wrong()])
}

fn object(name: &str, value: Value) -> Result<Vec<(String, Value)>, Vec<Violation>> {
    value
        .into_fields()
        .map_err(|noun| vec![Violation::new(name, "TYPE", format!("`{name}` must be an object, not {noun}"))])
}

fn text(name: &str, value: Value) -> Result<String, Vec<Violation>> {
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
            format!("argument `{name}` must be text, not {}", other.noun()),
        )]),
    }
}

/// A list, or one value that stands for a list of one.
fn items(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        one @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![one],
    }
}

fn orders(record: &RecordType, name: &str, value: Value) -> Result<Vec<Order>, Vec<Violation>> {
    items(value).into_iter().map(|item| order(record, name, &text(name, item)?)).collect()
}

/// `name` ascending, `-name` descending.
pub fn order(record: &RecordType, argument: &str, word: &str) -> Result<Order, Vec<Violation>> {
    let (descending, field) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    match filter_field(record, field) {
        Some(field) => Ok(Order { field, descending }),
        None => Err(unknown_field(record, argument, field, "sort by")),
    }
}

fn conditions(record: &RecordType, name: &str, value: Value) -> Result<Vec<Condition>, Vec<Violation>> {
    object(name, value)?.into_iter().map(|(key, value)| condition(record, name, &key, value)).collect()
}

/// `price_gte` and its value.
fn condition(
    record: &RecordType,
    argument: &str,
    key: &str,
    value: Value,
) -> Result<Condition, Vec<Violation>> {
    let Some((field, asks)) = asked(record, key) else {
        return Err(unknown_field(record, argument, key, "filter by"));
    };
    match (asks, value) {
        (Asks::Compare(op), value) => Ok(Condition { field, op, value }),
        (Asks::IsNull, Value::Bool(yes)) => Ok(is_null(field, yes)),
        (Asks::IsNull, other) => {
            let message = format!("`{key}` must be true or false, not {}", other.noun());
            Err(vec![Violation::new(argument, "TYPE", message)])
        }
    }
}

/// The field and what is asked of it: `price`, `price_gte`, `price_null`.
fn asked(record: &RecordType, key: &str) -> Option<(FieldId, Asks)> {
    if let Some(field) = filter_field(record, key) {
        return Some((field, Asks::Compare(Op::Eq)));
    }
    let (field, word) = key.rsplit_once('_')?;
    Some((filter_field(record, field)?, Asks::named(word)?))
}

/// What can be asked of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    Compare(Op),
    /// Whether it has no value; the answer is true or false.
    IsNull,
}

impl Asks {
    /// As it is written behind a field: `gte` in `price_gte` and `price.gte`.
    pub fn named(name: &str) -> Option<Asks> {
        Some(Asks::Compare(match name {
            "eq" => Op::Eq,
            "ne" => Op::Ne,
            "lt" => Op::Lt,
            "lte" => Op::Lte,
            "gt" => Op::Gt,
            "gte" => Op::Gte,
            "contains" => Op::Contains,
            "in" => Op::In,
            "null" => return Some(Asks::IsNull),
            _ => return None,
        }))
    }
}

impl Asks {
    /// What [`Asks::named`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Asks::Compare(Op::Eq) => "eq",
            Asks::Compare(Op::Ne) => "ne",
            Asks::Compare(Op::Lt) => "lt",
            Asks::Compare(Op::Lte) => "lte",
            Asks::Compare(Op::Gt) => "gt",
            Asks::Compare(Op::Gte) => "gte",
            Asks::Compare(Op::Contains) => "contains",
            Asks::Compare(Op::In) => "in",
            Asks::IsNull => "null",
        }
    }
}

pub fn is_null(field: FieldId, yes: bool) -> Condition {
    Condition { field, op: if yes { Op::Eq } else { Op::Ne }, value: Value::Null }
}

/// Why a field of `where` means nothing, if so.
pub(crate) fn no_condition(record: &RecordType, key: &str) -> Option<String> {
    if asked(record, key).is_some() {
        return None;
    }
    let wrong = unknown_field(record, "where", key, "filter by");
    wrong.into_iter().next().map(|violation| violation.message)
}

/// Why a field of an input object means nothing, if so. Types often share one that holds an `id`.
pub(crate) fn no_input(record: &RecordType, verb: Verb, key: &str) -> Option<String> {
    let nothing = key != "id" && role(record, verb, key) == Role::Unknown;
    nothing.then(|| unknown(record, verb, key))
}

fn unknown_field(record: &RecordType, argument: &str, field: &str, what: &str) -> Vec<Violation> {
    let known =
        record.fields.iter().filter(|field| field.kind.is_comparable()).map(|field| field.name.as_str());
    let hint = names::nearest(field, known).map(|name| format!("; did you mean `{name}`?"));
    let message = format!("{} has no field `{field}` to {what}{}", record.name, hint.unwrap_or_default());
    vec![Violation::new(argument, "UNKNOWN_FIELD", message)]
}

/// The fields of a record given by name, as programs and seeds do.
pub fn named_fields(record: &RecordType, value: Value) -> Result<Vec<(FieldId, Value)>> {
    let mut given = Given::default();
    let fields = object("input", value).and_then(|fields| given.take_all(record, Verb::Create, fields));
    fields.map_err(Error::Invalid)?;
    Ok(given.fields)
}
