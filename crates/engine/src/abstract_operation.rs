//! A root field over an interface or union: one operation for each record type in it.

use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{KeySource, Model, RecordId, RecordType, Value};

use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, ResultShape};
use crate::cursor;
use crate::global_id;
use crate::operation::{ListSlice, Operation};
use crate::plan::{PlanLimits, PreparedSelection};
use crate::record_merge::{RecordMerge, RecordPlaces};

/// A root field that is bound to the same operation on several record types.
#[derive(Debug)]
pub struct AbstractOperation {
    /// The interface or union.
    pub type_name: String,
    /// A list, a look-up or a count.
    pub verb: OperationVerb,
    pub result_shape: ResultShape,
    /// The operation on each record type, in the order of their declaration.
    pub members: Vec<BuiltinOperation>,
}

/// The operations of one request, each with the number of its member.
pub struct AbstractRequest {
    pub operations: Vec<(usize, Operation)>,
    pub merge: RecordMerge,
}

impl AbstractOperation {
    /// Builds the operations for these arguments, given by position; `selections` are those of the members.
    pub fn build_request(
        &self,
        model: &Model,
        limits: &PlanLimits,
        arguments: &[(usize, Value)],
        selections: &[Arc<PreparedSelection>],
    ) -> Result<AbstractRequest> {
        let mut request = AbstractRequest { operations: Vec::new(), merge: RecordMerge::default() };
        let by_id = self.find_ids(model, arguments)?;
        for (number, (member, selection)) in self.members.iter().zip(selections).enumerate() {
            let mut arguments = arguments.to_vec();
            if let Some((position, places)) = &by_id {
                let own = places.iter().flatten().filter(|(other, _)| *other == number);
                let own: Vec<Value> = own.map(|(_, id)| id.to_value()).collect();
                let Some(first) = own.first().cloned() else { continue };
                let value = if self.verb == OperationVerb::Get { first } else { Value::List(own) };
                arguments.retain(|(other, _)| other != position);
                arguments.push((*position, value));
            }
            let operation = member.build_operation(model, limits, arguments, selection.clone())?;
            request.operations.push((number, operation));
        }
        if self.verb == OperationVerb::List {
            request.merge = merge_listings(model, &mut request.operations)?;
        }
        if let (Some((_, places)), OperationVerb::List) = (by_id, self.verb) {
            request.merge.set_ids(places);
        }
        Ok(request)
    }

    /// The argument with the id, or the ids, of records, and the members that may have each of them.
    fn find_ids(&self, model: &Model, arguments: &[(usize, Value)]) -> Result<Option<(usize, RecordPlaces)>> {
        let Some(first) = self.members.first() else { return Ok(None) };
        let is_id = |position: usize| {
            matches!(first.argument_roles[position].1, ArgumentRole::Id | ArgumentRole::Ids)
        };
        let given = arguments.iter().find(|(position, value)| is_id(*position) && !value.is_null());
        let Some((position, value)) = given else { return Ok(None) };
        let name = &first.argument_roles[*position].0;
        let places = |value: &Value| self.id_places(model, name, value);
        let places = match value {
            Value::List(items) => items.iter().map(places).collect::<Result<_>>()?,
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => vec![places(value)?],
        };
        Ok(Some((*position, places)))
    }
}

impl AbstractOperation {
    /// The members that may have the record with this id, and its key there.
    fn id_places(&self, model: &Model, name: &str, value: &Value) -> Result<Vec<(usize, RecordId)>> {
        let violation = |help: &str| Error::invalid(name, "TYPE", format!("argument `{name}` {help}"));
        let records: Vec<&RecordType> =
            self.members.iter().map(|member| model.record(member.record)).collect();
        if let Some((type_name, key)) =
            value.as_str().filter(|_| model.global_ids).and_then(global_id::decode)
        {
            let position = records.iter().position(|record| record.name == type_name);
            let number = position.ok_or_else(|| {
                Error::Invalid(vec![global_id::wrong_type(name, &type_name, &self.type_name)])
            })?;
            let id = RecordId::from_text(records[number].key_form(), &key).map_err(violation)?;
            return Ok(vec![(number, id)]);
        }
        let mut error = "must be an id as GraphQL shows it, with the name of its type in it";
        let mut places = Vec::new();
        for (number, record) in records.iter().enumerate() {
            // The plain key of one type is that of a record of another, too, if both are counted.
            if records.len() > 1 && record.key_source == KeySource::Counter {
                continue;
            }
            match RecordId::from_value(record.key_form(), value) {
                Ok(id) => places.push((number, id)),
                Err(help) if !model.global_ids => error = help,
                Err(_) => {}
            }
        }
        if places.is_empty() { Err(violation(error)) } else { Ok(places) }
    }
}

/// Turns the listings of the members into parts of one list.
fn merge_listings(model: &Model, operations: &mut [(usize, Operation)]) -> Result<RecordMerge> {
    let mut listings = Vec::new();
    for (_, operation) in operations {
        if let Operation::List { record, listing, .. } = operation {
            listings.push((model.record(*record), listing));
        }
    }
    let after = listings.first().and_then(|(_, listing)| listing.slice.after().map(str::to_owned));
    if let Some(after) = after {
        let members: Vec<_> =
            listings.iter().map(|(record, listing)| (*record, listing.sort_keys.as_slice())).collect();
        let cursors = cursor::cursors_for_members(model, &members, &after)?;
        for ((_, listing), cursor) in listings.iter_mut().zip(cursors) {
            if let ListSlice::First { after, .. } = &mut listing.slice {
                *after = Some(cursor);
            }
        }
    }
    let mut merge = RecordMerge::default();
    for (record, listing) in listings {
        merge = RecordMerge::of_listing(model, record, listing)?;
    }
    Ok(merge)
}
