//! Binds every root field of the schema to what answers it, by its name: the naming rules and registered resolvers.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::Engine;
use crate::arguments::ArgumentRole;
use crate::operation::ChangeKind;
use trefoil_model::error::Result;
use trefoil_model::naming::names;
use trefoil_model::{Model, RecordTypeId, RootField, RootKind, TypeRef, Value};

/// What answers a root field.
#[derive(Clone)]
pub enum ResolverBinding {
    Builtin(Arc<BuiltinOperation>),
    Registered(ResolverFn),
    /// Nothing does; a request for it gets an error with this explanation.
    Missing(String),
}

/// A root field that the naming rules bind to a record type.
#[derive(Debug)]
pub struct BuiltinOperation {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// What each argument means, in the order of the schema, with its name.
    pub argument_roles: Vec<(String, ArgumentRole)>,
    pub result_shape: ResultShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationVerb {
    List,
    Get,
    Create,
    Update,
    Delete,
    Subscribe(ChangeKind),
}

/// The shape of the answer, read from the declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShape {
    Record,
    List,
    Connection,
    Id,
    Boolean,
}

/// Rust code that answers a field.
pub type ResolverFn = Arc<dyn Fn(Call) -> BoxFuture<'static, Result<Resolved>> + Send + Sync>;

/// What a registered resolver is given.
pub struct Call {
    /// The object the field belongs to: its stored fields by name; null for root fields.
    pub parent: Value,
    /// As the schema coerces them: defaults filled in, absent ones absent.
    pub arguments: Value,
    pub actor: Actor,
    pub engine: Engine,
}

/// What a registered resolver answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// A value; objects hold the fields by name, and `__typename` where the type is an interface or union.
    Value(Value),
    /// A record of the store, read with whatever the request selects of it.
    Record { type_name: String, id: i64 },
    /// Several of either.
    List(Vec<Resolved>),
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The client's address, where the request came over a network.
    pub address: Option<std::net::IpAddr>,
}

/// Resolvers that a program registered, by type and field name.
#[derive(Clone, Default)]
pub struct ResolverRegistry(HashMap<String, ResolverFn>);

impl ResolverRegistry {
    /// `field` is written as in the schema: `Query.search`, `User.avatar`.
    pub fn register(&mut self, field: &str, resolver: ResolverFn) {
        self.0.insert(field.to_owned(), resolver);
    }

    pub fn get(&self, type_name: &str, field: &str) -> Option<&ResolverFn> {
        if self.0.is_empty() { None } else { self.0.get(&format!("{type_name}.{field}")) }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The binding of each of [`Model::roots`], by the same position.
pub fn bind_root_fields(model: &Model, registry: &ResolverRegistry) -> Vec<ResolverBinding> {
    let rules = NamingRules::from_model(model);
    model.root_fields.iter().map(|root| bind_root_field(model, registry, &rules, root)).collect()
}

/// The changes that the schema has a subscription for: the only ones that are logged.
pub fn subscribed_changes(bindings: &[ResolverBinding]) -> Vec<(RecordTypeId, ChangeKind)> {
    let mut pairs = Vec::new();
    for binding in bindings {
        if let ResolverBinding::Builtin(builtin) = binding
            && let OperationVerb::Subscribe(deed) = builtin.verb
            && !pairs.contains(&(builtin.record, deed))
        {
            pairs.push((builtin.record, deed));
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
        (Some((record, verb, gives)), _) => ResolverBinding::Builtin(Arc::new(BuiltinOperation {
            record,
            verb,
            argument_roles: crate::arguments::argument_roles(model.record(record), verb, &root.arguments),
            result_shape: gives,
        })),
        (None, Some((record, _))) => ResolverBinding::Missing(format!(
            "`{}` would be answered from {}, but its type `{}` does not fit",
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

/// The names that answer to something, for each root.
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
        let wanted = root.resolver.as_deref().unwrap_or(&root.name);
        let known = self.0.keys().filter(|(kind, _)| *kind == root.root_kind).map(|(_, name)| name.as_str());
        let hint = match names::nearest_name(wanted, known) {
            Some(name) => format!("; did you mean `{name}`?"),
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

/// What `@resolver(name: "User.list")` may say after the dot.
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

impl std::fmt::Debug for ResolverBinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ResolverBinding::Builtin(builtin) => write!(f, "{:?} of {:?}", builtin.verb, builtin.record),
            ResolverBinding::Registered(_) => f.write_str("registered"),
            ResolverBinding::Missing(why) => write!(f, "missing: {why}"),
        }
    }
}
