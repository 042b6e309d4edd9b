//! The role of each argument of a built-in operation, by its name.

use trefoil_model::naming::names;
use trefoil_model::{Argument, FieldId, RecordType, ValueSource};

use crate::builtin_operation::{ArgumentRole, OperationVerb};

/// The argument of an upsert with the unique fields to find the record by.
pub const UNIQUE_FIELDS_ARGUMENT: &str = "by";

/// The role of each argument. A field's name wins over a paging word, so `size` filters if there is such a field.
pub fn argument_roles(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
) -> Vec<(String, ArgumentRole)> {
    // `bookId` means the book only if no argument is called like the key.
    let has_key =
        arguments.iter().any(|argument| named_role(record, verb, &argument.name) == ArgumentRole::Id);
    let role = |argument: &Argument| {
        let role = named_role(record, verb, &argument.name);
        let may_be_key = !has_key && matches!(role, ArgumentRole::Unknown | ArgumentRole::Field(_));
        if may_be_key && is_key_alias(record, verb, &argument.name) {
            ArgumentRole::Id
        } else if role == ArgumentRole::Unknown && is_input_object(verb, argument) {
            ArgumentRole::Input
        } else {
            role
        }
    };
    arguments.iter().map(|argument| (argument.name.clone(), role(argument))).collect()
}

/// The role of a member of an input object.
pub fn member_role(record: &RecordType, verb: OperationVerb, member: &str) -> ArgumentRole {
    let role = named_role(record, verb, member);
    let is_key = role == ArgumentRole::Unknown && is_key_alias(record, verb, member);
    if is_key { ArgumentRole::Id } else { role }
}

fn named_role(record: &RecordType, verb: OperationVerb, name: &str) -> ArgumentRole {
    let is_key = || record.field(record.id_field()).name == name || name == "id";
    match verb {
        OperationVerb::UpdateMany | OperationVerb::DeleteMany if name == "where" => ArgumentRole::Where,
        OperationVerb::Upsert if name == UNIQUE_FIELDS_ARGUMENT => ArgumentRole::UniqueFields,
        OperationVerb::Get | OperationVerb::Update | OperationVerb::Delete | OperationVerb::Save
            if is_key() =>
        {
            ArgumentRole::Id
        }
        OperationVerb::Update | OperationVerb::Delete | OperationVerb::Save if name == "expectedVersion" => {
            ArgumentRole::ExpectedVersion
        }
        OperationVerb::List => {
            filter_field(record, name).map_or_else(|| listing_role(name), ArgumentRole::Field)
        }
        OperationVerb::Get | OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => {
            match filter_field(record, name) {
                Some(field) => ArgumentRole::Field(field),
                None if name == "where" => ArgumentRole::Where,
                None => ArgumentRole::Unknown,
            }
        }
        OperationVerb::Create if is_key() => ArgumentRole::Id,
        OperationVerb::Create
        | OperationVerb::CreateMany
        | OperationVerb::Update
        | OperationVerb::UpdateMany
        | OperationVerb::Save
        | OperationVerb::Upsert => {
            write_field(record, name).map_or(ArgumentRole::Unknown, ArgumentRole::Field)
        }
        OperationVerb::Delete | OperationVerb::DeleteMany => ArgumentRole::Unknown,
    }
}

/// `bookId` and `book_id` for the key of a Book, where the operation needs one.
fn is_key_alias(record: &RecordType, verb: OperationVerb, name: &str) -> bool {
    let needs_key = match verb {
        OperationVerb::Get | OperationVerb::Update | OperationVerb::Delete | OperationVerb::Save => true,
        OperationVerb::List
        | OperationVerb::Create
        | OperationVerb::CreateMany
        | OperationVerb::UpdateMany
        | OperationVerb::Upsert
        | OperationVerb::DeleteMany
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => false,
    };
    let is_written = matches!(verb, OperationVerb::Update | OperationVerb::Save);
    let is_field = record.find_input_field(name).is_some();
    needs_key && !(is_written && is_field) && names::is_key_name(&record.name, name)
}

/// True for an input object that holds what could also be separate arguments.
fn is_input_object(verb: OperationVerb, argument: &Argument) -> bool {
    let is_write = match verb {
        OperationVerb::Create
        | OperationVerb::CreateMany
        | OperationVerb::Update
        | OperationVerb::UpdateMany
        | OperationVerb::Save
        | OperationVerb::Upsert
        | OperationVerb::Delete => true,
        OperationVerb::List
        | OperationVerb::Get
        | OperationVerb::DeleteMany
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => false,
    };
    let is_many = verb == OperationVerb::CreateMany;
    is_write && !argument.fields.is_empty() && argument.ty.is_list() == is_many
}

fn listing_role(name: &str) -> ArgumentRole {
    match name {
        "page" | "pageNumber" | "pageNo" => ArgumentRole::Page,
        "size" | "pageSize" | "perPage" => ArgumentRole::Size,
        "limit" | "take" => ArgumentRole::Limit,
        "offset" | "skip" => ArgumentRole::Offset,
        "first" => ArgumentRole::First,
        "after" => ArgumentRole::After,
        "orderBy" | "order" | "sort" | "sortBy" => ArgumentRole::OrderBy,
        "direction" | "sortDirection" | "sortOrder" | "orderDirection" => ArgumentRole::SortDirection,
        "where" | "filter" => ArgumentRole::Where,
        "ids" => ArgumentRole::Ids,
        "query" | "q" | "search" | "searchTerm" | "keyword" => ArgumentRole::Search,
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
        !field.kind.is_id() && (field.is_writable() || field.value_source != ValueSource::Client)
    })
}
