//! An operation as it is run: its root fields with what answers each, made once for a document and kept with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use apollo_compiler::ExecutableDocument;
use apollo_compiler::executable::{Field as Node, OperationType};

use crate::plan::collect::{Group, collect, label};
use crate::plan::input::{Arguments, VariableRef};
use crate::plan::shape::{Connection, Object, Reads, Slot};
use crate::plan::variables::Variables;
use crate::response_error::Failure;
use trefoil_engine::{Binding, Builtin, Engine, Gives, Resolver, Selection, Verb};
use trefoil_model::Root as RootKind;

use crate::plan::shape::{Label, Output};

/// A planned operation.
pub struct Plan {
    pub kind: OperationType,
    pub roots: Vec<Root>,
    /// Arguments of relations depend on variables, so this plan fits one request only.
    pub once: bool,
    /// A registered resolver answers something.
    pub live: bool,
    /// Its answer depends on the data alone and is dearer than to look whether they have changed.
    pub repeats: bool,
    /// Why it cannot be told what is selected.
    pub broken: Option<Failure>,
    /// Fields in it, fragments expanded: what it costs to keep.
    pub fields: usize,
    /// Bytes of the last answer: the next one is probably as long.
    pub size: AtomicUsize,
}

pub struct Root {
    pub label: Label,
    pub required: bool,
    pub does: Does,
}

/// What answers a root field.
pub enum Does {
    Typename(Vec<u8>),
    /// `__schema` or `__type`.
    Introspection {
        arguments: Arguments,
        slot: Slot,
    },
    Builtin(BuiltinRoot),
    Registered {
        resolver: Resolver,
        arguments: Arguments,
        slot: Slot,
    },
    Missing(String),
}

pub struct BuiltinRoot {
    pub builtin: Arc<Builtin>,
    pub record_name: String,
    pub arguments: Arguments,
    pub gives: Shape,
    pub selection: Arc<Selection>,
}

/// What a built-in operation's answer looks like.
pub enum Shape {
    Record(Arc<Object>),
    /// The slot of an element.
    List(Slot, Arc<Object>),
    Connection(Arc<Connection>),
    Id,
    Boolean,
}

impl Shape {
    fn is_live(&self) -> bool {
        match self {
            Shape::Record(object) | Shape::List(_, object) => object.live,
            Shape::Connection(connection) => connection.live,
            Shape::Id | Shape::Boolean => false,
        }
    }
}

impl Root {
    pub fn is_live(&self) -> bool {
        match &self.does {
            Does::Registered { .. } => true,
            Does::Builtin(root) => root.gives.is_live(),
            Does::Typename(_) | Does::Introspection { .. } | Does::Missing(_) => false,
        }
    }
}

/// Records that are looked up by their ids are not worth it: they are as quickly read, and there are many.
fn repeats(roots: &[Root]) -> bool {
    let is_dear = |root: &Root| match &root.does {
        Does::Builtin(root) => root.builtin.verb == Verb::List || !root.selection.children.is_empty(),
        Does::Introspection { .. } => true,
        Does::Typename(_) | Does::Registered { .. } | Does::Missing(_) => false,
    };
    !roots.iter().any(Root::is_live) && roots.iter().any(is_dear)
}

/// What the planner works with; `variables` decide `@skip` and `@include` and the arguments of relations.
pub struct Planner<'a> {
    pub engine: &'a Engine,
    pub document: &'a ExecutableDocument,
    pub declared: &'a [VariableRef],
    pub variables: &'a Variables,
    pub once: bool,
    /// Planned so far.
    pub fields: usize,
    /// A disagreement that validation did not see.
    pub conflict: Option<Failure>,
    pub objects: HashMap<(String, Vec<usize>), Arc<Object>>,
}

