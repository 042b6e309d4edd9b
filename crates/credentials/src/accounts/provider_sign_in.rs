//! Signing in by a provider: beginning, coming back, and whose account it is.

use std::net::IpAddr;

use jiff::Timestamp;

use trefoil_engine::{
    AccountChange, AuditAction, Engine, KeyAccount, ProviderIdentity, TransactionEnd, TransactionResult,
};
use trefoil_model::Value;
use trefoil_model::error::{Error, PathSegment, Result, Violation};

use crate::account_reader::{AccountFinding, AccountKey};
use crate::accounts::account_service::{AccountRefusal, AccountService, OpenedSession, SignInOrigin};
use crate::accounts::pending_sign_in::{PendingSignIn, SignInKey};
use crate::accounts::provider_refusal::ProviderRefusal;
use crate::accounts::sign_in_throttle::{ClientNetwork, TryVerdict};

/// The issuer of accounts that people made for themselves with a password: nobody has proven that its login is theirs.
const SELF_MADE: &str = "";

/// What leads a browser to a provider.
pub struct BegunSignIn {
    pub cookie: String,
    pub state: String,
    pub nonce: String,
    /// Of PKCE, S256.
    pub challenge: String,
}

/// A sign-in that came back, and does so only once.
pub struct ReturnedSignIn {
    pub nonce: String,
    pub verifier: String,
    pub next: String,
}

/// What a provider proves of somebody.
pub struct ProvenPerson {
    pub identity: ProviderIdentity,
    /// The field that finds their account the first time, with the value that the provider has verified.
    pub account: Option<(String, String)>,
    /// What fills a new account.
    pub fields: Vec<(String, Value)>,
    /// For the session.
    pub roles: Vec<String>,
}

impl AccountService {
    /// Whether people may make accounts for themselves.
    fn has_sign_up(&self) -> bool {
        let access = self.engine.model().access.as_ref();
        access.and_then(|access| access.account.as_ref()).is_some_and(|account| account.has_sign_up)
    }

    async fn sign_in_key(&self) -> Result<SignInKey> {
        let store = self.engine.credentials()?;
        let mut stored = store.sign_in_key().await?;
        if stored.is_none() {
            let key = SignInKey::generate().map_err(Error::internal)?;
            self.engine.change_accounts(vec![AccountChange::SetSignInKey { key }]).await?;
            // Another node may have been first.
            stored = store.sign_in_key().await?;
        }
        let key = stored.as_deref().and_then(SignInKey::parse);
        key.ok_or_else(|| Error::internal("trefoil_meta: cannot read `sign-in-key`"))
    }

    /// Begins a sign-in by this issuer. Nothing is kept of it here.
    pub async fn begin_sign_in(&self, issuer: &str, next: &str) -> Result<BegunSignIn> {
        let key = self.sign_in_key().await?;
        let pending = PendingSignIn::begin(issuer, next, Timestamp::now()).map_err(Error::internal)?;
        Ok(BegunSignIn {
            state: pending.state(&key),
            nonce: pending.nonce(&key),
            challenge: pending.challenge(&key),
            cookie: pending.cookie().to_owned(),
        })
    }

    /// Goes on with a sign-in that was begun by the browser with this cookie, and uses it up.
    pub async fn return_sign_in(
        &self,
        issuer: &str,
        cookie: Option<&str>,
        state: &str,
    ) -> Result<ReturnedSignIn, ProviderRefusal> {
        let cookie = cookie.ok_or(ProviderRefusal::Stale("the browser has begun no sign-in"))?;
        let pending = PendingSignIn::parse(issuer, cookie);
        let pending = pending.ok_or(ProviderRefusal::Stale("its cookie is none of a sign-in"))?;
        let key = self.sign_in_key().await?;
        if !pending.has_state(&key, state) {
            return Err(ProviderRefusal::Stale("its state is not that of the browser"));
        }
        let now = Timestamp::now();
        if pending.expires <= now {
            return Err(ProviderRefusal::Stale("it was begun too long ago"));
        }
        let used = AccountChange::UseSignInState { hash: pending.hash(), now, expires: pending.expires };
        if !self.engine.change_accounts(vec![used]).await? {
            return Err(ProviderRefusal::Stale("it was used already"));
        }
        Ok(ReturnedSignIn {
            nonce: pending.nonce(&key),
            verifier: pending.verifier(&key),
            next: pending.next,
        })
    }

