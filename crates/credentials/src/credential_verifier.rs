//! [`CredentialVerifier`]: decides whether a credential is good now, and whose it is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use trefoil_config::{NetworkListSyntax, SettingSyntax};
use trefoil_engine::changes::{CredentialLog, KEY_IDENTITY};
use trefoil_engine::{ActorIdentity, ApiKeyRecord, DataVersion, Engine};
use trefoil_model::Value;
use trefoil_model::error::Error;

use crate::account_reader::{AccountFinding, AccountKey, AccountReader, UsableAccount};
use crate::api_key::ApiKey;
use crate::digest::{hexadecimal, sha256};
use crate::jwt::{TokenRefusal, TokenVerifier, VerifiedToken};

/// The most identities that are kept.
const KEPT_IDENTITIES: usize = 10_000;

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

/// Why a credential proves nothing.
#[derive(Debug, Clone)]
pub enum CredentialRefusal {
    /// It is not good; the reason is for the log.
    Bad(String),
    /// Whether it is good cannot be told yet.
    NotYet { retry_after: Duration },
    /// The store could not be asked.
    Failed(Error),
}

impl From<Error> for CredentialRefusal {
    fn from(error: Error) -> CredentialRefusal {
        CredentialRefusal::Failed(error)
    }
}

impl From<TokenRefusal> for CredentialRefusal {
    fn from(refusal: TokenRefusal) -> CredentialRefusal {
        match refusal {
            TokenRefusal::NoKeysYet { retry_after } => CredentialRefusal::NotYet { retry_after },
            TokenRefusal::TooLong
            | TokenRefusal::Malformed
            | TokenRefusal::Critical
            | TokenRefusal::Type
            | TokenRefusal::Algorithm
            | TokenRefusal::Issuer
            | TokenRefusal::Audience
            | TokenRefusal::Key
            | TokenRefusal::Signature
            | TokenRefusal::Expiry
            | TokenRefusal::Expired
            | TokenRefusal::NotYet
            | TokenRefusal::Account => CredentialRefusal::Bad(format!("a token is refused: {refusal}")),
        }
    }
}

/// Verifies credentials for one model.
pub struct CredentialVerifier {
    engine: Engine,
    accounts: Option<AccountReader>,
    tokens: TokenVerifier,
    /// What ended or changed credentials while streams are open.
    log: CredentialLog,
    /// The last identities by the SHA-256 of their credentials.
    kept: Cache<[u8; 32], KeptIdentity>,
    /// The day on which a use of a key was last recorded, by hash.
    marked: Arc<Mutex<HashMap<String, Date>>>,
}

/// An identity as it was in one version of the data. A key that is revoked makes another version.
#[derive(Clone)]
struct KeptIdentity {
    /// `None` if it must be found anew in every request.
    version: Option<DataVersion>,
    identity: Arc<ActorIdentity>,
    /// Of a key.
    record: Option<Arc<ApiKeyRecord>>,
}

impl CredentialVerifier {
    pub fn new(engine: &Engine, tokens: TokenVerifier) -> CredentialVerifier {
        CredentialVerifier {
            engine: engine.clone(),
            accounts: AccountReader::new(engine),
            tokens,
            log: CredentialLog::new(engine.feed(), engine.model()),
            kept: Cache::new(KEPT_IDENTITIES),
            marked: Arc::default(),
        }
    }

    /// Whom a credential proves, as every change acknowledged before this call has left it.
    pub async fn identify(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        match credential {
            PresentedCredential::ApiKey(text) => self.identify_key(text, address).await,
            PresentedCredential::Token { text, header } => self.identify_token(text, header).await,
        }
    }

    pub fn log(&self) -> &CredentialLog {
        &self.log
    }

    async fn identify_key(
        &self,
        text: &str,
        address: Option<IpAddr>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let key = ApiKey::parse(text).ok_or_else(|| {
            CredentialRefusal::Bad("an API key is mistyped: its checksum is wrong".to_owned())
        })?;
        let hash = key.hash();
        let version = self.engine.data_version();
        let (identity, record) = match self.find_kept(&sha256(text), version) {
            Some(KeptIdentity { identity, record: Some(record), .. }) => (identity, record),
            Some(KeptIdentity { record: None, .. }) | None => {
                let found = self.engine.credentials()?.find_api_key(&hash).await?;
                let record =
                    Arc::new(found.ok_or_else(|| CredentialRefusal::Bad("no such API key".to_owned()))?);
                let identity = identity_of_key(&record, self.accounts.as_ref()).await?;
                (self.keep(sha256(text), version, identity, Some(record.clone())), record)
            }
        };
        check_use(&record, address, Timestamp::now())?;
        self.mark_used(hash, &record);
        Ok(identity)
    }

    async fn identify_token(
        &self,
        text: &str,
        header: Option<&str>,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let verified = self.tokens.verify(text, header, Timestamp::now()).await?;
        let version = self.engine.data_version();
        let hash = sha256(text);
        if let Some(kept) = self.find_kept(&hash, version) {
            return Ok(kept.identity);
        }
        let identity = self.identity_of_token(&verified).await?;
        Ok(self.keep(hash, version, identity, None))
    }

