//! Finds the key of each object type. A type with a key is a record type; its records are stored.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::ObjectType;

use crate::aggregate_wrapper::is_group_type;
use crate::change_wrapper::changed_type;
use crate::list_wrapper::is_page_with_id;
use crate::naming::names::{self, is_key_name, snake_words};
use crate::naming::operation_verbs::{NamedVerb, TypeNoun, read_operation_name, type_words};
use crate::sdl::directives::directive_argument;
use crate::sdl::root_fields::root_types;
use crate::{Field, FieldDisplay, FieldKind, KeyForm, KeySource, RootType, Scalar, ValueSource};

/// The key of a record type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeclaredKey<'a> {
    /// `None` if the type has no key, but operations list or create its records: the store adds one that is
    /// not in the schema.
    pub field: Option<&'a str>,
    pub form: KeyForm,
    pub source: KeySource,
}

const HIDDEN_KEY: DeclaredKey<'static> =
    DeclaredKey { field: None, form: KeyForm::Digits, source: KeySource::Counter };

/// The keys by type.
pub(crate) fn declared_keys<'a>(
    schema: &'a Schema,
    types: &[&'a ObjectType],
    redeclared: &HashSet<String>,
) -> HashMap<&'a str, DeclaredKey<'a>> {
    let nouns: HashSet<String> = types.iter().map(|ty| type_words(&ty.name)).collect();
    let named = types_of_operations(schema, &nouns);
    let reads_kind = !redeclared.contains("key");
    let key = |ty: &&'a ObjectType| {
        let is_derived =
            changed_type(schema, ty).is_some() || is_group_type(schema, ty) || is_page_with_id(schema, ty);
        if is_embedded(ty, redeclared) || is_derived {
            return None;
        }
        let chosen = || ty.fields.values().filter(|_| reads_kind).find_map(|field| chosen_key(field));
        let noun = TypeNoun::new(&ty.name, |words| nouns.contains(words));
        // `customers: [CustomerResponse]` lists what is stored, if there is no Customer.
        let is_result = is_result_name(&ty.name)
            && !(named.contains(ty.name.as_str()) && noun.has_ending())
            && !is_read_by_id(schema, ty);
        let undeclared = || {
            let is_stored = is_stored_by_operations(ty, &named);
            is_stored.then(|| natural_key(schema, ty).unwrap_or(HIDDEN_KEY))
        };
        // `createCoupon: CouponResponse`, where there is no Coupon.
        let response = || {
            let is_record = is_result_name(&ty.name) && noun.has_ending() && named.contains(ty.name.as_str());
            let is_free = || !ty.fields.contains_key("id") && !is_part_of_record(schema, &ty.name, &named);
            let own = || own_key(ty, &noun).filter(|key| is_kept(schema, ty, &noun, key));
            let key = || own().or_else(|| changed_key(schema, ty, &noun));
            (is_record && is_free()).then(key).flatten()
        };
        let is_listed = || !is_result && is_listed(schema, &ty.name);
        let part = || part_key(ty, &noun, &nouns).filter(|_| is_listed());
        let by_name = || key_field(ty, is_result);
        Some((
            ty.name.as_str(),
            chosen().or_else(by_name).or_else(undeclared).or_else(part).or_else(response)?,
        ))
    };
    types.iter().filter_map(key).collect()
}

/// True if `@embedded` says that the type has no records.
pub(crate) fn is_embedded(ty: &ObjectType, redeclared: &HashSet<String>) -> bool {
    ty.directives.has("embedded") && !redeclared.contains("embedded")
}

/// The field with `@key(kind:)`, if its type can be such a key.
fn chosen_key(field: &FieldDefinition) -> Option<DeclaredKey<'_>> {
    let directive = field.directives.get("key")?;
    let kind = directive_argument(directive, "kind")?.as_enum()?;
    let (form, source) = key_of_kind(kind, key_scalar(field)?)?;
    Some(DeclaredKey { field: Some(&field.name), form, source })
}

