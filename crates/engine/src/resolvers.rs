//! Binds every root field by name to a built-in operation or a registered resolver.

use std::collections::HashMap;
use std::sync::Arc;

use trefoil_model::naming::names;
use trefoil_model::{Model, RecordTypeId, RootField, RootKind, TypeRef};

use crate::arguments::argument_roles;
use crate::builtin_operation::{BuiltinOperation, OperationVerb, ResultShape};
use crate::changes::ChangeKind;
use crate::engine::{ResolverBinding, ResolverRegistry};

/// The bindings of [`Model::root_fields`], by position.
pub fn bind_root_fields(model: &Model, registry: &ResolverRegistry) -> Vec<ResolverBinding> {
    let rules = NamingRules::from_model(model);
    model.root_fields.iter().map(|root| bind_root_field(model, registry, &rules, root)).collect()
}

/// The kinds of changes with a subscription in the schema: only these are logged.
pub fn subscribed_changes(bindings: &[ResolverBinding]) -> Vec<(RecordTypeId, ChangeKind)> {
    let mut pairs = Vec::new();
    for binding in bindings {
        if let ResolverBinding::Builtin(builtin) = binding
            && let OperationVerb::Subscribe(kind) = builtin.verb
            && !pairs.contains(&(builtin.record, kind))
        {
            pairs.push((builtin.record, kind));
        }
    }
    pairs
}

fn bind_root_field(
    model: &Model,
    registry: &ResolverRegistry,
    rules: &NamingRules,
    root: &RootField,
) -> ResolverBinding {
    if let Some(resolver) = registry.get(default_root_name(root.root_kind), &root.name) {
        return ResolverBinding::Registered(resolver.clone());
    }
    let candidates = rules.candidates(root);
    // Where a plural is its own singular (`series`), the declared type decides between list and get.
    let fitting = candidates
        .iter()
        .find_map(|(record, verb)| Some((*record, *verb, find_result_shape(model, root, *record, *verb)?)));
    match (fitting, candidates.first()) {
        (Some((record, verb, result_shape)), _) => ResolverBinding::Builtin(Arc::new(BuiltinOperation {
            record,
            verb,
            argument_roles: argument_roles(model.record(record), verb, &root.arguments),
            result_shape,
        })),
        (None, Some((record, _))) => ResolverBinding::Missing(format!(
            "`{}` matches the record type {}, but its return type `{}` does not",
            root.name,
            model.record(*record).name,
            root.ty
        )),
        (None, None) => ResolverBinding::Missing(rules.explain(root)),
    }
}

pub fn default_root_name(root: RootKind) -> &'static str {
    match root {
        RootKind::Query => "Query",
        RootKind::Mutation => "Mutation",
        RootKind::Subscription => "Subscription",
    }
}

fn find_result_shape(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
) -> Option<ResultShape> {
    let name = root.ty.inner_name();
    let is_record = name == model.record(record).name;
    match verb {
        OperationVerb::List if is_record && is_single_list(&root.ty) => Some(ResultShape::List),
        OperationVerb::List if !root.ty.is_list() && model.connection_node(name) == Some(record) => {
            Some(ResultShape::Connection)
        }
        OperationVerb::List => None,
        OperationVerb::Get | OperationVerb::Create | OperationVerb::Update | OperationVerb::Subscribe(_) => {
            (is_record && !root.ty.is_list()).then_some(ResultShape::Record)
        }
        OperationVerb::Delete if root.ty.is_list() => None,
        OperationVerb::Delete if is_record => Some(ResultShape::Record),
        OperationVerb::Delete if name == "ID" => Some(ResultShape::Id),
        OperationVerb::Delete if name == "Boolean" => Some(ResultShape::Boolean),
        OperationVerb::Delete => None,
    }
}

/// `[User]`, not `[[User]]`.
fn is_single_list(ty: &TypeRef) -> bool {
    match ty {
        TypeRef::Named(_) => false,
        TypeRef::List(inner) => !inner.is_list(),
        TypeRef::NonNull(inner) => is_single_list(inner),
    }
}

