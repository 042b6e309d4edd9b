//! What a store keeps of the people who sign in: passwords, sessions and links, as hashes; and who they are elsewhere.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use trefoil_model::RecordId;
use trefoil_model::error::Result;

use crate::access::actor::KeyAccount;
use crate::access::audit::AuditNote;

/// A session as the store knows it. Its token is nowhere.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    pub account: KeyAccount,
    /// Those that whoever signed the account in says that it has, beside the roles of its record.
    pub roles: Vec<String>,
    pub created: Timestamp,
    /// The last request, as of a minute ago.
    pub seen: Timestamp,
    pub expires: Timestamp,
    /// Where it was signed in from.
    pub address: Option<String>,
    /// What the browser called itself.
    pub browser: Option<String>,
}

impl SessionRecord {
    /// Whether it has neither ended nor been unused for too long, as far as the store knows.
    pub fn is_good_at(&self, now: Timestamp, idle: Duration) -> bool {
        let unused = now.as_second().saturating_sub(self.seen.as_second());
        self.expires > now && u64::try_from(unused).unwrap_or(0) < idle.as_secs()
    }
}

/// The password of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPassword {
    /// With its salt and parameters, in the PHC format.
    pub hash: String,
    /// Where the account signed in from.
    pub networks: Vec<KnownNetwork>,
}

/// A network that an account signed in from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNetwork {
    pub network: String,
    pub last: Timestamp,
}

/// A link for a first or a new password, as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkRecord {
    /// `None` for the one that makes the first account.
    pub account: Option<KeyAccount>,
    pub expires: Timestamp,
}

/// Where the logins of accounts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginColumns {
    pub table: String,
    pub id: String,
    pub login: String,
}

/// Who somebody is for a provider that signs them in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderIdentity {
    pub issuer: String,
    /// What the issuer calls them, and nobody else, ever.
    pub subject: String,
}

/// One change of what a store keeps of accounts. Tokens and links are given by their hashes.
#[derive(Debug, Clone, PartialEq)]
pub enum AccountChange {
    SetPassword {
        account: KeyAccount,
        hash: String,
    },
    /// Replaces the hash that a password was compared with, by the same one if nothing changes. Undoes all changes if the
    /// account or its password has changed meanwhile.
    ReplaceHash {
        account: KeyAccount,
        known: String,
        hash: String,
    },
    SetNetworks {
        account: KeyAccount,
        networks: Vec<KnownNetwork>,
    },
    /// Ends those of the account that were unused for longest, if there are too many.
    AddSession {
        hash: String,
        session: SessionRecord,
    },
    EndSession {
        hash: String,
    },
    /// Ends a session that another one is to follow. Undoes all changes if it has ended meanwhile.
    ReplaceSession {
        hash: String,
    },
    EndSessions {
        account: KeyAccount,
        /// This one goes on.
        except: Option<String>,
    },
    EndAllSessions,
    /// Ends what nobody can use any more.
    Sweep {
        now: Timestamp,
        /// Sessions that were not seen since end.
        seen_since: Timestamp,
    },
    /// The account's only link from now on.
    SetLink {
        hash: String,
        link: LinkRecord,
    },
    /// Undoes all changes if there is no such link, or not any more.
    UseLink {
        hash: String,
        now: Timestamp,
    },
    DropLink {
        account: KeyAccount,
    },
    DropPassword {
        account: KeyAccount,
    },
    /// Undoes all changes if the identity has an account, or the account another identity of the same issuer.
    AddIdentity {
        identity: ProviderIdentity,
        account: KeyAccount,
        now: Timestamp,
    },
    /// Undoes all changes if the identity is not this account's any more.
    KeepIdentity {
        identity: ProviderIdentity,
        account: KeyAccount,
    },
    /// Takes the identity of this issuer from an account, if it has one.
    DropIdentity {
        account: KeyAccount,
        issuer: String,
    },
    /// The key that the store keeps from now on to recognise sign-ins that were begun; without effect if it has one.
    SetSignInKey {
        key: String,
    },
    /// Uses up a sign-in that was begun, by the hash of its state. Undoes all changes if that was done before.
    UseSignInState {
        hash: String,
        now: Timestamp,
        /// Nobody asks for it after that.
        expires: Timestamp,
    },
    /// An entry of the audit.
    Note(Box<AuditNote>),
}

/// The part of a store that keeps what accounts sign in with, in tables of its own that no schema can name.
pub trait AccountStore: Send + Sync {
    /// Makes the tables if they are not there. Whoever changes accounts within a transaction does so before.
    fn prepare_accounts(&self) -> BoxFuture<'_, Result<()>>;

    /// Makes all changes or, if one of them finds nothing that it needs, none: then this is false.
    fn change_accounts(&self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>>;

    /// At most two of the accounts whose login differs in the case of ASCII letters at most, with id and login as texts. The one
    /// with this very login comes first.
    fn find_logins<'s>(
        &'s self,
        columns: &'s LoginColumns,
        login: &'s str,
    ) -> BoxFuture<'s, Result<Vec<(String, String)>>>;

    fn find_password<'s>(&'s self, account: &'s KeyAccount) -> BoxFuture<'s, Result<Option<StoredPassword>>>;

    /// The hash of the password of some account of this type: of another one for nearly every `place`. `None` if none has one.
    fn find_password_near<'s>(
        &'s self,
        account_type: &'s str,
        place: u64,
    ) -> BoxFuture<'s, Result<Option<String>>>;

    /// Whether any account has a password.
    fn has_passwords(&self) -> BoxFuture<'_, Result<bool>>;

    /// Those of these hashes that have a session, as every acknowledged change left them.
    fn find_sessions(&self, hashes: Vec<String>) -> BoxFuture<'_, Result<Vec<(String, SessionRecord)>>>;

    /// The sessions of an account with their hashes, the last used first.
    fn list_sessions<'s>(
        &'s self,
        account: &'s KeyAccount,
    ) -> BoxFuture<'s, Result<Vec<(String, SessionRecord)>>>;

    /// The accounts of this type that have sessions.
    fn session_accounts<'s>(&'s self, account_type: &'s str) -> BoxFuture<'s, Result<Vec<RecordId>>>;

    /// The link with this hash, good or not.
    fn find_link<'s>(&'s self, hash: &'s str) -> BoxFuture<'s, Result<Option<LinkRecord>>>;

    /// The account of somebody whom a provider signs in.
    fn find_identity<'s>(
        &'s self,
        identity: &'s ProviderIdentity,
    ) -> BoxFuture<'s, Result<Option<KeyAccount>>>;

    /// The key that recognises sign-ins that were begun, the same for all who use the store.
    fn sign_in_key(&self) -> BoxFuture<'_, Result<Option<String>>>;

    /// Records when sessions were last seen.
    fn mark_sessions_seen(&self, seen: Vec<(String, Timestamp)>) -> BoxFuture<'_, Result<()>>;
}
