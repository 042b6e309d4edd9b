//! Recognises payloads: types that wrap the result of one write, such as `{ book success message }`.

use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::{ExtendedType, ObjectType};

use crate::naming::names::snake_words;
use crate::{Model, RecordTypeId};

/// What a field of a payload holds after a successful write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadPart {
    Id,
    True,
    /// A text for people: `OK`.
    Message,
    /// As in HTTP: 200.
    Code,
    /// The same as a word: `OK`.
    CodeText,
    /// How many records were written: 1.
    Count,
    /// What the request gave as `clientMutationId`.
    ClientMutationId,
    EmptyList,
    Null,
}

/// Words in the names of types that tell why an operation failed.
const ERROR_WORDS: [&str; 14] = [
    "error",
    "errors",
    "failure",
    "failed",
    "exception",
    "problem",
    "problems",
    "invalid",
    "violation",
    "conflict",
    "denied",
    "forbidden",
    "unauthorized",
    "unauthenticated",
];

impl Model {
    /// The type of the result of an operation that succeeds: the one member of a union that is no error, as in
    /// `union AddVetPayload = AddVetErrorPayload | AddVetSuccessPayload`. Every other type is its own.
    pub fn success_type<'m>(&'m self, type_name: &'m str) -> &'m str {
        let Some(ExtendedType::Union(union)) = self.schema.types.get(type_name) else { return type_name };
        let is_error = |name: &str| {
            let words = snake_words(name);
            let says_error =
                words.split('_').any(|word| ERROR_WORDS.contains(&word)) || words.ends_with("not_found");
            says_error && self.find_record(name).is_none()
        };
        let mut results = union.members.iter().filter(|member| !is_error(member));
        match (results.next(), results.next()) {
            (Some(result), None) if union.members.len() > 1 => result.as_str(),
            _ => type_name,
        }
    }

    /// The record type of a payload, or `None` if the type does not wrap exactly one record.
    pub fn payload_record(&self, type_name: &str) -> Option<RecordTypeId> {
        let object = self.value_object(type_name)?;
        let mut records = object
            .fields
            .values()
            .filter_map(|field| Some((field.ty.is_list(), self.find_record(field.ty.inner_named_type())?)));
        let (is_list, record) = records.next()?;
        let is_known =
            |field: &FieldDefinition| self.is_record_field(field) || self.part_of(object, field).is_some();
        let is_complete = || object.fields.values().all(|field| is_known(field));
        (records.next().is_none() && !is_list && is_complete()).then_some(record)
    }

    /// The same for the result of a read, which has no id to tell besides that of its record.
    pub fn read_payload_record(&self, type_name: &str) -> Option<RecordTypeId> {
        let object = self.value_object(type_name)?;
        let is_id = |field: &FieldDefinition| self.part_of(object, field) == Some(PayloadPart::Id);
        let tells_id = object.fields.values().any(|field| is_id(field));
        self.payload_record(type_name).filter(|_| !tells_id)
    }

    /// True if the type only says that something was done, `{ success message }`, or to which record,
    /// `DeleteBookPayload { id }`.
    pub fn is_status(&self, type_name: &str) -> bool {
        let parts = |object: &ObjectType| -> Option<Vec<PayloadPart>> {
            object.fields.values().map(|field| self.part_of(object, field)).collect()
        };
        let parts = self.value_object(type_name).and_then(parts).unwrap_or_default();
        let says_done = |part: &PayloadPart| {
            matches!(part, PayloadPart::True | PayloadPart::Message | PayloadPart::Count)
                || (*part == PayloadPart::Id && is_payload_name(type_name))
        };
        parts.iter().any(says_done)
    }

    /// What a field of a payload holds beside the record.
    pub fn payload_part(&self, type_name: &str, field: &str) -> Option<PayloadPart> {
        let object = self.value_object(type_name)?;
        self.part_of(object, object.fields.get(field)?)
    }

    /// A selection of a result of this type, which may be one of several.
    pub fn result_selection(&self, type_name: &str, selection: &str) -> String {
        match self.success_type(type_name) {
            result if result == type_name => selection.to_owned(),
            result => format!("{{ ... on {result} {selection} }}"),
        }
    }

    /// A selection of the record that the type wraps.
    pub fn payload_selection(&self, type_name: &str, selection: &str) -> String {
        let object = self.value_object(type_name);
        let mut fields = object.into_iter().flat_map(|object| &object.fields);
        match fields.find(|(_, field)| self.is_record_field(field)) {
            Some((name, _)) => format!("{{ {name} {{ {selection} }} }}"),
            None => "{ __typename }".to_owned(),
        }
    }