/// What `@key(kind:)` means on a field of this type; `None` if it does not fit.
pub(crate) fn key_of_kind(kind: &str, scalar: Scalar) -> Option<(KeyForm, KeySource)> {
    match (kind, scalar) {
        ("COUNT", Scalar::Int) => Some((KeyForm::Number, KeySource::Counter)),
        ("COUNT", Scalar::Id | Scalar::Long | Scalar::String) => Some((KeyForm::Digits, KeySource::Counter)),
        ("UUID", Scalar::Id | Scalar::String | Scalar::Uuid) => Some((KeyForm::Uuid, KeySource::Generator)),
        ("TEXT", Scalar::Id | Scalar::String) => Some((KeyForm::Text, KeySource::Client)),
        _ => None,
    }
}

/// `id: ID!` is always the key. Other keys are accepted unless the type is the result of an operation by its name.
fn key_field(ty: &ObjectType, is_result: bool) -> Option<DeclaredKey<'_>> {
    if let Some(id) = ty.fields.get("id") {
        let is_plain = matches!(&id.ty, Type::NonNullNamed(name) if name == "ID");
        return field_key(id).filter(|_| is_plain || !is_result);
    }
    if is_result {
        return None;
    }
    let is_reversed = |name: &str| snake_words(name) == format!("id_{}", snake_words(&ty.name));
    let is_uuid =
        |name: &str| name == "uuid" || snake_words(name) == format!("{}_uuid", snake_words(&ty.name));
    let named = |accepts: &dyn Fn(&str) -> bool| {
        let mut fields = ty.fields.values().filter(|field| accepts(&field.name));
        fields.find_map(|field| field_key(field))
    };
    named(&|name| name == "_id" || name.eq_ignore_ascii_case("id"))
        .or_else(|| named(&|name| is_key_name(&ty.name, name)))
        .or_else(|| named(&is_reversed))
        .or_else(|| named(&is_uuid))
        .or_else(|| short_key(ty))
}

/// `SID: ID!` of a Spell: the only field of this type, with a name of one word.
fn short_key(ty: &ObjectType) -> Option<DeclaredKey<'_>> {
    let is_id = |field: &&FieldDefinition| matches!(&field.ty, Type::NonNullNamed(name) if name == "ID");
    let mut ids = ty.fields.values().map(|field| &***field).filter(is_id);
    let field = ids.next().filter(|_| ids.next().is_none())?;
    let words = snake_words(&field.name);
    (words.ends_with("id") && !words.contains('_')).then(|| field_key(field)).flatten()
}

/// `accountId: ID!` in BankAccountDTO, unless there is a type Account, which it would refer to.
fn part_key<'a>(ty: &'a ObjectType, noun: &TypeNoun, nouns: &HashSet<String>) -> Option<DeclaredKey<'a>> {
    let mut fields = ty.fields.values().filter(|field| {
        let words = snake_words(&field.name);
        let part = words.strip_suffix("_id").filter(|part| noun.ends_with(part) && !nouns.contains(*part));
        part.is_some() && matches!(&field.ty, Type::NonNullNamed(name) if name == "ID")
    });
    let field = fields.next().filter(|_| fields.next().is_none())?;
    field_key(field)
}

/// True for `email(id: Long!): EmailMessage`: an email has a message, and a school has exam results.
fn is_read_by_id(schema: &Schema, ty: &ObjectType) -> bool {
    let words = snake_words(&ty.name);
    let is_thing = matches!(words.rsplit('_').next(), Some("info" | "message" | "page" | "result"));
    let has_id = || ty.fields.get("id").is_some_and(|id| field_key(id).is_some());
    let gets = |field: &FieldDefinition| {
        let is_own = !field.ty.is_list() && *field.ty.inner_named_type() == ty.name;
        is_own && field.arguments.iter().any(|argument| argument.name == "id" && argument.ty.is_non_null())
    };
    let mut roots = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Query);
    is_thing
        && has_id()
        && roots.any(|(_, name)| {
            schema.get_object(name).is_some_and(|query| query.fields.values().any(|field| gets(field)))
        })
}

/// True if a query lists values of the type.
fn is_listed(schema: &Schema, type_name: &str) -> bool {
    let lists = |field: &FieldDefinition| field.ty.is_list() && field.ty.inner_named_type() == type_name;
    let mut roots = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Query);
    roots.any(|(_, name)| {
        schema.get_object(name).is_some_and(|query| query.fields.values().any(|field| lists(field)))
    })
}

