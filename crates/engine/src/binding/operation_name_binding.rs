//! Binds a root field by the words of its name and its declared type: `addBook: Book`, `findAll: [Player]`.
//!
//! The words say what is done, the declared type to which records. A name with two readings is bound to neither.

use std::collections::{HashMap, HashSet};

use trefoil_model::naming::names::snake_words;
use trefoil_model::naming::operation_verbs::{
    NameReading, NamedVerb, NounFit, TypeNoun, read_joined_name, read_operation_name, type_words,
};
use trefoil_model::{Model, PagePart, RecordType, RecordTypeId, RootField};

use crate::binding::named_arguments::NamedArguments;
use crate::binding::resolver_names::VERB_NAMES;
use crate::binding::result_type::{declared_record, find_result_shape};
use crate::builtin_operation::{ArgumentRole, OperationVerb, ResultShape};
use crate::changes::ChangeKind;

pub(super) struct WordBinder<'m> {
    model: &'m Model,
    /// By record type.
    record_nouns: Vec<TypeNoun>,
    /// The names of all types, as words in the singular: a noun among them means that type alone.
    type_nouns: HashSet<String>,
    /// Those of the types that have fields.
    object_nouns: HashSet<String>,
    /// The record type that root fields with a noun declare; `None` if they declare several.
    declared_nouns: HashMap<String, Option<RecordTypeId>>,
}

/// The operations that a name may stand for.
pub(super) enum WordMatch {
    None,
    One(BindingCandidate),
    /// With an explanation that names them.
    Several(String),
}

/// An operation that a root field may be bound to.
pub(super) struct BindingCandidate {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    pub shape: ResultShape,
    pub roles: Vec<(String, ArgumentRole)>,
    fit: NounFit,
}

/// Words that make a noun a phrase about two things: `addBookToAuthor`.
const PREPOSITIONS: [&str; 10] = ["as", "at", "for", "from", "in", "into", "of", "on", "to", "with"];

