//! A subscription request as it is kept to be planned again, and what its plan says of the one field it follows.

use std::sync::Arc;

use apollo_compiler::executable::OperationType;

use crate::over_http::request::Asked;
use crate::plan::roots::{BuiltinRoot, Does, Plan, Root};
use crate::plan::variables;
use crate::plan::variables::Variables;
use crate::resolve::complete;
use crate::response_error::Failure;
use crate::{Refused, Served};
use trefoil_engine::{Actor, Verb, Watch};
use trefoil_model::Value;
use trefoil_model::error::Segment;

/// What somebody asked to follow.
#[derive(Debug, Clone)]
pub struct Wanted {
    query: String,
    operation: Option<String>,
    variables: Vec<(String, Value)>,
    pub actor: Actor,
}

/// A request that can be followed under one schema.
pub struct Planned {
    pub plan: Arc<Plan>,
    pub variables: Variables,
    pub watch: Watch,
}

impl Wanted {
    pub fn new(asked: Asked<'_>, actor: Actor) -> Wanted {
        let mut variables = asked.variables;
        variables.sort_by(|(left, _), (right, _)| left.cmp(right));
        Wanted {
            query: asked.query.into_owned(),
            operation: asked.operation.map(|name| name.into_owned()),
            variables,
            actor,
        }
    }

    /// Equal for two requests exactly when they ask the same, whoever asks.
    pub fn key(&self) -> String {
        let operation = self.operation.as_deref();
        let mut key = format!("{:?} {} {}", operation, self.query.len(), self.query).into_bytes();
        complete::json(&mut key, &Value::Object(self.variables.clone()));
        String::from_utf8_lossy(&key).into_owned()
    }

    /// The same for requests that Rust code has a part in: it may answer one client otherwise than another.
    pub fn own_key(&self) -> String {
        format!("{:?} {}", self.actor, self.key())
    }

    pub fn plan(&self, served: &Served) -> Result<Planned, Vec<Failure>> {
        let verdict = served.documents.get(&self.query, || served.parse(&self.query));
        let document = verdict.as_ref().as_ref().map_err(Clone::clone)?;
        let one = |failure: Failure| vec![failure];
        let prepared = document.operation(self.operation.as_deref()).map_err(one)?;
        if prepared.kind() != OperationType::Subscription {
            return Err(one(Failure::new(
                "OPERATION_RESOLUTION_FAILURE",
                "the operation is no subscription",
            )));
        }
        let schema = &served.engine.model().schema;
        let variables = variables::coerce(schema, &prepared.declared, self.variables.clone())?;
        let grown = |plan: &Plan| served.documents.planned(&self.query, plan);
        let plan = prepared.plan(&served.engine, &served.settings, &document.document, &variables, grown);
        let plan = plan.map_err(one)?;
        let watch = watch(served, &plan, &variables).map_err(one)?;
        Ok(Planned { plan, variables, watch })
    }
}

/// What the one root field follows, or why it cannot be followed.
fn watch(served: &Served, plan: &Plan, variables: &Variables) -> Result<Watch, Failure> {
    if let Some(failure) = &plan.broken {
        return Err(failure.clone());
    }
    let [root] = plan.roots.as_slice() else {
        let message = "a subscription selects exactly one field";
        return Err(Failure::new("GRAPHQL_VALIDATION_FAILED", message));
    };
    let refuse = |code: &str, message: String| Err(located(root, Failure::new(code, message)));
    let name = &root.label.name;
    match &root.does {
        Does::Builtin(builtin) => match builtin.builtin.verb {
            Verb::Watch(_) => filter(served, builtin, variables).map_err(|failure| located(root, failure)),
            Verb::List | Verb::Get | Verb::Create | Verb::Update | Verb::Delete => {
                refuse("RESOLVER_NOT_FOUND", format!("`{name}` follows no changes"))
            }
        },
        Does::Missing(why) => refuse("RESOLVER_NOT_FOUND", why.clone()),
        Does::Registered { .. } => {
            let message = format!(
                "`{name}` is answered by a registered resolver, which gives one answer and cannot follow changes"
            );
            refuse("SUBSCRIPTION_UNSUPPORTED", message)
        }
        Does::Typename(_) | Does::Introspection { .. } => {
            refuse("GRAPHQL_VALIDATION_FAILED", format!("`{name}` cannot be subscribed to"))
        }
    }
}

fn filter(served: &Served, root: &BuiltinRoot, variables: &Variables) -> Result<Watch, Failure> {
    let arguments = root.arguments.by_position(variables);
    let watch = arguments.and_then(|values| root.builtin.watch(served.engine.model(), values));
    watch.map_err(|error| Failure::of(&error))
}

fn located(root: &Root, failure: Failure) -> Failure {
    failure.at(&root.label.places).on(vec![Segment::Field(root.label.response.clone())])
}

impl From<Refused> for Vec<Failure> {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Request(failures) => failures,
            Refused::Whole(error) => vec![Failure::of(&error)],
        }
    }
}