    /// Counts somebody who comes back from a provider, until it is known that they may sign in.
    pub fn count_return(&self, address: Option<IpAddr>) -> Result<u64, ProviderRefusal> {
        let second = self.state.second();
        match self.state.throttle.count_link(ClientNetwork::of(address), second) {
            TryVerdict::Refused { retry_after } => Err(ProviderRefusal::Later { retry_after }),
            TryVerdict::Allowed | TryVerdict::OnlyKnownNetworks => Ok(second),
        }
    }

    /// Takes back what [`AccountService::count_return`] counted.
    pub fn forgive_return(&self, address: Option<IpAddr>, second: u64) {
        self.state.throttle.forgive_link(ClientNetwork::of(address), second);
    }

    /// Signs in whom a provider proves: the account that is linked to them, or else the one that they prove to be theirs, or
    /// else a new one.
    pub async fn sign_in_person(
        &self,
        person: &ProvenPerson,
        origin: &SignInOrigin,
        presented: Option<&str>,
    ) -> Result<OpenedSession, ProviderRefusal> {
        if let Some(account) = self.find_identity(&person.identity).await? {
            return self.open_linked(account, person, origin, presented).await;
        }
        match self.find_claimed(person).await? {
            Some(account) => {
                let changes = self.linking_changes(&account, person).await?;
                let roles = person.roles.clone();
                match self.open_session(account.clone(), roles, origin, presented, changes).await {
                    Err(AccountRefusal::Wrong) => {}
                    Err(refusal) => return Err(refusal.into()),
                    Ok(session) => return self.keep_if_usable(account, person, session).await,
                }
            }
            None => self.sign_up_person(person).await?,
        }
        // Made now, or linked by another request of theirs at the same time.
        match self.find_identity(&person.identity).await? {
            Some(account) => self.open_linked(account, person, origin, presented).await,
            None => {
                let reason = "the account that the claim names is linked to somebody else of this provider";
                Err(ProviderRefusal::NoAccount(reason.to_owned()))
            }
        }
    }

    async fn find_identity(&self, identity: &ProviderIdentity) -> Result<Option<KeyAccount>> {
        let found = self.engine.credentials()?.find_identity(identity).await?;
        Ok(found.filter(|account| account.type_name == self.reader.type_name()))
    }

    async fn open_linked(
        &self,
        account: KeyAccount,
        person: &ProvenPerson,
        origin: &SignInOrigin,
        presented: Option<&str>,
    ) -> Result<OpenedSession, ProviderRefusal> {
        if self.find_usable(&account.id).await?.is_none() {
            return Err(ProviderRefusal::NoAccount("the account cannot be used".to_owned()));
        }
        let identity = person.identity.clone();
        let kept = vec![AccountChange::KeepIdentity { identity, account: account.clone() }];
        Ok(self.open_session(account, person.roles.clone(), origin, presented, kept).await?)
    }

    /// The first session of a linked account, unless it was deleted while it was linked: its id may be somebody else's next.
    async fn keep_if_usable(
        &self,
        account: KeyAccount,
        person: &ProvenPerson,
        session: OpenedSession,
    ) -> Result<OpenedSession, ProviderRefusal> {
        if self.find_usable(&account.id).await?.is_some() {
            return Ok(session);
        }
        let issuer = person.identity.issuer.clone();
        let ended = AccountChange::EndSession { hash: session.token.hash() };
        self.engine.change_accounts(vec![ended, AccountChange::DropIdentity { account, issuer }]).await?;
        Err(ProviderRefusal::NoAccount("the account is gone".to_owned()))
    }

    /// The account that the verified claim names; `None` if there is none yet and one may be made.
    async fn find_claimed(&self, person: &ProvenPerson) -> Result<Option<KeyAccount>, ProviderRefusal> {
        if let Some((field, value)) = &person.account
            && let Some(field) = self.reader.field(field)
        {
            match self.reader.find(AccountKey::Field(field, value)).await? {
                AccountFinding::Usable(account) => {
                    return Ok(Some(self.reader.key_account(account.facts.id)));
                }
                AccountFinding::Unusable => {
                    return Err(ProviderRefusal::NoAccount("the account cannot be used".to_owned()));
                }
                AccountFinding::Missing => {}
            }
        }
        if self.has_sign_up() {
            return Ok(None);
        }
        let reason = match person.account {
            Some(_) => "no account has the value of the claim, and people do not sign up",
            None => "the claim of the account is missing or not verified",
        };
        Err(ProviderRefusal::NoAccount(reason.to_owned()))
    }