/// The key that a field is without `@key`; `None` if its values cannot be keys.
fn field_key(field: &FieldDefinition) -> Option<DeclaredKey<'_>> {
    let (form, source) = match key_scalar(field)? {
        Scalar::Id | Scalar::Long => (KeyForm::Digits, KeySource::Counter),
        Scalar::Int => (KeyForm::Number, KeySource::Counter),
        Scalar::String => (KeyForm::Text, KeySource::Generator),
        Scalar::Uuid => (KeyForm::Uuid, KeySource::Generator),
        Scalar::Float
        | Scalar::Boolean
        | Scalar::Decimal
        | Scalar::Date
        | Scalar::DateTime
        | Scalar::LocalDateTime
        | Scalar::Url
        | Scalar::Email
        | Scalar::Json => return None,
    };
    Some(DeclaredKey { field: Some(&field.name), form, source })
}

fn key_scalar(field: &FieldDefinition) -> Option<Scalar> {
    let (Type::Named(name) | Type::NonNullNamed(name)) = &field.ty else { return None };
    let scalar = match name.to_ascii_lowercase().as_str() {
        // As a key it is counted up; as any other value such a scalar is what the schema makes of it.
        "uint" | "uint32" | "int32" | "unsignedint" => Some(Scalar::Int),
        _ => Scalar::from_name(name),
    };
    scalar.filter(|_| field.arguments.is_empty())
}

/// The only field by which operations get single records of the type: `isbn` with `book(isbn: String!): Book`.
fn natural_key<'a>(schema: &Schema, ty: &'a ObjectType) -> Option<DeclaredKey<'a>> {
    let queries = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Query);
    let fields = queries.filter_map(|(_, name)| schema.get_object(name)).flat_map(|ty| ty.fields.values());
    let gets = fields.filter(|field| !field.ty.is_list() && field.ty.inner_named_type() == &ty.name);
    let mut found = gets.filter_map(|get| match get.arguments.as_slice() {
        [argument] if argument.ty.is_non_null() => ty.fields.get(&argument.name),
        _ => None,
    });
    let field = found.next()?;
    let is_text = matches!(key_scalar(field)?, Scalar::String | Scalar::Id);
    let is_only = found.all(|other| other.name == field.name);
    let is_key = is_text && is_only && field.ty.is_non_null() && names_one_record(schema, ty, &field.name);
    is_key.then_some(DeclaredKey { field: Some(&field.name), form: KeyForm::Text, source: KeySource::Client })
}

/// `taskId` in TaskResponse, where there is no Task.
fn own_key<'a>(ty: &'a ObjectType, noun: &TypeNoun) -> Option<DeclaredKey<'a>> {
    let is_own = |name: &str| snake_words(name).strip_suffix("_id").is_some_and(|owner| noun.is_named(owner));
    ty.fields.values().find(|field| is_own(&field.name)).and_then(|field| field_key(field))
}

/// The only field by which operations change and delete records of the type, if none gets them by it: `publicId` with
/// `deleteItem(publicId: String!)` and `updateItem(input: { publicId: String! })`. The server makes it unless it is given.
fn changed_key<'a>(schema: &Schema, ty: &'a ObjectType, noun: &TypeNoun) -> Option<DeclaredKey<'a>> {
    let mut changes = changing_operations(schema, noun);
    let first = changes.next()?;
    let takes = |field: &FieldDefinition, name: &str| takes_key(schema, field, name);
    // The id of another thing is no key.
    let is_own = |name: &str| {
        let words = snake_words(name);
        let owner = words.strip_suffix("_id").unwrap_or_default();
        matches!(owner, "public" | "external" | "unique") || noun.is_named(owner)
    };
    let is_key = |field: &FieldDefinition| {
        let is_text =
            matches!(key_scalar(field), Some(Scalar::String | Scalar::Id)) && field.ty.is_non_null();
        is_text && is_own(&field.name) && takes(first, &field.name)
    };
    let mut keys = ty.fields.values().filter(|field| is_key(field));
    let key = keys.next().filter(|_| keys.next().is_none())?;
    let is_always = changes.all(|other| takes(other, &key.name));
    is_always.then_some(DeclaredKey {
        field: Some(&key.name),
        form: KeyForm::Text,
        source: KeySource::Generator,
    })
}

