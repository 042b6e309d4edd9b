//! Why a root field has no resolver, and the line that would bind it.

use trefoil_model::naming::names;
use trefoil_model::naming::operation_verbs::{NameReading, NamedVerb, read_operation_name};
use trefoil_model::{Argument, Model, RecordTypeId, RootField};

use crate::binding::foreign_inputs::describes_other;
use crate::binding::named_arguments::NamedArguments;
use crate::binding::resolver_names::VERB_NAMES;
use crate::binding::result_type::{declared_record, find_result_shape};
use crate::binding::word_binding::WordBinder;
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
    record: RecordTypeId,
    verb: OperationVerb,
) -> String {
    let roles = NamedArguments::new(model, record, verb, &root.arguments).roles;
    let record = model.record(record);
    let is_unknown = |(argument, (_, role)): &(&Argument, &(String, ArgumentRole))| {
        argument.ty.is_required() && *role == ArgumentRole::Unknown
    };
    let is_of_other = |argument: &&Argument| {
        record.find_input_field(&argument.name).is_none() && describes_other(model, record, argument, true)
    };
    match root.arguments.iter().zip(&roles).find(is_unknown) {
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
            None => format!("`{}` has no argument that identifies the {}", root.name, record.name),
        },
    }
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
            hint.or_else(|| resolver_hint(model, root, words, &synonyms?)).unwrap_or_default()
        }
    };
    match &root.resolver {
        Some(resolver) => format!("no resolver `{resolver}` for {keyword} `{}`{hint}", root.name),
        None => format!("no resolver for {keyword} `{}`{hint}", root.name),
    }
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
            None => reading.noun.is_empty() || !changes_records(reading.verb),
        };
        if !is_meant {
            return None;
        }
        let (verb, name) = VERB_NAMES.iter().find(|(known, _)| has_verb(reading.verb, *known))?;
        let can_work = NamedArguments::new(model, record, *verb, &root.arguments).can_work(false);
        (can_work && find_result_shape(model, root, record, *verb).is_some()).then_some((name, record))
    })?;
    Some(format!("; `@resolver(name: \"{}.{verb}\")` would bind it", model.record(record).name))
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