    async fn identity_of_token(&self, token: &VerifiedToken) -> Result<ActorIdentity, CredentialRefusal> {
        let settings = self.tokens.issuers()[token.issuer].settings();
        let mut roles = token.roles.clone();
        let mut facts = None;
        if let (Some(value), Some(reader), Some(claim)) = (&token.account, &self.accounts, &settings.account)
            && let Some(field) = reader.field(&claim.field)
        {
            match reader.find(AccountKey::Field(field, value)).await? {
                AccountFinding::Usable(account) => {
                    roles.extend(account.roles);
                    facts = Some(account.facts);
                }
                // Whoever it is, they are signed in, with no record of their own.
                AccountFinding::Missing => {}
                AccountFinding::Unusable => return Err(TokenRefusal::Account.into()),
            }
        }
        roles.sort();
        roles.dedup();
        let subject =
            token.subject.as_deref().map(|subject| format!("/{}", &hexadecimal(&sha256(subject))[..16]));
        Ok(ActorIdentity {
            name: format!("token:{}{}", token.issuer + 1, subject.unwrap_or_default()),
            roles,
            account: facts,
            claims: token.claims.clone(),
            expires: Some(token.expires),
        })
    }

    /// The identity as it is in this version of the data, if the store can tell versions.
    fn find_kept(&self, hash: &[u8; 32], version: Option<DataVersion>) -> Option<KeptIdentity> {
        self.kept.get(hash).filter(|kept| version.is_some() && kept.version == version)
    }

    /// Keeps an identity that was read since `version` was the version of the data: if something changed meanwhile, that of
    /// the next request differs. An identity that has not changed stays the same one, with all that was made for it.
    fn keep(
        &self,
        hash: [u8; 32],
        version: Option<DataVersion>,
        identity: ActorIdentity,
        record: Option<Arc<ApiKeyRecord>>,
    ) -> Arc<ActorIdentity> {
        let is_lasting = self.accounts.as_ref().is_none_or(AccountReader::is_lasting);
        let known = self.kept.get(&hash).map(|kept| kept.identity).filter(|known| **known == identity);
        let identity = known.unwrap_or_else(|| Arc::new(identity));
        let version = version.filter(|_| is_lasting);
        self.kept.insert(hash, KeptIdentity { version, identity: identity.clone(), record });
        identity
    }

    /// Records the day of a use, once a day and without making the request wait.
    fn mark_used(&self, hash: String, record: &ApiKeyRecord) {
        let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
        if record.last_used.is_some_and(|day| day >= today)
            || self.marked.lock().insert(hash.clone(), today) == Some(today)
        {
            return;
        }
        let (engine, marked) = (self.engine.clone(), self.marked.clone());
        tokio::spawn(async move {
            let result = match engine.credentials() {
                Ok(store) => store.mark_api_key_used(&hash, today).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                tracing::warn!(%error, "cannot record the use of an API key");
                marked.lock().remove(&hash);
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
    identity_of_key(record, accounts).await
}

async fn identity_of_key(
    record: &ApiKeyRecord,
    accounts: Option<&AccountReader>,
) -> Result<ActorIdentity, CredentialRefusal> {
    let account = match &record.account {
        None => None,
        Some(account) => {
            let reader = accounts.filter(|reader| reader.type_name() == account.type_name);
            let found = match reader {
                Some(reader) => reader.find(AccountKey::Id(&account.id)).await?,
                None => AccountFinding::Missing,
            };
            match found {
                AccountFinding::Usable(UsableAccount { facts, .. }) => Some(facts),
                AccountFinding::Missing | AccountFinding::Unusable => {
                    let reason =
                        format!("the account of the API key {} is gone or cannot be used", record.name);
                    return Err(CredentialRefusal::Bad(reason));
                }
            }
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

fn check_expiry(record: &ApiKeyRecord, now: Timestamp) -> Result<(), CredentialRefusal> {
    if record.expires.is_some_and(|expires| expires <= now) {
        return Err(CredentialRefusal::Bad(format!("the API key {} has expired", record.name)));
    }
    Ok(())
}

/// Refuses a key at a time or from a network that it is not for.
fn check_use(
    record: &ApiKeyRecord,
    address: Option<IpAddr>,
    now: Timestamp,
) -> Result<(), CredentialRefusal> {
    check_expiry(record, now)?;
    if record.networks.is_empty() {
        return Ok(());
    }
    let networks = NetworkListSyntax::read(&record.networks.join(",")).unwrap_or_default();
    let is_inside = address.is_some_and(|address| networks.iter().any(|network| network.contains(address)));
    if is_inside {
        return Ok(());
    }
    Err(CredentialRefusal::Bad(format!("the API key {} is not for this network", record.name)))
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
            check_use(&record, address.map(|address| address.parse().unwrap()), now).is_ok()
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
        // What cannot be read allows nothing.
        assert!(!check(None, &["everywhere"], Some("10.1.2.3")));
    }
}
