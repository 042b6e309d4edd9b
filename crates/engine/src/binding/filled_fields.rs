//! The required fields that an operation fills by itself, because its arguments cannot set them.

use trefoil_model::naming::names::snake_words;
use trefoil_model::{Argument, Field, FieldId, RecordType, Scalar, ValueSource, ValueType};

use crate::arguments::roles::{inverse_field, member_role};
use crate::builtin_operation::{ArgumentRole, OperationVerb};
use crate::operation::{FillValue, FilledField};

/// The fields to fill, with their values. An update fills times of the last change only.
pub(crate) fn filled_fields(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<FilledField> {
    let is_update = matches!(verb, OperationVerb::Update | OperationVerb::UpdateMany);
    if !is_update && !verb.may_create() {
        return Vec::new();
    }
    let unset = unset_fields(record, verb, arguments, roles).into_iter();
    let filled = unset.filter_map(|id| {
        let field = record.field(id);
        let value = fill_value(field)?;
        let is_time = matches!(value, FillValue::CurrentTime | FillValue::CurrentDate);
        Some(FilledField { field: id, value, on_update: is_time && is_change_name(&field.name) })
    });
    filled.filter(|filled| filled.on_update || !is_update).collect()
}

/// The required fields of a new record that are filled because no value is given for them.
pub(crate) fn missing_fields(record: &RecordType, is_given: impl Fn(FieldId) -> bool) -> Vec<FilledField> {
    let unset = unset_fields(record, OperationVerb::Create, &[], &[]).into_iter();
    let filled = unset.filter(|field| !is_given(*field)).filter_map(|field| {
        let value = fill_value(record.field(field))?;
        Some(FilledField { field, value, on_update: false })
    });
    filled.collect()
}

/// The required fields that neither an argument nor the operation itself can set: a create never succeeds with them.
pub(crate) fn impossible_fields<'r>(
    record: &'r RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<&'r Field> {
    if !verb.may_create() {
        return Vec::new();
    }
    let unset = unset_fields(record, verb, arguments, roles).into_iter().map(|field| record.field(field));
    unset.filter(|field| fill_value(field).is_none()).collect()
}

/// True for an update, or a create with arguments, that sets no field at all.
pub(crate) fn sets_nothing(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> bool {
    let is_write = match verb {
        OperationVerb::Update | OperationVerb::UpdateMany => true,
        OperationVerb::Create => !arguments.is_empty(),
        OperationVerb::List
        | OperationVerb::Get
        | OperationVerb::Count
        | OperationVerb::Exists
        | OperationVerb::Aggregate
        | OperationVerb::CreateMany
        | OperationVerb::Save
        | OperationVerb::Upsert
        | OperationVerb::Delete
        | OperationVerb::DeleteMany
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => false,
    };
    let gives_key = verb.may_create() && roles.iter().any(|(_, role)| *role == ArgumentRole::Id);
    let names = arguments.iter().flat_map(|argument| argument.fields.iter().chain([argument]));
    let writes_related = names.into_iter().any(|argument| inverse_field(record, &argument.name).is_some());
    is_write && !gives_key && !writes_related && settable_fields(record, verb, arguments, roles).is_empty()
}

fn unset_fields(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<FieldId> {
    let settable = settable_fields(record, verb, arguments, roles);
    let fields = record.fields.iter().enumerate().map(|(position, field)| (FieldId(position), field));
    fields
        .filter(|(id, field)| {
            field.required
                && field.is_stored()
                && !field.kind.is_id()
                && field.value_source == ValueSource::Client
                && !field.has_default()
                && !settable.contains(id)
        })
        .map(|(id, _)| id)
        .collect()
}

/// The fields that the arguments, and the members of input objects, can set.
fn settable_fields(
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<FieldId> {
    let mut settable: Vec<FieldId> = Vec::new();
    for (argument, (_, role)) in arguments.iter().zip(roles) {
        let members = argument.fields.iter().filter(|_| *role == ArgumentRole::Input);
        let members = members.map(|inner| member_role(record, verb, &inner.name));
        for role in members.chain([role.clone()]) {
            if let ArgumentRole::Field(field) = role {
                settable.push(field);
            }
        }
    }
    settable
}

/// The value for a field, if one is safe to assume. A field with rules is never filled.
fn fill_value(field: &Field) -> Option<FillValue> {
    if !field.rules.is_empty() || field.is_distinct() {
        return None;
    }
    match field.kind.own_value()? {
        ValueType::Scalar(Scalar::DateTime | Scalar::LocalDateTime) if is_clock_name(&field.name) => {
            Some(FillValue::CurrentTime)
        }
        ValueType::Scalar(Scalar::Date) if is_clock_name(&field.name) => Some(FillValue::CurrentDate),
        // Without a scalar for times, they are often kept as text.
        ValueType::Scalar(Scalar::String) if is_clock_name(&field.name) => Some(FillValue::CurrentTime),
        ValueType::Scalar(Scalar::Boolean) => Some(FillValue::False),
        ValueType::Scalar(Scalar::Int | Scalar::Long | Scalar::Float | Scalar::Decimal)
            if is_counter_name(&field.name) =>
        {
            Some(FillValue::Zero)
        }
        ValueType::List(_) => Some(FillValue::EmptyList),
        ValueType::Key(_) | ValueType::Scalar(_) | ValueType::Enum(_) | ValueType::Embedded(_) => None,
    }
}

/// Words for what happened at a time, and whether it happens again with every change.
const CLOCK_WORDS: &[(&str, bool)] = &[
    ("created", false),
    ("create", false),
    ("creation", false),
    ("updated", true),
    ("update", true),
    ("modified", true),
    ("inserted", false),
    ("published", false),
    ("posted", false),
    ("added", false),
    ("registered", false),
    ("submitted", false),
    ("enrolled", false),
    ("joined", false),
    ("ordered", false),
    ("uploaded", false),
    ("applied", false),
    ("assigned", false),
    ("booked", false),
    ("borrowed", false),
    ("earned", false),
    ("followed", false),
    ("generated", false),
    ("issued", false),
    ("liked", false),
    ("logged", false),
    ("opened", false),
    ("placed", false),
    ("purchased", false),
    ("received", false),
    ("recorded", false),
    ("reported", false),
    ("requested", false),
    ("saved", false),
    ("sent", false),
    ("shared", false),
    ("started", false),
    ("synced", false),
];

/// `updatedAt`, `lastModified`: the time of the last change.
fn is_change_name(name: &str) -> bool {
    snake_words(name).split('_').any(|word| CLOCK_WORDS.contains(&(word, true)))
}

/// `createdAt`, `updatedOn`, `dateCreated`, `creationDate` and the like.
fn is_clock_name(name: &str) -> bool {
    let snake = snake_words(name);
    let words: Vec<&str> = snake.split('_').collect();
    let is_event = |word: &&str| CLOCK_WORDS.iter().any(|(known, _)| known == word);
    let is_other = |word: &&str| matches!(*word, "at" | "on" | "date" | "time" | "timestamp" | "last");
    snake == "timestamp"
        || (words.iter().any(is_event) && words.iter().all(|word| is_event(word) || is_other(word)))
}

/// `likes`, `viewCount`, `version`, `averageRating`: numbers that begin with 0.
fn is_counter_name(name: &str) -> bool {
    let snake = snake_words(name);
    let last = snake.rsplit('_').next().unwrap_or_default();
    matches!(
        last,
        "count"
            | "likes"
            | "dislikes"
            | "views"
            | "votes"
            | "upvotes"
            | "downvotes"
            | "shares"
            | "progress"
            | "balance"
            | "followers"
            | "points"
            | "score"
    ) || snake == "version"
        || snake.split('_').any(|word| matches!(word, "average" | "avg"))
}

#[cfg(test)]
mod tests {
    use super::{is_change_name, is_clock_name};

    #[test]
    fn clock_names() {
        for name in ["createdAt", "updated_at", "dateCreated", "creationDate", "lastModified", "created"] {
            assert!(is_clock_name(name), "{name}");
        }
        for name in ["createdBy", "birthDate", "date", "startsAt"] {
            assert!(!is_clock_name(name), "{name}");
        }
    }

    #[test]
    fn names_of_the_last_change() {
        for name in ["updatedAt", "lastUpdate", "update_time", "lastModified", "dateModified"] {
            assert!(is_clock_name(name) && is_change_name(name), "{name}");
        }
        for name in ["createdAt", "creationDate", "publishedOn", "joined"] {
            assert!(!is_change_name(name), "{name}");
        }
    }
}