/// The operations that each root field name may stand for.
struct NamingRules(HashMap<(RootKind, String), Vec<(RecordTypeId, OperationVerb)>>);

impl NamingRules {
    fn from_model(model: &Model) -> NamingRules {
        let mut names: HashMap<(RootKind, String), Vec<(RecordTypeId, OperationVerb)>> = HashMap::new();
        for (position, record) in model.records.iter().enumerate() {
            let operations = names::operation_names(&record.name);
            let verbs = [
                (RootKind::Query, operations.list.as_slice(), OperationVerb::List),
                (RootKind::Query, operations.get.as_slice(), OperationVerb::Get),
                (RootKind::Mutation, std::slice::from_ref(&operations.create), OperationVerb::Create),
                (RootKind::Mutation, std::slice::from_ref(&operations.update), OperationVerb::Update),
                (RootKind::Mutation, std::slice::from_ref(&operations.delete), OperationVerb::Delete),
                (
                    RootKind::Subscription,
                    std::slice::from_ref(&operations.created),
                    OperationVerb::Subscribe(ChangeKind::Created),
                ),
                (
                    RootKind::Subscription,
                    std::slice::from_ref(&operations.updated),
                    OperationVerb::Subscribe(ChangeKind::Updated),
                ),
                (
                    RootKind::Subscription,
                    std::slice::from_ref(&operations.deleted),
                    OperationVerb::Subscribe(ChangeKind::Deleted),
                ),
            ];
            for (root, spellings, verb) in verbs {
                for name in spellings {
                    names.entry((root, name.clone())).or_default().push((RecordTypeId(position), verb));
                }
            }
            for (verb, name) in VERB_NAMES {
                let key = (verb.root_kind(), format!("{}.{name}", record.name));
                names.entry(key).or_default().push((RecordTypeId(position), *verb));
            }
        }
        NamingRules(names)
    }

    fn candidates(&self, root: &RootField) -> &[(RecordTypeId, OperationVerb)] {
        let name = root.resolver.as_ref().unwrap_or(&root.name);
        self.0.get(&(root.root_kind, name.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    fn explain(&self, root: &RootField) -> String {
        let name = root.resolver.as_deref().unwrap_or(&root.name);
        let known = self.0.keys().filter(|(kind, _)| *kind == root.root_kind).map(|(_, name)| name.as_str());
        let hint = match names::nearest_name(name, known) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        match &root.resolver {
            Some(resolver) => {
                format!(
                    "no resolver `{resolver}` for {} `{}`{hint}",
                    operation_keyword(root.root_kind),
                    root.name
                )
            }
            None => format!("no resolver for {} `{}`{hint}", operation_keyword(root.root_kind), root.name),
        }
    }
}

/// The words after the dot in `@resolver(name: "User.list")`.
const VERB_NAMES: &[(OperationVerb, &str)] = &[
    (OperationVerb::List, "list"),
    (OperationVerb::Get, "get"),
    (OperationVerb::Create, "create"),
    (OperationVerb::Update, "update"),
    (OperationVerb::Delete, "delete"),
    (OperationVerb::Subscribe(ChangeKind::Created), "created"),
    (OperationVerb::Subscribe(ChangeKind::Updated), "updated"),
    (OperationVerb::Subscribe(ChangeKind::Deleted), "deleted"),
];

impl OperationVerb {
    fn root_kind(self) -> RootKind {
        match self {
            OperationVerb::List | OperationVerb::Get => RootKind::Query,
            OperationVerb::Create | OperationVerb::Update | OperationVerb::Delete => RootKind::Mutation,
            OperationVerb::Subscribe(_) => RootKind::Subscription,
        }
    }
}

fn operation_keyword(root: RootKind) -> &'static str {
    match root {
        RootKind::Query => "query",
        RootKind::Mutation => "mutation",
        RootKind::Subscription => "subscription",
    }
}
