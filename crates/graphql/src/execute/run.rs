//! Runs a planned operation: one call to the engine for all store operations, the response written as rows are read.

use std::sync::atomic::Ordering;

use apollo_compiler::executable::OperationType;

use trefoil_engine::{EngineRequest, JobResult, downcast_sink};

use crate::execute::execution::{ExecutionError, OperationExecution, StoreOperations};
use crate::execute::hidden_fields::hidden_selections;
use crate::execute::response::ResponseBuilder;
use crate::plan::roots::RootAction;
use crate::registered_resolvers::run::ResolverExecution;
use crate::reply::ExecutedResponse;
use crate::response_error::{self, ErrorNotes, ResponseError};

/// Maximum preallocation for a response: a large last response does not mean that the next is large, too.
const MAX_PREALLOCATION: usize = 1 << 20;

impl OperationExecution<'_> {
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
                notes: ErrorNotes::default(),
            });
        }
        if self.plan.atomic {
            self.check_atomic()?;
        }
        let capacity = self.plan.last_response_bytes.load(Ordering::Relaxed).min(MAX_PREALLOCATION) + 64;
        // Boxed for the store from the beginning: it is large, and would be moved.
        let mut builder = Box::new(ResponseBuilder::new(self.plan.clone(), capacity));
        if let Some(view) = self.engine.access_view() {
            builder.set_hidden_fields(hidden_selections(self.engine.model(), view, &self.plan));
        }
        self.write_constants(&mut builder);
        if self.plan.uses_resolvers {
            return self.run_with_resolvers(*builder).await;
        }
        let StoreOperations { operations, pending, abstracts } = self.store_operations(|_| true);
        builder.set_pending(pending, abstracts);
        if operations.is_empty() {
            return Ok(builder.finish());
        }
        let request =
            EngineRequest { sink: builder, idempotency_key: self.key.take(), atomic: self.plan.atomic };
        match self.engine.run(operations, request).await? {
            JobResult::Completed(sink) => Ok(downcast_sink::<ResponseBuilder>(sink)?.finish()),
            JobResult::Replayed(body) => Ok(ExecutedResponse {
                body,
                error_free: false,
                data_version: None,
                replayed: true,
                notes: ErrorNotes::default(),
            }),
        }
    }

    /// Refuses an atomic operation with a field that the store cannot undo or answer.
    fn check_atomic(&self) -> Result<(), ExecutionError> {
        for root in &self.plan.roots {
            let name = &root.label.name;
            if let RootAction::Missing(why) = &root.action {
                return Err(ResponseError::new("RESOLVER_NOT_FOUND", why).into());
            }
            if root.uses_resolvers() {
                let field = match root.action {
                    RootAction::Registered { .. } => format!("`{name}`"),
                    RootAction::Typename(_)
                    | RootAction::Introspection { .. }
                    | RootAction::Builtin(_)
                    | RootAction::Abstract(_)
                    | RootAction::Missing(_) => format!("a field that is selected of `{name}`"),
                };
                let message = format!(
                    "{field} has a registered resolver, which @atomic cannot undo; leave it out or leave @atomic out"
                );
                return Err(ResponseError::new("ATOMIC_UNSUPPORTED", message)
                    .with_locations(&root.label.locations)
                    .into());
            }
        }
        Ok(())
    }

    async fn run_with_resolvers(self, builder: ResponseBuilder) -> Result<ExecutedResponse, ExecutionError> {
        if self.key.is_some() && self.plan.kind == OperationType::Mutation {
            let message = "Idempotency-Key is not supported for fields with a registered resolver";
            return Err(ResponseError::new("IDEMPOTENCY_KEY_UNSUPPORTED", message).into());
        }
        let mut builder = ResolverExecution::new(&self).run(builder).await?;
        Ok(builder.finish())
    }
}
