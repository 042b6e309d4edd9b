//! Binds every root field of the schema to what answers it, by its name: the naming rules and registered resolvers.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::Engine;
use crate::arguments::Role;
use crate::operation::Deed;
use trefoil_model::error::Result;
use trefoil_model::naming::names;
use trefoil_model::{Model, Root, RootField, TypeId, TypeRef, Value};

/// What answers a root field.
#[derive(Clone)]
pub enum Binding {
    Builtin(Arc<Builtin>),
    Registered(Resolver),
    /// Nothing does; a request for it gets an error with this explanation.
    Missing(String),
}

/// A root field that the naming rules bind to a record type.
#[derive(Debug)]
pub struct Builtin {
    pub record: TypeId,
    pub verb: Verb,
    /// What each argument means, in the order of the schema, with its name.
    pub roles: Vec<(String, Role)>,
    pub gives: Gives,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    List,
    Get,
    Create,
    Update,
    Delete,
    Watch(Deed),
}

/// The shape of the answer, read from the declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    Record,
    List,
    Connection,
    Id,
    Boolean,
}

/// Rust code that answers a field.
pub type Resolver = Arc<dyn Fn(Call) -> BoxFuture<'static, Result<Resolved>> + Send + Sync>;

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
pub struct Registry(HashMap<String, Resolver>);

impl Registry {
    /// `field` is written as in the schema: `Query.search`, `User.avatar`.
    pub fn register(&mut self, field: &str, resolver: Resolver) {
        self.0.insert(field.to_owned(), resolver);
    }

    pub fn get(&self, type_name: &str, field: &str) -> Option<&Resolver> {
        if self.0.is_empty() { None } else { self.0.get(&format!("{type_name}.{field}")) }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// The binding of each of [`Model::roots`], by the same position.
pub fn bind(model: &Model, registry: &Registry) -> Vec<Binding> {
    let rules = Rules::of(model);
    model.roots.iter().map(|root| bind_one(model, registry, &rules, root)).collect()
}

/// The changes that the schema has a subscription for: the only ones that are logged.
pub fn watched(bindings: &[Binding]) -> Vec<(TypeId, Deed)> {
    let mut pairs = Vec::new();
    for binding in bindings {
        if let Binding::Builtin(builtin) = binding
            && let Verb::Watch(deed) = builtin.verb
            && !pairs.contains(&(builtin.record, deed))
        {
            pairs.push((builtin.record, deed));
        }
    }
    pairs
}

fn bind_one(model: &Model, registry: &Registry, rules: &Rules, root: &RootField) -> Binding {
    if let Some(resolver) = registry.get(root_name(root.root), &root.name) {
        return Binding::Registered(resolver.clone());
    }
    let candidates = rules.candidates(root);
    // Where a plural is its own singular (`series`), the declared type decides between list and get.
    let fitting = candidates
        .iter()
        .find_map(|(record, verb)| Some((*record, *verb, gives(model, root, *record, *verb)?)));
    match (fitting, candidates.first()) {
        (Some((record, verb, gives)), _) => Binding::Builtin(Arc::new(Builtin {
            record,
            verb,
            roles: crate::arguments::roles(model.record(record), verb, &root.arguments),
            gives,
        })),
        (None, Some((record, _))) => Binding::Missing(format!(
            "`{}` would be answered from {}, but its type `{}` does not fit",
            root.name,
            model.record(*record).name,
            root.ty
        )),
        (None, None) => Binding::Missing(rules.explain(root)),
    }
}

pub fn root_name(root: Root) -> &'static str {
    match root {
        Root::Query => "Query",
        Root::Mutation => "Mutation",
        Root::Subscription => "Subscription",
    }
}

fn gives(model: &Model, root: &RootField, record: TypeId, verb: Verb) -> Option<Gives> {
    let name = root.ty.name();
    let is_record = name == model.record(record).name;
    match verb {
        Verb::List if is_record && single_list(&root.ty) => Some(Gives::List),
        Verb::List if !root.ty.is_list() && model.connection_node(name) == Some(record) => {
            Some(Gives::Connection)
        }
        Verb::List => None,
        Verb::Get | Verb::Create | Verb::Update | Verb::Watch(_) => {
            (is_record && !root.ty.is_list()).then_some(Gives::Record)
        }
        Verb::Delete if root.ty.is_list() => None,
        Verb::Delete if is_record => Some(Gives::Record),
        Verb::Delete if name == "ID" => Some(Gives::Id),
        Verb::Delete if name == "Boolean" => Some(Gives::Boolean),
        Verb::Delete => None,
    }
}

/// `[User]`, not `[[User]]`.
fn single_list(ty: &TypeRef) -> bool {
    match ty {
        TypeRef::Named(_) => false,
        TypeRef::List(inner) => !inner.is_list(),
        TypeRef::NonNull(inner) => single_list(inner),
    }
}

/// The names that answer to something, for each root.
struct Rules(HashMap<(Root, String), Vec<(TypeId, Verb)>>);

impl Rules {
    fn of(model: &Model) -> Rules {
        let mut names: HashMap<(Root, String), Vec<(TypeId, Verb)>> = HashMap::new();
        for (position, record) in model.records.iter().enumerate() {
            let operations = names::operations(&record.name);
            let verbs = [
                (Root::Query, operations.list.as_slice(), Verb::List),
                (Root::Query, operations.get.as_slice(), Verb::Get),
                (Root::Mutation, std::slice::from_ref(&operations.create), Verb::Create),
                (Root::Mutation, std::slice::from_ref(&operations.update), Verb::Update),
                (Root::Mutation, std::slice::from_ref(&operations.delete), Verb::Delete),
                (Root::Subscription, std::slice::from_ref(&operations.created), Verb::Watch(Deed::Created)),
                (Root::Subscription, std::slice::from_ref(&operations.updated), Verb::Watch(Deed::Updated)),
                (Root::Subscription, std::slice::from_ref(&operations.deleted), Verb::Watch(Deed::Deleted)),
            ];
            for (root, spellings, verb) in verbs {
                for name in spellings {
                    names.entry((root, name.clone())).or_default().push((TypeId(position), verb));
                }
            }
            for (verb, name) in VERB_NAMES {
                let key = (verb.root(), format!("{}.{name}", record.name));
                names.entry(key).or_default().push((TypeId(position), *verb));
            }
        }
        Rules(names)
    }

