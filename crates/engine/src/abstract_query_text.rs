//! Writes operations over interfaces and unions as GraphQL documents that can be executed.

use trefoil_model::values::example_values;
use trefoil_model::{Argument, Field, RecordType, RecordTypeId, RootField};

use crate::abstract_operation::AbstractOperation;
use crate::builtin_operation::{ArgumentRole, ResultShape};
use crate::engine::Engine;
use crate::global_id;

/// A document that runs the operation, or `None` if a required argument has no obvious example.
pub fn abstract_query_text(
    engine: &Engine,
    root: &RootField,
    operation: &AbstractOperation,
) -> Option<String> {
    let model = engine.model();
    if !operation.members.iter().all(|member| engine.may_run(operation.verb, member.record)) {
        return None;
    }
    let first = operation.members.first()?;
    let mut arguments = Vec::new();
    for (argument, (_, role)) in root.arguments.iter().zip(&first.argument_roles) {
        if argument.ty.is_required() {
            arguments.push(example_argument(model.record(first.record), argument, role)?);
        }
    }
    let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) };
    let records: Vec<RecordTypeId> = operation.members.iter().map(|member| member.record).collect();
    let selection = || selection_text(engine, &operation.type_name, &records);
    let selection = match operation.result_shape {
        ResultShape::Record | ResultShape::List => format!(" {{ {} }}", selection()),
        ResultShape::Connection => {
            format!(" {}", model.wrapped_selection(root.ty.inner_name(), &selection()))
        }
        ResultShape::Payload
        | ResultShape::Id
        | ResultShape::Boolean
        | ResultShape::Nothing
        | ResultShape::Count
        | ResultShape::Groups => String::new(),
    };
    let title = format!("{}{}", root.name[..1].to_uppercase(), &root.name[1..]);
    Some(format!("query {title} {{\n  {}{arguments}{selection}\n}}\n", root.name))
}

fn example_argument(record: &RecordType, argument: &Argument, role: &ArgumentRole) -> Option<String> {
    let id = || {
        let id = example_values::example_id(record.key_form()).to_string();
        if record.has_global_ids { global_id::encode(&record.name, &id) } else { id }
    };
    let value = match role {
        ArgumentRole::Id => format!("\"{}\"", id()),
        ArgumentRole::Ids => format!("[\"{}\"]", id()),
        ArgumentRole::Search => "\"a\"".to_owned(),
        ArgumentRole::Page | ArgumentRole::Size | ArgumentRole::Limit | ArgumentRole::First => "1".to_owned(),
        ArgumentRole::PageFromZero | ArgumentRole::Offset => "0".to_owned(),
        ArgumentRole::Field(_)
        | ArgumentRole::Compare(..)
        | ArgumentRole::RelatedField(..)
        | ArgumentRole::Input
        | ArgumentRole::KeyObject
        | ArgumentRole::UniqueFields
        | ArgumentRole::ExpectedVersion
        | ArgumentRole::ClientMutationId
        | ArgumentRole::After
        | ArgumentRole::Last
        | ArgumentRole::Before
        | ArgumentRole::OrderBy
        | ArgumentRole::SortDirection
        | ArgumentRole::Where
        | ArgumentRole::GroupBy
        | ArgumentRole::Having
        | ArgumentRole::Unknown => return None,
    };
    Some(format!("{}: {value}", argument.name))
}

/// The fields of the interface, and of each type those that no other type has: equal names could have other types.
fn selection_text(engine: &Engine, type_name: &str, records: &[RecordTypeId]) -> String {
    let model = engine.model();
    let is_hidden = |id: RecordTypeId, name: &str| {
        model.record(id).find_field(name).is_some_and(|field| !engine.shows_field(id, field))
    };
    let is_leaf = |record: &RecordType, field: &Field| {
        let is_declared = model.schema.type_field(&record.name, &field.name).is_ok();
        let value_type = field.kind.value_type().filter(|_| !field.kind.is_reference());
        is_declared && value_type.is_some_and(|value_type| value_type.innermost().embedded_name().is_none())
    };
    let in_interface = |field: &&Field| model.schema.type_field(type_name, &field.name).is_ok();
    let mut words = vec!["__typename".to_owned()];
    if let Some(first) = records.first().map(|first| model.record(*first)) {
        let is_shown = |field: &&Field| !records.iter().any(|id| is_hidden(*id, &field.name));
        let shared =
            first.fields.iter().filter(|field| is_leaf(first, field)).filter(in_interface).filter(is_shown);
        words.extend(shared.map(|field| field.name.clone()));
    }
    for id in records {
        let record = model.record(*id);
        let is_only = |field: &&Field| {
            let others = records.iter().map(|other| model.record(*other));
            others.filter(|other| other.find_field(&field.name).is_some()).count() == 1
                && !is_hidden(*id, &field.name)
        };
        let own = record.fields.iter().filter(|field| is_leaf(record, field) && !in_interface(field));
        let own: Vec<&str> = own.filter(is_only).map(|field| field.name.as_str()).collect();
        if !own.is_empty() {
            words.push(format!("... on {} {{ {} }}", record.name, own.join(" ")));
        }
    }
    words.join(" ")
}