impl Plan {
    pub fn new(
        engine: &Engine,
        document: &ExecutableDocument,
        operation: &apollo_compiler::executable::Operation,
        variables: &Variables,
    ) -> Result<Plan, Failure> {
        let mut planner = Planner {
            engine,
            document,
            declared: &operation.variables,
            variables,
            once: false,
            fields: 0,
            conflict: None,
            objects: HashMap::new(),
        };
        let type_name = operation.object_type();
        let (groups, broken) = collect(&mut planner, type_name, [&operation.selection_set]);
        let roots: Vec<Root> =
            groups.iter().map(|group| planner.root(operation.operation_type, type_name, group)).collect();
        match planner.conflict {
            Some(failure) => Err(failure),
            None => Ok(Plan {
                kind: operation.operation_type,
                live: roots.iter().any(Root::is_live),
                repeats: operation.operation_type == OperationType::Query && repeats(&roots),
                roots,
                once: planner.once,
                fields: planner.fields,
                broken,
                size: AtomicUsize::new(0),
            }),
        }
    }
}

impl<'a> Planner<'a> {
    fn root(&mut self, kind: OperationType, type_name: &str, group: &Group<'a>) -> Root {
        let first = group.nodes[0];
        let does = match first.name.as_str() {
            "__typename" => Does::Typename(format!("\"{type_name}\"").into_bytes()),
            "__schema" | "__type" => {
                Does::Introspection { arguments: self.arguments(first), slot: self.slot(first.ty(), group) }
            }
            name => self.bound(kind, name, first, group),
        };
        Root { label: label(self, type_name, group), required: first.ty().is_non_null(), does }
    }

    fn bound(&mut self, kind: OperationType, name: &str, first: &Node, group: &Group<'a>) -> Does {
        let kind = match kind {
            OperationType::Query => RootKind::Query,
            OperationType::Mutation => RootKind::Mutation,
            OperationType::Subscription => RootKind::Subscription,
        };
        let roots = &self.engine.model().roots;
        let position = roots.iter().position(|root| root.root == kind && root.name == name);
        let Some(binding) = position.map(|position| self.engine.bindings()[position].clone()) else {
            return Does::Missing(format!("no resolver for `{name}`"));
        };
        match binding {
            Binding::Missing(why) => Does::Missing(why),
            Binding::Registered(resolver) => {
                let arguments = self.arguments(first);
                Does::Registered { resolver, arguments, slot: self.slot(first.ty(), group) }
            }
            Binding::Builtin(builtin) => Does::Builtin(self.builtin(builtin, first, group)),
        }
    }

    fn builtin(&mut self, builtin: Arc<Builtin>, first: &Node, group: &Group<'a>) -> BuiltinRoot {
        let name = self.engine.model().record(builtin.record).name.clone();
        let (gives, selection) = match builtin.gives {
            Gives::Record => {
                let object = self.record(&name, group);
                let selection = object.reads.selection();
                (Shape::Record(object), selection)
            }
            Gives::List => {
                let object = self.record(&name, group);
                let selection = object.reads.selection();
                let required = first.ty().item_type().is_non_null();
                (Shape::List(Slot { required, output: Output::Object(object.clone()) }, object), selection)
            }
            Gives::Connection => {
                let connection = self.connection(builtin.record, first.ty().inner_named_type(), group);
                let selection = connection.reads.selection();
                (Shape::Connection(Arc::new(connection)), selection)
            }
            Gives::Id => (Shape::Id, Selection::default()),
            Gives::Boolean => (Shape::Boolean, Selection::default()),
        };
        debug_assert!(builtin.gives != Gives::Connection || builtin.verb == Verb::List);
        let arguments = self.arguments(first);
        BuiltinRoot { builtin, record_name: name, arguments, gives, selection: Arc::new(selection) }
    }

    pub fn arguments(&self, field: &Node) -> Arguments {
        let schema = &self.engine.model().schema;
        Arguments::read(schema, self.declared, &field.definition.arguments, &field.arguments)
    }

    /// A record that the store reads whole, with its children.
    pub fn record(&mut self, name: &str, group: &Group<'a>) -> Arc<Object> {
        let mut reads = Reads::default();
        let object = self.object(name, group, &mut reads);
        Arc::new(Object { reads, ..object })
    }
}
