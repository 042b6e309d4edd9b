//! The plan of an operation: its root fields and the source of each, made once and stored with the document.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use apollo_compiler::ExecutableDocument;
use apollo_compiler::executable::{Field, Operation, OperationType};

use trefoil_engine::{
    BuiltinOperation, Engine, OperationVerb, PreparedSelection, ResolverBinding, ResolverFn, ResultShape,
    Selection,
};
use trefoil_model::RootType;
use trefoil_model::sdl::directives::ATOMIC_DIRECTIVE;

use crate::plan::abstract_root::AbstractRoot;
use crate::plan::collect::{FieldGroup, collect_fields, field_label};
use crate::plan::input::FieldArguments;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::{
    ConnectionShape, GroupsShape, ObjectShape, OutputShape, PayloadShape, RecordReads, ResponseLabel,
    ValueSlot, is_number_as_text,
};
use crate::plan::variable_values::VariableValues;
use crate::response_error::ResponseError;

/// A planned operation.
pub struct OperationPlan {
    pub kind: OperationType,
    /// `mutation @atomic`: all root fields or none.
    pub atomic: bool,
    pub roots: Vec<PlannedRoot>,
    /// Arguments of relations depend on variables, so the plan is valid for one request only.
    pub single_use: bool,
    /// A field of the operation has a registered resolver.
    pub uses_resolvers: bool,
    /// The response depends on stored data only, and costs more than a check whether the data changed.
    pub cacheable: bool,
    /// The error of a null `@skip` or `@include` condition at the root.
    pub selection_error: Option<ResponseError>,
    /// Number of fields with fragments expanded, an estimate of the plan's memory.
    pub field_count: usize,
    /// Size of the last response, used to allocate the next.
    pub last_response_bytes: AtomicUsize,
}

pub struct PlannedRoot {
    pub label: ResponseLabel,
    pub required: bool,
    pub action: RootAction,
    /// A mistake in what a write selects of its result, which refuses it before anything is written.
    pub mistake: Option<ResponseError>,
}

/// The source of a root field.
pub enum RootAction {
    Typename(Vec<u8>),
    /// `__schema` or `__type`.
    Introspection {
        arguments: FieldArguments,
        slot: ValueSlot,
    },
    Builtin(BuiltinRootField),
    Abstract(AbstractRoot),
    Registered {
        resolver: ResolverFn,
        arguments: FieldArguments,
        slot: ValueSlot,
    },
    Missing(String),
}

/// The root type whose fields an operation selects.
pub fn root_kind(kind: OperationType) -> RootType {
    match kind {
        OperationType::Query => RootType::Query,
        OperationType::Mutation => RootType::Mutation,
        OperationType::Subscription => RootType::Subscription,
    }
}

/// A root field that a built-in operation answers.
pub struct BuiltinRootField {
    pub builtin: Arc<BuiltinOperation>,
    pub record_name: String,
    /// Its ids are global.
    pub has_global_ids: bool,
    pub arguments: FieldArguments,
    pub shape: RootShape,
    pub selection: Arc<PreparedSelection>,
}

impl BuiltinRootField {
    /// The record type, if its ids are global.
    pub fn global_type(&self) -> Option<&str> {
        self.has_global_ids.then_some(self.record_name.as_str())
    }
}

/// The result of a built-in operation.
pub enum RootShape {
    Record(Arc<ObjectShape>),
    /// With the slot of an element.
    List(ValueSlot, Arc<ObjectShape>),
    Connection(Arc<ConnectionShape>),
    Payload(Arc<PayloadShape>),
    /// The id of the written record, as a number if the type is `Int`.
    Id {
        is_number: bool,
    },
    Boolean,
    Nothing,
    /// A number, as text if the scalar is so written.
    Count {
        is_text: bool,
    },
    Groups(GroupsShape),
}

