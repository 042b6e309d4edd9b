//! Binds a root field by the words of its name and its declared type: `addBook: Book`, `findAll: [Player]`.
//!
//! The words say what is done, the declared type to which records. A name with two readings is bound to neither.

use std::collections::HashSet;

use trefoil_model::naming::names::snake_words;
use trefoil_model::naming::operation_words::{
    NameReading, NamedVerb, NounFit, noun_fit, read_operation_name, singular_words,
};
use trefoil_model::{Argument, Model, RecordType, RecordTypeId, RootField};

use crate::arguments::roles::{argument_roles, member_role};
use crate::binding::result_type::{declared_record, find_result_shape};
use crate::binding::verb_names::VERB_NAMES;
use crate::builtin_operation::{ArgumentRole, OperationVerb, ResultShape};
use crate::changes::ChangeKind;

pub(super) struct WordBinder<'m> {
    model: &'m Model,
    /// The names of all types, as words in the singular: a noun among them means that type alone.
    type_nouns: HashSet<String>,
}

/// The operations that a name may stand for.
pub(super) enum WordMatch {
    None,
    One(RecordTypeId, OperationVerb, ResultShape),
    /// With an explanation that names them.
    Several(String),
}

struct BindingCandidate {
    record: RecordTypeId,
    verb: OperationVerb,
    shape: ResultShape,
    fit: NounFit,
}

/// Words that make a noun a phrase about two things: `addBookToAuthor`.
const PREPOSITIONS: [&str; 10] = ["as", "at", "for", "from", "in", "into", "of", "on", "to", "with"];

