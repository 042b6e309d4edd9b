//! Who asks, and what the rules of the schema let them do.

mod access_view;
mod account_store;
mod actor;
mod allowed_records;
mod asked_writes;
mod audit;
mod authority;
mod credential_store;
mod engine_rules;
mod filled_value;
mod identity_check;
mod presumed_identity;
mod record_test;
mod request_id;
mod rule_cache;
mod rule_explainer;

pub use crate::access::access_view::{AccessView, ActorRules, FieldView, FoldedRule, TypeView, rule_values};
pub use crate::access::account_store::{
    AccountChange, AccountStore, KnownNetwork, LinkRecord, LoginColumns, ProviderIdentity, SessionRecord,
    StoredPassword,
};
pub(crate) use crate::access::actor::ActorFactsView;
pub use crate::access::actor::{AccountFacts, Actor, ActorIdentity, KeyAccount};
pub use crate::access::allowed_records::AllowedRecords;
pub use crate::access::asked_writes::AskedWrites;
pub use crate::access::audit::{
    AuditAction, AuditAuthor, AuditEntry, AuditFilter, AuditNote, AuditOrigin, AuditPosition, AuditStore,
    OPERATOR_NAME, account_actor,
};
pub use crate::access::authority::Authority;
pub use crate::access::credential_store::{ApiKeyRecord, CredentialStore, IdentityChanges};
pub use crate::access::identity_check::IdentityCheck;
pub use crate::access::presumed_identity::{CredentialUse, PresumedIdentity};
pub use crate::access::request_id::RequestId;
pub(crate) use crate::access::rule_cache::RuleCache;
pub use crate::access::rule_explainer::{
    AccessExplanation, AccessQuestion, PartExplanation, RuleExplainer, RuleExplanation,
};
pub use trefoil_model::access::ActorPath;
