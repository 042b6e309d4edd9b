//! The arguments of a request by role, and what lists, aggregates and records take from them.

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::{
    Field, FieldId, Model, RecordId, RecordType, RecordTypeId, Relation, RootType, Value, ValueType,
};

use crate::arguments::aggregates::AggregateParser;
use crate::arguments::argument_roles::{inverse_field, member_role};
use crate::arguments::conditions::parse_conditions;
use crate::arguments::global_id_arguments;
use crate::arguments::numeric_strings::{number_for_field, number_for_role};
use crate::arguments::related_records::{
    InputPurpose, RecordReader, RelatedValue, describes_records, read_related,
};
use crate::arguments::sort_keys::{self, parse_sort_keys, set_direction};
use crate::arguments::unique_fields::parse_unique_fields;
use crate::arguments::unknown_names::{not_identified_message, unknown_name_message};
use crate::arguments::values::{expect_id, expect_integer, expect_object, expect_text, is_impossible_key};
use crate::binding::missing_fields;
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, VerbGroup};
use crate::list_window;
use crate::operation::{
    AggregateQuery, Condition, GroupMeasure, ListSlice, Listing, RecordInput, RelatedInput, SortKey,
};
use crate::plan::PlanLimits;

/// The arguments of a request by role.
#[derive(Default)]
pub(super) struct ParsedArguments {
    pub(super) id: Option<RecordId>,
    pub(super) fields: Vec<(FieldId, Value)>,
    /// What is written along with the record.
    pub(super) related: Vec<RelatedInput>,
    /// How many levels below the record of the operation the arguments are.
    pub(super) depth: usize,
    pub(super) expected_version: Option<i64>,
    pub(super) page: Option<i64>,
    pub(super) size: Option<i64>,
    pub(super) limit: Option<i64>,
    pub(super) offset: Option<i64>,
    pub(super) first: Option<i64>,
    pub(super) after: Option<String>,
    pub(super) last: Option<i64>,
    pub(super) before: Option<String>,
    pub(super) sort_keys: Vec<SortKey>,
    pub(super) is_descending: Option<bool>,
    pub(super) conditions: Vec<Condition>,
    /// The name of the argument, and the text.
    pub(super) search: Option<(String, String)>,
    /// The records to create.
    pub(super) items: Vec<RecordInput>,
    pub(super) unique_fields: Vec<FieldId>,
    /// The parts of an aggregate, each with the name of its argument; the order is read after the groups.
    pub(super) group_by: Option<(String, Value)>,
    pub(super) having: Option<(String, Value)>,
    pub(super) group_order: Option<(String, Value)>,
}

impl ParsedArguments {
    pub(super) fn replace_global_ids(&mut self, model: &Model, record: &RecordType) -> Result<()> {
        let lists =
            std::iter::once(&mut self.fields).chain(self.items.iter_mut().map(|item| &mut item.fields));
        let fields = lists.flatten().map(|(field, value)| (*field, value));
        global_id_arguments::replace_in_fields(model, record, fields).map_err(Error::Invalid)?;
        global_id_arguments::replace_in_conditions(model, record, &mut self.conditions)
            .map_err(Error::Invalid)
    }

