//! Binds root fields by the exact names of operations; what has none is bound by its words.

use std::collections::BTreeMap;
use std::sync::Arc;

use trefoil_model::naming::names;
use trefoil_model::{Model, RecordTypeId, RootField, RootType};

use crate::arguments::argument_roles::{UNIQUE_FIELDS_ARGUMENT, first_page};
use crate::binding::abstract_binding::bind_abstract;
use crate::binding::explanation::{explain_arguments, explain_missing, explain_wrong_type};
use crate::binding::filled_fields::{filled_fields, sets_nothing};
use crate::binding::named_arguments::NamedArguments;
use crate::binding::operation_name_binding::{BindingCandidate, WordBinder, WordMatch};
use crate::binding::resolver_names::VERB_NAMES;
use crate::binding::result_type::find_result_shape;
use crate::binding::singleton_fields::is_singleton;
use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, ResultShape};
use crate::changes::ChangeKind;
use crate::engine::{ResolverBinding, ResolverRegistry};

/// The bindings of [`Model::root_fields`], by position.
pub fn bind_root_fields(model: &Model, registry: &ResolverRegistry) -> Vec<ResolverBinding> {
    let names = ExactNames::from_model(model);
    let words = WordBinder::new(model);
    model.root_fields.iter().map(|root| bind_root_field(model, registry, &names, &words, root)).collect()
}