impl<'m> WordBinder<'m> {
    pub fn new(model: &'m Model) -> WordBinder<'m> {
        let types = model.schema.types.values().filter(|ty| !ty.is_scalar() && !ty.is_input_object());
        let type_nouns = types.map(|ty| type_words(ty.name())).collect();
        let objects = model.schema.types.values().filter(|ty| ty.is_object() || ty.is_interface());
        let object_nouns: HashSet<String> = objects.map(|ty| type_words(ty.name())).collect();
        let noun = |record: &RecordType| TypeNoun::new(&record.name, |words| object_nouns.contains(words));
        let record_nouns: Vec<TypeNoun> = model.records.iter().map(noun).collect();
        let declared_nouns = declared_nouns(model, &record_nouns);
        WordBinder { model, record_nouns, type_nouns, object_nouns, declared_nouns }
    }

    /// The record type with this name, as words in the singular.
    pub fn named_record(&self, words: &str) -> Option<RecordTypeId> {
        self.record_nouns.iter().position(|noun| noun.words == words).map(RecordTypeId)
    }

    pub fn find(&self, root: &RootField) -> WordMatch {
        let mut readings = read_operation_name(root.root_kind, &root.name);
        let is_known = |words: &str| self.record_nouns.iter().any(|noun| noun.is_named(words));
        readings.extend(read_joined_name(root.root_kind, &root.name, is_known));
        let mut candidates: Vec<BindingCandidate> = Vec::new();
        for reading in &readings {
            for record in self.possible_records(root, reading) {
                candidates.extend(self.candidate(root, reading, record));
            }
        }
        let Some(best) = candidates.iter().map(|candidate| candidate.fit).min() else {
            let explained = readings.iter().find_map(|reading| self.explain_two_fields(root, reading));
            return explained.map_or(WordMatch::None, WordMatch::Several);
        };
        let mut best = candidates.into_iter().filter(|candidate| candidate.fit == best);
        let Some(first) = best.next() else { return WordMatch::None };
        match best.find(|other| (other.record, other.verb) != (first.record, first.verb)) {
            Some(second) => WordMatch::Several(self.explain_two(root, &first, &second)),
            None => WordMatch::One(first),
        }
    }

    /// The declared record type; for scalar results, the record types that the noun names.
    fn possible_records(&self, root: &RootField, reading: &NameReading) -> Vec<RecordTypeId> {
        if let Some(record) = declared_record(self.model, &root.ty) {
            return vec![record];
        }
        let select = |is_possible: &dyn Fn(&TypeNoun) -> bool| -> Vec<RecordTypeId> {
            let nouns = self.record_nouns.iter().enumerate().filter(|(_, noun)| is_possible(noun));
            let records = nouns.map(|(position, _)| RecordTypeId(position));
            records.filter(|record| !self.stands_aside(*record)).collect()
        };
        // `deletePet` means no PetType where there is a Pet.
        let has_this_name = |noun: &TypeNoun| noun.fit(&reading.noun) == Some(NounFit::Exact);
        let exact = self.record_nouns.iter().position(has_this_name);
        let is_name_of_type = exact.is_some_and(|position| !self.stands_aside(RecordTypeId(position)));
        let named = select(&|noun| {
            (if is_name_of_type { has_this_name(noun) } else { noun.is_named(&reading.noun) })
                || (sets_fields(reading.verb) && noun.words_after(&reading.noun).is_some())
        });
        if !named.is_empty() || reading.noun.is_empty() {
            return named;
        }
        // `deleteFolder: Boolean` beside `createFolder: EmailFolder`, whatever other types end so.
        if let Some(Some(record)) = self.declared_nouns.get(&reading.noun) {
            return vec![*record];
        }
        select(&|noun| noun.ends_with(&reading.noun))
    }

    /// True for a Todo that no operation returns, where others return a TodoOutput: `deleteTodo(id: ID!): Boolean` deletes one of
    /// the latter.
    pub fn stands_aside(&self, record: RecordTypeId) -> bool {
        let is_returned = |record: RecordTypeId| {
            let mut roots = self.model.root_fields.iter();
            roots.any(|root| declared_record(self.model, &root.ty) == Some(record))
        };
        let words = &self.record_nouns[record.0].words;
        // A PetType is no form of a Pet.
        let says_result =
            |last: &str| matches!(last, "dto" | "output" | "resource" | "response" | "view" | "vo");
        let is_form = |noun: &TypeNoun| {
            noun.fit(words) == Some(NounFit::Stripped)
                && noun.words.rsplit('_').next().is_some_and(says_result)
        };
        let mut forms = self.record_nouns.iter().enumerate().filter(|(_, noun)| is_form(noun));
        forms.any(|(position, _)| is_returned(RecordTypeId(position))) && !is_returned(record)
    }

    fn candidate(
        &self,
        root: &RootField,
        reading: &NameReading,
        record: RecordTypeId,
    ) -> Option<BindingCandidate> {
        let verb = match self.saves_record(root, reading, record) {
            true => OperationVerb::Save,
            false => operation_verb(self.model, reading.verb, record, root),
        };
        // Without a key it would always create, which `save` may mean, but not `upsert`.
        let is_upsert = || snake_words(&root.name).split('_').any(|word| word == "upsert");
        if reading.verb == NamedVerb::Save && verb == OperationVerb::Create && is_upsert() {
            return None;
        }
        let shape = find_result_shape(self.model, root, record, verb)?;
        let arguments = NamedArguments::for_reading(self.model, record, verb, reading, &root.arguments)?;
        let fit = self.noun_fit(reading, record, &arguments);
        let names_page =
            || shape == ResultShape::Connection && self.names_page(root, reading, &arguments.roles);
        let fit = fit.or_else(|| names_page().then_some(NounFit::Empty))?;
        let is_loose = matches!(fit, NounFit::Empty | NounFit::Part);
        let is_other_list = verb == OperationVerb::List && reading.by.is_none() && arguments.requires_key();
        // `updateCarPrice: Int` could be the price.
        let is_unclear = fit == NounFit::Qualified
            && shape == ResultShape::Id
            && !matches!(root.ty.inner_name(), "ID" | "String");
        let stores_nothing = arguments.stores_nothing();
        let roles_fit = !is_unclear && !stores_nothing && arguments.can_work(is_loose) && !is_other_list;
        roles_fit.then_some(BindingCandidate { record, verb, shape, roles: arguments.roles, fit })
    }

    /// True for `setBook(id: ID, title: String!)`, which creates a book unless it is given the key of one.
    fn saves_record(&self, root: &RootField, reading: &NameReading, record: RecordTypeId) -> bool {
        reading.verb == NamedVerb::Set
            && self.record_nouns[record.0].is_named(&reading.noun)
            && NamedArguments::new(self.model, record, OperationVerb::Save, &root.arguments).may_create()
    }

    /// True for `feed(skip: Int, take: Int): Feed`, where a Feed is a page of other records with their number.
    fn names_page(&self, root: &RootField, reading: &NameReading, roles: &[(String, ArgumentRole)]) -> bool {
        let page = self.model.success_type(root.ty.inner_name());
        let has_total = || {
            let object = self.model.schema.get_object(page);
            let mut names = object.into_iter().flat_map(|object| object.fields.keys());
            names.any(|name| self.model.page_part(page, name) == Some(PagePart::Total))
        };
        let is_paged = roles.iter().any(|(_, role)| {
            matches!(
                role,
                ArgumentRole::Page
                    | ArgumentRole::PageFromZero
                    | ArgumentRole::Limit
                    | ArgumentRole::Offset
                    | ArgumentRole::First
            )
        });
        reading.verb == NamedVerb::List && reading.noun == type_words(page) && is_paged && has_total()
    }

    /// True if a part of a type's name may stand for the type: it is not the name of another.
    pub fn is_part_of_name(&self, noun: &str) -> bool {
        let is_other = self.type_nouns.contains(noun)
            || self.record_nouns.iter().any(|other| other.is_response_of(noun));
        !is_other && !has_preposition(noun)
    }

    /// How the noun names the record type, or `None` if it says something else.
    fn noun_fit(
        &self,
        reading: &NameReading,
        record: RecordTypeId,
        arguments: &NamedArguments<'_>,
    ) -> Option<NounFit> {
        let noun = &self.record_nouns[record.0];
        // `createRecord: HabitRecord`, where nothing else ends so.
        let is_only_end = || {
            let ends = |noun: &&TypeNoun| !reading.noun.is_empty() && noun.ends_with(&reading.noun);
            ends(&noun) && self.record_nouns.iter().filter(ends).count() == 1
        };
        let fit = noun.fit(&reading.noun).or_else(|| is_only_end().then_some(NounFit::Part));
        let fit = fit.filter(|fit| match fit {
            NounFit::Exact | NounFit::Stripped => {
                reading.verb != NamedVerb::Set || arguments.verb == OperationVerb::Save
            }
            NounFit::Qualified => false,
            NounFit::Empty => reading.has_verb && reading.verb != NamedVerb::Set,
            NounFit::Part => self.is_part_of_name(&reading.noun) && reading.verb != NamedVerb::Set,
        });
        let is_qualified = || {
            let is_other_type = self.object_nouns.contains(&reading.noun);
            if sets_fields(reading.verb) {
                let (words, is_whole_name) = match noun.words_after(&reading.noun) {
                    Some(words) => (words, false),
                    None => (reading.noun.as_str(), true),
                };
                let sets_field = arguments.sets_only(words, is_whole_name)
                    || self
                        .words_after_end(noun, &reading.noun)
                        .any(|words| arguments.sets_only(words, false));
                return !is_other_type && !self.begins_with_other_type(&reading.noun, noun) && sets_field;
            }
            let takes_owner = matches!(reading.verb, NamedVerb::List | NamedVerb::Count | NamedVerb::Create);
            let owner = noun.words_before(&reading.noun).filter(|_| takes_owner && !is_other_type);
            owner.is_some_and(|owner| arguments.names_owner(owner))
        };
        fit.or_else(|| is_qualified().then_some(NounFit::Qualified))
    }

    /// What follows the end of the type's name: `status` in `order_status` for CustomerOrder. The beginning of the name
    /// could be another thing: `updateCustomerName`.
    fn words_after_end<'n>(&self, noun: &'n TypeNoun, words: &'n str) -> impl Iterator<Item = &'n str> {
        let splits = words.match_indices('_').map(|(at, _)| (&words[..at], &words[at + 1..]));
        splits.filter(|(part, _)| noun.ends_with(part) && self.is_part_of_name(part)).map(|(_, rest)| rest)
    }

    /// True if the name of another type is at the beginning, or a longer one: `cart_item_quantity` is not of Cart.
    fn begins_with_other_type(&self, words: &str, noun: &TypeNoun) -> bool {
        let own_length = noun.words_after(words).map_or(0, |rest| words.len() - rest.len() - 1);
        let begins = |other: &str| words.strip_prefix(other).is_some_and(|rest| rest.starts_with('_'));
        self.object_nouns.iter().any(|other| other.len() > own_length && begins(other))
    }

    /// The explanation for a name that is understood, with an argument that could be of two types.
    fn explain_two_fields(&self, root: &RootField, reading: &NameReading) -> Option<String> {
        let by = reading.by.as_ref()?;
        let record = declared_record(self.model, &root.ty)?;
        let verb = operation_verb(self.model, reading.verb, record, root);
        find_result_shape(self.model, root, record, verb)?;
        self.record_nouns[record.0].fit(&reading.noun)?;
        let fields = NamedArguments::new(self.model, record, verb, &root.arguments).two_fields(by)?;
        Some(format!("{fields}; name the argument like one of them, or write a resolver for `{}`", root.name))
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

fn declared_nouns(model: &Model, nouns: &[TypeNoun]) -> HashMap<String, Option<RecordTypeId>> {
    let mut declared: HashMap<String, Option<RecordTypeId>> = HashMap::new();
    for root in &model.root_fields {
        let Some(record) = declared_record(model, &root.ty) else { continue };
        let readings = read_operation_name(root.root_kind, &root.name);
        let fits =
            |reading: &NameReading| !reading.noun.is_empty() && nouns[record.0].fit(&reading.noun).is_some();
        for reading in readings.into_iter().filter(fits) {
            let known = declared.entry(reading.noun).or_insert(Some(record));
            *known = known.filter(|known| *known == record);
        }
    }
    declared
}

fn has_preposition(noun: &str) -> bool {
    noun.split('_').any(|word| PREPOSITIONS.contains(&word))
}

/// True for verbs whose noun may be a field: `updateOrderStatus`.
fn sets_fields(verb: NamedVerb) -> bool {
    matches!(verb, NamedVerb::Update | NamedVerb::Set)
}

fn operation_verb(model: &Model, named: NamedVerb, record: RecordTypeId, root: &RootField) -> OperationVerb {
    match named {
        NamedVerb::List | NamedVerb::Search => OperationVerb::List,
        NamedVerb::Count => OperationVerb::Count,
        NamedVerb::Exists => OperationVerb::Exists,
        NamedVerb::Get => OperationVerb::Get,
        NamedVerb::Create => OperationVerb::Create,
        NamedVerb::Update | NamedVerb::Set => OperationVerb::Update,
        NamedVerb::Delete => OperationVerb::Delete,
        NamedVerb::Save
            if NamedArguments::new(model, record, OperationVerb::Save, &root.arguments).takes_id() =>
        {
            OperationVerb::Save
        }
        NamedVerb::Save => OperationVerb::Create,
        NamedVerb::Created => OperationVerb::Subscribe(ChangeKind::Created),
        NamedVerb::Updated => OperationVerb::Subscribe(ChangeKind::Updated),
        NamedVerb::Deleted => OperationVerb::Subscribe(ChangeKind::Deleted),
    }
}
