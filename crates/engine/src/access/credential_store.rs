//! The credentials of programs that a store keeps: API keys, as hashes.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use jiff::civil::Date;

use trefoil_model::error::Result;

use crate::access::account_store::AccountStore;
use crate::access::actor::KeyAccount;
use crate::access::audit::{AuditNote, AuditStore};

/// An API key as the store knows it. The key itself is nowhere.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeyRecord {
    /// Chosen by whoever made it, and unique.
    pub name: String,
    pub roles: Vec<String>,
    /// The account that it acts as.
    pub account: Option<KeyAccount>,
    pub expires: Option<Timestamp>,
    /// The networks that it may be used from, as texts; any if there are none.
    pub networks: Vec<String>,
    pub created: Timestamp,
    /// The last day on which it was used.
    pub last_used: Option<Date>,
}

/// What the change log says of credentials and accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityChanges {
    /// The last change of all.
    pub until: i64,
    /// Changes whenever a program changes tables: keys may go with theirs, which no log tells.
    pub schema: i64,
    /// Whether one of those asked about is among them, or may have been.
    pub has_changes: bool,
}

/// The part of a store that keeps credentials, in tables of its own that no schema can name.
pub trait CredentialStore: AccountStore + AuditStore {
    /// Adds a key under its hash; false if another key has its name. It is on disk before this returns, with the
    /// note.
    fn add_api_key<'s>(
        &'s self,
        hash: &'s str,
        key: &'s ApiKeyRecord,
        note: Option<AuditNote>,
    ) -> BoxFuture<'s, Result<bool>>;

    /// All keys, by name.
    fn list_api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRecord>>>;

    /// Removes a key; false if there is none of this name. No later look-up finds it, on any node.
    fn revoke_api_key<'s>(&'s self, name: &'s str, note: Option<AuditNote>) -> BoxFuture<'s, Result<bool>>;

    /// The key with this hash, as every acknowledged change left it.
    fn find_api_key<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<ApiKeyRecord>>>;

    /// Those of these hashes that have a key, each with its key, as every acknowledged change left them.
    fn find_api_keys(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, ApiKeyRecord)>>>;

    /// Whether the log has changes of these types after this number, as every acknowledged change left it. Does not wait.
    /// `None` if the store cannot tell: there the credential itself is asked for.
    fn identity_changes(&self, after: i64, types: &[String]) -> Option<IdentityChanges>;

    /// Records the day of a key's last use.
    fn mark_api_key_used<'s>(&'s self, hash: &'s str, day: Date) -> BoxFuture<'s, Result<()>>;
}