    /// What goes along with the first session of an account by a provider. Whoever made the account may have given the login
    /// of somebody else: who proves that it is theirs takes it over, and what the other one signs in with ends.
    async fn linking_changes(
        &self,
        account: &KeyAccount,
        person: &ProvenPerson,
    ) -> Result<Vec<AccountChange>> {
        let identity = person.identity.clone();
        let mut changes =
            vec![AccountChange::AddIdentity { identity, account: account.clone(), now: Timestamp::now() }];
        if self.find_identity(&self_made_identity(account)).await?.is_some() {
            let account = account.clone();
            changes.extend(self.note(AuditAction::EndSessions, Some(&account)));
            changes.extend([
                AccountChange::DropIdentity { account: account.clone(), issuer: SELF_MADE.to_owned() },
                AccountChange::DropPassword { account: account.clone() },
                AccountChange::DropLink { account: account.clone() },
                AccountChange::EndSessions { account, except: None },
            ]);
        }
        Ok(changes)
    }

    /// Makes an account that is linked from its beginning: both or neither. Without effect if another request was first.
    async fn sign_up_person(&self, person: &ProvenPerson) -> Result<(), ProviderRefusal> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        let proven = person.account.iter().filter_map(|(field, value)| {
            Some((field.clone(), self.reader.operand(self.reader.field(field)?, value)))
        });
        for (field, value) in proven.chain(person.fields.iter().cloned()) {
            if !fields.iter().any(|(known, _)| *known == field) {
                fields.push((field, value));
            }
        }
        self.engine.credentials()?.prepare_accounts().await?;
        let work = async |engine: Engine| match self.create_linked(&engine, fields, person).await {
            Ok(true) => TransactionEnd::Commit { result: Ok(()), answer: Vec::new() },
            other => TransactionEnd::RollBack(other.map(drop)),
        };
        let made = match self.engine.run_in_transaction(None, work).await? {
            TransactionResult::Ended(made) => made,
            TransactionResult::Replayed(_) => {
                Err(Error::internal("a transaction without a key was replayed"))
            }
        };
        match made {
            Err(error @ (Error::Invalid(_) | Error::Conflict(_))) => {
                let named = |violation: &Violation| format!("{} {}", field_of(violation), violation.code);
                let wrong: Vec<String> = error.violations().iter().map(named).collect();
                let reason = format!("an account cannot be made of its claims: {}", wrong.join(", "));
                Err(ProviderRefusal::NoAccount(reason))
            }
            made => Ok(made?),
        }
    }

    async fn create_linked(
        &self,
        engine: &Engine,
        fields: Vec<(String, Value)>,
        person: &ProvenPerson,
    ) -> Result<bool> {
        let id = self.create_record(engine, Value::Object(fields)).await?;
        let (identity, account) = (person.identity.clone(), self.reader.key_account(id));
        let now = Timestamp::now();
        engine.change_accounts(vec![AccountChange::AddIdentity { identity, account, now }]).await
    }

    /// What marks an account that somebody made at the sign-up with a password.
    pub(super) fn self_made_mark(account: &KeyAccount) -> AccountChange {
        AccountChange::AddIdentity {
            identity: self_made_identity(account),
            account: account.clone(),
            now: Timestamp::now(),
        }
    }

    /// What takes the mark away: its owner was given a link.
    pub(super) fn no_self_made_mark(account: &KeyAccount) -> AccountChange {
        AccountChange::DropIdentity { account: account.clone(), issuer: SELF_MADE.to_owned() }
    }
}

/// The field that a violation is about. Its message may have a value in it, which is for no log.
fn field_of(violation: &Violation) -> &str {
    match violation.path.last() {
        Some(PathSegment::Field(name)) => name,
        Some(PathSegment::Index(_)) | None => "",
    }
}

fn self_made_identity(account: &KeyAccount) -> ProviderIdentity {
    ProviderIdentity { issuer: SELF_MADE.to_owned(), subject: account.id_text() }
}
