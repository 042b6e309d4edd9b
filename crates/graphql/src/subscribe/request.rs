//! A subscription request as it is kept to be planned again, and what its plan says of the one field it follows.

use std::sync::Arc;

use apollo_compiler::executable::OperationType;

use trefoil_engine::{Actor, ChangeFilter, OperationVerb};
use trefoil_model::Value;
use trefoil_model::error::PathSegment;

use crate::execute::run::ExecutionError;
use crate::over_http::request::GraphqlRequest;
use crate::plan::roots::{BuiltinRoot, OperationPlan, PlannedRoot, RootAction};
use crate::plan::variables::{self, VariableValues};
use crate::resolve::complete;
use crate::response_error::ResponseError;
use crate::service::GraphqlState;

/// What somebody asked to follow.
#[derive(Debug, Clone)]
pub struct SubscriptionRequest {
    query: String,
    operation_name: Option<String>,
    variables: Vec<(String, Value)>,
    pub actor: Actor,
}

/// A request that can be followed under one schema.
pub struct PlannedSubscription {
    pub plan: Arc<OperationPlan>,
    pub variables: VariableValues,
    pub filter: ChangeFilter,
}

impl SubscriptionRequest {
    pub fn new(asked: GraphqlRequest<'_>, actor: Actor) -> SubscriptionRequest {
        let mut variables = asked.variables;
        variables.sort_by(|(left, _), (right, _)| left.cmp(right));
        SubscriptionRequest {
            query: asked.query.into_owned(),
            operation_name: asked.operation_name.map(|name| name.into_owned()),
            variables,
            actor,
        }
    }

    /// Equal for two requests exactly when they ask the same, whoever asks.
    pub fn shared_key(&self) -> String {
        let operation = self.operation_name.as_deref();
        let mut key = format!("{:?} {} {}", operation, self.query.len(), self.query).into_bytes();
        complete::write_json(&mut key, &Value::Object(self.variables.clone()));
        String::from_utf8_lossy(&key).into_owned()
    }

    /// The same for requests that Rust code has a part in: it may answer one client otherwise than another.
    pub fn actor_key(&self) -> String {
        format!("{:?} {}", self.actor, self.shared_key())
    }

    pub fn plan(&self, served: &GraphqlState) -> Result<PlannedSubscription, Vec<ResponseError>> {
        let verdict = served.document_cache.get_or_parse(&self.query, || served.parse_document(&self.query));
        let document = verdict.as_ref().as_ref().map_err(Clone::clone)?;
        let one = |failure: ResponseError| vec![failure];
        let prepared = document.operation(self.operation_name.as_deref()).map_err(one)?;
        if prepared.operation_type() != OperationType::Subscription {
            return Err(one(ResponseError::new(
                "OPERATION_RESOLUTION_FAILURE",
                "the operation is no subscription",
            )));
        }
        let schema = &served.engine.model().schema;
        let variables = variables::coerce(schema, &prepared.declared_variables, self.variables.clone())?;
        let grown = |plan: &OperationPlan| served.document_cache.record_plan(&self.query, plan);
        let plan = prepared.plan(&served.engine, &served.settings, &document.executable, &variables, grown);
        let plan = plan.map_err(one)?;
        let watch = change_filter(served, &plan, &variables).map_err(one)?;
        Ok(PlannedSubscription { plan, variables, filter: watch })
    }
}

/// What the one root field follows, or why it cannot be followed.
fn change_filter(
    served: &GraphqlState,
    plan: &OperationPlan,
    variables: &VariableValues,
) -> Result<ChangeFilter, ResponseError> {
    if let Some(failure) = &plan.selection_error {
        return Err(failure.clone());
    }
    let [root] = plan.roots.as_slice() else {
        let message = "a subscription selects exactly one field";
        return Err(ResponseError::new("GRAPHQL_VALIDATION_FAILED", message));
    };
    let refuse =
        |code: &str, message: String| Err(with_root_location(root, ResponseError::new(code, message)));
    let name = &root.label.name;
    match &root.action {
        RootAction::Builtin(builtin) => match builtin.builtin.verb {
            OperationVerb::Subscribe(_) => builtin_filter(served, builtin, variables)
                .map_err(|failure| with_root_location(root, failure)),
            OperationVerb::List
            | OperationVerb::Get
            | OperationVerb::Create
            | OperationVerb::Update
            | OperationVerb::Delete => refuse("RESOLVER_NOT_FOUND", format!("`{name}` follows no changes")),
        },
        RootAction::Missing(why) => refuse("RESOLVER_NOT_FOUND", why.clone()),
        RootAction::Registered { .. } => {
            let message = format!(
                "`{name}` is answered by a registered resolver, which gives one answer and cannot follow changes"
            );
            refuse("SUBSCRIPTION_UNSUPPORTED", message)
        }
        RootAction::Typename(_) | RootAction::Introspection { .. } => {
            refuse("GRAPHQL_VALIDATION_FAILED", format!("`{name}` cannot be subscribed to"))
        }
    }
}

fn builtin_filter(
    served: &GraphqlState,
    root: &BuiltinRoot,
    variables: &VariableValues,
) -> Result<ChangeFilter, ResponseError> {
    let arguments = root.arguments.values_by_position(variables);
    let watch = arguments.and_then(|values| root.builtin.change_filter(served.engine.model(), values));
    watch.map_err(|error| ResponseError::from_error(&error))
}

fn with_root_location(root: &PlannedRoot, failure: ResponseError) -> ResponseError {
    failure
        .with_locations(&root.label.locations)
        .with_path(vec![PathSegment::Field(root.label.response_key.clone())])
}

impl From<ExecutionError> for Vec<ResponseError> {
    fn from(refused: ExecutionError) -> Self {
        match refused {
            ExecutionError::Request(failures) => failures,
            ExecutionError::Engine(error) => vec![ResponseError::from_error(&error)],
        }
    }
}
