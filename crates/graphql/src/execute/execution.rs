//! The inputs of one execution, the root fields that need no store, and the operations for those that do.

use std::sync::Arc;

use apollo_compiler::Schema;

use trefoil_engine::{Actor, CountMode, Engine, IdempotencyKey, Operation, RecordChange, RecordMerge};
use trefoil_model::RootType;
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, Result};

use crate::describe::actor_schema::ActorSchema;
use crate::describe::introspection::Introspection;
use crate::execute::abstract_results::AbstractResults;
use crate::execute::payload::ChangeSummary;
use crate::execute::pending_root::{PendingRoot, list_page_id};
use crate::execute::response::ResponseBuilder;
use crate::plan::abstract_root::{AbstractRoot, MemberShape};
use crate::plan::roots::{BuiltinRootField, OperationPlan, RootAction, RootShape};
use crate::plan::variable_values::VariableValues;
use crate::response_error::ResponseError;

/// The inputs of one execution.
pub struct OperationExecution<'a> {
    pub engine: &'a Engine,
    pub plan: Arc<OperationPlan>,
    pub variables: VariableValues,
    pub key: Option<IdempotencyKey>,
    pub actor: Actor,
    /// The change, for an event of a subscription.
    pub change: Option<&'a RecordChange>,
    /// What the actor is told of the schema, if the operation asks and that is not all of it.
    pub described: Option<Arc<ActorSchema>>,
}

/// The reason why an operation was not executed.
pub enum ExecutionError {
    Request(Vec<ResponseError>),
    Engine(Error),
}

impl From<ResponseError> for ExecutionError {
    fn from(failure: ResponseError) -> Self {
        ExecutionError::Request(vec![failure])
    }
}

impl From<Error> for ExecutionError {
    fn from(error: Error) -> Self {
        ExecutionError::Engine(error)
    }
}

/// The operations for the store, and what is needed to write their results.
pub struct StoreOperations {
    pub operations: Vec<Result<Operation>>,
    /// By operation.
    pub pending: Vec<PendingRoot>,
    /// By root field over several types.
    pub abstracts: Vec<AbstractResults>,
}

