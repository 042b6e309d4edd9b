//! Root fields without arguments that return the only record of a type: `shop: Shop!`.

use trefoil_model::naming::names::snake_words;
use trefoil_model::naming::operation_verbs::{NamedVerb, TypeNoun, read_operation_name, type_words};
use trefoil_model::{Model, RecordType, RecordTypeId, Relation, RootField, RootType};

use crate::binding::result_type::{declared_record, is_listed};
use crate::builtin_operation::OperationVerb;

/// True for `shop: Shop!` where nothing says that there are several shops, or that each caller has one.
pub(super) fn is_singleton(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
) -> bool {
    // `@resolver` is meant to the letter.
    let is_clear = || root.resolver.is_some() || is_clearly_one(model, root, record);
    may_be_only_record(model, root, record, verb) && is_clear()
}

/// True if `@resolver` would say that there is one record only.
pub(super) fn may_be_only_record(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
) -> bool {
    let could_be = verb == OperationVerb::Get && root.arguments.is_empty() && !is_current_user(&root.name);
    could_be && !is_listed(model, record)
}

/// True for names of who asks.
pub(super) fn is_current_user(name: &str) -> bool {
    matches!(name, "me" | "viewer" | "currentUser")
}

fn is_clearly_one(model: &Model, root: &RootField, record: RecordTypeId) -> bool {
    let record_type = model.record(record);
    let is_plain_name = TypeNoun::new(&record_type.name, |_| false).is_named(&snake_words(&root.name));
    is_plain_name
        && !belongs_to_caller(&root.name)
        && !is_statistics(record_type)
        && !is_referred_to(model, record)
        && !model.root_fields.iter().any(|other| is_of_several(model, root, other, record, record_type))
}

/// Endings of the names of types that are computed of other records.
const COMPUTED_NOUNS: [&str; 9] =
    ["analytic", "dashboard", "health", "metric", "overview", "stat", "statistic", "summary", "total"];

/// True if it is computed of other records, not kept: by its name, or because it holds numbers only.
fn is_statistics(record: &RecordType) -> bool {
    let words = type_words(&record.name);
    if words.rsplit('_').next().is_some_and(|last| COMPUTED_NOUNS.contains(&last)) {
        return true;
    }
    let mut values = record.fields.iter().filter(|field| !field.kind.is_id()).peekable();
    values.peek().is_some() && values.all(|field| field.kind.is_number())
}

/// Things of which every user has one.
const CALLER_NOUNS: [&str; 14] = [
    "account",
    "auth",
    "authentication",
    "basket",
    "cart",
    "customer",
    "identity",
    "member",
    "profile",
    "session",
    "user",
    "viewer",
    "wallet",
    "wishlist",
];

fn belongs_to_caller(name: &str) -> bool {
    snake_words(name).rsplit('_').next().is_some_and(|last| CALLER_NOUNS.contains(&last))
}

/// True if records refer or link to it: there is a choice.
fn is_referred_to(model: &Model, record: RecordTypeId) -> bool {
    let mut fields = model.records.iter().flat_map(|other| &other.fields);
    fields.any(|field| field.kind.relation().map(Relation::target) == Some(record))
}

/// True if another root field tells that there are several: a query gets one, or one comes or goes.
fn is_of_several(
    model: &Model,
    root: &RootField,
    other: &RootField,
    record: RecordTypeId,
    record_type: &RecordType,
) -> bool {
    if other.root_kind == RootType::Query {
        return other.name != root.name && declared_record(model, &other.ty) == Some(record);
    }
    let noun = TypeNoun::new(&record_type.name, |_| false);
    read_operation_name(other.root_kind, &other.name).iter().any(|reading| {
        let comes_or_goes = match reading.verb {
            NamedVerb::Create | NamedVerb::Delete | NamedVerb::Created | NamedVerb::Deleted => true,
            NamedVerb::List
            | NamedVerb::Search
            | NamedVerb::Get
            | NamedVerb::Count
            | NamedVerb::Exists
            | NamedVerb::Update
            | NamedVerb::Set
            | NamedVerb::Save
            | NamedVerb::Updated => false,
        };
        let is_declared = || reading.noun.is_empty() && declared_record(model, &other.ty) == Some(record);
        comes_or_goes && (noun.is_named(&reading.noun) || is_declared())
    })
}
