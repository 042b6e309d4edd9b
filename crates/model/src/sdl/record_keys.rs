//! Finds the key of each object type. A type with a key is a record type; its records are stored.

use std::collections::{HashMap, HashSet};

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::ObjectType;

use crate::naming::names::{is_key_name, snake_words};
use crate::naming::operation_words::{NamedVerb, TypeNoun, read_operation_name, type_words};
use crate::sdl::root_fields::root_types;
use crate::{KeyForm, RootKind, Scalar};

/// The key of a record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKey<'a> {
    Field(&'a str, KeyForm),
    /// The type has no key, but operations list or create its records: the store keeps one that the schema has not.
    Hidden,
}

impl RecordKey<'_> {
    pub fn form(self) -> KeyForm {
        match self {
            RecordKey::Field(_, form) => form,
            RecordKey::Hidden => KeyForm::Text,
        }
    }
}

/// The keys by type.
pub(crate) fn record_keys<'a>(
    schema: &'a Schema,
    types: &[&'a ObjectType],
    redeclared: &HashSet<String>,
) -> HashMap<&'a str, RecordKey<'a>> {
    let nouns: HashSet<String> = types.iter().map(|ty| type_words(&ty.name)).collect();
    let named = types_of_operations(schema, &nouns);
    let key = |ty: &&'a ObjectType| {
        if is_embedded(ty, redeclared) {
            return None;
        }
        let noun = TypeNoun::new(&ty.name, |words| nouns.contains(words));
        let hidden = || (is_stored_by_operations(ty, &named)).then_some(RecordKey::Hidden);
        // `customers: [CustomerResponse]` lists what is stored, if there is no Customer.
        let is_result = is_result_name(&ty.name) && !(named.contains(ty.name.as_str()) && noun.has_ending());
        let is_listed = || !is_result && is_listed(schema, &ty.name);
        let part = || part_key(ty, &noun, &nouns).filter(|_| is_listed());
        Some((ty.name.as_str(), key_field(ty, is_result).or_else(hidden).or_else(part)?))
    };
    types.iter().filter_map(key).collect()
}

/// True if `@embedded` says that the type has no records.
pub(crate) fn is_embedded(ty: &ObjectType, redeclared: &HashSet<String>) -> bool {
    ty.directives.has("embedded") && !redeclared.contains("embedded")
}

/// `id: ID!` is always the key. Other keys are accepted unless the type is the result of an operation by its name.
fn key_field(ty: &ObjectType, is_result: bool) -> Option<RecordKey<'_>> {
    if let Some(id) = ty.fields.get("id") {
        let is_plain = matches!(&id.ty, Type::NonNullNamed(name) if name == "ID");
        let form = key_form(id).filter(|_| is_plain || !is_result)?;
        return Some(RecordKey::Field("id", form));
    }
    if is_result {
        return None;
    }
    let is_reversed = |name: &str| snake_words(name) == format!("id_{}", snake_words(&ty.name));
    let fields = || ty.fields.iter().map(|(name, field)| (name.as_str(), field));
    let named = |accepts: &dyn Fn(&str) -> bool| {
        let mut fields = fields().filter(|(name, _)| accepts(name));
        fields.find_map(|(name, field)| Some(RecordKey::Field(name, key_form(field)?)))
    };
    named(&|name| name == "_id")
        .or_else(|| named(&|name| is_key_name(&ty.name, name)))
        .or_else(|| named(&is_reversed))
}

/// `accountId: ID!` in BankAccountDTO, unless there is a type Account, which it would refer to.
fn part_key<'a>(ty: &'a ObjectType, noun: &TypeNoun, nouns: &HashSet<String>) -> Option<RecordKey<'a>> {
    let mut fields = ty.fields.iter().filter(|(name, field)| {
        let words = snake_words(name);
        let part = words.strip_suffix("_id").filter(|part| noun.ends_with(part) && !nouns.contains(*part));
        part.is_some() && matches!(&field.ty, Type::NonNullNamed(name) if name == "ID")
    });
    let (name, field) = fields.next().filter(|_| fields.next().is_none())?;
    Some(RecordKey::Field(name, key_form(field)?))
}

/// True if a query lists values of the type.
fn is_listed(schema: &Schema, type_name: &str) -> bool {
    let lists = |field: &FieldDefinition| field.ty.is_list() && field.ty.inner_named_type() == type_name;
    let mut roots = root_types(schema).into_iter().filter(|(root, _)| *root == RootKind::Query);
    roots.any(|(_, name)| {
        schema.get_object(name).is_some_and(|query| query.fields.values().any(|field| lists(field)))
    })
}

/// The form of a key of this type; `None` if the store cannot count it up.
fn key_form(field: &FieldDefinition) -> Option<KeyForm> {
    let (Type::Named(name) | Type::NonNullNamed(name)) = &field.ty else { return None };
    match Scalar::from_name(name).filter(|_| field.arguments.is_empty())? {
        Scalar::Id | Scalar::Long => Some(KeyForm::Text),
        Scalar::Int => Some(KeyForm::Number),
        Scalar::String
        | Scalar::Float
        | Scalar::Boolean
        | Scalar::Decimal
        | Scalar::Date
        | Scalar::DateTime
        | Scalar::Uuid
        | Scalar::Url
        | Scalar::Email
        | Scalar::Json => None,
    }
}

/// `CreateBookPayload`, `UserResponse`: what an operation returns, not what is stored.
fn is_result_name(type_name: &str) -> bool {
    let words = snake_words(type_name);
    let last = words.rsplit('_').next().unwrap_or_default();
    matches!(
        last,
        "payload"
            | "response"
            | "result"
            | "connection"
            | "edge"
            | "page"
            | "info"
            | "error"
            | "message"
            | "token"
    )
}

/// The types whose records an operation lists or creates, by its name and its result.
fn types_of_operations<'a>(schema: &'a Schema, nouns: &HashSet<String>) -> HashSet<&'a str> {
    let mut named = HashSet::new();
    for (root, type_name) in root_types(schema) {
        let Some(ty) = schema.get_object(type_name) else { continue };
        for field in ty.fields.values() {
            let result = field.ty.inner_named_type().as_str();
            let noun = TypeNoun::new(result, |words| nouns.contains(words));
            let stores = read_operation_name(root, &field.name).into_iter().any(|reading| {
                let is_stored = match root {
                    RootKind::Query => reading.verb == NamedVerb::List && field.ty.is_list(),
                    RootKind::Mutation => reading.verb == NamedVerb::Create && !field.ty.is_list(),
                    RootKind::Subscription => false,
                };
                is_stored && noun.is_named(&reading.noun)
            });
            if stores {
                named.insert(result);
            }
        }
    }
    named
}

fn is_stored_by_operations(ty: &ObjectType, named: &HashSet<&str>) -> bool {
    let has_value = |field: &FieldDefinition| Scalar::from_name(field.ty.inner_named_type()).is_some();
    named.contains(ty.name.as_str())
        && !is_result_name(&ty.name)
        && !ty.fields.contains_key("id")
        && ty.fields.values().any(|field| has_value(field))
}
