//! Runs a planned operation: what the store can answer goes there in one call, the answer is written as rows are read.

use std::sync::Arc;

use crate::describe::introspection::Introspection;
use crate::execute::response::{Answering, Running};
use crate::plan::roots::{BuiltinRoot, Does, Plan, Shape};
use crate::plan::variables::Variables;
use crate::resolve::run::Resolving;
use crate::response_error;
use crate::response_error::Failure;
use trefoil_engine::{Actor, Count, Done, Engine, Image, Key, Operation, Request, State, answer_as};
use trefoil_model::error::{Cause, Error, Result};

/// Room that is made for an answer beforehand: one that was larger once need not be so again.
const LARGEST: usize = 1 << 20;

/// Everything one execution needs.
pub struct Execution<'a> {
    pub engine: &'a Engine,
    pub plan: Arc<Plan>,
    pub variables: Variables,
    pub key: Option<Key>,
    pub actor: Actor,
    /// The change that a subscription tells of.
    pub image: Option<Image>,
}

/// The bytes of a response that began to execute.
pub struct Executed {
    pub body: Vec<u8>,
    /// Nothing failed.
    pub whole: bool,
    /// The state of the data that it was read after, where it may be given again.
    pub before: Option<State>,
    /// It is the answer to an earlier request with the same key.
    pub replayed: bool,
    /// Of its failures, for the log.
    pub causes: Vec<Cause>,
}

/// Why nothing was executed.
pub enum Refused {
    Request(Vec<Failure>),
    Whole(Error),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refused::Request(vec![failure])
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Whole(error)
    }
}

impl Execution<'_> {
    pub async fn run(mut self) -> Result<Executed, Refused> {
        if let Some(failure) = &self.plan.broken {
            let mut body = b"{\"data\":null,\"errors\":".to_vec();
            response_error::write_all(&mut body, [failure]);
            body.push(b'}');
            return Ok(Executed { body, whole: false, before: None, replayed: false, causes: Vec::new() });
        }
        let capacity = self.plan.size.load(std::sync::atomic::Ordering::Relaxed).min(LARGEST) + 64;
        let mut answering = Answering::new(self.plan.clone(), capacity);
        self.answer_constants(&mut answering);
        if self.plan.live {
            return self.run_live(answering).await;
        }
        let (operations, running) = self.operations(|_| true);
        if operations.is_empty() {
            return Ok(answering.finish());
        }
        answering.expect(running);
        let request = Request { answer: Box::new(answering), key: self.key.take(), atomic: false };
        match self.engine.run(operations, request).await? {
            Done::Answered(answer) => Ok(answer_as::<Answering>(answer)?.finish()),
            Done::Replayed(body) => {
                Ok(Executed { body, whole: false, before: None, replayed: true, causes: Vec::new() })
            }
        }
    }

    /// Root fields that neither the store nor a resolver has a part in.
    fn answer_constants(&self, answering: &mut Answering) {
        for (position, root) in self.plan.roots.iter().enumerate() {
            match &root.does {
                Does::Typename(name) => answering.root(position, |writer, _, _| {
                    writer.out.extend_from_slice(name);
                    Ok(())
                }),
                Does::Missing(why) => {
                    answering.root(position, |writer, root, at| writer.missing(root.required, why, at))
                }
                Does::Introspection { arguments, slot } => {
                    let (schema, variables) = (&self.engine.model().schema, &self.variables);
                    let introspection = Introspection { schema, variables };
                    answering
                        .root(position, |writer, _, at| introspection.write(writer, slot, arguments, at));
                }
                Does::Builtin(_) | Does::Registered { .. } => {}
            }
        }
    }

    /// What the store is asked for the root fields that `wanted` picks.
    pub fn operations(&self, wanted: impl Fn(usize) -> bool) -> (Vec<Result<Operation>>, Vec<Running>) {
        let roots = self.plan.roots.iter().enumerate().filter(|(position, _)| wanted(*position));
        let operations = roots.filter_map(|(position, root)| match &root.does {
            Does::Builtin(builtin) => {
                let operation = self.operation(builtin);
                let running = Running::new(self.engine.model(), position, &operation);
                Some((operation, running))
            }
            Does::Typename(_) | Does::Introspection { .. } | Does::Registered { .. } | Does::Missing(_) => {
                None
            }
        });
        operations.unzip()
    }

    fn operation(&self, root: &BuiltinRoot) -> Result<Operation> {
        if let Some(image) = &self.image {
            let (record, selection) = (root.builtin.record, root.selection.clone());
            return Ok(Operation::Changed { record, image: image.clone(), selection });
        }
        let values = root.arguments.by_position(&self.variables)?;
        let (model, limits) = (self.engine.model(), self.engine.limits());
        let mut operation = root.builtin.operation(model, limits, values, root.selection.clone())?;
        if let (Operation::List { listing, .. }, Shape::Connection(connection)) =
            (&mut operation, &root.gives)
        {
            listing.count = if connection.counted { Count::Exact } else { Count::No };
            listing.cursors = connection.cursors;
        }
        Ok(operation)
    }

    async fn run_live(self, answering: Answering) -> Result<Executed, Refused> {
        if self.key.is_some() && self.plan.kind == apollo_compiler::executable::OperationType::Mutation {
            let message =
                "an Idempotency-Key cannot be honoured for fields that a registered resolver answers";
            return Err(Failure::new("IDEMPOTENCY_KEY_UNSUPPORTED", message).into());
        }
        let answering = Resolving::new(&self).run(answering).await?;
        Ok(answering.finish())
    }
}
