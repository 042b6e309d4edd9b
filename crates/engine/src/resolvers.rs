//! Binds every root field by name to a built-in operation or a registered resolver.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use trefoil_model::error::Result;
use trefoil_model::naming::names;
use trefoil_model::{Model, RecordTypeId, RootField, RootKind, TypeRef, Value};

use crate::Engine;
use crate::arguments::{ArgumentRole, argument_roles};
use crate::operation::ChangeKind;

/// The resolver of a root field.
#[derive(Clone)]
pub enum ResolverBinding {
    Builtin(Arc<BuiltinOperation>),
    Registered(ResolverFn),
    /// No resolver; requests get an error with this explanation.
    Missing(String),
}

/// A root field that the naming rules bind to an operation on a record type.
#[derive(Debug)]
pub struct BuiltinOperation {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// Name and role of each argument, in schema order.
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

/// The shape of the result, read from the declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShape {
    Record,
    List,
    Connection,
    Id,
    Boolean,
}

/// A resolver written in Rust.
pub type ResolverFn = Arc<dyn Fn(Call) -> BoxFuture<'static, Result<Resolved>> + Send + Sync>;

/// The input of a registered resolver.
pub struct Call {
    /// The object of the field with its stored fields by name; null for root fields.
    pub parent: Value,
    /// Arguments as coerced by the schema: with defaults, without absent ones.
    pub arguments: Value,
    pub actor: Actor,
    pub engine: Engine,
}

/// The result of a registered resolver.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// A value; objects have their fields by name, and `__typename` where the type is an interface or union.
    Value(Value),
    /// A record of the store, read with the fields that the request selects.
    Record { type_name: String, id: i64 },
    /// A list of values or records.
    List(Vec<Resolved>),
}

/// The caller of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The client's address, if the request came over a network.
    pub address: Option<IpAddr>,
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

impl fmt::Debug for ResolverBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolverBinding::Builtin(builtin) => write!(f, "{:?} of {:?}", builtin.verb, builtin.record),
            ResolverBinding::Registered(_) => f.write_str("registered"),
            ResolverBinding::Missing(why) => write!(f, "missing: {why}"),
        }
    }
}
