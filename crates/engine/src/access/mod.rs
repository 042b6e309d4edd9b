//! Who asks, and what the rules of the schema let them do.

mod access_view;
mod actor;
mod authority;
mod credential_store;
mod record_test;
mod rule_cache;
mod rule_explainer;

pub use crate::access::access_view::{AccessView, ActorRules, FieldView, FoldedRule, TypeView, rule_values};
pub use crate::access::actor::{AccountFacts, Actor, ActorIdentity};
pub use crate::access::authority::Authority;
pub use crate::access::credential_store::{ApiKeyRecord, CredentialStore, KeyAccount};
pub(crate) use crate::access::rule_cache::RuleCache;
pub use crate::access::rule_explainer::{
    AccessExplanation, AccessQuestion, PartExplanation, RuleExplainer, RuleExplanation,
};
pub use trefoil_model::access::ActorPath;
