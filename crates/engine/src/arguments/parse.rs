//! Maps the arguments of a built-in operation to an [`Operation`].

use std::sync::Arc;

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::{FieldId, Model, RecordId, RecordType, RecordTypeId, RootKind, Value};

use crate::arguments::aggregates::AggregateReader;
use crate::arguments::conditions::parse_conditions;
use crate::arguments::digit_texts::number_for_role;
use crate::arguments::plain_keys;
use crate::arguments::related_records::{
    InputPurpose, RecordReader, RelatedValue, describes_records, read_related,
};
use crate::arguments::roles::{inverse_field, member_role};
use crate::arguments::sort_keys::{self, parse_sort_keys, set_direction};
use crate::arguments::unique_fields::parse_unique_fields;
use crate::arguments::unknown_names::unknown_argument_message;
use crate::arguments::values::{expect_id, expect_integer, expect_object, expect_text, is_impossible_key};
use crate::binding::fillable_fields;
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, VerbGroup};
use crate::list_window;
use crate::operation::{
    AggregateQuery, Condition, CountMode, ListSlice, Listing, Measure, MissingFields, NestedWrite, Operation,
    RecordInput, RelatedInput, SortKey,
};
use crate::plan::{self, PlanLimits, Predicate, PreparedSelection};

/// The arguments of a request by role.
#[derive(Default)]
struct ParsedArguments {
    id: Option<RecordId>,
    fields: Vec<(FieldId, Value)>,
    /// What is written along with the record.
    related: Vec<RelatedInput>,
    /// How many levels below the record of the operation the arguments are.
    depth: usize,
    expected_version: Option<i64>,
    page: Option<i64>,
    size: Option<i64>,
    limit: Option<i64>,
    offset: Option<i64>,
    first: Option<i64>,
    after: Option<String>,
    last: Option<i64>,
    before: Option<String>,
    sort_keys: Vec<SortKey>,
    is_descending: Option<bool>,
    conditions: Vec<Condition>,
    /// The name of the argument, and the text.
    search: Option<(String, String)>,
    /// The records to create.
    items: Vec<RecordInput>,
    unique_fields: Vec<FieldId>,
    /// The parts of an aggregate, each with the name of its argument; the order is read after the groups.
    group_by: Option<(String, Value)>,
    having: Option<(String, Value)>,
    group_order: Option<(String, Value)>,
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
        let filled_fields = self.filled_fields.clone();
        match self.verb {
            OperationVerb::Get => match parsed.id {
                Some(id) if parsed.conditions.is_empty() => Ok(Operation::Get { record, id, selection }),
                _ => Ok(Operation::List { record, listing: parsed.first_match(self, model)?, selection }),
            },
            OperationVerb::List => {
                let listing = parsed.listing(limits)?;
                Ok(Operation::List { record, listing, selection })
            }
            OperationVerb::Count | OperationVerb::Exists => {
                let is_count = self.verb == OperationVerb::Count;
                let listing = Listing {
                    count: if is_count { CountMode::Exact } else { CountMode::Skip },
                    slice: ListSlice::First { first: 1, after: None },
                    ..parsed.listing(limits)?
                };
                Ok(Operation::List { record, listing, selection })
            }
            OperationVerb::Aggregate => {
                let query = parsed.aggregate(model, record, limits, Vec::new())?;
                Ok(Operation::Aggregate { record, query })
            }
            OperationVerb::Create => Ok(self.create_operation(parsed, selection)),
            OperationVerb::Save if parsed.id.is_none() => Ok(self.create_operation(parsed, selection)),
            OperationVerb::Update | OperationVerb::Save => {
                let id = parsed.id.ok_or_else(|| self.missing_key_error(model.record(record)))?;
                let fields = parsed.fields;
                let update = Operation::Update {
                    record,
                    id,
                    fields,
                    filled_fields,
                    missing_fields: MissingFields::Keep,
                    expected_version,
                    selection,
                };
                Ok(update.with_related(parsed.related))
            }
            OperationVerb::Delete => {
                let id = parsed.id.ok_or_else(|| self.missing_key_error(model.record(record)))?;
                Ok(Operation::Delete { record, id, expected_version, selection })
            }
            OperationVerb::CreateMany => {
                let mut inputs = parsed.items;
                if inputs.iter().any(|input| !input.related.is_empty()) {
                    inputs.iter_mut().for_each(|input| input.filled_fields.clone_from(&filled_fields));
                    let write = NestedWrite::CreateMany(inputs);
                    return Ok(Operation::Nested { record, write, selection });
                }
                let items = inputs.into_iter().map(|input| input.fields).collect();
                Ok(Operation::CreateMany { record, items, filled_fields, selection })
            }
            OperationVerb::UpdateMany => {
                let fields = std::mem::take(&mut parsed.fields);
                let conditions = parsed.required_conditions(limits)?;
                Ok(Operation::UpdateMany { record, conditions, fields, filled_fields })
            }
            OperationVerb::Upsert => {
                let (by, fields) = (parsed.unique_fields, parsed.fields);
                Ok(Operation::Upsert { record, by, fields, filled_fields, selection })
            }
            OperationVerb::DeleteMany => {
                Ok(Operation::DeleteMany { record, conditions: parsed.required_conditions(limits)? })
            }
            OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => {
                Err(Error::internal("a subscription is followed, not run"))
            }
        }
    }

    /// Builds the operation that computes these measures of groups.
    pub fn build_aggregate(
        &self,
        model: &Model,
        limits: &PlanLimits,
        arguments: Vec<(usize, Value)>,
        measures: Vec<Measure>,
    ) -> Result<Operation> {
        let parsed = self.parse_arguments(model, arguments)?;
        let query = parsed.aggregate(model, self.record, limits, measures)?;
        Ok(Operation::Aggregate { record: self.record, query })
    }

    fn create_operation(&self, parsed: ParsedArguments, selection: Arc<PreparedSelection>) -> Operation {
        let ParsedArguments { id, fields, related, .. } = parsed;
        let filled_fields = self.filled_fields.clone();
        let create = Operation::Create { record: self.record, id, fields, filled_fields, selection };
        create.with_related(related)
    }

    /// The predicates that the arguments of a subscription filter by.
    pub(crate) fn subscription_predicates(
        &self,
        model: &Model,
        arguments: Vec<(usize, Value)>,
    ) -> Result<Vec<Predicate>> {
        let conditions = self.parse_arguments(model, arguments)?.conditions;
        plan::plan_predicates(model, model.record(self.record), &conditions)
    }

    fn parse_arguments(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<ParsedArguments> {
        let mut parsed = ParsedArguments::default();
        let mut violations = Vec::new();
        let record = model.record(self.record);
        for (position, value) in arguments {
            let (name, role) = &self.argument_roles[position];
            if let Err(violation) = parsed.accept(model, record, self.verb, name, role, value) {
                violations.extend(violation);
            }
        }
        if model.global_ids && violations.is_empty() {
            parsed.replace_global_ids(model, record)?;
        }
        if violations.is_empty() { Ok(parsed) } else { Err(Error::Invalid(violations)) }
    }
}