impl RootShape {
    fn uses_resolvers(&self) -> bool {
        match self {
            RootShape::Record(object) | RootShape::List(_, object) => object.uses_resolvers,
            RootShape::Connection(connection) => connection.uses_resolvers,
            RootShape::Payload(payload) => payload.uses_resolvers,
            RootShape::Id { .. }
            | RootShape::Boolean
            | RootShape::Nothing
            | RootShape::Count { .. }
            | RootShape::Groups(_) => false,
        }
    }
}

impl PlannedRoot {
    pub fn uses_resolvers(&self) -> bool {
        match &self.action {
            RootAction::Registered { .. } => true,
            RootAction::Builtin(root) => root.shape.uses_resolvers(),
            RootAction::Abstract(root) => root.uses_resolvers(),
            RootAction::Typename(_) | RootAction::Introspection { .. } | RootAction::Missing(_) => false,
        }
    }
}

/// Single records are not cached: reading them is as fast, and there are many.
fn is_cacheable(roots: &[PlannedRoot]) -> bool {
    let is_expensive = |root: &PlannedRoot| match &root.action {
        RootAction::Builtin(root) => {
            matches!(root.builtin.verb, OperationVerb::List | OperationVerb::Count | OperationVerb::Aggregate)
                || !root.selection.children.is_empty()
        }
        RootAction::Abstract(root) => root.operation.verb != OperationVerb::Get,
        RootAction::Introspection { .. } => true,
        RootAction::Typename(_) | RootAction::Registered { .. } | RootAction::Missing(_) => false,
    };
    !roots.iter().any(PlannedRoot::uses_resolvers) && roots.iter().any(is_expensive)
}

impl OperationPlan {
    pub fn new(
        engine: &Engine,
        document: &ExecutableDocument,
        operation: &Operation,
        variables: &VariableValues,
    ) -> Result<OperationPlan, ResponseError> {
        let mut planner = OperationPlanner {
            engine,
            document,
            variable_definitions: &operation.variables,
            variables,
            single_use: false,
            field_count: 0,
            conflict: None,
            objects: HashMap::new(),
            path: Vec::new(),
            mistake: None,
        };
        let type_name = operation.object_type();
        let (groups, selection_error) = collect_fields(&mut planner, type_name, [&operation.selection_set]);
        let roots: Vec<PlannedRoot> = groups
            .iter()
            .map(|group| planner.plan_root(operation.operation_type, type_name, group))
            .collect();
        match planner.conflict {
            Some(failure) => Err(failure),
            None => Ok(OperationPlan {
                kind: operation.operation_type,
                atomic: operation.directives.has(ATOMIC_DIRECTIVE),
                uses_resolvers: roots.iter().any(PlannedRoot::uses_resolvers),
                cacheable: operation.operation_type == OperationType::Query && is_cacheable(&roots),
                roots,
                single_use: planner.single_use,
                field_count: planner.field_count,
                selection_error,
                last_response_bytes: AtomicUsize::new(0),
            }),
        }
    }
}

impl<'a> OperationPlanner<'a> {
    fn plan_root(&mut self, kind: OperationType, type_name: &str, group: &FieldGroup<'a>) -> PlannedRoot {
        let first = group.nodes[0];
        let action = match first.name.as_str() {
            "__typename" => RootAction::Typename(format!("\"{type_name}\"").into_bytes()),
            "__schema" | "__type" => RootAction::Introspection {
                arguments: self.read_arguments(first),
                slot: self.plan_slot(first.ty(), group),
            },
            name => self.inside(group.nodes[0].response_key(), |planner| {
                planner.plan_binding(kind, name, first, group)
            }),
        };
        let mistake = self.mistake.take().filter(|_| kind == OperationType::Mutation);
        let (label, required) = (field_label(self, type_name, group), first.ty().is_non_null());
        PlannedRoot { label, required, action, mistake }
    }