impl OperationExecution<'_> {
    /// Writes root fields that need neither the store nor a resolver.
    pub fn write_constants(&self, builder: &mut ResponseBuilder) {
        for (position, root) in self.plan.roots.iter().enumerate() {
            match &root.action {
                RootAction::Typename(name) => builder.write_root(position, |writer, _, _| {
                    writer.out.extend_from_slice(name);
                    Ok(())
                }),
                RootAction::Missing(why) => builder.write_root(position, |writer, root, at| {
                    writer.fail_missing_resolver(root.required, why, at)
                }),
                RootAction::Introspection { arguments, slot } => {
                    let whole: &Schema = &self.engine.model().schema;
                    let schema = self.described.as_ref().map_or(whole, |described| &described.schema);
                    let variables = &self.variables;
                    let introspection = Introspection { schema, variables };
                    builder.write_root(position, |writer, _, at| {
                        introspection.write(writer, slot, arguments, at)
                    });
                }
                RootAction::Builtin(_) | RootAction::Abstract(_) | RootAction::Registered { .. } => {}
            }
        }
    }

    /// The store operations of the root fields that `include` selects.
    pub fn store_operations(&self, include: impl Fn(usize) -> bool) -> StoreOperations {
        let count = self.plan.roots.len();
        let mut calls = StoreOperations {
            operations: Vec::with_capacity(count),
            pending: Vec::with_capacity(count),
            abstracts: Vec::new(),
        };
        for (position, root) in self.plan.roots.iter().enumerate().filter(|(position, _)| include(*position))
        {
            match &root.action {
                RootAction::Builtin(builtin) => {
                    let operation = match &root.mistake {
                        Some(_) => Err(Error::RolledBack),
                        None => self.store_operation(builtin),
                    };
                    let model = self.engine.model();
                    let mut pending = PendingRoot::new(model, position, &operation);
                    if let (Some(change), RootShape::Payload(_)) = (self.change, &builtin.shape) {
                        pending.change =
                            Some(ChangeSummary::new(model.record(builtin.builtin.record), change));
                    }
                    pending.client_mutation_id = self.client_mutation_id(builtin);
                    if let (RootShape::Connection(connection), Ok(Operation::List { listing, .. })) =
                        (&builtin.shape, &operation)
                    {
                        pending.page_id = connection.needs_page_id.then(|| list_page_id(listing));
                    }
                    calls.operations.push(operation);
                    calls.pending.push(pending);
                }
                RootAction::Abstract(root) => self.add_abstract(position, root, &mut calls),
                RootAction::Typename(_)
                | RootAction::Introspection { .. }
                | RootAction::Registered { .. }
                | RootAction::Missing(_) => {}
            }
        }
        calls
    }

    /// Adds an operation for each record type of a root field over several.
    fn add_abstract(&self, position: usize, root: &AbstractRoot, calls: &mut StoreOperations) {
        let (model, limits) = (self.engine.model(), self.engine.limits());
        let values = root.arguments.values_by_position(&self.variables);
        let request = values
            .and_then(|values| root.operation.build_request(model, limits, &values, &root.selections()));
        let (operations, merge) = match request {
            Ok(request) => {
                // The records of types that may never be read are not there; where there are no others, that is told.
                let is_open = |(member, _): &(usize, Operation)| {
                    self.engine.may(AccessAction::Read, root.operation.members[*member].record)
                };
                let mut operations = request.operations;
                if operations.iter().any(is_open) {
                    operations.retain(is_open);
                }
                let operations = operations.into_iter();
                (operations.map(|(member, operation)| (member, Ok(operation))).collect(), request.merge)
            }
            Err(error) => (vec![(0, Err(error))], RecordMerge::default()),
        };
        let mut results = AbstractResults::new(position, operations.len(), merge);
        for (member, mut operation) in operations {
            if let (Ok(Operation::List { listing, .. }), MemberShape::Connection(connection)) =
                (&mut operation, &root.members[member].shape)
            {
                listing.count = if connection.needs_total { CountMode::Exact } else { CountMode::Skip };
            }
            let mut pending = PendingRoot { member, ..PendingRoot::new(model, position, &operation) };
            results.set_cursors(member, pending.cursors.take());
            calls.operations.push(operation);
            calls.pending.push(pending);
        }
        calls.abstracts.push(results);
    }

    fn client_mutation_id(&self, root: &BuiltinRootField) -> Option<String> {
        let RootShape::Payload(payload) = &root.shape else { return None };
        let values = || root.arguments.values_by_position(&self.variables).ok();
        let values = payload.has_client_mutation_id().then(values).flatten()?;
        root.builtin.client_mutation_id(&values)
    }

    fn store_operation(&self, root: &BuiltinRootField) -> Result<Operation> {
        if let Some(change) = self.change {
            let (record, selection) = (root.builtin.record, root.selection.clone());
            return Ok(Operation::ReadImage { record, image: change.image.clone(), selection });
        }
        if root.builtin.is_own_account {
            let identity = self.engine.access_view().and_then(|view| view.identity.as_ref());
            let account = identity.and_then(|identity| identity.account.as_ref());
            return Ok(root.builtin.own_account(account.map(|account| &account.id), root.selection.clone()));
        }
        // Who may read nothing of it is told nothing of its names either.
        if root.builtin.verb.root_kind() == RootType::Query {
            self.engine.require(AccessAction::Read, root.builtin.record)?;
        }
        let (model, limits) = (self.engine.model(), self.engine.limits());
        if let Some((position, value)) = root.arguments.only_variable(&self.variables)
            && let Some(look_up) = root.builtin.build_look_up(model, position, value, &root.selection)
        {
            return Ok(look_up);
        }
        let values = root.arguments.values_by_position(&self.variables)?;
        if let RootShape::Groups(groups) = &root.shape {
            return root.builtin.build_aggregate(model, limits, values, groups.measures());
        }
        let mut operation = root.builtin.build_operation(model, limits, values, root.selection.clone())?;
        if let (Operation::List { listing, .. }, RootShape::Connection(connection)) =
            (&mut operation, &root.shape)
        {
            listing.count = if connection.needs_total { CountMode::Exact } else { CountMode::Skip };
            listing.with_cursors = connection.needs_cursors;
        }
        Ok(operation)
    }
}
