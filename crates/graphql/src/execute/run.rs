//! Runs a planned operation: one call to the engine for all store operations, the response written as rows are read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apollo_compiler::executable::OperationType;

use trefoil_engine::{
    Actor, CountMode, DataVersion, Engine, EngineRequest, IdempotencyKey, JobResult, Operation, RecordImage,
    downcast_sink,
};
use trefoil_model::error::{Cause, Error, Result};

use crate::describe::introspection::Introspection;
use crate::execute::response::{PendingRoot, ResponseBuilder};
use crate::plan::roots::{BuiltinRoot, OperationPlan, RootAction, RootShape};
use crate::plan::variables::VariableValues;
use crate::resolve::run::ResolverExecution;
use crate::response_error::{self, ResponseError};

/// Maximum preallocation for a response: a large last response does not mean that the next is large, too.
const MAX_PREALLOCATION: usize = 1 << 20;

/// The inputs of one execution.
pub struct Execution<'a> {
    pub engine: &'a Engine,
    pub plan: Arc<OperationPlan>,
    pub variables: VariableValues,
    pub key: Option<IdempotencyKey>,
    pub actor: Actor,
    /// The changed record, for an event of a subscription.
    pub image: Option<RecordImage>,
}

/// The response of an operation that was executed.
pub struct ExecutedResponse {
    pub body: Vec<u8>,
    /// It has no `errors`.
    pub error_free: bool,
    /// The data version from before the read, if the response may be cached.
    pub data_version: Option<DataVersion>,
    /// The response of an earlier request with the same idempotency key.
    pub replayed: bool,
    /// The causes of its errors, for the log.
    pub causes: Vec<Cause>,
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

impl Execution<'_> {
    pub async fn run(mut self) -> Result<ExecutedResponse, ExecutionError> {
        if let Some(failure) = &self.plan.selection_error {
            let mut body = b"{\"data\":null,\"errors\":".to_vec();
            response_error::write_errors(&mut body, [failure]);
            body.push(b'}');
            return Ok(ExecutedResponse {
                body,
                error_free: false,
                data_version: None,
                replayed: false,
                causes: Vec::new(),
            });
        }
        let capacity = self.plan.last_response_bytes.load(Ordering::Relaxed).min(MAX_PREALLOCATION) + 64;
        let mut builder = ResponseBuilder::new(self.plan.clone(), capacity);
        self.write_constants(&mut builder);
        if self.plan.uses_resolvers {
            return self.run_with_resolvers(builder).await;
        }
        let (operations, pending) = self.store_operations(|_| true);
        if operations.is_empty() {
            return Ok(builder.finish());
        }
        builder.set_pending(pending);
        let request =
            EngineRequest { sink: Box::new(builder), idempotency_key: self.key.take(), atomic: false };
        match self.engine.run(operations, request).await? {
            JobResult::Completed(sink) => Ok(downcast_sink::<ResponseBuilder>(sink)?.finish()),
            JobResult::Replayed(body) => Ok(ExecutedResponse {
                body,
                error_free: false,
                data_version: None,
                replayed: true,
                causes: Vec::new(),
            }),
        }
    }

    /// Writes root fields that need neither the store nor a resolver.
    fn write_constants(&self, builder: &mut ResponseBuilder) {
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
                    let (schema, variables) = (&self.engine.model().schema, &self.variables);
                    let introspection = Introspection { schema, variables };
                    builder.write_root(position, |writer, _, at| {
                        introspection.write(writer, slot, arguments, at)
                    });
                }
                RootAction::Builtin(_) | RootAction::Registered { .. } => {}
            }
        }
    }

    /// The store operations of the root fields that `include` selects.
    pub fn store_operations(
        &self,
        include: impl Fn(usize) -> bool,
    ) -> (Vec<Result<Operation>>, Vec<PendingRoot>) {
        let roots = self.plan.roots.iter().enumerate().filter(|(position, _)| include(*position));
        let operations = roots.filter_map(|(position, root)| match &root.action {
            RootAction::Builtin(builtin) => {
                let operation = self.store_operation(builtin);
                let pending = PendingRoot::new(self.engine.model(), position, &operation);
                Some((operation, pending))
            }
            RootAction::Typename(_)
            | RootAction::Introspection { .. }
            | RootAction::Registered { .. }
            | RootAction::Missing(_) => None,
        });
        operations.unzip()
    }

    fn store_operation(&self, root: &BuiltinRoot) -> Result<Operation> {
        if let Some(image) = &self.image {
            let (record, selection) = (root.builtin.record, root.selection.clone());
            return Ok(Operation::ReadImage { record, image: image.clone(), selection });
        }
        let values = root.arguments.values_by_position(&self.variables)?;
        let (model, limits) = (self.engine.model(), self.engine.limits());
        let mut operation = root.builtin.build_operation(model, limits, values, root.selection.clone())?;
        if let (Operation::List { listing, .. }, RootShape::Connection(connection)) =
            (&mut operation, &root.shape)
        {
            listing.count = if connection.needs_total { CountMode::Exact } else { CountMode::Skip };
            listing.with_cursors = connection.needs_cursors;
        }
        Ok(operation)
    }

    async fn run_with_resolvers(self, builder: ResponseBuilder) -> Result<ExecutedResponse, ExecutionError> {
        if self.key.is_some() && self.plan.kind == OperationType::Mutation {
            let message = "Idempotency-Key is not supported for fields with a registered resolver";
            return Err(ResponseError::new("IDEMPOTENCY_KEY_UNSUPPORTED", message).into());
        }
        let builder = ResolverExecution::new(&self).run(builder).await?;
        Ok(builder.finish())
    }
}