    pub(super) fn accept(
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
            ArgumentRole::Id => {
                let id = expect_id(record, name, &value)?;
                // `updateUser(id: 1, input: { id: 2 })` would write another record than the one that is named.
                if self.id.as_ref().is_some_and(|other| *other != id) {
                    let message = format!("`{name}` is given twice, with different values");
                    return Err(vec![Violation::new(name, "READ_ONLY", message)]);
                }
                self.id = Some(id);
            }
            ArgumentRole::Ids => {
                self.conditions.push(Condition::one_of(record.id_field(), value).from_place(name));
            }
            ArgumentRole::Field(field) => match verb.root_kind() {
                // `users(role: [Role!])` means any of these.
                RootType::Query | RootType::Subscription if is_choice(record.field(*field), &value) => {
                    self.conditions.push(Condition::one_of(*field, value).from_place(name));
                }
                RootType::Query | RootType::Subscription => {
                    self.conditions.push(Condition::equals(*field, value).from_place(name));
                }
                RootType::Mutation => self.accept_written(model, record, verb, *field, value)?,
            },
            ArgumentRole::Compare(field, operator) => {
                self.conditions.push(Condition::compare(*field, *operator, value).from_place(name));
            }
            ArgumentRole::RelatedField(relation, field) => {
                let Some(target) = record.field(*relation).kind.relation().map(Relation::target) else {
                    return Ok(());
                };
                let value = number_for_field(model.record(target).field(*field), value);
                let condition = Condition::equals(*field, value).from_place(name);
                self.conditions.push(Condition::some_related(*relation, vec![condition]));
            }
            ArgumentRole::KeyObject => self.accept_key_object(record, verb, name, value)?,
            ArgumentRole::UniqueFields => self.unique_fields = parse_unique_fields(record, name, value)?,
            ArgumentRole::Input if verb == OperationVerb::CreateMany => {
                self.items = parse_items(model, record, name, value)?;
            }
            ArgumentRole::Input => self.accept_named(model, record, verb, expect_object(name, value)?)?,
            ArgumentRole::ExpectedVersion => self.expected_version = Some(expect_integer(name, &value)?),
            ArgumentRole::ClientMutationId => {}
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
                let members = expect_object(name, value)?.into_iter();
                let (operators, values): (Vec<_>, Vec<_>) =
                    members.partition(|(_, value)| matches!(value, Value::Object(_)));
                self.conditions.extend(parse_conditions(model, record, name, Value::Object(operators))?);
                self.accept_named(model, record, verb, values)?;
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
                let may_offer = |field: &Field| model.is_shown_to_all(field);
                let message = unknown_name_message(record, verb, name, may_offer);
                return Err(vec![Violation::new(name, "UNKNOWN", message)]);
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
                return Err(vec![RelatedInput::new(field).unsupported(record)]);
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
    pub(super) fn accept_named(
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
    pub(super) fn required_conditions(self, limits: &PlanLimits) -> Result<Vec<Condition>> {
        if self.conditions.iter().all(Condition::says_nothing) {
            let message =
                "`where` has no condition; add one; to reach all records, use one that is always true";
            return Err(Error::invalid("where", "REQUIRED", message));
        }
        list_window::limited_conditions(limits, self.conditions)
    }

    /// The first record that the arguments of a get operation describe.
    pub(super) fn first_match(self, operation: &BuiltinOperation, model: &Model) -> Result<Listing> {
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

    pub(super) fn listing(mut self, limits: &PlanLimits) -> Result<Listing> {
        let slice = self.slice(limits)?;
        if let Some(is_descending) = self.is_descending {
            set_direction(&mut self.sort_keys, is_descending);
        }
        let conditions = list_window::limited_conditions(limits, self.conditions)?;
        let search = self.search.map(|(name, text)| list_window::limited_search(limits, &name, text));
        let search = search.transpose()?;
        Ok(Listing { conditions, search, sort_keys: self.sort_keys, slice, ..Listing::default() })
    }

    pub(super) fn aggregate(
        self,
        model: &Model,
        record: RecordTypeId,
        limits: &PlanLimits,
        measures: Vec<GroupMeasure>,
    ) -> Result<AggregateQuery> {
        let reader = AggregateParser { model, record };
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

    /// Takes the key of `where: { id: 1 }`. Another key in the values would be that of another record.
    fn accept_key_object(
        &mut self,
        record: &RecordType,
        verb: OperationVerb,
        name: &str,
        value: Value,
    ) -> Result<(), Vec<Violation>> {
        let refuse = |path: String, code, message: String| Err(vec![Violation::new(&path, code, message)]);
        let mut key = None;
        for (member, value) in expect_object(name, value)?.into_iter().filter(|(_, value)| !value.is_null()) {
            let path = format!("{name}.{member}");
            if member_role(record, verb, &member) != ArgumentRole::Id {
                let message = not_identified_message(record, &path);
                return refuse(path, "UNKNOWN", message);
            }
            key = Some(expect_id(record, &path, &value)?);
        }
        let key_name = &record.field(record.id_field()).input_name;
        match (key, self.id.take()) {
            (None, _) => refuse(name.to_owned(), "REQUIRED", format!("`{name}` needs `{key_name}`")),
            (Some(key), Some(other)) if key != other => {
                let message = format!("`{key_name}` in the values is not that in `{name}`");
                refuse(key_name.clone(), "READ_ONLY", message)
            }
            (Some(key), _) => {
                self.id = Some(key);
                Ok(())
            }
        }
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

/// True for a list of values of which a field holds one.
fn is_choice(field: &Field, value: &Value) -> bool {
    let is_single = field.kind.own_value().is_some_and(|own| !matches!(own, ValueType::List(_)));
    let holds_one = field.kind.is_id() || field.kind.is_reference() || is_single;
    holds_one && matches!(value, Value::List(_))
}

/// `ASC` or `DESC`, in any case, short or in full.
fn is_descending(name: &str, value: Value) -> Result<bool, Vec<Violation>> {
    let text = expect_text(name, value)?;
    sort_keys::direction_from_word(&text)
        .ok_or_else(|| vec![Violation::new(name, "TYPE", format!("argument `{name}` must be ASC or DESC"))])
}

/// Reads records inside an input as the arguments of an operation are read.
struct ArgumentReader<'a>(&'a Model);

impl RecordReader for ArgumentReader<'_> {
    fn takes_single_values(&self) -> bool {
        true
    }

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
            global_id_arguments::replace_in_fields(self.0, target, fields)?;
        }
        // An input type may lack a field that is filled.
        let filled_fields = match purpose {
            InputPurpose::Create => {
                let is_given = |id| parsed.fields.iter().any(|(given, _)| *given == id);
                missing_fields(self.0, record, is_given)
            }
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