    fn plan_binding(
        &mut self,
        kind: OperationType,
        name: &str,
        first: &Field,
        group: &FieldGroup<'a>,
    ) -> RootAction {
        let kind = root_kind(kind);
        let roots = &self.engine.model().root_fields;
        let position = roots.iter().position(|root| root.root_kind == kind && root.name == name);
        let Some(binding) = position.map(|position| self.engine.bindings()[position].clone()) else {
            return RootAction::Missing(format!("no resolver for `{name}`"));
        };
        match binding {
            ResolverBinding::Missing(why) => RootAction::Missing(why),
            ResolverBinding::Registered(resolver) => {
                let arguments = self.read_arguments(first);
                RootAction::Registered { resolver, arguments, slot: self.plan_slot(first.ty(), group) }
            }
            ResolverBinding::Builtin(builtin) => {
                RootAction::Builtin(self.plan_builtin(builtin, first, group))
            }
            ResolverBinding::Abstract(operation) => {
                RootAction::Abstract(self.plan_abstract(operation, first, group))
            }
        }
    }

    fn plan_builtin(
        &mut self,
        builtin: Arc<BuiltinOperation>,
        first: &Field,
        group: &FieldGroup<'a>,
    ) -> BuiltinRootField {
        let model = self.engine.model().clone();
        let record_name = model.record(builtin.record).name.clone();
        let result_type = model.success_type(first.ty().inner_named_type());
        let (shape, selection) = match builtin.result_shape {
            ResultShape::Record => {
                let object = self.plan_record(&record_name, group);
                let selection = object.reads.selection();
                (RootShape::Record(object), selection)
            }
            ResultShape::List => {
                let object = self.plan_record(&record_name, group);
                let selection = object.reads.selection();
                let required = first.ty().item_type().is_non_null();
                (
                    RootShape::List(
                        ValueSlot { required, output: OutputShape::Object(object.clone()) },
                        object,
                    ),
                    selection,
                )
            }
            ResultShape::Connection => {
                let connection = self.plan_connection(builtin.record, builtin.first_page, result_type, group);
                let selection = connection.reads.selection();
                (RootShape::Connection(Arc::new(connection)), selection)
            }
            ResultShape::Payload => {
                let payload = self.plan_payload(&record_name, result_type, group);
                let selection = payload.reads.selection();
                (RootShape::Payload(Arc::new(payload)), selection)
            }
            ResultShape::Id => {
                let is_number = first.ty().inner_named_type() == "Int";
                (RootShape::Id { is_number }, Selection::default())
            }
            ResultShape::Groups => {
                let slot = self.plan_slot(first.ty().item_type(), group);
                let groups = GroupsShape::new(self.engine.model(), builtin.record, slot);
                (RootShape::Groups(groups), Selection::default())
            }
            ResultShape::Boolean => (RootShape::Boolean, Selection::default()),
            ResultShape::Nothing => (RootShape::Nothing, Selection::default()),
            ResultShape::Count => {
                let is_text = is_number_as_text(first.ty().inner_named_type());
                (RootShape::Count { is_text }, Selection::default())
            }
        };
        debug_assert!(builtin.result_shape != ResultShape::Connection || builtin.verb == OperationVerb::List);
        let arguments = self.read_arguments(first);
        let has_global_ids = self.engine.model().record(builtin.record).has_global_ids;
        let selection = PreparedSelection::new(selection);
        BuiltinRootField { builtin, record_name, has_global_ids, arguments, shape, selection }
    }

    pub fn read_arguments(&self, field: &Field) -> FieldArguments {
        let schema = &self.engine.model().schema;
        FieldArguments::read(schema, self.variable_definitions, &field.definition.arguments, &field.arguments)
    }

    /// The shape of a record that the store reads together with its children.
    pub fn plan_record(&mut self, name: &str, group: &FieldGroup<'a>) -> Arc<ObjectShape> {
        let mut reads = RecordReads::default();
        let object = self.plan_object(name, group, &mut reads);
        Arc::new(ObjectShape { reads, ..object })
    }
}
