//! Runs a planned operation: what the store can answer goes there in one call, the answer is written as rows are read.

use std::sync::Arc;

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

/// Room that is made for an answer beforehand: one that was larger once need not be so again.
const MAX_PREALLOCATION: usize = 1 << 20;

/// Everything one execution needs.
pub struct Execution<'a> {
    pub engine: &'a Engine,
    pub plan: Arc<OperationPlan>,
    pub variables: VariableValues,
    pub key: Option<IdempotencyKey>,
    pub actor: Actor,
    /// The change that a subscription tells of.
    pub image: Option<RecordImage>,
}

/// The bytes of a response that began to execute.
pub struct ExecutedResponse {
    pub body: Vec<u8>,
    /// Nothing failed.
    pub error_free: bool,
    /// The state of the data that it was read after, where it may be given again.
    pub data_version: Option<DataVersion>,
    /// It is the answer to an earlier request with the same key.
    pub replayed: bool,
    /// Of its failures, for the log.
    pub causes: Vec<Cause>,
}

/// Why nothing was executed.
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
        let capacity =
            self.plan.last_response_bytes.load(std::sync::atomic::Ordering::Relaxed).min(MAX_PREALLOCATION)
                + 64;
        let mut answering = ResponseBuilder::new(self.plan.clone(), capacity);
        self.write_constants(&mut answering);
        if self.plan.uses_resolvers {
            return self.run_with_resolvers(answering).await;
        }
        let (operations, running) = self.store_operations(|_| true);
        if operations.is_empty() {
            return Ok(answering.finish());
        }
        answering.set_pending(running);
        let request =
            EngineRequest { sink: Box::new(answering), idempotency_key: self.key.take(), atomic: false };
        match self.engine.run(operations, request).await? {
            JobResult::Completed(answer) => Ok(downcast_sink::<ResponseBuilder>(answer)?.finish()),
            JobResult::Replayed(body) => Ok(ExecutedResponse {
                body,
                error_free: false,
                data_version: None,
                replayed: true,
                causes: Vec::new(),
            }),
        }
    }

    /// Root fields that neither the store nor a resolver has a part in.
    fn write_constants(&self, answering: &mut ResponseBuilder) {
        for (position, root) in self.plan.roots.iter().enumerate() {
            match &root.action {
                RootAction::Typename(name) => answering.write_root(position, |writer, _, _| {
                    writer.out.extend_from_slice(name);
                    Ok(())
                }),
                RootAction::Missing(why) => answering.write_root(position, |writer, root, at| {
                    writer.fail_missing_resolver(root.required, why, at)
                }),
                RootAction::Introspection { arguments, slot } => {
                    let (schema, variables) = (&self.engine.model().schema, &self.variables);
                    let introspection = Introspection { schema, variables };
                    answering.write_root(position, |writer, _, at| {
                        introspection.write(writer, slot, arguments, at)
                    });
                }
                RootAction::Builtin(_) | RootAction::Registered { .. } => {}
            }
        }
    }

    /// What the store is asked for the root fields that `wanted` picks.
    pub fn store_operations(
        &self,
        wanted: impl Fn(usize) -> bool,
    ) -> (Vec<Result<Operation>>, Vec<PendingRoot>) {
        let roots = self.plan.roots.iter().enumerate().filter(|(position, _)| wanted(*position));
        let operations = roots.filter_map(|(position, root)| match &root.action {
            RootAction::Builtin(builtin) => {
                let operation = self.store_operation(builtin);
                let running = PendingRoot::new(self.engine.model(), position, &operation);
                Some((operation, running))
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

    async fn run_with_resolvers(
        self,
        answering: ResponseBuilder,
    ) -> Result<ExecutedResponse, ExecutionError> {
        if self.key.is_some() && self.plan.kind == apollo_compiler::executable::OperationType::Mutation {
            let message =
                "an Idempotency-Key cannot be honoured for fields that a registered resolver answers";
            return Err(ResponseError::new("IDEMPOTENCY_KEY_UNSUPPORTED", message).into());
        }
        let answering = ResolverExecution::new(&self).run(answering).await?;
        Ok(answering.finish())
    }
}
