//! [`CredentialLookup`]: asks the store about the credentials of many requests at once.
//!
//! A store that cannot tell versions of its data is asked in each request whether a credential still proves what it proved.
//! Requests that come at the same time share these statements: alone, they would cost as much as what most requests read.
//! None shares an answer that may be older than itself. Whoever asks is added to a look-up that has not begun; only after it
//! is closed to others its statements are sent, and PostgreSQL takes their snapshots when it runs them. A commit is in every
//! snapshot that is taken after it was acknowledged, on whichever node, so a look-up sees all that was acknowledged before
//! any of its requests began.
//!
//! A request waits for what its own credential needs, not for the rest of its look-up; and no look-up waits long for a slow one.
//! All requests of a look-up under one credential wait for the same check.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use trefoil_engine::{ApiKeyRecord, Engine, IdentityCheck, SessionRecord};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, RecordId};

use crate::account_reader::{AccountFinding, AccountKey, AccountReader};

/// How many look-ups may run at once, without slow ones. A request waits for the end of one at most before its own begins.
const MAX_RUNNING: usize = 2;

/// A look-up that takes longer is slow: others begin beside it.
const SLOW_AFTER: Duration = Duration::from_millis(250);

/// Looks up credentials.
pub struct CredentialLookup {
    engine: Engine,
    accounts: Option<Arc<AccountReader>>,
    turns: Mutex<LookupTurns>,
}

/// What a credential was when it was last looked up.
pub struct ExpectedCredential {
    /// The hash of an API key, and the key.
    pub key: Option<(String, ApiKeyRecord)>,
    /// The hash of a session's token, and the session.
    pub session: Option<(String, SessionRecord)>,
    pub account: Option<(AskedAccount, AccountFinding)>,
}

/// How the account of a credential is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AskedAccount {
    Id(RecordId),
    Field(FieldId, String),
}

#[derive(Default)]
struct LookupTurns {
    running: usize,
    /// The one that has not begun.
    next: Option<OpenLookup>,
}

/// A look-up that credentials can still be added to, by the addresses of what is expected of them.
#[derive(Default)]
struct OpenLookup(HashMap<usize, AskedCredential>);

struct AskedCredential {
    expected: Arc<ExpectedCredential>,
    check: IdentityCheck,
    told: oneshot::Sender<bool>,
}

/// What a look-up has found so far, and the credentials that it has not decided.
struct RunningLookup {
    found: FoundCredentials,
    undecided: Vec<AskedCredential>,
}

/// What the store knows now, as far as it has answered.
#[derive(Default)]
struct FoundCredentials {
    keys: Option<Result<HashMap<String, ApiKeyRecord>>>,
    sessions: Option<Result<HashMap<String, SessionRecord>>>,
    /// `None` if it cannot be told.
    accounts: HashMap<AskedAccount, Option<AccountFinding>>,
}

impl CredentialLookup {
    pub fn new(engine: &Engine, accounts: Option<Arc<AccountReader>>) -> CredentialLookup {
        CredentialLookup { engine: engine.clone(), accounts, turns: Mutex::default() }
    }

    /// Whether a credential is what it was; not so if that cannot be told. It is asked whether or not the check is. `held` is
    /// called once for all requests that share the check, if it holds.
    pub fn confirm(
        self: &Arc<Self>,
        expected: &Arc<ExpectedCredential>,
        held: impl FnOnce() + Send + 'static,
    ) -> IdentityCheck {
        let mut turns = self.turns.lock();
        let is_first = turns.next.is_none();
        let check = turns.next.get_or_insert_default().check(expected, held);
        if is_first && turns.running < MAX_RUNNING {
            turns.running += 1;
            tokio::spawn(RunningLookups { lookup: self.clone(), is_counted: true }.run());
        }
        check
    }

    /// Decides each credential as soon as the store has answered what it needs.
    async fn look_up(self: Arc<Self>, asked: OpenLookup) {
        let (mut hashes, mut sessions) = (HashSet::new(), HashSet::new());
        let (mut ids, mut fields) = (HashSet::new(), HashSet::new());
        for AskedCredential { expected, .. } in asked.0.values() {
            hashes.extend(expected.key.as_ref().map(|(hash, _)| hash.clone()));
            sessions.extend(expected.session.as_ref().map(|(hash, _)| hash.clone()));
            match expected.account.as_ref().map(|(account, _)| account) {
                Some(AskedAccount::Id(id)) => drop(ids.insert(id.clone())),
                Some(AskedAccount::Field(field, text)) => drop(fields.insert((*field, text.clone()))),
                None => {}
            }
        }
        let undecided = asked.0.into_values().collect();
        let running = Mutex::new(RunningLookup { found: FoundCredentials::default(), undecided });
        let keys = async {
            if !hashes.is_empty() {
                let keys = self.find_keys(hashes.into_iter().collect()).await;
                running.lock().add(|found| found.keys = Some(keys));
            }
        };
        let sessions = async {
            if !sessions.is_empty() {
                let sessions = self.find_sessions(sessions.into_iter().collect()).await;
                running.lock().add(|found| found.sessions = Some(sessions));
            }
        };
        let fields = fields.into_iter();
        let by_field = join_all(fields.map(|(field, text)| self.find_by_field(field, text, &running)));
        let by_id = self.find_by_id(ids.into_iter().collect(), &running);
        tokio::join!(keys, sessions, by_id, by_field);
    }

