//! [`CredentialVerifier`]: decides whether a credential is good now, and whose it is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use trefoil_config::{IpNetwork, NetworkListSyntax, SettingSyntax};
use trefoil_engine::changes::{CredentialLog, KEY_IDENTITY};
use trefoil_engine::{ActorIdentity, ApiKeyRecord, DataVersion, Engine, KeyAccount, PresumedIdentity};
use trefoil_model::Value;
use trefoil_model::error::Error;

use crate::account_reader::{AccountFinding, AccountKey, AccountReader, UsableAccount};
use crate::api_key::ApiKey;
use crate::credential_lookup::{AskedAccount, CredentialLookup, ExpectedCredential};
use crate::credential_refusal::CredentialRefusal;
use crate::digest::{KnownDigests, hexadecimal, sha256};
use crate::identity_versions::IdentityVersions;
use crate::jwt::{TokenRefusal, TokenVerifier, VerifiedToken};

/// The most identities that are kept.
const KEPT_IDENTITIES: usize = 10_000;

const SECONDS_OF_DAY: i64 = 86_400;

/// A credential as a request has it.
#[derive(Debug, Clone, Copy)]
pub enum PresentedCredential<'r> {
    ApiKey(&'r str),
    Token {
        text: &'r str,
        /// The header that it came in, in lower case; `None` for `Authorization`.
        header: Option<&'r str>,
    },
}

/// Verifies credentials for one model.
pub struct CredentialVerifier {
    engine: Engine,
    accounts: Option<Arc<AccountReader>>,
    /// `None` if the store can tell versions of its data, which says at once whether anything changed.
    lookup: Option<Arc<CredentialLookup>>,
    tokens: TokenVerifier,
    /// What ended or changed credentials while streams are open.
    log: CredentialLog,
    versions: IdentityVersions,
    /// Of credentials that were good.
    digests: KnownDigests,
    /// The last identities by the SHA-256 of their credentials.
    kept: Cache<[u8; 32], KeptIdentity>,
    uses: Arc<KeyUses>,
}

/// A version of the data, and the number of what identities are made of in it.
#[derive(Clone, Copy)]
struct IdentityVersion {
    data: DataVersion,
    number: u64,
}

/// The uses of keys that were recorded.
struct KeyUses {
    engine: Engine,
    /// The day of the last one, by hash.
    marked: Mutex<HashMap<String, Date>>,
}

/// An identity as it was in one version of all that identities are made of. A key that is revoked makes another version.
#[derive(Clone)]
struct KeptIdentity {
    /// `None` if it must be found anew in every request.
    version: Option<u64>,
    identity: Arc<ActorIdentity>,
    /// `None` for a token.
    key: Option<Arc<KnownKey>>,
    /// What the store must say for the identity to be the same; `None` if nothing in the store is about it.
    expected: Option<Arc<ExpectedCredential>>,
}

/// A key as it was in one version.
struct KnownKey {
    hash: String,
    record: ApiKeyRecord,
    /// Where it may be used; anywhere without it.
    networks: Option<Vec<IpNetwork>>,
    /// The last day of which a use is recorded, since 1970.
    marked_day: AtomicI64,
}

impl CredentialVerifier {
    pub fn new(engine: &Engine, tokens: TokenVerifier) -> CredentialVerifier {
        let issuers = tokens.issuers().iter();
        let claimed = issuers.filter_map(|issuer| Some(issuer.settings().account.as_ref()?.field.as_str()));
        let accounts = AccountReader::new(engine, &claimed.collect::<Vec<_>>()).map(Arc::new);
        let tells_versions = engine.data_version().is_some();
        let lookup = (!tells_versions).then(|| Arc::new(CredentialLookup::new(engine, accounts.clone())));
        CredentialVerifier {
            engine: engine.clone(),
            accounts,
            lookup,
            tokens,
            log: CredentialLog::new(engine.feed(), engine.model()),
            versions: IdentityVersions::new(engine),
            digests: KnownDigests::default(),
            kept: Cache::new(KEPT_IDENTITIES),
            uses: Arc::new(KeyUses { engine: engine.clone(), marked: Mutex::default() }),
        }
    }

    /// Whom a credential proves, as every change acknowledged before this call has left it.
    pub async fn identify(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        self.identify_at(self.version().await, credential, address).await
    }

    /// The same, where this is the version of the data since the request arrived.
    async fn identify_at(
        &self,
        version: Option<IdentityVersion>,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let version = version.map(|version| version.number);
        match credential {
            PresentedCredential::ApiKey(text) => self.identify_key(text, version, address).await,
            PresentedCredential::Token { text, header } => self.identify_token(text, version, header).await,
        }
    }