/// The operations that change or delete what the noun names.
fn changing_operations<'a>(schema: &'a Schema, noun: &TypeNoun) -> impl Iterator<Item = &'a FieldDefinition> {
    let mutations = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Mutation);
    let fields = mutations.filter_map(|(_, name)| schema.get_object(name)).flat_map(|ty| ty.fields.values());
    fields.map(|field| &***field).filter(|field| {
        let mut readings = read_operation_name(RootType::Mutation, &field.name).into_iter();
        readings.any(|reading| {
            matches!(reading.verb, NamedVerb::Update | NamedVerb::Delete) && noun.is_named(&reading.noun)
        })
    })
}

/// True if an argument with this name is required, or a member of an input object.
fn takes_key(schema: &Schema, field: &FieldDefinition, name: &str) -> bool {
    field.arguments.iter().any(|argument| {
        let input = schema.get_input_object(argument.ty.inner_named_type());
        let member = input.filter(|_| !argument.ty.is_list()).and_then(|input| input.fields.get(name));
        let is_key = argument.name == name && argument.ty.is_non_null();
        is_key || member.is_some_and(|member| member.ty.is_non_null())
    })
}

/// True if a query returns values of the type, or a change takes the key. `createSession: SessionResponse!` alone only
/// answers, perhaps with the token of who signed in.
fn is_kept(schema: &Schema, ty: &ObjectType, noun: &TypeNoun, key: &DeclaredKey<'_>) -> bool {
    let returns = |field: &FieldDefinition| {
        let result = field.ty.inner_named_type();
        *result == ty.name
            || wrapped_type(schema, result).is_some_and(|(wrapped, _)| wrapped == ty.name.as_str())
    };
    let mut queries = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Query);
    let is_read = queries.any(|(_, name)| {
        schema.get_object(name).is_some_and(|query| query.fields.values().any(|field| returns(field)))
    });
    is_read
        || changing_operations(schema, noun)
            .any(|field| key.field.is_some_and(|name| takes_key(schema, field, name)))
}

/// True for a field that names one record: by its name, or because operations change or delete records by it. Several
/// people have the same name, and a film may have the title of another.
fn names_one_record(schema: &Schema, ty: &ObjectType, field_name: &str) -> bool {
    let words = snake_words(field_name);
    let last = words.rsplit('_').next().unwrap_or_default();
    let is_key_word = matches!(
        last,
        "slug"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "issn"
            | "ean"
            | "gtin"
            | "upc"
            | "sku"
            | "barcode"
            | "code"
            | "key"
            | "id"
            | "uid"
            | "guid"
            | "username"
            | "login"
            | "email"
            | "handle"
            | "nickname"
            | "symbol"
            | "ticker"
            | "iso"
            | "iata"
            | "icao"
            | "iban"
            | "vin"
            | "number"
            | "no"
            | "serial"
            | "domain"
            | "permalink"
    ) || matches!(words.as_str(), "user_name" | "account_name");
    let mutations = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Mutation);
    let mut fields =
        mutations.filter_map(|(_, name)| schema.get_object(name)).flat_map(|root| root.fields.values());
    let noun = snake_words(&ty.name);
    is_key_word
        || fields.any(|field| {
            let words = snake_words(&field.name);
            let changes =
                ["update", "delete", "remove", "edit", "save"].iter().any(|verb| words.starts_with(verb));
            let takes_key = || {
                field
                    .arguments
                    .iter()
                    .any(|argument| argument.name == field_name && argument.ty.is_non_null())
            };
            changes && format!("_{words}_").contains(&format!("_{noun}_")) && takes_key()
        })
}

/// `CreateBookPayload`, `UserResponse`: what an operation returns, not what is stored.
fn is_result_name(type_name: &str) -> bool {
    let words = snake_words(type_name);
    let last = words.rsplit('_').next().unwrap_or_default();
    // A chat stores its messages.
    words != "message"
        && matches!(
            last,
            "payload" | "response" | "result" | "connection" | "edge" | "page" | "info" | "error" | "message"
        )
}

/// `ItemStats`, which is computed of other records unless it has a key.
fn is_computed_name(type_name: &str) -> bool {
    let words = snake_words(type_name);
    let last = words.rsplit('_').next().unwrap_or_default();
    words != last
        && matches!(last, "stat" | "stats" | "statistics" | "metrics" | "analytics" | "totals" | "counts")
}