    /// Finds accounts with one statement.
    async fn find_by_id(&self, ids: Vec<RecordId>, running: &Mutex<RunningLookup>) {
        if ids.is_empty() {
            return;
        }
        let found = match &self.accounts {
            Some(reader) => reader.find_all(ids.clone()).await.ok(),
            None => Some(HashMap::new()),
        };
        let finding = |id: &RecordId| {
            found.as_ref().map(|found| found.get(id).cloned().unwrap_or(AccountFinding::Missing))
        };
        let findings = ids.iter().map(|id| (AskedAccount::Id(id.clone()), finding(id)));
        running.lock().add(|found| found.accounts.extend(findings));
    }

    async fn find_by_field(&self, field: FieldId, text: String, running: &Mutex<RunningLookup>) {
        let finding = match &self.accounts {
            Some(reader) => reader.find(AccountKey::Field(field, &text)).await.ok(),
            None => Some(AccountFinding::Missing),
        };
        let account = AskedAccount::Field(field, text);
        running.lock().add(|found| drop(found.accounts.insert(account, finding)));
    }

    async fn find_keys(&self, hashes: Vec<String>) -> Result<HashMap<String, ApiKeyRecord>> {
        Ok(self.engine.credentials()?.find_api_keys(hashes).await?.into_iter().collect())
    }

    async fn find_sessions(&self, hashes: Vec<String>) -> Result<HashMap<String, SessionRecord>> {
        Ok(self.engine.credentials()?.find_sessions(hashes).await?.into_iter().collect())
    }
}

/// Runs look-ups until none is wanted.
struct RunningLookups {
    lookup: Arc<CredentialLookup>,
    /// Whether it is one of the running ones still.
    is_counted: bool,
}

impl RunningLookups {
    async fn run(mut self) {
        // Requests that are read from their connections at the same time come along.
        tokio::task::yield_now().await;
        while let Some(next) = self.take_next() {
            let mut asking = Box::pin(self.lookup.clone().look_up(next));
            if timeout(SLOW_AFTER, &mut asking).await.is_err() {
                // It is not given up: if each of its requests asked for itself, the database would have more to do. Their own
                // time is limited.
                tokio::spawn(asking);
            }
        }
    }

    fn take_next(&mut self) -> Option<OpenLookup> {
        let next = self.lookup.turns.lock().take_next();
        self.is_counted = next.is_some();
        next
    }
}

impl Drop for RunningLookups {
    fn drop(&mut self) {
        // It ended as it should, see [`LookupTurns::take_next`].
        if !self.is_counted {
            return;
        }
        let mut turns = self.lookup.turns.lock();
        turns.running -= 1;
        if turns.running == 0 {
            // Nobody would run it. It is there only after a panic.
            turns.next = None;
        }
    }
}

impl LookupTurns {
    /// The look-up that a runner begins. Without one the runner ends, and does not count from this moment on: else who adds
    /// one before it is gone would leave it to a runner that does not look again.
    fn take_next(&mut self) -> Option<OpenLookup> {
        let next = self.next.take();
        if next.is_none() {
            self.running -= 1;
        }
        next
    }
}

impl OpenLookup {
    fn check(
        &mut self,
        expected: &Arc<ExpectedCredential>,
        held: impl FnOnce() + Send + 'static,
    ) -> IdentityCheck {
        let asked = self.0.entry(Arc::as_ptr(expected).addr()).or_insert_with(|| {
            let (told, holds) = oneshot::channel();
            let check = IdentityCheck::new(async move {
                let holds = holds.await.unwrap_or(false);
                if holds {
                    held();
                }
                holds
            });
            AskedCredential { expected: expected.clone(), check, told }
        });
        asked.check.clone()
    }
}

impl RunningLookup {
    /// Adds an answer of the store, and tells whom it decides.
    fn add(&mut self, add: impl FnOnce(&mut FoundCredentials)) {
        add(&mut self.found);
        let found = &self.found;
        for asked in self.undecided.extract_if(.., |asked| found.confirms(&asked.expected).is_some()) {
            // Who does not listen any more needs no answer.
            let _ = asked.told.send(found.confirms(&asked.expected) == Some(true));
        }
    }
}

