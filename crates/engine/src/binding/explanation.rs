//! Why a root field has no resolver, and the line that would bind it.

use trefoil_model::naming::names;
use trefoil_model::naming::operation_verbs::{NameReading, NamedVerb, read_operation_name};
use trefoil_model::{Argument, Model, RecordType, RecordTypeId, RootField};

use crate::arguments::argument_roles::UNIQUE_FIELDS_ARGUMENT;
use crate::binding::filled_fields::sets_nothing;
use crate::binding::inputs_of_other_types::describes_other;
use crate::binding::named_arguments::{NamedArguments, sends_codes};
use crate::binding::operation_name_binding::WordBinder;
use crate::binding::resolver_names::VERB_NAMES;
use crate::binding::result_type::{declared_record, find_result_shape};
use crate::binding::singleton_fields::{is_current_user, may_be_only_record};
use crate::builtin_operation::{ArgumentRole, OperationVerb};
use crate::changes::ChangeKind;

pub(super) fn explain_wrong_type(model: &Model, root: &RootField, record: RecordTypeId) -> String {
    let record = &model.record(record).name;
    format!("`{}` matches the record type {record}, but its return type `{}` does not", root.name, root.ty)
}

/// The explanation for a name that fits, with arguments that do not.
pub(super) fn explain_arguments(
    model: &Model,
    root: &RootField,
    record_id: RecordTypeId,
    verb: OperationVerb,
) -> String {
    let arguments = NamedArguments::new(model, record_id, verb, &root.arguments);
    let record = model.record(record_id);
    let is_unknown = |(argument, (_, role)): &(&Argument, &(String, ArgumentRole))| {
        argument.ty.is_required() && *role == ArgumentRole::Unknown
    };
    let is_of_other = |argument: &&Argument| {
        record.find_input_field(&argument.name).is_none() && describes_other(model, record, argument, true)
    };
    match root.arguments.iter().zip(&arguments.roles).find(is_unknown) {
        Some((argument, _)) if record.find_input_field(&argument.name).is_some() => format!(
            "`{}` requires the argument `{}`, but a {} is found by its key, `{}`",
            root.name,
            argument.name,
            record.name,
            record.field(record.id_field()).name
        ),
        Some((argument, _)) => format!(
            "`{}` requires the argument `{}`, which is not a field of {}",
            root.name, argument.name, record.name
        ),
        None => match root.arguments.iter().find(is_of_other).filter(|_| verb.writes_one()) {
            Some(argument) => {
                let (root, argument) = (&root.name, &argument.name);
                format!(
                    "`{root}` takes `{argument}`, which describes another record than the {}",
                    record.name
                )
            }
            None => explain_missing_argument(model, root, record_id, verb),
        },
    }
}

/// What the arguments do not say, though each of them is understood or may be left out.
fn explain_missing_argument(
    model: &Model,
    root: &RootField,
    record_id: RecordTypeId,
    verb: OperationVerb,
) -> String {
    let (name, record) = (&root.name, model.record(record_id));
    match verb {
        OperationVerb::Get if may_be_only_record(model, root, record_id, verb) => format!(
            "`{name}` does not say which {0} is meant; `@resolver(name: \"{0}.get\")` would bind it to the only one",
            record.name
        ),
        OperationVerb::Get if root.arguments.is_empty() && is_current_user(&root.name) => {
            format!("`{name}` is who asks, which the server knows of a type with `@account`, as `me`")
        }
        OperationVerb::Get | OperationVerb::Update | OperationVerb::Save | OperationVerb::Delete => {
            let hint = key_argument(model, record).map(|key| format!("; `{key}` would bind it"));
            format!(
                "`{name}` has no argument that identifies the {}{}",
                record.name,
                hint.unwrap_or_default()
            )
        }
        OperationVerb::Create if sends_codes(record) => {
            format!("`{name}` is left to a resolver: a code for one use is sent to somebody, not just stored")
        }
        OperationVerb::Create => format!("no argument of `{name}` sets a field of {}", record.name),
        OperationVerb::CreateMany => format!("`{name}` has no list of input objects of a {}", record.name),
        OperationVerb::UpdateMany | OperationVerb::DeleteMany => {
            format!("`{name}` has no argument `where` with conditions of a {}", record.name)
        }
        OperationVerb::Upsert => format!("`{name}` has no argument `{UNIQUE_FIELDS_ARGUMENT}`"),
        OperationVerb::Exists => format!("`{name}` has no argument that a {} is looked for by", record.name),
        OperationVerb::List
        | OperationVerb::Count
        | OperationVerb::Aggregate
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => {
            format!("`{name}` has arguments that say nothing about a {}", record.name)
        }
    }
}