    fn candidates(&self, root: &RootField) -> &[(TypeId, Verb)] {
        let name = root.resolver.as_ref().unwrap_or(&root.name);
        self.0.get(&(root.root, name.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    fn explain(&self, root: &RootField) -> String {
        let wanted = root.resolver.as_deref().unwrap_or(&root.name);
        let known = self.0.keys().filter(|(kind, _)| *kind == root.root).map(|(_, name)| name.as_str());
        let hint = match names::nearest(wanted, known) {
            Some(name) => format!("; did you mean `{name}`?"),
            None => String::new(),
        };
        match &root.resolver {
            Some(resolver) => {
                format!("no resolver `{resolver}` for {} `{}`{hint}", kind(root.root), root.name)
            }
            None => format!("no resolver for {} `{}`{hint}", kind(root.root), root.name),
        }
    }
}

/// What `@resolver(name: "User.list")` may say after the dot.
const VERB_NAMES: &[(Verb, &str)] = &[
    (Verb::List, "list"),
    (Verb::Get, "get"),
    (Verb::Create, "create"),
    (Verb::Update, "update"),
    (Verb::Delete, "delete"),
    (Verb::Watch(Deed::Created), "created"),
    (Verb::Watch(Deed::Updated), "updated"),
    (Verb::Watch(Deed::Deleted), "deleted"),
];

impl Verb {
    fn root(self) -> Root {
        match self {
            Verb::List | Verb::Get => Root::Query,
            Verb::Create | Verb::Update | Verb::Delete => Root::Mutation,
            Verb::Watch(_) => Root::Subscription,
        }
    }
}

fn kind(root: Root) -> &'static str {
    match root {
        Root::Query => "query",
        Root::Mutation => "mutation",
        Root::Subscription => "subscription",
    }
}

impl std::fmt::Debug for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Binding::Builtin(builtin) => write!(f, "{:?} of {:?}", builtin.verb, builtin.record),
            Binding::Registered(_) => f.write_str("registered"),
            Binding::Missing(why) => write!(f, "missing: {why}"),
        }
    }
}
