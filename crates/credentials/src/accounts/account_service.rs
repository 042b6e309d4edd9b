//! [`AccountService`]: signs accounts in and out, and gives them passwords by links.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use trefoil_config::AccountSettings;
use trefoil_engine::{AccountChange, AuditAction, Engine, KeyAccount, SessionRecord, StoredPassword};
use trefoil_model::error::{Error, Result};
use trefoil_model::{RecordId, Value};

use crate::account_reader::{AccountFinding, AccountKey, AccountReader, UsableAccount};
use crate::accounts::failed_sign_ins::FailedSignIns;
use crate::accounts::known_networks::{UNKNOWN_NETWORK_RETRY, is_known, with_network};
use crate::accounts::sign_in_throttle::{ClientNetwork, SignInThrottle, TryVerdict};
use crate::digest::sha256;
use crate::passwords::{
    ChosenPassword, HashingBusy, MAX_PASSWORD_LENGTH, PasswordHasher, PasswordMistake, PasswordVerdict,
};
use crate::secret_token::{SecretToken, TokenKind};

/// The most characters that are kept of what a browser calls itself.
const MAX_BROWSER: usize = 200;

/// What is shared by the accounts of all models of a process: a reload forgives nobody.
pub struct SignInState {
    pub(super) hasher: PasswordHasher,
    pub(super) throttle: SignInThrottle,
    pub(super) failed: FailedSignIns,
    started: Instant,
    swept: Mutex<Option<Instant>>,
}

/// Signs the accounts of one model in.
pub struct AccountService {
    pub(super) engine: Engine,
    pub(super) reader: Arc<AccountReader>,
    pub(super) settings: AccountSettings,
    /// The name of the application, which nobody may choose as a password.
    pub(super) application: String,
    pub(super) state: Arc<SignInState>,
}

/// Who asks to sign in.
#[derive(Debug, Clone, Default)]
pub struct SignInOrigin {
    pub address: Option<IpAddr>,
    /// What the browser calls itself.
    pub browser: Option<String>,
}

/// A session that has just begun.
pub struct OpenedSession {
    pub token: SecretToken,
    pub expires: Timestamp,
    pub account: RecordId,
}

/// Why somebody is not signed in, or a password not set.
#[derive(Debug)]
pub enum AccountRefusal {
    /// Login or password is wrong, or the account cannot be used: all the same for the client. Also a link that is unknown,
    /// used or old.
    Wrong,
    /// Too many tries.
    Later {
        retry_after: Duration,
    },
    /// Too many passwords are being hashed.
    Busy {
        retry_after: Duration,
    },
    Mistake(PasswordMistake),
    Failed(Error),
}

/// A session of an account, as it is shown to whoever may end it.
#[derive(Debug, Clone)]
pub struct ListedSession {
    /// A part of its hash, which is no secret.
    pub number: String,
    pub session: SessionRecord,
    pub is_current: bool,
}

const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);
const SWEEP_MARGIN: Duration = Duration::from_secs(24 * 3_600);

/// How many digits of the hash number a session.
const NUMBER_DIGITS: usize = 16;

impl From<Error> for AccountRefusal {
    fn from(error: Error) -> AccountRefusal {
        AccountRefusal::Failed(error)
    }
}

impl From<HashingBusy> for AccountRefusal {
    fn from(busy: HashingBusy) -> AccountRefusal {
        AccountRefusal::Busy { retry_after: busy.retry_after }
    }
}

impl From<PasswordMistake> for AccountRefusal {
    fn from(mistake: PasswordMistake) -> AccountRefusal {
        AccountRefusal::Mistake(mistake)
    }
}

impl SignInState {
    pub fn new(settings: &AccountSettings) -> Result<SignInState> {
        let hasher = PasswordHasher::new(settings)?;
        Ok(SignInState {
            hasher,
            throttle: SignInThrottle::default(),
            failed: FailedSignIns::default(),
            started: Instant::now(),
            swept: Mutex::default(),
        })
    }

    pub(super) fn second(&self) -> u64 {
        self.started.elapsed().as_secs()
    }
}