/// The listing for the arguments of a relation field.
pub fn listing_from_arguments(
    model: &Model,
    record: &RecordType,
    limits: &PlanLimits,
    arguments: Vec<(String, Value)>,
) -> Result<Listing> {
    let mut parsed = ParsedArguments::default();
    parsed.accept_named(model, record, OperationVerb::List, arguments).map_err(Error::Invalid)?;
    if model.global_ids {
        parsed.replace_global_ids(model, record)?;
    }
    parsed.listing(limits)
}

/// The aggregate for the arguments of a field that groups related records.
pub fn aggregate_from_arguments(
    model: &Model,
    record: RecordTypeId,
    limits: &PlanLimits,
    arguments: Vec<(String, Value)>,
    measures: Vec<Measure>,
) -> Result<AggregateQuery> {
    let (mut parsed, owner) = (ParsedArguments::default(), model.record(record));
    parsed.accept_named(model, owner, OperationVerb::Aggregate, arguments).map_err(Error::Invalid)?;
    if model.global_ids {
        parsed.replace_global_ids(model, owner)?;
    }
    parsed.aggregate(model, record, limits, measures)
}

impl ParsedArguments {
    fn replace_global_ids(&mut self, model: &Model, record: &RecordType) -> Result<()> {
        let lists =
            std::iter::once(&mut self.fields).chain(self.items.iter_mut().map(|item| &mut item.fields));
        let fields = lists.flatten().map(|(field, value)| (*field, value));
        plain_keys::replace_in_fields(model, record, fields).map_err(Error::Invalid)?;
        plain_keys::replace_in_conditions(model, record, &mut self.conditions).map_err(Error::Invalid)
    }

