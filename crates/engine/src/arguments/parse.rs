//! Maps the arguments of a built-in operation to an [`Operation`].

use std::sync::Arc;

use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::{FieldId, Model, RecordId, RecordType, RecordTypeId, Value};

use crate::arguments::argument_roles::{is_client_mutation_id, member_role};
use crate::arguments::parsed_arguments::ParsedArguments;
use crate::arguments::unknown_names::unknown_argument_message;
use crate::arguments::values::{expect_id, expect_object, is_impossible_key};
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb};
use crate::operation::{
    AggregateQuery, Condition, CountMode, GroupMeasure, ListSlice, Listing, MissingFields, NestedWrite,
    Operation,
};
use crate::plan::{PlanLimits, PreparedSelection};

impl BuiltinOperation {
    /// The operation for its only argument, if that is the key of a look-up: the most frequent request needs no more.
    /// `None` for any other, and for what [`BuiltinOperation::build_operation`] refuses.
    pub fn build_look_up(
        &self,
        model: &Model,
        position: usize,
        value: &Value,
        selection: &Arc<PreparedSelection>,
    ) -> Option<Operation> {
        let (name, role) = &self.argument_roles[position];
        let record = model.record(self.record);
        let is_look_up = self.verb == OperationVerb::Get && *role == ArgumentRole::Id;
        if !is_look_up || value.is_null() || is_impossible_key(record, value) {
            return None;
        }
        let id = expect_id(record, name, value).ok()?;
        Some(Operation::Get { record: self.record, id, selection: selection.clone() })
    }

    /// The operation that reads the account of the actor, or nothing where there is none.
    pub fn own_account(&self, account: Option<&RecordId>, selection: Arc<PreparedSelection>) -> Operation {
        match account {
            Some(id) => Operation::Get { record: self.record, id: id.clone(), selection },
            None => Operation::List { record: self.record, listing: Listing::of_ids(Vec::new()), selection },
        }
    }

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
            // Whoever expects a version, or changes related records, means a record that exists.
            OperationVerb::Save if expected_version.is_none() && parsed.related.is_empty() => {
                let (id, by, fields) = (parsed.id, Vec::new(), parsed.fields);
                Ok(Operation::Upsert { record, id, by, fields, filled_fields, selection })
            }
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
                Ok(Operation::Upsert { record, id: None, by, fields, filled_fields, selection })
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
        measures: Vec<GroupMeasure>,
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

    /// What the arguments of a subscription filter by.
    pub(crate) fn subscription_conditions(
        &self,
        model: &Model,
        arguments: Vec<(usize, Value)>,
    ) -> Result<Vec<Condition>> {
        Ok(self.parse_arguments(model, arguments)?.conditions)
    }

    /// The text that the payload repeats: an argument, or a member of an input object.
    pub fn client_mutation_id(&self, arguments: &[(usize, Value)]) -> Option<String> {
        arguments.iter().find_map(|(position, value)| {
            let (name, role) = &self.argument_roles[*position];
            if let (Value::Object(members), ArgumentRole::Input) = (value, role) {
                return members.iter().find_map(|(name, value)| client_mutation_text(name, value));
            }
            client_mutation_text(name, value)
        })
    }

    fn parse_arguments(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<ParsedArguments> {
        let mut parsed = ParsedArguments::default();
        let mut violations = Vec::new();
        let record = model.record(self.record);
        // An object with nothing but the key is compared with what the others say.
        let is_key_object =
            |(position, _): &(usize, Value)| self.argument_roles[*position].1 == ArgumentRole::KeyObject;
        let (keys, others): (Vec<_>, Vec<_>) = arguments.into_iter().partition(is_key_object);
        for (position, value) in others.into_iter().chain(keys) {
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

fn client_mutation_text(name: &str, value: &Value) -> Option<String> {
    // An `ID` may be given as a number.
    let text = if let Value::Int(number) = value { Some(number.to_string()) } else { None };
    let text = text.or_else(|| value.as_str().map(str::to_owned));
    text.filter(|_| is_client_mutation_id(name))
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
    measures: Vec<GroupMeasure>,
) -> Result<AggregateQuery> {
    let (mut parsed, owner) = (ParsedArguments::default(), model.record(record));
    parsed.accept_named(model, owner, OperationVerb::Aggregate, arguments).map_err(Error::Invalid)?;
    if model.global_ids {
        parsed.replace_global_ids(model, owner)?;
    }
    parsed.aggregate(model, record, limits, measures)
}

/// The id, if one is given, and the fields of a new record.
pub type GivenFields = (Option<RecordId>, Vec<(FieldId, Value)>);

/// The id and the fields of an object, for seeds and embedding programs. Unknown names are refused.
pub fn fields_from_object(model: &Model, record: &RecordType, value: Value) -> Result<GivenFields> {
    let verb = OperationVerb::Create;
    let mut parsed = ParsedArguments::default();
    let fields = expect_object("input", value).map_err(Error::Invalid)?;
    let is_unknown = |name: &&String| {
        let role = member_role(record, verb, name);
        matches!(role, ArgumentRole::Unknown | ArgumentRole::ClientMutationId)
    };
    let unknown = fields.iter().map(|(name, _)| name).filter(is_unknown);
    let unknown =
        unknown.map(|name| Violation::new(name, "UNKNOWN", unknown_argument_message(record, verb, name)));
    let mut violations: Vec<Violation> = unknown.collect();
    if let Err(found) = parsed.accept_named(model, record, verb, fields) {
        violations.extend(found);
    }
    if violations.is_empty() { Ok((parsed.id, parsed.fields)) } else { Err(Error::Invalid(violations)) }
}
