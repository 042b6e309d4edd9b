//! [`CredentialVerifier`]: decides whether a credential is good now, and whose it is.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use quick_cache::sync::Cache;

use trefoil_engine::changes::CredentialLog;
use trefoil_engine::{AccountChange, ActorIdentity, CredentialUse, DataVersion, Engine, PresumedIdentity};

use crate::account_reader::{AccountFinding, AccountKey, AccountReader};
use crate::credential_lookup::{AskedAccount, CredentialLookup, ExpectedCredential};
use crate::credential_refusal::CredentialRefusal;
use crate::digest::{KnownDigests, hexadecimal, sha256};
use crate::identity_versions::IdentityVersions;
use crate::jwt::{TokenRefusal, TokenVerifier, VerifiedToken};
use crate::known_key::{KeyUses, KnownKey, identity_of_key};
use crate::known_session::{KnownSession, SessionUses, identity_of_session};
use crate::secret_token::{SecretToken, TokenKind};

/// The most identities that are kept.
const KEPT_IDENTITIES: usize = 10_000;

/// A credential as a request has it.
#[derive(Debug, Clone, Copy)]
pub enum PresentedCredential<'r> {
    ApiKey(&'r str),
    Session(&'r str),
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
    session_uses: Arc<SessionUses>,
    session_idle: SignedDuration,
}

/// A version of the data, and the number of what identities are made of in it.
#[derive(Clone, Copy)]
struct IdentityVersion {
    data: DataVersion,
    number: u64,
}

/// What proved an identity.
#[derive(Clone)]
enum KnownCredential {
    Key(Arc<KnownKey>),
    Session(Arc<KnownSession>),
    Token,
}

/// An identity as it was in one version of all that identities are made of. A key that is revoked makes another version.
#[derive(Clone)]
struct KeptIdentity {
    /// `None` if it must be found anew in every request.
    version: Option<u64>,
    identity: Arc<ActorIdentity>,
    credential: KnownCredential,
    /// What the store must say for the identity to be the same; `None` if nothing in the store is about it.
    expected: Option<Arc<ExpectedCredential>>,
}

impl CredentialVerifier {
    pub fn new(
        engine: &Engine,
        tokens: TokenVerifier,
        session_idle: SignedDuration,
        session_uses: Arc<SessionUses>,
    ) -> CredentialVerifier {
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
            uses: Arc::new(KeyUses::new(engine)),
            session_uses,
            session_idle,
        }
    }

    /// Whom a credential proves, as every change acknowledged before this call has left it.
    pub async fn identify(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        self.identify_at(self.version().await, credential, address, used_for).await
    }

    /// The same, where this is the version of the data since the request arrived.
    async fn identify_at(
        &self,
        version: Option<IdentityVersion>,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let version = version.map(|version| version.number);
        match credential {
            PresentedCredential::ApiKey(text) => self.identify_key(text, version, address).await,
            PresentedCredential::Session(text) => self.identify_session(text, version, used_for).await,
            PresentedCredential::Token { text, header } => self.identify_token(text, version, header).await,
        }
    }

    /// Whom a credential proved before, with the check that tells whether it still does; without a check if that is known.
    /// So the store is asked about the credential while the request is answered already.
    pub async fn presume(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> Result<PresumedIdentity, CredentialRefusal> {
        if let Some(lookup) = &self.lookup
            && let Some(presumed) = self.find_presumed(credential, address).await?
        {
            let KeptIdentity { identity, credential, expected, version: _ } = presumed;
            let check = expected.map(|expected| {
                let (uses, session_uses) = (self.uses.clone(), self.session_uses.clone());
                // A use that is refused is none.
                lookup.confirm(&expected, move || match &credential {
                    KnownCredential::Key(key) => uses.mark(key, Timestamp::now()),
                    KnownCredential::Session(session) if used_for == CredentialUse::Request => {
                        session_uses.mark(session, Timestamp::now());
                    }
                    KnownCredential::Session(_) | KnownCredential::Token => {}
                })
            });
            return Ok(PresumedIdentity { identity, check, data_version: None });
        }
        let version = self.version().await;
        let identity = self.identify_at(version, credential, address, used_for).await?;
        Ok(PresumedIdentity { identity, check: None, data_version: version.map(|version| version.data) })
    }

    async fn find_presumed(
        &self,
        credential: PresentedCredential<'_>,
        address: Option<IpAddr>,
    ) -> Result<Option<KeptIdentity>, CredentialRefusal> {
        let now = Timestamp::now();
        let digest = match credential {
            PresentedCredential::ApiKey(text) | PresentedCredential::Session(text) => {
                self.digests.sha256(text)
            }
            PresentedCredential::Token { text, header } => {
                let digest = self.digests.sha256(text);
                self.tokens.verify(text, &digest, header, now).await?;
                digest
            }
        };
        let Some(kept) = self.kept.get(&digest) else { return Ok(None) };
        // What it was good for may have changed: it is not refused before it was looked up.
        let is_usable = match &kept.credential {
            KnownCredential::Key(key) => key.check_use(address, now).is_ok(),
            KnownCredential::Session(session) => session.check_use(now, self.session_idle).is_ok(),
            KnownCredential::Token => true,
        };
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
        let kept = self.kept.get(&digest).and_then(|kept| match kept.credential {
            KnownCredential::Key(key) => Some((kept.version, kept.identity, key)),
            KnownCredential::Session(_) | KnownCredential::Token => None,
        });
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
                let parsed = SecretToken::parse(TokenKind::ApiKey, text).ok_or_else(|| {
                    CredentialRefusal::Bad("an API key is mistyped: its checksum is wrong".to_owned())
                })?;
                parsed.hash()
            }
        };
        let expected = known.as_ref().and_then(|known| known.record.account.as_ref());
        let store = self.engine.credentials()?;
        let (found, account) = tokio::join!(
            store.find_api_key(&hash),
            AccountReader::find_of(expected, self.accounts.as_deref())
        );
        let record = found?.ok_or_else(|| CredentialRefusal::Bad("no such API key".to_owned()))?;
        let account = if record.account.as_ref() == expected {
            account?
        } else {
            AccountReader::find_of(record.account.as_ref(), self.accounts.as_deref()).await?
        };
        let expected = self.lookup.as_ref().map(|_| {
            let asked = record.account.as_ref().map(|account| AskedAccount::Id(account.id.clone()));
            let key = Some((hash.clone(), record.clone()));
            Arc::new(ExpectedCredential { key, session: None, account: asked.zip(account.clone()) })
        });
        let identity = identity_of_key(&record, account)?;
        let key = match known.filter(|known| known.record == record) {
            Some(known) => known,
            None => Arc::new(KnownKey::new(hash, record)),
        };
        self.digests.keep(text, digest);
        let credential = KnownCredential::Key(key.clone());
        Ok((self.keep(digest, version, identity, credential, expected), key))
    }

    async fn identify_session(
        &self,
        text: &str,
        version: Option<u64>,
        used_for: CredentialUse,
    ) -> Result<Arc<ActorIdentity>, CredentialRefusal> {
        let digest = self.digests.sha256(text);
        let now = Timestamp::now();
        let kept = self.kept.get(&digest).and_then(|kept| match kept.credential {
            KnownCredential::Session(session) => Some((kept.version, kept.identity, session)),
            KnownCredential::Key(_) | KnownCredential::Token => None,
        });
        let (identity, session) = match kept {
            Some((kept_version, identity, session))
                if version.is_some()
                    && kept_version == version
                    && session.check_use(now, self.session_idle).is_ok() =>
            {
                (identity, session)
            }
            kept => {
                let found =
                    self.find_session(text, digest, version, kept.map(|(_, _, session)| session)).await;
                self.forget_refused(&digest, found)?
            }
        };
        session.check_use(now, self.session_idle)?;
        if used_for == CredentialUse::Request {
            self.session_uses.mark(&session, now);
        }
        Ok(identity)
    }

    /// The session as the store has it, as [`CredentialVerifier::find_key`] finds keys.
    async fn find_session(
        &self,
        text: &str,
        digest: [u8; 32],
        version: Option<u64>,
        known: Option<Arc<KnownSession>>,
    ) -> Result<(Arc<ActorIdentity>, Arc<KnownSession>), CredentialRefusal> {
        let hash = match &known {
            Some(known) => known.hash.clone(),
            None => {
                let parsed = SecretToken::parse(TokenKind::Session, text).ok_or_else(|| {
                    CredentialRefusal::Bad("a session's token is mistyped: its checksum is wrong".to_owned())
                })?;
                parsed.hash()
            }
        };
        let expected = known.as_ref().map(|known| &known.record.account);
        let store = self.engine.credentials()?;
        let (found, account) = tokio::join!(
            store.find_sessions(vec![hash.clone()]),
            AccountReader::find_of(expected, self.accounts.as_deref())
        );
        let (_, record) = found?.pop().ok_or_else(|| CredentialRefusal::Bad("no such session".to_owned()))?;
        let account = match expected == Some(&record.account) {
            true => account?,
            false => AccountReader::find_of(Some(&record.account), self.accounts.as_deref()).await?,
        };
        let expected = self.lookup.as_ref().map(|_| {
            let asked = Some(AskedAccount::Id(record.account.id.clone()));
            let session = Some((hash.clone(), record.clone()));
            Arc::new(ExpectedCredential { key: None, session, account: asked.zip(account.clone()) })
        });
        let identity = match identity_of_session(&record, account) {
            Ok(identity) => identity,
            Err(refusal) => {
                self.end_session(hash);
                return Err(refusal);
            }
        };
        let session = match known.filter(|known| known.record == record) {
            Some(known) => known,
            None => Arc::new(KnownSession::new(hash, record)),
        };
        self.digests.keep(text, digest);
        let credential = KnownCredential::Session(session.clone());
        Ok((self.keep(digest, version, identity, credential, expected), session))
    }

    /// Ends a session whose account is gone or cannot be used, so that it does not come back with the account.
    fn end_session(&self, hash: String) {
        let engine = self.engine.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.change_accounts(vec![AccountChange::EndSession { hash }]).await {
                tracing::warn!(%error, "cannot end a session");
            }
        });
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
        let expected = expected
            .map(|account| Arc::new(ExpectedCredential { key: None, session: None, account: Some(account) }));
        Ok(self.keep(digest, version, identity, KnownCredential::Token, expected))
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
        credential: KnownCredential,
        expected: Option<Arc<ExpectedCredential>>,
    ) -> Arc<ActorIdentity> {
        let is_lasting = self.accounts.as_deref().is_none_or(AccountReader::is_lasting);
        let known = self.kept.get(&hash).map(|kept| kept.identity).filter(|known| **known == identity);
        let identity = known.unwrap_or_else(|| Arc::new(identity));
        let version = version.filter(|_| is_lasting);
        self.kept.insert(hash, KeptIdentity { version, identity: identity.clone(), credential, expected });
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