    /// Whom a credential proved before, with the check that tells whether it still does; without a check if that is known.
    /// So the store is asked about the credential while the request is answered already.
    pub async fn presume(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<PresumedIdentity, CredentialRefusal> {
        if let Some(lookup) = &self.lookup
            && let Some(presumed) = self.find_presumed(credential, address).await?
        {
            let KeptIdentity { identity, key, expected, version: _ } = presumed;
            let check = expected.map(|expected| {
                let uses = self.uses.clone();
                // A use that is refused is none.
                lookup.confirm(&expected, move || {
                    if let Some(key) = &key {
                        uses.mark(key, Timestamp::now());
                    }
                })
            });
            return Ok(PresumedIdentity { identity, check, data_version: None });
        }
        let version = self.version().await;
        let identity = self.identify_at(version, credential, address).await?;
        Ok(PresumedIdentity { identity, check: None, data_version: version.map(|version| version.data) })
    }

    async fn find_presumed(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<Option<KeptIdentity>, CredentialRefusal> {
        let now = Timestamp::now();
        let digest = match credential {
            PresentedCredential::ApiKey(text) => self.digests.sha256(text),
            PresentedCredential::Token { text, header } => {
                let digest = self.digests.sha256(text);
                self.tokens.verify(text, &digest, header, now).await?;
                digest
            }
        };
        let Some(kept) = self.kept.get(&digest) else { return Ok(None) };
        // What a key was good for may have changed: it is not refused before it was looked up.
        let is_usable = kept.key.as_ref().is_none_or(|key| key.check_use(address, now).is_ok());
        Ok(is_usable.then_some(kept))
    }

    /// The version of all that identities are made of at some time since this was called; `None` if the store cannot tell.
    async fn version(&self) -> Option<IdentityVersion> {
        let data = self.engine.shared_data_version().await?;
        Some(IdentityVersion { data, number: self.versions.of_data(data) })
    }

    pub fn log(&self) -> &CredentialLog {
        &self.log
    }

    async fn identify_key(
        &self,
        text: &str,
        version: Option<u64>,
        address: Option<IpAddr>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let digest = self.digests.sha256(text);
        let kept = self.kept.get(&digest).and_then(|kept| Some((kept.version, kept.identity, kept.key?)));
        let (identity, key) = match kept {
            Some((kept_version, identity, key)) if version.is_some() && kept_version == version => {
                (identity, key)
            }
            kept => {
                let found = self.find_key(text, digest, version, kept.map(|(_, _, key)| key)).await;
                self.forget_refused(&digest, found)?
            }
        };
        let now = Timestamp::now();
        key.check_use(address, now)?;
        self.uses.mark(&key, now);
        Ok(identity)
    }

    /// The key as the store has it. If it was known, its account is asked for at the same time: both answers are of now,
    /// and a store that is not on this machine is waited for once.
    async fn find_key(
        &self,
        text: &str,
        digest: [u8; 32],
        version: Option<u64>,
        known: Option<Arc<KnownKey>>,
    ) -> Result<(Arc<ActorIdentity>, Arc<KnownKey>), CredentialRefusal> {
        let hash = match &known {
            Some(known) => known.hash.clone(),
            None => {
                let parsed = ApiKey::parse(text).ok_or_else(|| {
                    CredentialRefusal::Bad("an API key is mistyped: its checksum is wrong".to_owned())
                })?;
                parsed.hash()
            }
        };
        let expected = known.as_ref().and_then(|known| known.record.account.as_ref());
        let store = self.engine.credentials()?;
        let (found, account) =
            tokio::join!(store.find_api_key(&hash), find_account(expected, self.accounts.as_deref()));
        let record = found?.ok_or_else(|| CredentialRefusal::Bad("no such API key".to_owned()))?;
        let account = if record.account.as_ref() == expected {
            account?
        } else {
            find_account(record.account.as_ref(), self.accounts.as_deref()).await?
        };
        let expected = self.lookup.as_ref().map(|_| {
            let asked = record.account.as_ref().map(|account| AskedAccount::Id(account.id.clone()));
            let key = Some((hash.clone(), record.clone()));
            Arc::new(ExpectedCredential { key, account: asked.zip(account.clone()) })
        });
        let identity = identity_of_key(&record, account)?;
        let key = match known.filter(|known| known.record == record) {
            Some(known) => known,
            None => Arc::new(KnownKey::new(hash, record)),
        };
        self.digests.keep(text, digest);
        Ok((self.keep(digest, version, identity, Some(key.clone()), expected), key))
    }

    async fn identify_token(
        &self,
        text: &str,
        version: Option<u64>,
        header: Option<&str>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let digest = self.digests.sha256(text);
        let verified = self.tokens.verify(text, &digest, header, Timestamp::now()).await?;
        if let Some(kept) = self.find_kept(&digest, version) {
            return Ok(kept.identity);
        }
        self.digests.keep(text, digest);
        let found = self.identity_of_token(&verified).await;
        let (identity, account) = self.forget_refused(&digest, found)?;
        let expected = account.filter(|_| self.lookup.is_some());
        let expected =
            expected.map(|account| Arc::new(ExpectedCredential { key: None, account: Some(account) }));
        Ok(self.keep(digest, version, identity, None, expected))
    }

    /// The identity, and what was found of the account that the token names.
    async fn identity_of_token(
        &self,
        token: &VerifiedToken,
    ) -> Result<(ActorIdentity, Option<(AskedAccount, AccountFinding)>), CredentialRefusal> {
        let settings = self.tokens.issuers()[token.issuer].settings();
        let mut roles = token.roles.clone();
        let (mut facts, mut asked) = (None, None);
        if let (Some(value), Some(reader), Some(claim)) = (&token.account, &self.accounts, &settings.account)
            && let Some(field) = reader.field(&claim.field)
        {
            let finding = reader.find(AccountKey::Field(field, value)).await?;
            match &finding {
                AccountFinding::Usable(account) => {
                    roles.extend_from_slice(&account.roles);
                    facts = Some(account.facts.clone());
                }
                // Whoever it is, they are signed in, with no record of their own.
                AccountFinding::Missing => {}
                AccountFinding::Unusable => return Err(TokenRefusal::Account.into()),
            }
            let account = match &facts {
                // By its id, many are found with one statement. What the claim was compared with is part of the finding.
                Some(facts) if reader.is_claim_unique(field) => AskedAccount::Id(facts.id.clone()),
                Some(_) | None => AskedAccount::Field(field, value.clone()),
            };
            asked = Some((account, finding));
        }
        roles.sort();
        roles.dedup();
        // Tokens without a subject are of different actors, for all that is known.
        let subject = match &token.subject {
            Some(subject) => sha256(subject),
            None => sha256(&format!("{:?}", token.claims)),
        };
        let identity = ActorIdentity {
            name: format!("token:{}/{}", token.issuer + 1, &hexadecimal(&subject)[..16]),
            roles,
            account: facts,
            claims: token.claims.clone(),
            expires: Some(token.expires),
        };
        Ok((identity, asked))
    }

    /// The identity as it is in this version, if the store can tell versions.
    fn find_kept(&self, hash: &[u8; 32], version: Option<u64>) -> Option<KeptIdentity> {
        self.kept.get(hash).filter(|kept| version.is_some() && kept.version == version)
    }

    /// Keeps an identity that was read since `version` was the version: if something changed meanwhile, that of the next
    /// request differs. An identity that has not changed stays the same one, with all that was made for it.
    fn keep(
        &self,
        hash: [u8; 32],
        version: Option<u64>,
        identity: ActorIdentity,
        key: Option<Arc<KnownKey>>,
        expected: Option<Arc<ExpectedCredential>>,
    ) -> Arc<ActorIdentity> {
        let is_lasting = self.accounts.as_deref().is_none_or(AccountReader::is_lasting);
        let known = self.kept.get(&hash).map(|kept| kept.identity).filter(|known| **known == identity);
        let identity = known.unwrap_or_else(|| Arc::new(identity));
        let version = version.filter(|_| is_lasting);
        self.kept.insert(hash, KeptIdentity { version, identity: identity.clone(), key, expected });
        identity
    }

    /// Forgets whom a credential proved if a look-up refuses it. Else every later request with it would begin to read for them
    /// before it is refused.
    fn forget_refused<T>(
        &self,
        digest: &[u8; 32],
        found: Result<T, CredentialRefusal>,
    ) -> Result<T, CredentialRefusal> {
        if matches!(found, Err(CredentialRefusal::Bad(_))) {
            self.kept.remove(digest);
        }
        found
    }
}

impl KeyUses {
    /// Records the day of a use, once a day and without making the request wait.
    fn mark(self: &Arc<Self>, key: &Arc<KnownKey>, now: Timestamp) {
        let day = now.as_second().div_euclid(SECONDS_OF_DAY);
        if key.marked_day.swap(day, Ordering::Relaxed) == day {
            return;
        }
        let today = now.to_zoned(TimeZone::UTC).date();
        if key.record.last_used.is_some_and(|day| day >= today)
            || self.marked.lock().insert(key.hash.clone(), today) == Some(today)
        {
            return;
        }
        let (uses, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            let result = match uses.engine.credentials() {
                Ok(store) => store.mark_api_key_used(&key.hash, today).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                tracing::warn!(%error, "cannot record the use of an API key");
                uses.marked.lock().remove(&key.hash);
                key.marked_day.store(i64::MIN, Ordering::Relaxed);
            }
        });
    }
}

/// Whom a key proves now, wherever it is used from.
pub async fn key_identity(
    record: &ApiKeyRecord,
    accounts: Option<&AccountReader>,
) -> Result<ActorIdentity, CredentialRefusal> {
    check_expiry(record, Timestamp::now())?;
    identity_of_key(record, find_account(record.account.as_ref(), accounts).await?)
}

/// The account that a key acts as, if it acts as one.
async fn find_account(
    account: Option<&KeyAccount>,
    accounts: Option<&AccountReader>,
) -> Result<Option<AccountFinding>, Error> {
    let Some(account) = account else { return Ok(None) };
    match accounts.filter(|reader| reader.type_name() == account.type_name) {
        Some(reader) => reader.find(AccountKey::Id(&account.id)).await.map(Some),
        None => Ok(Some(AccountFinding::Missing)),
    }
}

fn check_expiry(record: &ApiKeyRecord, now: Timestamp) -> Result<(), CredentialRefusal> {
    if record.expires.is_some_and(|expires| expires <= now) {
        return Err(CredentialRefusal::Bad(format!("the API key {} has expired", record.name)));
    }
    Ok(())
}

/// The identity of a key with what was found of its account.
fn identity_of_key(
    record: &ApiKeyRecord,
    account: Option<AccountFinding>,
) -> Result<ActorIdentity, CredentialRefusal> {
    let account = match account {
        None => None,
        Some(AccountFinding::Usable(UsableAccount { facts, .. })) => Some(facts),
        Some(AccountFinding::Missing | AccountFinding::Unusable) => {
            let reason = format!("the account of the API key {} is gone or cannot be used", record.name);
            return Err(CredentialRefusal::Bad(reason));
        }
    };
    Ok(ActorIdentity {
        name: format!("{KEY_IDENTITY}{}", record.name),
        roles: record.roles.clone(),
        account,
        claims: Value::Object(Vec::new()),
        expires: record.expires,
    })
}

impl KnownKey {
    fn new(hash: String, record: ApiKeyRecord) -> KnownKey {
        // What cannot be read allows nothing.
        let networks = (!record.networks.is_empty())
            .then(|| NetworkListSyntax::read(&record.networks.join(",")).unwrap_or_default());
        KnownKey { hash, record, networks, marked_day: AtomicI64::new(i64::MIN) }
    }