    fn value_object(&self, type_name: &str) -> Option<&ObjectType> {
        match self.schema.types.get(type_name)? {
            ExtendedType::Object(object) if is_bare_result(object) => Some(object),
            ExtendedType::Object(object) if self.find_record(type_name).is_none() => Some(object),
            ExtendedType::Object(_)
            | ExtendedType::Scalar(_)
            | ExtendedType::Interface(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => None,
        }
    }

    /// True if the field holds the record of the payload.
    pub fn is_record_field(&self, field: &FieldDefinition) -> bool {
        !field.ty.is_list() && self.find_record(field.ty.inner_named_type()).is_some()
    }

    fn part_of(&self, object: &ObjectType, field: &FieldDefinition) -> Option<PayloadPart> {
        let words = snake_words(&field.name);
        let ty = field.ty.inner_named_type().as_str();
        if field.ty.is_list() {
            let is_errors = words.ends_with("errors") || words == "messages";
            return is_errors.then_some(PayloadPart::EmptyList);
        }
        match (ty, words.as_str()) {
            ("Boolean", "success" | "successful" | "ok" | "is_success" | "deleted" | "status" | "result") => {
                Some(PayloadPart::True)
            }
            ("String", "message" | "msg" | "status") => Some(PayloadPart::Message),
            ("Int", "code" | "status" | "status_code") => Some(PayloadPart::Code),
            ("Int", words) if counts_written(words) => Some(PayloadPart::Count),
            // One that may be null is that of an error.
            ("String", "code" | "status_code") if field.ty.is_non_null() => {
                says_result(object).then_some(PayloadPart::CodeText)
            }
            ("ID" | "String", "client_mutation_id") => Some(PayloadPart::ClientMutationId),
            (_, "client_mutation_id" | "error" | "errors" | "code" | "trace_id") => {
                matches!(field.ty, Type::Named(_)).then_some(PayloadPart::Null)
            }
            ("ID" | "String", "id" | "deleted_id") => Some(PayloadPart::Id),
            ("ID" | "String", words) => {
                let is_own = |noun: &str| is_noun_of_payload(&object.name, noun);
                words.strip_suffix("_id").is_some_and(is_own).then_some(PayloadPart::Id)
            }
            _ => None,
        }
    }
}

/// `count`, `deletedCount`, `affectedRows`: how many records were written. `itemCount` is how many there are.
fn counts_written(words: &str) -> bool {
    let verb = words.strip_suffix("_count").or_else(|| words.strip_suffix("_rows"));
    let is_verb = |word: &str| matches!(word, "create" | "delete" | "insert" | "remove" | "update");
    let is_deed = |words: &str| words.ends_with("ed") || is_verb(words);
    words == "count" || verb.is_some_and(is_deed)
}

/// True if the noun is that of the written record: `book` or `deleted_book` in `DeleteBookPayload`.
fn is_noun_of_payload(type_name: &str, noun: &str) -> bool {
    let noun =
        ["delete_", "deleted_", "removed_"].iter().find_map(|verb| noun.strip_prefix(verb)).unwrap_or(noun);
    format!("_{}_", snake_words(type_name)).contains(&format!("_{noun}_"))
}

/// True if the type is the result of an operation, by its name or its fields. `Country { code capital }` is not.
fn says_result(object: &ObjectType) -> bool {
    let is_result =
        |name: &str| matches!(snake_words(name).as_str(), "success" | "ok" | "message" | "errors");
    is_payload_name(&object.name) || object.fields.keys().any(|name| is_result(name))
}

/// `BookDeleteResult { id }` tells of a book, though such a type could be one of records.
fn is_bare_result(object: &ObjectType) -> bool {
    let is_id = object.fields.len() == 1 && object.fields.contains_key("id");
    let says_deed = |word: &str| matches!(word, "delete" | "deleted" | "remove" | "removed");
    is_id && is_payload_name(&object.name) && snake_words(&object.name).split('_').any(says_deed)
}

/// `DeleteBookPayload`, `MemberCreationMessage`: a type that is the result of an operation by its name.
fn is_payload_name(type_name: &str) -> bool {
    let is_result = |word: &str| {
        matches!(word, "payload" | "response" | "result" | "message" | "status" | "output" | "return")
    };
    snake_words(type_name).split('_').any(is_result)
}