impl AccountService {
    /// `None` if the schema has no accounts.
    pub fn new(
        engine: &Engine,
        settings: &AccountSettings,
        application: &str,
        state: Arc<SignInState>,
    ) -> Option<AccountService> {
        let reader = Arc::new(AccountReader::new(engine, &[])?);
        Some(AccountService {
            engine: engine.as_operator(),
            reader,
            settings: settings.clone(),
            application: application.to_owned(),
            state,
        })
    }

    pub fn reader(&self) -> &AccountReader {
        &self.reader
    }

    /// Signs in with a password and ends the session that was presented, if there is one. An unknown login costs what a wrong
    /// password costs.
    pub async fn sign_in(
        &self,
        login: &str,
        password: &str,
        origin: &SignInOrigin,
        presented: Option<&str>,
    ) -> Result<OpenedSession, AccountRefusal> {
        let network = ClientNetwork::of(origin.address);
        let second = self.state.second();
        let tried = self.state.throttle.count_try(login, network, second);
        if let TryVerdict::Refused { retry_after } = tried {
            self.count_failure(origin);
            return Err(AccountRefusal::Later { retry_after });
        }
        let needs_known_network = tried == TryVerdict::OnlyKnownNetworks;
        let signed_in =
            self.compare_and_open((login, password), origin, presented, needs_known_network).await;
        if matches!(signed_in, Err(AccountRefusal::Wrong | AccountRefusal::Later { .. })) {
            self.count_failure(origin);
        }
        // What was not decided was no wrong guess.
        if !matches!(signed_in, Err(AccountRefusal::Wrong | AccountRefusal::Later { .. })) {
            self.state.throttle.forgive(login, network, second, tried);
        }
        signed_in
    }

    async fn compare_and_open(
        &self,
        (login, password): (&str, &str),
        origin: &SignInOrigin,
        presented: Option<&str>,
        needs_known_network: bool,
    ) -> Result<OpenedSession, AccountRefusal> {
        let account = self.reader.find_login(login).await?.map(|id| self.reader.key_account(id));
        let nobody = self.reader.key_account(RecordId::Number(0));
        let store = self.engine.credentials()?;
        // Both are asked in any case: how long it takes does not tell whether there is such a login.
        let stored = store.find_password(account.as_ref().unwrap_or(&nobody)).await?;
        let like = store.find_password_near(self.reader.type_name(), sample_place(login)).await?;
        let known = stored.as_ref().filter(|_| account.is_some());
        let network = ClientNetwork::of(origin.address);
        if needs_known_network && !known.is_some_and(|stored| is_known(stored, network)) {
            return Err(AccountRefusal::Later { retry_after: UNKNOWN_NETWORK_RETRY });
        }
        let verdict = self.verify(password, known, like.as_deref()).await?;
        let (Some(account), Some(known), PasswordVerdict::Right { renewed }) = (account, known, verdict)
        else {
            return Err(AccountRefusal::Wrong);
        };
        if !matches!(self.reader.find(AccountKey::Id(&account.id)).await?, AccountFinding::Usable(_)) {
            return Err(AccountRefusal::Wrong);
        }
        let (compared, hash) = (known.hash.clone(), renewed.unwrap_or_else(|| known.hash.clone()));
        let changes = vec![AccountChange::ReplaceHash { account: account.clone(), known: compared, hash }];
        self.open_session(account, Vec::new(), origin, presented, changes).await
    }

    /// Keeps where an account signs in from, beside its password. `None` if it has none, or if that is known.
    pub(super) async fn network_change(
        &self,
        account: &KeyAccount,
        origin: &SignInOrigin,
    ) -> Result<Option<AccountChange>> {
        let Some(stored) = self.engine.credentials()?.find_password(account).await? else { return Ok(None) };
        let network = ClientNetwork::of(origin.address);
        let networks = with_network(&stored.networks, network, Timestamp::now());
        Ok(networks.map(|networks| AccountChange::SetNetworks { account: account.clone(), networks }))
    }