/// The kinds of changes that the change log is to have: those with a subscription, and all of what says who an actor is, which
/// streams look at before they deliver, and requests before they use an identity that is known. New ones count: another
/// program may replace an account by one, or add a second with the same value in the field that a token names.
pub fn logged_changes(model: &Model, bindings: &[ResolverBinding]) -> Vec<(RecordTypeId, ChangeKind)> {
    let mut pairs = subscribed_changes(bindings);
    for record in model.actor_types() {
        for pair in ChangeKind::ALL.map(|kind| (record, kind)) {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// The kinds of changes with a subscription in the schema.
pub fn subscribed_changes(bindings: &[ResolverBinding]) -> Vec<(RecordTypeId, ChangeKind)> {
    let mut pairs = Vec::new();
    for binding in bindings {
        let ResolverBinding::Builtin(builtin) = binding else { continue };
        let kinds = ChangeKind::ALL.into_iter().filter(|kind| builtin.verb.follows(*kind));
        for pair in kinds.map(|kind| (builtin.record, kind)) {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

fn bind_root_field(
    model: &Model,
    registry: &ResolverRegistry,
    names: &ExactNames,
    words: &WordBinder<'_>,
    root: &RootField,
) -> ResolverBinding {
    if let Some(resolver) = registry.get(root.root_kind.default_name(), &root.name) {
        return ResolverBinding::Registered(resolver.clone());
    }
    if let Some(record) = own_account_type(model).filter(|_| is_own_account(model, root)) {
        return builtin_binding(model, root, record, OperationVerb::Get, ResultShape::Record, Vec::new());
    }
    let mut candidates = names.candidates(root).to_vec();
    // Without `by`, the same name is an older one for "update if there is an id, else create".
    let has_unique_fields = root.arguments.iter().any(|argument| argument.name == UNIQUE_FIELDS_ARGUMENT);
    candidates.retain(|(_, verb)| *verb != OperationVerb::Upsert || has_unique_fields);
    // `@resolver` means the type that it names.
    candidates.retain(|(record, _)| root.resolver.is_some() || !words.stands_aside(*record));
    // A type of groups says what is asked for, whatever the field is called.
    if root.resolver.is_none() && root.root_kind == RootType::Query {
        let groups = model.aggregate_record(root.ty.inner_name());
        candidates.extend(groups.map(|record| (record, OperationVerb::Aggregate)));
    }
    // Where a plural is its own singular (`series`), the declared type decides between list and get.
    let fitting = candidates
        .iter()
        .find_map(|(record, verb)| Some((*record, *verb, find_result_shape(model, root, *record, *verb)?)));
    if let Some((record, verb, result_shape)) = fitting {
        let arguments = NamedArguments::new(model, record, verb, &root.arguments);
        // It would make an empty record of what only a resolver understands: a payment from its order.
        let is_empty = verb == OperationVerb::Create
            && arguments.stores_nothing()
            && sets_nothing(model.record(record), verb, &root.arguments, &arguments.roles);
        let can_work = arguments.can_work(false) && !is_empty;
        if can_work || is_singleton(model, root, record, verb) {
            return builtin_binding(model, root, record, verb, result_shape, arguments.roles);
        }
    }
    // A name given by `@resolver` is meant to the letter.
    if root.resolver.is_none() {
        match words.find(root) {
            WordMatch::One(BindingCandidate { record, verb, shape, roles, .. }) => {
                return builtin_binding(model, root, record, verb, shape, roles);
            }
            WordMatch::Several(explanation) => return ResolverBinding::Missing(explanation),
            WordMatch::None => {}
        }
    }
    if let Some(binding) = bind_abstract(model, words, root) {
        return binding;
    }
    ResolverBinding::Missing(match (fitting, candidates.first()) {
        (Some((record, verb, _)), _) => explain_arguments(model, root, record, verb),
        (None, Some((record, _))) => explain_wrong_type(model, root, *record),
        (None, None) => explain_missing(model, root, words, names.known(root.root_kind)),
    })
}

fn own_account_type(model: &Model) -> Option<RecordTypeId> {
    Some(model.access.as_ref()?.account.as_ref()?.record)
}

/// Whether a field is `me: User`, and the type has accounts.
fn is_own_account(model: &Model, root: &RootField) -> bool {
    let is_named = root.root_kind == RootType::Query && root.name == "me" && root.arguments.is_empty();
    is_named
        && !root.ty.is_list()
        && own_account_type(model) == model.find_record(root.ty.inner_name())
        && own_account_type(model).is_some()
}

fn builtin_binding(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
    result_shape: ResultShape,
    argument_roles: Vec<(String, ArgumentRole)>,
) -> ResolverBinding {
    let record_type = model.record(record);
    ResolverBinding::Builtin(Arc::new(BuiltinOperation {
        record,
        verb,
        filled_fields: filled_fields(model, record, verb, &root.arguments, &argument_roles),
        first_page: first_page(record_type, verb, &root.arguments, &argument_roles),
        argument_roles,
        result_shape,
        is_singleton: is_singleton(model, root, record, verb),
        is_own_account: is_own_account(model, root),
    }))
}

/// The operations that each root field name may stand for.
struct ExactNames(BTreeMap<(RootType, String), Vec<(RecordTypeId, OperationVerb)>>);

impl ExactNames {
    fn from_model(model: &Model) -> ExactNames {
        let mut known: BTreeMap<(RootType, String), Vec<(RecordTypeId, OperationVerb)>> = BTreeMap::new();
        for (position, record) in model.records.iter().enumerate() {
            let operations = names::operation_names(&record.name);
            let [list_long, list_short] = operations.list;
            let [get_long, get_short] = operations.get;
            for (name, verb) in [
                (list_long, OperationVerb::List),
                (list_short, OperationVerb::List),
                (operations.connection, OperationVerb::List),
                (operations.aggregate, OperationVerb::Aggregate),
                (get_long, OperationVerb::Get),
                (get_short, OperationVerb::Get),
                (operations.create, OperationVerb::Create),
                (operations.create_many, OperationVerb::CreateMany),
                (operations.update, OperationVerb::Update),
                (operations.update_many, OperationVerb::UpdateMany),
                (operations.upsert, OperationVerb::Upsert),
                (operations.delete, OperationVerb::Delete),
                (operations.delete_many, OperationVerb::DeleteMany),
                (operations.created, OperationVerb::Subscribe(ChangeKind::Created)),
                (operations.updated, OperationVerb::Subscribe(ChangeKind::Updated)),
                (operations.deleted, OperationVerb::Subscribe(ChangeKind::Deleted)),
                (operations.changed, OperationVerb::SubscribeAll),
            ] {
                known.entry((verb.root_kind(), name)).or_default().push((RecordTypeId(position), verb));
            }
            for field in record.fields.iter().filter(|field| field.unique) {
                let name = names::unique_get_name(&record.name, &field.input_name);
                let operation = (RecordTypeId(position), OperationVerb::Get);
                known.entry((RootType::Query, name)).or_default().push(operation);
            }
            for (verb, name) in VERB_NAMES {
                let key = (verb.root_kind(), format!("{}.{name}", record.name));
                known.entry(key).or_default().push((RecordTypeId(position), *verb));
            }
        }
        ExactNames(known)
    }

    fn candidates(&self, root: &RootField) -> &[(RecordTypeId, OperationVerb)] {
        let name = root.resolver.as_ref().unwrap_or(&root.name);
        self.0.get(&(root.root_kind, name.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    fn known(&self, kind: RootType) -> impl Iterator<Item = (&str, &[(RecordTypeId, OperationVerb)])> {
        let of_kind = self.0.iter().filter(move |((root, _), _)| *root == kind);
        of_kind.map(|((_, name), operations)| (name.as_str(), operations.as_slice()))
    }
}