impl<'m> WordBinder<'m> {
    pub fn new(model: &'m Model) -> WordBinder<'m> {
        let types = model.schema.types.values().filter(|ty| !ty.is_scalar() && !ty.is_input_object());
        let type_nouns = types.map(|ty| singular_words(&snake_words(ty.name()))).collect();
        WordBinder { model, type_nouns }
    }

    pub fn find(&self, root: &RootField) -> WordMatch {
        let readings = read_operation_name(root.root_kind, &root.name);
        let mut candidates: Vec<BindingCandidate> = Vec::new();
        for reading in &readings {
            for record in self.possible_records(root, reading) {
                candidates.extend(self.candidate(root, reading, record));
            }
        }
        let Some(best) = candidates.iter().map(|candidate| candidate.fit).min() else {
            return WordMatch::None;
        };
        let mut best = candidates.into_iter().filter(|candidate| candidate.fit == best);
        let Some(first) = best.next() else { return WordMatch::None };
        match best.find(|other| (other.record, other.verb) != (first.record, first.verb)) {
            Some(second) => WordMatch::Several(self.explain_two(root, &first, &second)),
            None => WordMatch::One(first.record, first.verb, first.shape),
        }
    }

    /// The declared record type; for scalar results, the record types that the noun names.
    fn possible_records(&self, root: &RootField, reading: &NameReading) -> Vec<RecordTypeId> {
        if let Some(record) = declared_record(self.model, &root.ty) {
            return vec![record];
        }
        let is_named = |record: &RecordType| {
            matches!(noun_fit(&reading.noun, &record.name), Some(NounFit::Exact | NounFit::Stripped))
        };
        let records = self.model.records.iter().enumerate();
        records.filter(|(_, record)| is_named(record)).map(|(position, _)| RecordTypeId(position)).collect()
    }

    fn candidate(
        &self,
        root: &RootField,
        reading: &NameReading,
        record: RecordTypeId,
    ) -> Option<BindingCandidate> {
        let record_type = self.model.record(record);
        let fit = noun_fit(&reading.noun, &record_type.name)?;
        let is_other_type = || self.type_nouns.contains(&singular_words(&reading.noun));
        let fits = match fit {
            NounFit::Exact | NounFit::Stripped => true,
            NounFit::Empty => reading.has_verb,
            NounFit::Part => !is_other_type() && !has_preposition(&reading.noun),
        };
        let verb = operation_verb(reading.verb, record_type, root);
        let shape = find_result_shape(self.model, root, record, verb)?;
        let is_loose = matches!(fit, NounFit::Empty | NounFit::Part);
        (fits && has_fitting_arguments(record_type, verb, reading, root, is_loose))
            .then_some(BindingCandidate { record, verb, shape, fit })
    }

    fn explain_two(&self, root: &RootField, first: &BindingCandidate, second: &BindingCandidate) -> String {
        let describe = |candidate: &BindingCandidate| {
            let verb = VERB_NAMES.iter().find(|(verb, _)| *verb == candidate.verb);
            let verb = verb.map_or("", |(_, name)| name);
            format!("`@resolver(name: \"{}.{verb}\")`", self.model.record(candidate.record).name)
        };
        format!("`{}` has two readings; choose {} or {}", root.name, describe(first), describe(second))
    }
}

fn has_preposition(noun: &str) -> bool {
    noun.split('_').any(|word| PREPOSITIONS.contains(&word))
}

fn operation_verb(named: NamedVerb, record: &RecordType, root: &RootField) -> OperationVerb {
    match named {
        NamedVerb::List => OperationVerb::List,
        NamedVerb::Get => OperationVerb::Get,
        NamedVerb::Create => OperationVerb::Create,
        NamedVerb::Update => OperationVerb::Update,
        NamedVerb::Delete => OperationVerb::Delete,
        NamedVerb::Save if takes_id(record, OperationVerb::Save, &root.arguments) => OperationVerb::Save,
        NamedVerb::Save => OperationVerb::Create,
        NamedVerb::Created => OperationVerb::Subscribe(ChangeKind::Created),
        NamedVerb::Updated => OperationVerb::Subscribe(ChangeKind::Updated),
        NamedVerb::Deleted => OperationVerb::Subscribe(ChangeKind::Deleted),
    }
}

/// True if an argument, or a member of an input object, names the record.
pub(crate) fn takes_id(record: &RecordType, verb: OperationVerb, arguments: &[Argument]) -> bool {
    let roles = argument_roles(record, verb, arguments);
    roles.iter().zip(arguments).any(|((_, role), argument)| {
        *role == ArgumentRole::Id
            || (*role == ArgumentRole::Input
                && argument
                    .fields
                    .iter()
                    .any(|inner| member_role(record, verb, &inner.name) == ArgumentRole::Id))
    })
}

/// True if the arguments fit what the words of the name say.
fn has_fitting_arguments(
    record: &RecordType,
    verb: OperationVerb,
    reading: &NameReading,
    root: &RootField,
    is_loose: bool,
) -> bool {
    can_work(record, verb, root, is_loose)
        && reading.by.as_ref().is_none_or(|by| takes_named(record, verb, by, &root.arguments))
        && !(verb == OperationVerb::List && reading.by.is_none() && requires_key(record, &root.arguments))
}

/// True if the arguments say what the operation needs to know. `is_loose` is for names that do not say the record
/// type: each required argument must have a role then.
pub(super) fn can_work(record: &RecordType, verb: OperationVerb, root: &RootField, is_loose: bool) -> bool {
    let roles = argument_roles(record, verb, &root.arguments);
    let has_role = |role: &dyn Fn(&ArgumentRole) -> bool| roles.iter().any(|(_, found)| role(found));
    let has_known_members = |argument: &Argument| {
        argument.fields.iter().all(|inner| {
            !inner.ty.is_required() || member_role(record, verb, &inner.name) != ArgumentRole::Unknown
        })
    };
    let is_understood = |argument: &Argument, role: &ArgumentRole| {
        let is_known = *role != ArgumentRole::Unknown || !argument.ty.is_required();
        is_known && (*role != ArgumentRole::Input || !is_loose || has_known_members(argument))
    };
    let understood =
        root.arguments.iter().zip(&roles).all(|(argument, (_, role))| is_understood(argument, role));
    let takes_id = || takes_id(record, verb, &root.arguments);
    match verb {
        OperationVerb::List => understood,
        OperationVerb::Get => {
            understood
                && (takes_id()
                    || has_role(&|role| matches!(role, ArgumentRole::Field(_) | ArgumentRole::Where)))
        }
        // An argument that is no field may belong to the work of a resolver that is yet to be written.
        OperationVerb::Create => understood || !is_loose,
        OperationVerb::Update | OperationVerb::Save | OperationVerb::Delete => {
            takes_id() && (understood || !is_loose)
        }
        OperationVerb::CreateMany => understood && has_role(&|role| *role == ArgumentRole::Input),
        OperationVerb::UpdateMany | OperationVerb::DeleteMany => {
            understood && has_role(&|role| *role == ArgumentRole::Where)
        }
        OperationVerb::Upsert => understood && has_role(&|role| *role == ArgumentRole::UniqueFields),
        OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => understood,
    }
}

/// `getCategories(id: String!)`: the id is that of something else, or one record is meant.
fn requires_key(record: &RecordType, arguments: &[Argument]) -> bool {
    let key = ArgumentRole::Field(record.id_field());
    let roles = argument_roles(record, OperationVerb::List, arguments);
    roles.iter().zip(arguments).any(|((_, role), argument)| *role == key && argument.ty.is_required())
}

/// True if an argument is what the words after `by` name: the key, or a field.
fn takes_named(record: &RecordType, verb: OperationVerb, by: &str, arguments: &[Argument]) -> bool {
    let roles = argument_roles(record, verb, arguments);
    let names_key =
        matches!(by, "id" | "pk" | "key") || snake_words(&record.field(record.id_field()).name) == by;
    let is_named = |(name, role): &(String, ArgumentRole)| {
        if let ArgumentRole::Field(field) = role {
            let field = record.field(*field);
            return snake_words(&field.name) == by || snake_words(&field.input_name) == by;
        }
        *role == ArgumentRole::Id && (names_key || snake_words(name) == by)
    };
    roles.iter().any(is_named) || (names_key && takes_id(record, verb, arguments))
}