    fn accept(
        &mut self,
        model: &Model,
        record: &RecordType,
        verb: OperationVerb,
        name: &str,
        role: &ArgumentRole,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        // An explicit null counts as absent, except where null is a value: "is null", "set to null".
        // A get by null would find a record that merely has no value: `userByToken(token: $forgotten)`.
        let is_value = matches!(role, ArgumentRole::Field(_)) && verb != OperationVerb::Get;
        if value.is_null() && !is_value {
            return Ok(());
        }
        let value = number_for_role(record, role, value);
        match role {
            ArgumentRole::Id if verb == OperationVerb::Get && is_impossible_key(record, &value) => {
                self.conditions.push(Condition::one_of(record.id_field(), Value::List(Vec::new())));
            }
            ArgumentRole::Id => self.id = Some(expect_id(record, name, &value)?),
            ArgumentRole::Ids => {
                self.conditions.push(Condition::one_of(record.id_field(), value));
            }
            ArgumentRole::Field(field) => match verb.root_kind() {
                RootKind::Query | RootKind::Subscription => {
                    self.conditions.push(Condition::equals(*field, value));
                }
                RootKind::Mutation => self.accept_written(model, record, verb, *field, value)?,
            },
            ArgumentRole::Compare(field, operator) => {
                self.conditions.push(Condition::compare(*field, *operator, value));
            }
            ArgumentRole::UniqueFields => self.unique_fields = parse_unique_fields(record, name, value)?,
            ArgumentRole::Input if verb == OperationVerb::CreateMany => {
                self.items = parse_items(model, record, name, value)?;
            }
            ArgumentRole::Input => self.accept_named(model, record, verb, expect_object(name, value)?)?,
            ArgumentRole::ExpectedVersion => self.expected_version = Some(expect_integer(name, &value)?),
            ArgumentRole::Page => self.page = Some(expect_integer(name, &value)?),
            ArgumentRole::PageFromZero => self.page = Some(expect_integer(name, &value)?.saturating_add(1)),
            ArgumentRole::Size => self.size = Some(expect_integer(name, &value)?),
            ArgumentRole::Limit => self.limit = Some(expect_integer(name, &value)?),
            ArgumentRole::Offset => self.offset = Some(expect_integer(name, &value)?),
            ArgumentRole::First => self.first = Some(expect_integer(name, &value)?),
            ArgumentRole::After => self.after = Some(expect_text(name, value)?),
            ArgumentRole::Last => self.last = Some(expect_integer(name, &value)?),
            ArgumentRole::Before => self.before = Some(expect_text(name, value)?),
            ArgumentRole::OrderBy if verb == OperationVerb::Aggregate => {
                self.group_order = Some((name.to_owned(), value));
            }
            ArgumentRole::GroupBy => self.group_by = Some((name.to_owned(), value)),
            ArgumentRole::Having => self.having = Some((name.to_owned(), value)),
            ArgumentRole::OrderBy => parse_sort_keys(model, record, name, value)?
                .into_iter()
                .for_each(|sort_key| sort_key.append_to(&mut self.sort_keys)),
            ArgumentRole::SortDirection => self.is_descending = Some(is_descending(name, value)?),
            ArgumentRole::Where if verb == OperationVerb::Get => {
                self.accept_named(model, record, verb, expect_object(name, value)?)?;
            }
            // A filter that is text searches, an object compares fields.
            ArgumentRole::Where
                if matches!(value, Value::String(_)) && verb.group() == VerbGroup::ReadMany =>
            {
                self.search = Some((name.to_owned(), expect_text(name, value)?));
            }
            ArgumentRole::Where => self.conditions.extend(parse_conditions(model, record, name, value)?),
            ArgumentRole::Search => self.search = Some((name.to_owned(), expect_text(name, value)?)),
            // An input often has what only a resolver would use: a password, a token. `check` warns about it.
            ArgumentRole::Unknown if verb.group() == VerbGroup::WriteFields => {
                // A list of objects cannot be given to a record that exists: it is ignored, too.
                let is_ignored = !verb.may_create() && matches!(value, Value::List(_));
                if let Some(field) = inverse_field(record, name).filter(|_| !is_ignored) {
                    self.accept_written(model, record, verb, field, value)?;
                }
            }
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

    /// Accepts the value of a field, or what is written to the records of a relation.
    fn accept_written(
        &mut self,
        model: &Model,
        record: &RecordType,
        verb: OperationVerb,
        field: FieldId,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        let relation = record.field(field).kind.relation();
        if relation.is_none() || !describes_records(&value) {
            // Nothing but records can be written to an inverse.
            if record.field(field).kind.inverse().is_none() {
                self.fields.push((field, value));
            }
            return Ok(());
        }
        let purpose = match verb {
            OperationVerb::UpdateMany | OperationVerb::Upsert => {
                let name = &record.field(field).name;
                let message = format!(
                    "`{name}`: related records can be written only with one record that is created or updated"
                );
                return Err(vec![Violation::new(name, "UNSUPPORTED", message)]);
            }
            OperationVerb::Update => InputPurpose::Update,
            // Without a key a new record is saved.
            OperationVerb::Save if self.id.is_some() => InputPurpose::Update,
            OperationVerb::Create
            | OperationVerb::CreateMany
            | OperationVerb::Save
            | OperationVerb::List
            | OperationVerb::Get
            | OperationVerb::Count
            | OperationVerb::Exists
            | OperationVerb::Aggregate
            | OperationVerb::Delete
            | OperationVerb::DeleteMany
            | OperationVerb::Subscribe(_)
            | OperationVerb::SubscribeAll => InputPurpose::Create,
        };
        match read_related(&ArgumentReader(model), record, field, value, purpose, self.depth)? {
            RelatedValue::Id(id) => self.fields.push((field, id)),
            RelatedValue::Records(related) => self.related.push(related),
        }
        Ok(())
    }

    /// Accepts arguments by name, of a relation or inside an input object.
    fn accept_named(
        &mut self,
        model: &Model,
        record: &RecordType,
        verb: OperationVerb,
        arguments: Vec<(String, Value)>,
    ) -> Result<(), Vec<Violation>> {
        let mut violations = Vec::new();
        for (name, value) in arguments {
            if let Err(found) =
                self.accept(model, record, verb, &name, &member_role(record, verb, &name), value)
            {
                violations.extend(found);
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// The conditions of a write to many records: an empty `where`, such as a forgotten variable, does not mean all.
    fn required_conditions(self, limits: &PlanLimits) -> Result<Vec<Condition>> {
        if self.conditions.is_empty() {
            let message =
                "`where` has no condition; add one; to reach all records, use one that is always true";
            return Err(Error::invalid("where", "REQUIRED", message));
        }
        list_window::limited_conditions(limits, self.conditions)
    }

    /// The first record that the arguments of a get operation describe.
    fn first_match(self, operation: &BuiltinOperation, model: &Model) -> Result<Listing> {
        let mut conditions = self.conditions;
        if let Some(id) = self.id {
            let field = model.record(operation.record).id_field();
            conditions.push(Condition::equals(field, id.to_value()));
        }
        if conditions.is_empty() && !operation.is_singleton {
            return Err(operation.missing_key_error(model.record(operation.record)));
        }
        Ok(Listing { conditions, slice: ListSlice::First { first: 1, after: None }, ..Listing::default() })
    }

    fn listing(mut self, limits: &PlanLimits) -> Result<Listing> {
        let slice = self.slice(limits)?;
        if let Some(is_descending) = self.is_descending {
            set_direction(&mut self.sort_keys, is_descending);
        }
        let conditions = list_window::limited_conditions(limits, self.conditions)?;
        let search = self.search.map(|(name, text)| list_window::limited_search(limits, &name, text));
        let search = search.transpose()?;
        Ok(Listing { conditions, search, sort_keys: self.sort_keys, slice, ..Listing::default() })
    }

    fn aggregate(
        self,
        model: &Model,
        record: RecordTypeId,
        limits: &PlanLimits,
        measures: Vec<Measure>,
    ) -> Result<AggregateQuery> {
        let reader = AggregateReader { model, record };
        let conditions = list_window::limited_conditions(limits, self.conditions)?;
        let search = self.search.map(|(name, text)| list_window::limited_search(limits, &name, text));
        let search = search.transpose()?;
        let first = self.first.or(self.limit);
        let first = first.map(|first| list_window::limited_size("first", Some(first), limits)).transpose()?;
        let mut query = AggregateQuery { conditions, search, measures, first, ..AggregateQuery::default() };
        if let Some((name, value)) = self.group_by {
            query.group_keys = reader.group_keys(&name, value).map_err(Error::Invalid)?;
        }
        if let Some((name, value)) = self.having {
            reader.add_conditions(&mut query, &name, value).map_err(Error::Invalid)?;
        }
        if let Some((name, value)) = self.group_order {
            reader.add_orders(&mut query, &name, value).map_err(Error::Invalid)?;
        }
        Ok(query)
    }

    fn slice(&self, limits: &PlanLimits) -> Result<ListSlice> {
        let paged = self.page.is_some() || self.size.is_some();
        let is_backward = self.last.is_some() || self.before.is_some();
        let cursored = self.first.is_some() || self.after.is_some() || is_backward;
        match (paged, cursored) {
            (true, true) if is_backward => {
                Err(list_window::mixed_paging_error("`page` and `size` or `last` and `before`"))
            }
            (true, true) => Err(list_window::mixed_paging_error("`page` and `size` or `first` and `after`")),
            (false, true) if is_backward && self.offset.is_some() => {
                Err(list_window::mixed_paging_error("`offset` or `last` and `before`"))
            }
            (false, true) if is_backward => list_window::between_slice(
                limits,
                (self.after.clone(), self.first),
                (self.before.clone(), self.last),
            ),
            // `limit` is the size of the page, too.
            (true, false) => list_window::page_slice(limits, self.page, self.size.or(self.limit)),
            (false, true) if self.offset.is_some() && self.after.is_none() => {
                list_window::range_slice(limits, self.offset, self.first)
            }
            (false, true) => list_window::cursor_slice(limits, "first", self.first, self.after.clone()),
            (false, false) if self.limit.is_some() || self.offset.is_some() => {
                list_window::range_slice(limits, self.offset, self.limit)
            }
            (false, false) => Ok(ListSlice::All),
        }
    }
}

/// `ASC` or `DESC`, in any case and length.
fn is_descending(name: &str, value: Value) -> Result<bool, Vec<Violation>> {
    let text = expect_text(name, value)?;
    sort_keys::direction_from_word(&text)
        .ok_or_else(|| vec![Violation::new(name, "TYPE", format!("argument `{name}` must be ASC or DESC"))])
}

/// Reads records inside an input as the arguments of an operation are read.
struct ArgumentReader<'a>(&'a Model);

impl RecordReader for ArgumentReader<'_> {
    fn model(&self) -> &Model {
        self.0
    }

    fn read_record(
        &self,
        record: RecordTypeId,
        members: Vec<(String, Value)>,
        purpose: InputPurpose,
        depth: usize,
    ) -> Result<RecordInput, Vec<Violation>> {
        let target = self.0.record(record);
        let mut parsed = ParsedArguments { depth, ..ParsedArguments::default() };
        let verb = match purpose {
            InputPurpose::Create => OperationVerb::Create,
            InputPurpose::Update => OperationVerb::Update,
        };
        parsed.accept_named(self.0, target, verb, members)?;
        if self.0.global_ids {
            let fields = parsed.fields.iter_mut().map(|(field, value)| (*field, value));
            plain_keys::replace_in_fields(self.0, target, fields)?;
        }
        // An input type may lack a field that is filled.
        let filled_fields = match purpose {
            InputPurpose::Create => fillable_fields(target),
            InputPurpose::Update => Vec::new(),
        };
        let ParsedArguments { id, fields, related, .. } = parsed;
        Ok(RecordInput { id, fields, filled_fields, related })
    }

    fn read_id(&self, record: &RecordType, name: &str, value: &Value) -> Result<RecordId, Vec<Violation>> {
        expect_id(record, name, value)
    }
}

/// The records of a list.
fn parse_items(
    model: &Model,
    record: &RecordType,
    name: &str,
    value: Value,
) -> Result<Vec<RecordInput>, Vec<Violation>> {
    let mut items = Vec::new();
    let mut violations = Vec::new();
    for (index, item) in sort_keys::list_or_single(value).into_iter().enumerate() {
        let mut parsed = ParsedArguments::default();
        let accepted = expect_object(name, item)
            .and_then(|fields| parsed.accept_named(model, record, OperationVerb::CreateMany, fields));
        match accepted {
            Ok(()) => {
                let ParsedArguments { fields, related, .. } = parsed;
                items.push(RecordInput { fields, related, ..RecordInput::default() });
            }
            Err(found) => violations
                .extend(found.into_iter().map(|violation| violation.nested_under(PathSegment::Index(index)))),
        }
    }
    if violations.is_empty() { Ok(items) } else { Err(violations) }
}

/// The id, if one is given, and the fields of a new record.
pub type GivenFields = (Option<RecordId>, Vec<(FieldId, Value)>);

/// The id and the fields of an object, for seeds and embedding programs. Unknown names are refused.
pub fn fields_from_object(model: &Model, record: &RecordType, value: Value) -> Result<GivenFields> {
    let verb = OperationVerb::Create;
    let mut parsed = ParsedArguments::default();
    let fields = expect_object("input", value).map_err(Error::Invalid)?;
    let is_unknown = |name: &&String| member_role(record, verb, name) == ArgumentRole::Unknown;
    let unknown = fields.iter().map(|(name, _)| name).filter(is_unknown);
    let unknown =
        unknown.map(|name| Violation::new(name, "UNKNOWN", unknown_argument_message(record, verb, name)));
    let mut violations: Vec<Violation> = unknown.collect();
    if let Err(found) = parsed.accept_named(model, record, verb, fields) {
        violations.extend(found);
    }
    if violations.is_empty() { Ok((parsed.id, parsed.fields)) } else { Err(Error::Invalid(violations)) }
}
