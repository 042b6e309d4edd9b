//! A subscription request, stored so that it can be planned again after a reload, and its plan under one schema.

use std::sync::Arc;

use apollo_compiler::executable::OperationType;

use trefoil_engine::changes::EventAccess;
use trefoil_engine::{Actor, ChangeFilter, Engine};
use trefoil_model::error::PathSegment;
use trefoil_model::values::json_text;
use trefoil_model::{RootType, Value};

use crate::document::cache::DocumentCache;
use crate::document::parse::{GraphqlSettings, ParsedDocument};
use crate::execute::execution::ExecutionError;
use crate::over_http::request::GraphqlRequest;
use crate::plan::roots::{BuiltinRootField, OperationPlan, PlannedRoot, RootAction};
use crate::plan::variable_values::VariableValues;
use crate::plan::variables;
use crate::response_error::ResponseError;

/// A subscription request by one actor.
#[derive(Debug, Clone)]
pub struct SubscriptionRequest {
    query: String,
    operation_name: Option<String>,
    variables: Vec<(String, Value)>,
    pub actor: Actor,
}

/// A subscription request planned under one schema.
pub struct PlannedSubscription {
    pub plan: Arc<OperationPlan>,
    pub variables: VariableValues,
    pub filter: ChangeFilter,
}

impl SubscriptionRequest {
    pub fn new(request: GraphqlRequest<'_>, actor: Actor) -> SubscriptionRequest {
        let mut variables = request.variables;
        variables.sort_by(|(left, _), (right, _)| left.cmp(right));
        SubscriptionRequest {
            query: request.query.into_owned(),
            operation_name: request.operation_name.map(|name| name.into_owned()),
            variables,
            actor,
        }
    }

    /// Equal exactly for requests with the same query, operation name and variables, by any actors of a class.
    pub fn shared_key(&self, class: Option<u128>) -> String {
        let operation = self.operation_name.as_deref();
        let mut key = format!("{class:?} {operation:?} {} {}", self.query.len(), self.query).into_bytes();
        json_text::write_value(&mut key, &Value::Object(self.variables.clone()));
        String::from_utf8_lossy(&key).into_owned()
    }

    /// The key of requests by actors of any class whose events look the same, see [`Engine::event_access`].
    pub fn common_key(&self) -> String {
        format!("all {}", self.shared_key(None))
    }

    /// The key of requests that use registered resolvers, whose results may depend on the actor.
    pub fn actor_key(&self, class: Option<u128>) -> String {
        format!("{:?} {}", self.actor, self.shared_key(class))
    }

    pub fn plan(
        &self,
        engine: &Engine,
        settings: &GraphqlSettings,
        document_cache: &DocumentCache,
    ) -> Result<PlannedSubscription, Vec<ResponseError>> {
        let parsed =
            document_cache.get_or_parse(&self.query, || ParsedDocument::parse(engine, settings, &self.query));
        let document = parsed.as_ref().as_ref().map_err(Clone::clone)?;
        let single = |failure: ResponseError| vec![failure];
        let prepared = document.operation(self.operation_name.as_deref()).map_err(single)?;
        if prepared.operation_type() != OperationType::Subscription {
            return Err(single(ResponseError::new(
                "OPERATION_RESOLUTION_FAILURE",
                "the operation is not a subscription",
            )));
        }
        let variables = variables::coerce(engine, &prepared.declared_variables, self.variables.clone())?;
        let on_planned = |plan: &OperationPlan| document_cache.record_plan(&self.query, plan);
        let plan = prepared.plan(engine, settings, &document.executable, &variables, on_planned);
        let plan = plan.map_err(single)?;
        let filter = change_filter(engine, &plan, &variables).map_err(single)?;
        Ok(PlannedSubscription { plan, variables, filter })
    }
}

impl PlannedSubscription {
    /// Which events an actor may see of those that all classes share; `None` if theirs are not among them.
    pub fn event_access(&self, engine: &Engine) -> Option<EventAccess> {
        match self.plan.roots.as_slice() {
            [PlannedRoot { action: RootAction::Builtin(root), .. }] if !self.plan.uses_resolvers => {
                engine.event_access(&self.filter, &root.selection)
            }
            _ => None,
        }
    }
}

/// The filter for the changes of the one root field, or the reason why it cannot be subscribed to.
fn change_filter(
    engine: &Engine,
    plan: &OperationPlan,
    variables: &VariableValues,
) -> Result<ChangeFilter, ResponseError> {
    if let Some(failure) = &plan.selection_error {
        return Err(failure.clone());
    }
    let [root] = plan.roots.as_slice() else {
        let message = "a subscription must select exactly one field";
        return Err(ResponseError::new("GRAPHQL_VALIDATION_FAILED", message));
    };
    let refuse =
        |code: &str, message: String| Err(with_root_location(root, ResponseError::new(code, message)));
    let name = &root.label.name;
    match &root.action {
        RootAction::Builtin(builtin) => match builtin.builtin.verb.root_kind() {
            RootType::Subscription => builtin_filter(engine, builtin, variables)
                .map_err(|failure| with_root_location(root, failure)),
            RootType::Query | RootType::Mutation => {
                refuse("RESOLVER_NOT_FOUND", format!("`{name}` is not bound to a subscription"))
            }
        },
        RootAction::Abstract(_) => {
            refuse("RESOLVER_NOT_FOUND", format!("`{name}` is not bound to a subscription"))
        }
        RootAction::Missing(why) => refuse("RESOLVER_NOT_FOUND", why.clone()),
        RootAction::Registered { .. } => {
            let message =
                format!("`{name}` has a registered resolver, which cannot be used for subscriptions");
            refuse("SUBSCRIPTION_UNSUPPORTED", message)
        }
        RootAction::Typename(_) | RootAction::Introspection { .. } => {
            refuse("GRAPHQL_VALIDATION_FAILED", format!("`{name}` cannot be subscribed to"))
        }
    }
}

fn builtin_filter(
    engine: &Engine,
    root: &BuiltinRootField,
    variables: &VariableValues,
) -> Result<ChangeFilter, ResponseError> {
    let arguments = root.arguments.values_by_position(variables);
    let filter = arguments.and_then(|values| engine.change_filter(&root.builtin, values));
    filter.map_err(|error| ResponseError::from_error(&error))
}

fn with_root_location(root: &PlannedRoot, failure: ResponseError) -> ResponseError {
    failure
        .with_locations(&root.label.locations)
        .with_path(vec![PathSegment::Field(root.label.response_key.clone())])
}

impl From<ExecutionError> for Vec<ResponseError> {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::Request(failures) => failures,
            ExecutionError::Engine(error) => vec![ResponseError::from_error(&error)],
        }
    }
}
