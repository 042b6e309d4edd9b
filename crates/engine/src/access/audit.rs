//! The audit: who did what, when, from where and in which request, as the store keeps it.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use trefoil_model::error::Result;

use crate::access::actor::{Actor, ActorIdentity, KeyAccount};
use crate::access::request_id::RequestId;

/// The actor of what commands on the machine do.
pub const OPERATOR_NAME: &str = "operator";

/// Whose work something is, and where it came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditOrigin {
    pub author: AuditAuthor,
    pub address: Option<IpAddr>,
    pub request: Option<RequestId>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum AuditAuthor {
    /// Commands, and what the server does of its own.
    #[default]
    Operator,
    Anonymous,
    Identity(Arc<ActorIdentity>),
    Account(KeyAccount),
}

impl AuditOrigin {
    pub fn of_actor(actor: &Actor) -> AuditOrigin {
        let author = actor.identity.clone().map_or(AuditAuthor::Anonymous, AuditAuthor::Identity);
        AuditOrigin { author, address: actor.address, request: actor.request.clone() }
    }

    /// The same request, by an account that has only just been identified.
    pub fn by_account(&self, account: &KeyAccount) -> AuditOrigin {
        AuditOrigin { author: AuditAuthor::Account(account.clone()), ..self.clone() }
    }

    /// `account:7`, `key:ci`, `token:1/9f86d081`, `operator`; `None` if it is anonymous.
    pub fn actor(&self) -> Option<String> {
        match &self.author {
            AuditAuthor::Operator => Some(OPERATOR_NAME.to_owned()),
            AuditAuthor::Anonymous => None,
            AuditAuthor::Identity(identity) => Some(identity.name.clone()),
            AuditAuthor::Account(account) => Some(account_actor(account)),
        }
    }

    pub fn address(&self) -> Option<String> {
        self.address.map(|address| address.to_canonical().to_string())
    }

    pub fn request(&self) -> Option<&str> {
        self.request.as_ref().map(RequestId::as_str)
    }
}

/// What an account is called in logs.
pub fn account_actor(account: &KeyAccount) -> String {
    format!("account:{}", account.id)
}

/// What was done, apart from writes of records, which the store notes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    SignIn,
    /// A number of them, from one network.
    FailedSignIns,
    SignOut,
    MakeLink,
    UseLink,
    SetPassword,
    EndSessions,
    AddKey,
    RevokeKey,
}

impl AuditAction {
    pub fn name(self) -> &'static str {
        match self {
            AuditAction::SignIn => "sign-in",
            AuditAction::FailedSignIns => "failed-sign-ins",
            AuditAction::SignOut => "sign-out",
            AuditAction::MakeLink => "make-link",
            AuditAction::UseLink => "use-link",
            AuditAction::SetPassword => "set-password",
            AuditAction::EndSessions => "end-sessions",
            AuditAction::AddKey => "add-key",
            AuditAction::RevokeKey => "revoke-key",
        }
    }
}

/// An entry to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditNote {
    pub action: AuditAction,
    pub actor: Option<String>,
    pub address: Option<String>,
    pub request: Option<String>,
    /// The account that it is about.
    pub account: Option<KeyAccount>,
    /// The name of a key.
    pub name: Option<String>,
    pub count: Option<i64>,
}

impl AuditNote {
    pub fn new(action: AuditAction, origin: &AuditOrigin) -> AuditNote {
        AuditNote {
            action,
            actor: origin.actor(),
            address: origin.address(),
            request: origin.request().map(str::to_owned),
            account: None,
            name: None,
            count: None,
        }
    }

    pub fn about(self, account: &KeyAccount) -> AuditNote {
        AuditNote { account: Some(account.clone()), ..self }
    }

    pub fn about_key(self, name: &str) -> AuditNote {
        AuditNote { name: Some(name.to_owned()), ..self }
    }
}

/// An entry as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditEntry {
    pub position: AuditPosition,
    /// `create`, `update`, `delete`, or the name of an [`AuditAction`].
    pub action: String,
    pub actor: Option<String>,
    pub address: Option<String>,
    pub request: Option<String>,
    /// The type of the record, or of the account.
    pub type_name: Option<String>,
    /// Its id as JSON.
    pub record: Option<String>,
    pub version: Option<i64>,
    /// The names of the fields that were changed, or given to a new record.
    pub fields: Vec<String>,
    pub name: Option<String>,
    pub count: Option<i64>,
}

impl AuditEntry {
    pub fn time(&self) -> Timestamp {
        Timestamp::from_microsecond(self.position.at).unwrap_or_default()
    }

    /// The id for people.
    pub fn record_text(&self) -> Option<String> {
        let record = self.record.as_deref()?;
        Some(serde_json::from_str::<String>(record).unwrap_or_else(|_| record.to_owned()))
    }
}

/// Where an entry stands: later ones are greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditPosition {
    /// Microseconds since 1970.
    pub at: i64,
    /// Tells apart what was done in the same moment.
    pub number: i64,
}

impl AuditPosition {
    /// As a cursor.
    pub fn to_text(self) -> String {
        format!("{}.{}", self.at, self.number)
    }

    pub fn parse(text: &str) -> Option<AuditPosition> {
        let (at, number) = text.split_once('.')?;
        Some(AuditPosition { at: at.parse().ok()?, number: number.parse().ok()? })
    }
}

/// Which entries are read; all without any of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    /// Not at this time any more.
    pub until: Option<Timestamp>,
    pub actor: Option<String>,
    pub type_name: Option<String>,
    /// Only those before this one.
    pub before: Option<AuditPosition>,
}

/// The part of a store that keeps the audit. Its entries are written with what they are about: writes by
/// [`StoreJob::origin`](crate::StoreJob), everything else by [`AccountChange::Note`](crate::AccountChange).
pub trait AuditStore: Send + Sync {
    /// The last entries that fit, the last one first.
    fn read_audit(&self, filter: AuditFilter, limit: usize) -> BoxFuture<'_, Result<Vec<AuditEntry>>>;

    /// Removes entries from before a time, a bounded number of them; how many.
    fn prune_audit(&self, before: Timestamp) -> BoxFuture<'_, Result<u64>>;
}

#[cfg(test)]
mod tests {
    use trefoil_model::RecordId;

    use super::*;

    #[test]
    fn positions_are_cursors() {
        let position = AuditPosition { at: 1_800_000_000_000_001, number: -3 };
        assert_eq!(AuditPosition::parse(&position.to_text()), Some(position));
        for wrong in ["", "1", "1.", ".1", "1.2.3", "a.b", "99999999999999999999.1"] {
            assert_eq!(AuditPosition::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn authors_have_the_names_of_the_log() {
        let account = KeyAccount { type_name: "User".to_owned(), id: RecordId::Number(7) };
        let origin = AuditOrigin::default();
        assert_eq!(origin.actor().as_deref(), Some(OPERATOR_NAME));
        assert_eq!(origin.by_account(&account).actor().as_deref(), Some("account:7"));
        assert_eq!(AuditOrigin::of_actor(&Actor::default()).actor(), None);
        let entry = |record: &str| AuditEntry { record: Some(record.to_owned()), ..AuditEntry::default() };
        assert_eq!(entry("7").record_text().as_deref(), Some("7"));
        assert_eq!(entry("\"a\\\"b\"").record_text().as_deref(), Some("a\"b"));
    }
}