    /// Refuses the key at a time or from a network that it is not for.
    fn check_use(&self, address: Option<IpAddr>, now: Timestamp) -> Result<(), CredentialRefusal> {
        check_expiry(&self.record, now)?;
        let Some(networks) = &self.networks else { return Ok(()) };
        let is_inside =
            address.is_some_and(|address| networks.iter().any(|network| network.contains(address)));
        if is_inside {
            return Ok(());
        }
        Err(CredentialRefusal::Bad(format!("the API key {} is not for this network", self.record.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_for_their_time_and_networks() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let check = |expires: Option<i64>, networks: &[&str], address: Option<&str>| {
            let record = ApiKeyRecord {
                name: "ci".to_owned(),
                roles: Vec::new(),
                account: None,
                expires: expires.map(|seconds| Timestamp::from_second(seconds).unwrap()),
                networks: networks.iter().map(|network| (*network).to_owned()).collect(),
                created: now,
                last_used: None,
            };
            let key = KnownKey::new(String::new(), record);
            key.check_use(address.map(|address| address.parse().unwrap()), now).is_ok()
        };
        assert!(check(None, &[], None));
        assert!(check(Some(1_800_000_001), &[], None));
        assert!(!check(Some(1_800_000_000), &[], None));
        let networks = ["10.0.0.0/8", "2001:db8::/32"];
        for inside in ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"] {
            assert!(check(None, &networks, Some(inside)), "{inside}");
        }
        for outside in ["11.0.0.1", "127.0.0.1", "::1", "2001:db9::"] {
            assert!(!check(None, &networks, Some(outside)), "{outside}");
        }
        assert!(!check(None, &networks, None));
        assert!(!check(None, &["everywhere"], Some("10.1.2.3")));
    }
}
