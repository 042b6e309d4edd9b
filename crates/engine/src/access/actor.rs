//! [`Actor`]: the caller of an operation, and what its credential proves.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use trefoil_model::access::{ActorFact, ActorFacts, ActorPath, ClaimValue, RuleValue, TextComparison};
use trefoil_model::values::coerce::coerce_claim;
use trefoil_model::{Model, RecordId, StoredValue, Value};

use crate::access::identity_check::IdentityCheck;
use crate::access::request_id::RequestId;

/// The caller of an operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actor {
    /// The client's address, if the request came over a network.
    pub address: Option<IpAddr>,
    /// `None` if the actor is anonymous.
    pub identity: Option<Arc<ActorIdentity>>,
    /// Where the identity is what the credential proved before: whether it still does.
    pub check: Option<IdentityCheck>,
    /// The id of the request, for the audit.
    pub request: Option<RequestId>,
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
    /// What the account calls itself, for its own pages.
    pub label: String,
    /// Of the schema that it was read with: the paths name fields by their positions.
    pub model_hash: u64,
    /// The values of `me.…` in rules. What is absent is not in the list.
    pub values: Vec<(ActorPath, StoredValue)>,
}

/// A record among the accounts.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyAccount {
    pub type_name: String,
    pub id: RecordId,
}

impl Actor {
    /// The actor of work that no client asked for, such as a start.
    pub fn anonymous(address: Option<IpAddr>) -> Actor {
        Actor { address, ..Actor::default() }
    }

    /// Whoever a credential proves, wherever they are.
    pub fn of_identity(identity: ActorIdentity) -> Actor {
        Actor { identity: Some(Arc::new(identity)), ..Actor::default() }
    }

    /// The id of the actor's record among the accounts.
    pub fn account(&self) -> Option<&RecordId> {
        self.identity.as_ref().and_then(|identity| identity.account.as_ref()).map(|account| &account.id)
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.has_role(role))
    }

    /// A claim of the actor's token by its path: `org.id`.
    pub fn claim(&self, path: &str) -> Option<&Value> {
        self.identity.as_deref()?.claim(path)
    }
}

impl ActorIdentity {
    /// Whether the other one may do the same. What an account calls itself gives no rights.
    pub fn has_rights_of(&self, other: &ActorIdentity) -> bool {
        let ActorIdentity { name, roles, account, claims, expires } = self;
        let has_same_account = match (account, &other.account) {
            (Some(own), Some(other)) => {
                (&own.id, own.model_hash, &own.values) == (&other.id, other.model_hash, &other.values)
            }
            (own, other) => own.is_none() && other.is_none(),
        };
        has_same_account
            && (name, roles, claims, expires) == (&other.name, &other.roles, &other.claims, &other.expires)
    }

    /// True if what proved it has ended by itself.
    pub fn is_over(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Timestamp::now())
    }

    /// How long the credential can still be good, if it ends by itself; zero once it has ended.
    pub fn time_left(&self) -> Option<Duration> {
        let left = self.expires?.duration_since(Timestamp::now());
        Some(Duration::try_from(left).unwrap_or_default())
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }

    pub fn claim(&self, path: &str) -> Option<&Value> {
        find_claim(&self.claims, path)
    }
}

/// The claim at a path, as tokens are read: names may have dots themselves, such as `https://shop.example/org`.
fn find_claim<'c>(claims: &'c Value, path: &str) -> Option<&'c Value> {
    let Value::Object(members) = claims else { return None };
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| value);
    let inner = |(dot, _): (usize, &str)| find_claim(member(&path[..dot])?, &path[dot + 1..]);
    member(path).or_else(|| path.match_indices('.').find_map(inner))
}

impl KeyAccount {
    /// The id as it is in the tables of credentials: JSON.
    pub fn id_text(&self) -> String {
        match &self.id {
            RecordId::Number(number) => number.to_string(),
            RecordId::Text(text) => serde_json::Value::from(&**text).to_string(),
        }
    }

    /// The account with this id as JSON; `None` for what can be no id.
    pub fn parse(type_name: &str, id: &str) -> Option<KeyAccount> {
        let id: serde_json::Value = serde_json::from_str(id).ok()?;
        let id = match id.as_str() {
            Some(text) => RecordId::from(text),
            None => RecordId::Number(id.as_i64()?),
        };
        Some(KeyAccount { type_name: type_name.to_owned(), id })
    }
}

/// What rules ask of an actor, but for the time of the request.
pub(crate) struct ActorFactsView<'a> {
    pub identity: Option<&'a ActorIdentity>,
    pub model: &'a Model,
}

impl ActorFacts for ActorFactsView<'_> {
    fn is_signed_in(&self) -> bool {
        self.identity.is_some()
    }

    fn has_role(&self, role: &str) -> bool {
        self.identity.is_some_and(|identity| identity.has_role(role))
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        match value {
            RuleValue::Actor { references, field } => {
                let account = self.identity.and_then(|identity| identity.account.as_ref());
                let is_path = |path: &ActorPath| path.references == *references && path.field == *field;
                let found = account.and_then(|account| account.values.iter().find(|(path, _)| is_path(path)));
                found.map_or(ActorFact::Absent, |(_, value)| ActorFact::Known(value.clone()))
            }
            RuleValue::Claim(ClaimValue { path, value_type }) => {
                let claim = self.identity.and_then(|identity| identity.claim(path));
                let value = claim.and_then(|claim| coerce_claim(self.model, value_type.as_ref(), claim));
                value.map_or(ActorFact::Absent, ActorFact::Known)
            }
            RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Literal(_)
            | RuleValue::Field { .. }
            | RuleValue::Old(_) => ActorFact::Unknown,
        }
    }

    fn text_comparison(&self, value: &RuleValue) -> TextComparison {
        match value {
            RuleValue::Actor { references, field } => {
                let account = self.model.access.as_ref().and_then(|access| access.account.as_ref());
                let owner = account.map(|account| account.record).and_then(|account| {
                    references.iter().try_fold(account, |owner, reference| {
                        Some(self.model.record(owner).field(*reference).kind.reference()?.target)
                    })
                });
                owner.map_or(TextComparison::Exact, |owner| {
                    TextComparison::for_field(self.model.record(owner).field(*field))
                })
            }
            RuleValue::Claim(claim) => {
                claim.value_type.as_ref().map_or(TextComparison::Exact, TextComparison::for_type)
            }
            RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Literal(_)
            | RuleValue::Field { .. }
            | RuleValue::Old(_) => TextComparison::Exact,
        }
    }
}

/// The same with the time, for rules that are about the actor alone.
pub(super) struct KnownActor<'a> {
    pub facts: ActorFactsView<'a>,
    pub now: &'a StoredValue,
    pub local_now: &'a StoredValue,
    pub today: &'a StoredValue,
}

impl ActorFacts for KnownActor<'_> {
    fn is_signed_in(&self) -> bool {
        self.facts.is_signed_in()
    }

    fn has_role(&self, role: &str) -> bool {
        self.facts.has_role(role)
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        match value {
            RuleValue::Now => ActorFact::Known(self.now.clone()),
            RuleValue::LocalNow => ActorFact::Known(self.local_now.clone()),
            RuleValue::Today => ActorFact::Known(self.today.clone()),
            RuleValue::Actor { .. }
            | RuleValue::Claim(_)
            | RuleValue::Literal(_)
            | RuleValue::Field { .. }
            | RuleValue::Old(_) => self.facts.value(value),
        }
    }

    fn text_comparison(&self, value: &RuleValue) -> TextComparison {
        self.facts.text_comparison(value)
    }
}