/// `id: ID!`, if the schema shows the key.
fn key_argument(model: &Model, record: &RecordType) -> Option<String> {
    let key = &record.field(record.id_field()).name;
    let declared = model.schema.type_field(&record.name, key).ok()?;
    Some(format!("{key}: {}!", declared.ty.inner_named_type()))
}

/// The explanation for a name that no operation has. Suggests only operations that do the same.
pub(super) fn explain_missing<'n>(
    model: &Model,
    root: &RootField,
    words: &WordBinder<'_>,
    known: impl Iterator<Item = (&'n str, &'n [(RecordTypeId, OperationVerb)])>,
) -> String {
    let keyword = root.root_kind.keyword();
    let name = root.resolver.as_deref().unwrap_or(&root.name);
    let readings = read_operation_name(root.root_kind, name);
    let does_the_same = |verb: OperationVerb| {
        let mut verbs = readings.iter().filter(|reading| reading.has_verb).peekable();
        verbs.peek().is_none() || verbs.any(|reading| has_verb(reading.verb, verb))
    };
    // `User.list` is a name that only the directive takes.
    let known = known.filter(|(name, _)| root.resolver.is_some() || !name.contains('.'));
    let candidates = known.filter(|(_, operations)| operations.iter().any(|(_, verb)| does_the_same(*verb)));
    let near = names::nearest_name(name, candidates.map(|(name, _)| name));
    let hint = match near.filter(|near| names::is_misspelling(name, near)) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => {
            let synonyms = known_synonym(name).map(|name| read_operation_name(root.root_kind, &name));
            let hint = resolver_hint(model, root, words, &readings);
            let hint = hint.or_else(|| resolver_hint(model, root, words, synonyms.as_ref()?));
            let understood = readings.iter().chain(synonyms.iter().flatten());
            match hint {
                Some(hint) => hint,
                None if root.resolver.is_some() => String::new(),
                None => {
                    match understood.filter_map(|read| explain_reading(model, root, words, read)).next() {
                        Some(explanation) => return explanation,
                        None => String::new(),
                    }
                }
            }
        }
    };
    match &root.resolver {
        Some(resolver) => format!("no resolver `{resolver}` for {keyword} `{}`{hint}", root.name),
        None => format!("no resolver for {keyword} `{}`{hint}", root.name),
    }
}

/// The explanation for a name that says what is done and to which records, with arguments that do not.
fn explain_reading(
    model: &Model,
    root: &RootField,
    words: &WordBinder<'_>,
    reading: &NameReading,
) -> Option<String> {
    let record = words.named_record(&reading.noun).filter(|_| reading.has_verb)?;
    if declared_record(model, &root.ty).is_some_and(|declared| declared != record) {
        return None;
    }
    let (verb, _) = VERB_NAMES.iter().find(|(known, _)| has_verb(reading.verb, *known))?;
    find_result_shape(model, root, record, *verb)?;
    let arguments = NamedArguments::new(model, record, *verb, &root.arguments);
    if changes_records(reading.verb) && arguments.takes_id() && reading.by.is_some() {
        let (name, record) = (&root.name, model.record(record));
        let key = &record.field(record.id_field()).name;
        return Some(format!(
            "`{name}` asks for more than the key, and only `{key}` says which {} is meant",
            record.name
        ));
    }
    (!arguments.can_work(false)).then(|| explain_arguments(model, root, record, *verb))
}

