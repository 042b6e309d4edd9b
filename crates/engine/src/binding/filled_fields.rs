//! The required fields that an operation fills by itself, because its arguments cannot set them.

use trefoil_model::naming::names::snake_words;
use trefoil_model::{
    Argument, Field, FieldId, Model, RecordType, RecordTypeId, Scalar, ValueSource, ValueType,
};

use crate::arguments::argument_roles::{inverse_field, member_role};
use crate::builtin_operation::{ArgumentRole, OperationVerb};
use crate::operation::{FillValue, FilledField};

/// The fields to fill, with their values. An update fills times of the last change only.
pub(crate) fn filled_fields(
    model: &Model,
    record_id: RecordTypeId,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<FilledField> {
    let is_update = matches!(verb, OperationVerb::Update | OperationVerb::UpdateMany);
    if !is_update && !verb.may_create() {
        return Vec::new();
    }
    let record = model.record(record_id);
    let unset = unset_fields(record, verb, arguments, roles).into_iter();
    let filled = unset.filter_map(|id| {
        let field = record.field(id);
        let value = fill_value(model, record_id, id)?;
        let is_time = matches!(value, FillValue::CurrentTime | FillValue::CurrentDate);
        Some(FilledField { field: id, value, on_update: is_time && is_change_name(&field.name) })
    });
    filled.filter(|filled| filled.on_update || !is_update).collect()
}

/// The required fields of a new record that are filled because no value is given for them.
pub(crate) fn missing_fields(
    model: &Model,
    record: RecordTypeId,
    is_given: impl Fn(FieldId) -> bool,
) -> Vec<FilledField> {
    let unset = unset_fields(model.record(record), OperationVerb::Create, &[], &[]).into_iter();
    let filled = unset.filter(|field| !is_given(*field)).filter_map(|field| {
        let value = fill_value(model, record, field)?;
        Some(FilledField { field, value, on_update: false })
    });
    filled.collect()
}

/// The required fields that neither an argument nor the operation itself can set: a create never succeeds with them.
pub(crate) fn impossible_fields<'m>(
    model: &'m Model,
    record_id: RecordTypeId,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<&'m Field> {
    if !verb.may_create() {
        return Vec::new();
    }
    let record = model.record(record_id);
    let unset = unset_fields(record, verb, arguments, roles).into_iter();
    let impossible = unset.filter(|field| fill_value(model, record_id, *field).is_none());
    impossible.map(|field| record.field(field)).collect()
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

/// The value for a field, if one is safe to assume. A field with rules is never filled, nor one that rules of access look
/// at: what it is decides who may do what, so somebody has to say it.
fn fill_value(model: &Model, record: RecordTypeId, id: FieldId) -> Option<FillValue> {
    let field = model.record(record).field(id);
    if !field.rules.is_empty() || field.is_distinct() || model.is_ruled(record, id) {
        return None;
    }
    match field.kind.own_value()? {
        ValueType::Scalar(Scalar::DateTime | Scalar::LocalDateTime) if is_clock_name(&field.name) => {
            Some(FillValue::CurrentTime)
        }
        ValueType::Scalar(Scalar::Date) if is_clock_name(&field.name) => Some(FillValue::CurrentDate),
        // Without a scalar for times, these two are often kept as text.
        ValueType::Scalar(Scalar::String) if is_record_time(&field.name) => Some(FillValue::CurrentTime),
        ValueType::Scalar(Scalar::Boolean) => Some(FillValue::False),
        ValueType::List(_) => Some(FillValue::EmptyList),
        ValueType::Key(_) | ValueType::Scalar(_) | ValueType::Enum(_) | ValueType::Embedded(_) => None,
    }
}

/// Words for the creation of a record.
const CREATION_WORDS: [&str; 4] = ["created", "create", "creation", "inserted"];

/// Words for a change of it.
const CHANGE_WORDS: [&str; 3] = ["updated", "update", "modified"];

/// Words for what happens when a record is created, and is not that itself.
const EVENT_WORDS: [&str; 31] = [
    "added",
    "applied",
    "assigned",
    "booked",
    "borrowed",
    "earned",
    "enrolled",
    "followed",
    "generated",
    "issued",
    "joined",
    "liked",
    "logged",
    "opened",
    "ordered",
    "placed",
    "posted",
    "published",
    "purchased",
    "received",
    "recorded",
    "registered",
    "reported",
    "requested",
    "saved",
    "sent",
    "shared",
    "started",
    "submitted",
    "synced",
    "uploaded",
];

/// `updatedAt`, `lastModified`: the time of the last change.
fn is_change_name(name: &str) -> bool {
    snake_words(name).split('_').any(|word| CHANGE_WORDS.contains(&word))
}

/// `createdAt`, `updatedOn`, `dateCreated`, `creationDate` and the like, and `postedAt`.
fn is_clock_name(name: &str) -> bool {
    is_record_time(name)
        || snake_words(name) == "timestamp"
        || is_time_of(name, |word| is_record_word(word) || EVENT_WORDS.contains(&word))
}

/// The time when the record was created or last changed.
fn is_record_time(name: &str) -> bool {
    is_time_of(name, is_record_word)
}

fn is_record_word(word: &str) -> bool {
    CREATION_WORDS.contains(&word) || CHANGE_WORDS.contains(&word)
}

/// True if the name says nothing but the time of such an event.
fn is_time_of(name: &str, is_event: impl Fn(&str) -> bool) -> bool {
    let snake = snake_words(name);
    let mut words = snake.split('_');
    let is_other = |word: &str| matches!(word, "at" | "on" | "date" | "time" | "timestamp" | "last");
    snake.split('_').any(&is_event) && words.all(|word| is_event(word) || is_other(word))
}

#[cfg(test)]
mod tests {
    use super::{is_change_name, is_clock_name, is_record_time};

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
    fn names_of_times_that_are_kept_as_text() {
        for name in ["createdAt", "updated_at", "dateCreated", "lastModified", "created"] {
            assert!(is_record_time(name), "{name}");
        }
        for name in ["posted", "likedAt", "ordered", "sentOn", "timestamp"] {
            assert!(!is_record_time(name), "{name}");
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
