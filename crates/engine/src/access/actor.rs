//! [`Actor`]: the caller of an operation, and what its credential proves.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::{ActorFact, ActorFacts, ActorPath, RuleValue};
use trefoil_model::values::date_times::format_timestamp;
use trefoil_model::{RecordId, StoredValue, Value, ZoneOffsets};

/// The caller of an operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actor {
    /// The client's address, if the request came over a network.
    pub address: Option<IpAddr>,
    /// `None` if the actor is anonymous.
    pub identity: Option<Arc<ActorIdentity>>,
}

/// What a credential proves of an actor.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorIdentity {
    /// For logs and for what belongs to one actor: `key:ci`, `account:7`, `token:1/9f86d081`.
    pub name: String,
    pub roles: Vec<String>,
    pub account: Option<AccountFacts>,
    /// The claims of a token: an object.
    pub claims: Value,
    /// When the credential ends by itself.
    pub expires: Option<Timestamp>,
}

/// The record of an actor, as far as rules use it.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountFacts {
    pub id: RecordId,
    /// The values of `me.…` in rules. What is absent is not in the list.
    pub values: Vec<(ActorPath, StoredValue)>,
}

impl Actor {
    /// The actor of work that no client asked for, such as a start.
    pub fn anonymous(address: Option<IpAddr>) -> Actor {
        Actor { address, identity: None }
    }

    /// The id of the actor's record among the accounts.
    pub fn account(&self) -> Option<&RecordId> {
        self.identity.as_ref().and_then(|identity| identity.account.as_ref()).map(|account| &account.id)
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.roles.iter().any(|own| own == role))
    }

    /// A claim of the actor's token by its path: `org.id`.
    pub fn claim(&self, path: &str) -> Option<&Value> {
        let claims = &self.identity.as_ref()?.claims;
        path.split('.').try_fold(claims, |value, name| match value {
            Value::Object(members) => {
                members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_) => None,
        })
    }
}

/// An actor at the time of a request.
pub(crate) struct ActorAtTime<'a> {
    pub actor: &'a Actor,
    pub now: Timestamp,
    /// Of the application: says which day it is.
    pub zone: &'a ZoneOffsets,
}

impl ActorFacts for ActorAtTime<'_> {
    fn is_signed_in(&self) -> bool {
        self.actor.identity.is_some()
    }

    fn has_role(&self, role: &str) -> bool {
        self.actor.has_role(role)
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        let known = |value: Option<StoredValue>| value.map_or(ActorFact::Absent, ActorFact::Known);
        match value {
            RuleValue::Actor { references, field } => {
                let account = self.actor.identity.as_ref().and_then(|identity| identity.account.as_ref());
                let is_path = |path: &ActorPath| path.references == *references && path.field == *field;
                known(account.and_then(|account| {
                    let found = account.values.iter().find(|(path, _)| is_path(path));
                    found.map(|(_, value)| value.clone())
                }))
            }
            RuleValue::Claim(path) => known(self.actor.claim(path).and_then(claim_value)),
            RuleValue::Now => ActorFact::Known(StoredValue::Text(format_timestamp(self.now))),
            RuleValue::Today => ActorFact::Known(StoredValue::Text(self.zone.day(self.now))),
            RuleValue::Literal(_) | RuleValue::Field { .. } | RuleValue::Old(_) => ActorFact::Unknown,
        }
    }
}

/// A claim as rules compare it; lists and objects are none.
fn claim_value(claim: &Value) -> Option<StoredValue> {
    match claim {
        Value::Bool(value) => Some(StoredValue::Int(i64::from(*value))),
        Value::Int(number) => Some(StoredValue::Int(*number)),
        Value::Number(number) => Some(StoredValue::Text(number.to_string())),
        Value::String(text) => Some(StoredValue::Text(text.clone())),
        Value::Null | Value::List(_) | Value::Object(_) => None,
    }
}