    /// Begins a session under a new token.
    pub(super) async fn begin_session(
        &self,
        session: SessionRecord,
        presented: Option<&str>,
        mut changes: Vec<AccountChange>,
    ) -> Result<OpenedSession, AccountRefusal> {
        let token = SecretToken::generate(TokenKind::Session).map_err(Error::internal)?;
        let (expires, id) = (session.expires, session.account.id.clone());
        if let Some(presented) = presented.and_then(|token| SecretToken::parse(TokenKind::Session, token)) {
            changes.push(AccountChange::EndSession { hash: presented.hash() });
        }
        changes.push(AccountChange::AddSession { hash: token.hash(), session });
        if !self.engine.change_accounts(changes).await? {
            return Err(AccountRefusal::Wrong);
        }
        self.sweep();
        Ok(OpenedSession { token, expires, account: id })
    }

    /// Removes what nobody can use any more, once an hour and beside the request. A clock that is ahead removes nothing that is
    /// still in use.
    fn sweep(&self) {
        let mut swept = self.state.swept.lock();
        if swept.is_some_and(|time| time.elapsed() < SWEEP_INTERVAL) {
            return;
        }
        *swept = Some(Instant::now());
        let now = earlier(Timestamp::now(), SWEEP_MARGIN);
        let change = AccountChange::Sweep { now, seen_since: earlier(now, self.settings.session_idle) };
        let engine = self.engine.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.change_accounts(vec![change]).await {
                tracing::warn!(%error, "cannot remove old sessions and links");
            }
        });
    }

    pub(super) fn new_session(
        &self,
        account: KeyAccount,
        roles: Vec<String>,
        origin: &SignInOrigin,
    ) -> SessionRecord {
        // As the store keeps it.
        let now = Timestamp::now();
        let created = Timestamp::from_second(now.as_second()).unwrap_or(now);
        SessionRecord {
            account,
            roles,
            created,
            seen: created,
            expires: later(created, self.settings.session_lifetime),
            address: origin.address.map(|address| address.to_canonical().to_string()),
            browser: origin.browser.as_deref().map(|name| name.chars().take(MAX_BROWSER).collect()),
        }
    }

    /// Ends a session; without effect if it has ended.
    pub async fn end_session(&self, token: &str) -> Result<()> {
        let Some(token) = SecretToken::parse(TokenKind::Session, token) else { return Ok(()) };
        let mut changes = vec![AccountChange::EndSession { hash: token.hash() }];
        changes.extend(self.note(AuditAction::SignOut, None));
        self.engine.change_accounts(changes).await.map(drop)
    }

    /// The sessions of an account, the last used first.
    pub async fn sessions(&self, id: &RecordId, current: Option<&str>) -> Result<Vec<ListedSession>> {
        let current = current.and_then(|token| SecretToken::parse(TokenKind::Session, token));
        let current = current.map(|token| token.hash());
        let account = self.reader.key_account(id.clone());
        let now = Timestamp::now();
        let sessions = self.engine.credentials()?.list_sessions(&account).await?.into_iter();
        let sessions = sessions.filter(|(_, session)| session.is_good_at(now, self.settings.session_idle));
        let listed = |(hash, session): (String, SessionRecord)| ListedSession {
            is_current: Some(&hash) == current.as_ref(),
            number: hash.chars().take(NUMBER_DIGITS).collect(),
            session,
        };
        Ok(sessions.map(listed).collect())
    }

    /// Ends a session of an account by its number; false if it has none.
    pub async fn end_numbered(&self, id: &RecordId, number: &str) -> Result<bool> {
        let account = self.reader.key_account(id.clone());
        let sessions = self.engine.credentials()?.list_sessions(&account).await?;
        let is_meant = |hash: &&String| number.len() == NUMBER_DIGITS && hash.starts_with(number);
        match sessions.iter().map(|(hash, _)| hash).find(is_meant) {
            Some(hash) => {
                let mut changes = vec![AccountChange::EndSession { hash: hash.clone() }];
                changes.extend(self.note(AuditAction::EndSessions, Some(&account)));
                self.engine.change_accounts(changes).await.map(|_| true)
            }
            None => Ok(false),
        }
    }

    /// Ends all sessions of an account but the one with this token.
    pub async fn end_sessions(&self, id: &RecordId, except: Option<&str>) -> Result<()> {
        let except = except.and_then(|token| SecretToken::parse(TokenKind::Session, token));
        let account = self.reader.key_account(id.clone());
        let except = except.map(|token| token.hash());
        let note = self.note(AuditAction::EndSessions, Some(&account));
        let mut changes = vec![AccountChange::EndSessions { account, except }];
        changes.extend(note);
        self.engine.change_accounts(changes).await.map(drop)
    }

    pub async fn end_all_sessions(&self) -> Result<()> {
        let mut changes = vec![AccountChange::EndAllSessions];
        changes.extend(self.note(AuditAction::EndSessions, None));
        self.engine.change_accounts(changes).await.map(drop)
    }

    pub async fn has_password(&self, id: &RecordId) -> Result<bool> {
        let account = self.reader.key_account(id.clone());
        Ok(self.engine.credentials()?.find_password(&account).await?.is_some())
    }

    /// Counts somebody who makes an account.
    pub fn count_sign_up(&self, address: Option<IpAddr>) -> Result<(), AccountRefusal> {
        match self.state.throttle.count_sign_up(ClientNetwork::of(address), self.state.second()) {
            TryVerdict::Refused { retry_after } => Err(AccountRefusal::Later { retry_after }),
            TryVerdict::Allowed | TryVerdict::OnlyKnownNetworks => Ok(()),
        }
    }

    /// Whether anybody can sign in with a password.
    pub async fn has_passwords(&self) -> Result<bool> {
        self.engine.credentials()?.has_passwords().await
    }

    /// The account, if it can be used.
    pub async fn find_usable(&self, id: &RecordId) -> Result<Option<UsableAccount>> {
        Ok(match self.reader.find(AccountKey::Id(id)).await? {
            AccountFinding::Usable(account) => Some(account),
            AccountFinding::Missing | AccountFinding::Unusable => None,
        })
    }

    /// Compares a password with that of an account. Without one it takes as long as with `like`, the hash of another one.
    pub(super) async fn verify(
        &self,
        password: &str,
        stored: Option<&StoredPassword>,
        like: Option<&str>,
    ) -> Result<PasswordVerdict, AccountRefusal> {
        // Nobody has a longer one, and it is not hashed: that would be a favour to whoever floods.
        let password = if password.chars().count() > MAX_PASSWORD_LENGTH { "" } else { password };
        Ok(self.state.hasher.verify(password, stored.map(|stored| stored.hash.as_str()), like).await??)
    }

    pub(super) fn choose(
        &self,
        password: &str,
        again: &str,
        names: &[String],
    ) -> Result<ChosenPassword, PasswordMistake> {
        let names: Vec<&str> = names.iter().map(String::as_str).chain([&*self.application]).collect();
        ChosenPassword::check(password, again, self.settings.password_length, &names)
    }

    /// What may be no password of an account: its login and its name.
    pub(super) async fn names_of(&self, account: &UsableAccount) -> Result<Vec<String>> {
        let found = self.engine.get(self.reader.type_name(), account.facts.id.clone()).await?;
        Ok(found.map(|fields| self.names_in(&fields)).unwrap_or_default())
    }

    pub(super) fn names_in(&self, fields: &Value) -> Vec<String> {
        let names = self.reader.name_fields();
        match fields {
            Value::Object(members) => {
                let own = members.iter().filter(|(name, _)| names.contains(name));
                own.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect()
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_) => Vec::new(),
        }
    }
}

/// Always the same for a login, and for one that differs in nothing else than the case of letters.
fn sample_place(login: &str) -> u64 {
    let digest = sha256(&login.to_ascii_lowercase());
    digest.iter().take(8).fold(0, |place, byte| place << 8 | u64::from(*byte))
}

pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}