/// The types whose records an operation lists, creates or gets by their key, by its name and its result.
fn types_of_operations<'a>(schema: &'a Schema, nouns: &HashSet<String>) -> HashSet<&'a str> {
    let mut named = HashSet::new();
    for (root, type_name) in root_types(schema) {
        let Some(ty) = schema.get_object(type_name) else { continue };
        for field in ty.fields.values() {
            let result = (field.ty.inner_named_type().as_str(), field.ty.is_list());
            let wrapped = wrapped_type(schema, result.0).filter(|_| !result.1);
            for (result, is_list) in [Some(result), wrapped].into_iter().flatten() {
                let is_wrapped = wrapped.is_some_and(|(wrapped, _)| wrapped == result);
                let noun = TypeNoun::new(result, |words| nouns.contains(words));
                let stores = read_operation_name(root, &field.name).into_iter().any(|reading| {
                    let is_stored = match root {
                        RootType::Query if is_list => reading.verb == NamedVerb::List,
                        // `country(code: String!)` gets what is stored by its code.
                        RootType::Query => {
                            let gets_by_key = || {
                                schema.get_object(result).is_some_and(|ty| natural_key(schema, ty).is_some())
                            };
                            reading.verb == NamedVerb::Get && !is_wrapped && gets_by_key()
                        }
                        RootType::Mutation => {
                            matches!(reading.verb, NamedVerb::Create | NamedVerb::Save) && !is_list
                        }
                        RootType::Subscription => false,
                    };
                    // What is wrapped is less certain, so that it must have its full name.
                    is_stored && noun.is_named(&reading.noun) && (!is_wrapped || noun.words == reading.noun)
                });
                if stores {
                    named.insert(result);
                }
            }
        }
    }
    named
}

/// The one object type that a connection, a page or a payload holds, and whether it is a list.
fn wrapped_type<'a>(schema: &'a Schema, wrapper: &str) -> Option<(&'a str, bool)> {
    let wrapper = schema.get_object(wrapper).filter(|ty| !ty.fields.contains_key("id"))?;
    if let Some(edges) = wrapper.fields.get("edges") {
        let edge = schema.get_object(edges.ty.inner_named_type())?;
        return Some((edge.fields.get("node")?.ty.inner_named_type().as_str(), true));
    }
    let mut objects =
        wrapper.fields.values().filter(|field| schema.get_object(field.ty.inner_named_type()).is_some());
    let only = objects.next().filter(|_| objects.next().is_none())?;
    Some((only.ty.inner_named_type().as_str(), only.ty.is_list()))
}

/// True if records of another type contain values of the type.
fn is_part_of_record(schema: &Schema, type_name: &str, named: &HashSet<&str>) -> bool {
    let objects = schema.types.values().filter_map(|ty| ty.as_object());
    let mut records = objects.filter(|ty| ty.fields.contains_key("id") || named.contains(ty.name.as_str()));
    records.any(|ty| {
        ty.name != type_name && ty.fields.values().any(|field| field.ty.inner_named_type() == type_name)
    })
}

fn is_stored_by_operations(ty: &ObjectType, named: &HashSet<&str>) -> bool {
    let has_value = |field: &FieldDefinition| Scalar::from_name(field.ty.inner_named_type()).is_some();
    named.contains(ty.name.as_str())
        && !is_result_name(&ty.name)
        && !is_computed_name(&ty.name)
        && !ty.fields.contains_key("id")
        && ty.fields.values().any(|field| has_value(field))
}

/// The key of records whose type has none.
pub(crate) fn hidden_key(form: KeyForm) -> Field {
    Field {
        name: "id".to_owned(),
        input_name: "id".to_owned(),
        column: names::KEY_COLUMN.to_owned(),
        kind: FieldKind::Id(form),
        required: true,
        unique: false,
        unique_within: None,
        ignores_case: false,
        search_weight: None,
        display: FieldDisplay::default(),
        rules: Vec::new(),
        messages: Vec::new(),
        default: None,
        default_from: None,
        value_source: ValueSource::Client,
        description: None,
        renamed_from: None,
        arguments: Vec::new(),
        may_be_hidden: false,
        name_words: OnceLock::new(),
    }
}