/// The name with a verb that is known instead of one that means the same, but does not bind by itself.
fn known_synonym(name: &str) -> Option<String> {
    let words = names::snake_words(name);
    let (verb, rest) = words.split_once('_')?;
    let known = match verb {
        "erase" | "destroy" | "drop" | "discard" => "delete",
        "alter" | "amend" | "patch" => "update",
        "register" | "make" | "submit" | "store" => "create",
        "total" => "count",
        "lookup" | "retrieve" | "load" | "read" => "get",
        _ => return None,
    };
    Some(format!("{known}_{rest}"))
}

/// The directive that binds the field to what its words and its type say. Nothing that changes or deletes records is
/// offered unless the name names them: `deleteFriend(id: ID!): User` deletes no user.
fn resolver_hint(
    model: &Model,
    root: &RootField,
    words: &WordBinder<'_>,
    readings: &[NameReading],
) -> Option<String> {
    let declared = declared_record(model, &root.ty);
    let (verb, record) = readings.iter().find_map(|reading| {
        let named = words.named_record(&reading.noun);
        let record = declared.or(named)?;
        let is_meant = match named {
            Some(named) => named == record,
            None if reading.verb == NamedVerb::Create => words.is_part_of_name(&reading.noun),
            None => reading.noun.is_empty() || !changes_records(reading.verb),
        };
        let (verb, name) = VERB_NAMES.iter().find(|(known, _)| has_verb(reading.verb, *known))?;
        let would_bind = is_meant && would_bind(model, root, record, *verb, reading);
        would_bind.then_some((name, record))
    })?;
    Some(format!("; `@resolver(name: \"{}.{verb}\")` would bind it", model.record(record).name))
}

/// True if the operation with this directive does what the name says.
fn would_bind(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
    reading: &NameReading,
) -> bool {
    if find_result_shape(model, root, record, verb).is_none() {
        return false;
    }
    // `updateTaskByIdAndUserId` would update the tasks of others, and set their user.
    if changes_records(reading.verb)
        && NamedArguments::for_reading(model, record, verb, reading, &root.arguments).is_none()
    {
        return false;
    }
    let arguments = NamedArguments::new(model, record, verb, &root.arguments);
    let is_empty = arguments.stores_nothing()
        || (verb == OperationVerb::Create
            && sets_nothing(model.record(record), verb, &root.arguments, &arguments.roles));
    (arguments.can_work(false) && !is_empty) || may_be_only_record(model, root, record, verb)
}

fn changes_records(verb: NamedVerb) -> bool {
    matches!(verb, NamedVerb::Update | NamedVerb::Set | NamedVerb::Save | NamedVerb::Delete)
}

fn has_verb(named: NamedVerb, verb: OperationVerb) -> bool {
    match named {
        NamedVerb::List | NamedVerb::Search => verb == OperationVerb::List,
        NamedVerb::Count => verb == OperationVerb::Count,
        NamedVerb::Exists => verb == OperationVerb::Exists,
        NamedVerb::Get => verb == OperationVerb::Get,
        NamedVerb::Create => verb == OperationVerb::Create,
        NamedVerb::Update | NamedVerb::Set => verb == OperationVerb::Update,
        NamedVerb::Delete => verb == OperationVerb::Delete,
        NamedVerb::Save => verb == OperationVerb::Save,
        NamedVerb::Created => verb == OperationVerb::Subscribe(ChangeKind::Created),
        NamedVerb::Updated => verb == OperationVerb::Subscribe(ChangeKind::Updated),
        NamedVerb::Deleted => verb == OperationVerb::Subscribe(ChangeKind::Deleted),
    }
}