impl FoundCredentials {
    /// Whether a credential is what it was; `None` as long as that is not known.
    fn confirms(&self, expected: &ExpectedCredential) -> Option<bool> {
        let has_key = match &expected.key {
            Some((hash, record)) => self.has_key(hash, record),
            None => Some(true),
        };
        let has_account = match &expected.account {
            Some((asked, finding)) => self.accounts.get(asked).map(|found| found.as_ref() == Some(finding)),
            None => Some(true),
        };
        let has_session = match &expected.session {
            Some((hash, session)) => self.has_session(hash, session),
            None => Some(true),
        };
        let known = [has_key, has_session, has_account];
        if known.contains(&Some(false)) {
            return Some(false);
        }
        (!known.contains(&None)).then_some(true)
    }

    fn has_session(&self, hash: &str, expected: &SessionRecord) -> Option<bool> {
        let found = self.sessions.as_ref()?.as_ref().ok().and_then(|sessions| sessions.get(hash));
        // When it was last seen changes with its requests.
        Some(found.is_some_and(|found| SessionRecord { seen: expected.seen, ..found.clone() } == *expected))
    }

    fn has_key(&self, hash: &str, expected: &ApiKeyRecord) -> Option<bool> {
        let found = self.keys.as_ref()?.as_ref().ok().and_then(|keys| keys.get(hash));
        Some(found.is_some_and(|found| is_same_key(found, expected)))
    }
}

/// Whether a key proves what it proved. The day of its last use is no part of that: it changes with the first use of a day,
/// under all requests that are answered meanwhile.
fn is_same_key(found: &ApiKeyRecord, expected: &ApiKeyRecord) -> bool {
    let ApiKeyRecord { name, roles, account, expires, networks, created, last_used: _ } = found;
    *name == expected.name
        && *roles == expected.roles
        && *account == expected.account
        && *expires == expected.expires
        && *networks == expected.networks
        && *created == expected.created
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::date;

    use super::*;

    #[test]
    fn runners_that_find_nothing_count_no_more() {
        let mut turns = LookupTurns { running: MAX_RUNNING, next: Some(OpenLookup::default()) };
        assert!(turns.take_next().is_some());
        assert_eq!(turns.running, MAX_RUNNING);
        for left in (0..MAX_RUNNING).rev() {
            assert!(turns.take_next().is_none());
            assert_eq!(turns.running, left);
        }
    }

    #[test]
    fn keys_are_the_same_whenever_they_were_used() {
        let key = ApiKeyRecord {
            name: "ci".to_owned(),
            roles: vec!["editor".to_owned()],
            account: None,
            expires: None,
            networks: Vec::new(),
            created: Timestamp::UNIX_EPOCH,
            last_used: None,
        };
        let found = |keys: HashMap<String, ApiKeyRecord>| FoundCredentials {
            keys: Some(Ok(keys)),
            ..FoundCredentials::default()
        };
        let with = |key: ApiKeyRecord| found(HashMap::from([("hash".to_owned(), key)]));
        let expected =
            ExpectedCredential { key: Some(("hash".to_owned(), key.clone())), session: None, account: None };
        let used = ApiKeyRecord { last_used: Some(date(2026, 7, 1)), ..key.clone() };
        assert_eq!(with(key.clone()).confirms(&expected), Some(true));
        assert_eq!(with(used).confirms(&expected), Some(true));
        let network = vec!["10.0.0.0/8".to_owned()];
        for other in [
            ApiKeyRecord { roles: Vec::new(), ..key.clone() },
            ApiKeyRecord { expires: Some(Timestamp::UNIX_EPOCH), ..key.clone() },
            ApiKeyRecord { networks: network, ..key.clone() },
        ] {
            assert_eq!(with(other).confirms(&expected), Some(false));
        }
        assert_eq!(found(HashMap::new()).confirms(&expected), Some(false));
        // With an account, nobody is confirmed before both are known; who has no key is refused at once.
        let account = Some((AskedAccount::Id(RecordId::Number(1)), AccountFinding::Missing));
        let both = ExpectedCredential { account, ..expected };
        assert_eq!(FoundCredentials::default().confirms(&both), None);
        assert_eq!(with(key.clone()).confirms(&both), None);
        assert_eq!(found(HashMap::new()).confirms(&both), Some(false));
        let found = |finding| HashMap::from([(AskedAccount::Id(RecordId::Number(1)), finding)]);
        let all = |finding| FoundCredentials { accounts: found(finding), ..with(key.clone()) };
        assert_eq!(all(Some(AccountFinding::Missing)).confirms(&both), Some(true));
        assert_eq!(all(Some(AccountFinding::Unusable)).confirms(&both), Some(false));
        // Who cannot be told.
        assert_eq!(all(None).confirms(&both), Some(false));
    }
}
