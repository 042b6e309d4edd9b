//! [`ServerAuthenticator`]: whose credentials are, for the application that is served now.

mod http_client;
mod key_fetcher;
pub mod provider_client;
mod provider_metadata;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use http::HeaderName;
use jiff::SignedDuration;
use tokio::task::AbortHandle;

use trefoil_application::{App, AppOrigin};
use trefoil_config::{AccountSettings, IssuerKeySource, SecretSource, TokenIssuer};
use trefoil_credentials::jwt::{IssuerKeys, KeySet, TokenVerifier, TrustedIssuer};
use trefoil_credentials::{
    CredentialRefusal, CredentialVerifier, PresentedCredential as KnownCredential, SessionUses,
};
use trefoil_engine::{ActorIdentity, CredentialUse, Engine, PresumedIdentity};
use trefoil_http::authentication::{ClientAuthenticator, IdentityFailure, PresentedCredential};

use crate::StartError;
use crate::authentication::key_fetcher::{HttpKeyFetcher, KeyLocation};
use crate::authentication::provider_client::ProviderClient;
use crate::authentication::provider_metadata::ProviderSlot;

/// The shortest secret that tokens may be signed with, in bytes.
const MIN_SECRET_BYTES: usize = 32;

/// Identifies clients; a reload replaces what it knows.
pub struct ServerAuthenticator {
    current: ArcSwap<ApplicationCredentials>,
}

/// What is good for one application.
pub struct ApplicationCredentials {
    /// `None` for an open application.
    verifier: Option<CredentialVerifier>,
    token_headers: Arc<[HeaderName]>,
    realm: String,
    has_accounts: bool,
    takes_plain_http: bool,
    keys: Vec<RunningKeys>,
    /// Whom people sign in with, in the order of `trefoil.toml`.
    providers: Vec<Arc<ProviderClient>>,
}

/// The keys of an issuer, with the task that fetches them.
#[derive(Clone)]
struct RunningKeys {
    issuer: String,
    source: IssuerKeySource,
    keys: Arc<IssuerKeys>,
    /// What else the issuer says of itself, if it is asked.
    metadata: Arc<ProviderSlot>,
    _task: Option<Arc<AbortOnDrop>>,
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerAuthenticator {
    pub fn new(credentials: ApplicationCredentials) -> ServerAuthenticator {
        ServerAuthenticator { current: ArcSwap::from_pointee(credentials) }
    }

    /// What is good for an application after a reload. Keys that were fetched are kept.
    pub fn prepare_reload(
        &self,
        app: &App,
        engine: &Engine,
        settings: &AccountSettings,
    ) -> Result<ApplicationCredentials, StartError> {
        ApplicationCredentials::load(app, engine, settings, &self.current.load().keys)
    }

    /// Whom people sign in with now.
    pub fn providers(&self) -> Vec<Arc<ProviderClient>> {
        self.current.load().providers()
    }

    pub fn swap(&self, credentials: ApplicationCredentials) {
        self.current.store(Arc::new(credentials));
    }
}

impl ApplicationCredentials {
    pub fn new(
        app: &App,
        engine: &Engine,
        settings: &AccountSettings,
    ) -> Result<ApplicationCredentials, StartError> {
        ApplicationCredentials::load(app, engine, settings, &[])
    }

    /// Reads secrets and files, and begins to fetch what is elsewhere without waiting for it.
    fn load(
        app: &App,
        engine: &Engine,
        settings: &AccountSettings,
        earlier: &[RunningKeys],
    ) -> Result<ApplicationCredentials, StartError> {
        let access = engine.model().access.as_ref();
        let (mut keys, mut issuers, mut headers) = (Vec::new(), Vec::new(), Vec::new());
        for issuer in app.manifest.token_issuers.iter().filter(|_| access.is_some()) {
            let running = RunningKeys::find_or_start(app, issuer, earlier)?;
            let header = issuer.header.as_ref().and_then(|name| HeaderName::try_from(name).ok());
            headers.extend(header.filter(|header| !headers.contains(header)));
            issuers.push(TrustedIssuer::new(issuer.clone(), running.keys.clone()));
            keys.push(running);
        }
        let mut providers = Vec::new();
        for declared in &app.manifest.openid_providers {
            let Some(access) = access else { continue };
            let settings = declared.provider.clone();
            let secret = settings.client_secret.as_ref().map(|source| read_client_secret(app, source));
            let secret = secret.transpose()?;
            // One that is an issuer of tokens, too, is asked once.
            let known: Vec<RunningKeys> = keys.iter().chain(earlier).cloned().collect();
            let running = RunningKeys::find_or_start(app, &settings.token_issuer(), &known)?;
            let (found, metadata) = (running.keys.clone(), running.metadata.clone());
            let roles = access.roles.clone();
            providers.push(Arc::new(ProviderClient::new(settings, secret, found, metadata, roles)));
            keys.push(running);
        }
        let idle = SignedDuration::try_from(settings.session_idle).unwrap_or(SignedDuration::MAX);
        let verifier = access.map(|access| {
            let tokens = TokenVerifier::new(issuers, access.roles.clone());
            CredentialVerifier::new(engine, tokens, idle, Arc::new(SessionUses::new(engine.feed())))
        });
        Ok(ApplicationCredentials {
            verifier,
            token_headers: headers.into(),
            realm: app.name.clone(),
            has_accounts: access.is_some_and(|access| access.account.is_some()),
            takes_plain_http: settings.insecure,
            keys,
            providers,
        })
    }

    pub fn providers(&self) -> Vec<Arc<ProviderClient>> {
        self.providers.clone()
    }
}

impl RunningKeys {
    fn find_or_start(
        app: &App,
        settings: &TokenIssuer,
        earlier: &[RunningKeys],
    ) -> Result<RunningKeys, StartError> {
        let TokenIssuer { issuer, keys: source, .. } = settings;
        let fetched = |location| Arc::new(IssuerKeys::fetched(Arc::new(HttpKeyFetcher(location))));
        let metadata = Arc::<ProviderSlot>::default();
        let keys = match source {
            IssuerKeySource::Address(_) | IssuerKeySource::Discovery
                if let Some(found) =
                    earlier.iter().find(|keys| keys.issuer == *issuer && keys.source == *source) =>
            {
                return Ok(found.clone());
            }
            IssuerKeySource::Address(address) => fetched(KeyLocation::Address(address.clone())),
            IssuerKeySource::Discovery => fetched(KeyLocation::Discovery(issuer.clone(), metadata.clone())),
            IssuerKeySource::File(path) => {
                let text = read_file(app, path, "keys-file")?;
                let keys = KeySet::parse(&text).map_err(|error| {
                    StartError::Settings(format!("keys-file {}: {error}", path.display()))
                })?;
                Arc::new(IssuerKeys::fixed(keys))
            }
            IssuerKeySource::SecretVariable(name) => {
                let secret = read_secret_variable(name, "secret-env")?;
                Arc::new(IssuerKeys::fixed(secret_keys(secret.into_bytes(), &format!("secret-env {name}"))?))
            }
            IssuerKeySource::SecretFile(path) => {
                let secret = read_secret_file(app, path, "secret-file")?;
                let name = format!("secret-file {}", path.display());
                Arc::new(IssuerKeys::fixed(secret_keys(secret, &name)?))
            }
        };
        let task = match source {
            IssuerKeySource::Address(_) | IssuerKeySource::Discovery => {
                let task = tokio::spawn(keys.clone().keep_fresh(issuer.clone()));
                Some(Arc::new(AbortOnDrop(task.abort_handle())))
            }
            IssuerKeySource::File(_)
            | IssuerKeySource::SecretVariable(_)
            | IssuerKeySource::SecretFile(_) => None,
        };
        Ok(RunningKeys { issuer: issuer.clone(), source: source.clone(), keys, metadata, _task: task })
    }
}

/// A file, relative to the application's folder.
fn read_file(app: &App, path: &Path, key: &str) -> Result<Vec<u8>, StartError> {
    let folder = match &app.origin {
        AppOrigin::Folder(folder) => folder.as_path(),
        AppOrigin::Sample => Path::new(""),
    };
    std::fs::read(folder.join(path))
        .map_err(|error| StartError::Settings(format!("{key} {}: {error}", path.display())))
}

/// The same without the line break that editors end files with.
fn read_secret_file(app: &App, path: &Path, key: &str) -> Result<Vec<u8>, StartError> {
    let mut secret = read_file(app, path, key)?;
    while secret.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        secret.pop();
    }
    Ok(secret)
}

fn read_secret_variable(name: &str, key: &str) -> Result<String, StartError> {
    let missing = |_| StartError::Settings(format!("{key}: there is no environment variable {name}"));
    std::env::var(name).map_err(missing)
}

/// The secret that this server and a provider share.
fn read_client_secret(app: &App, source: &SecretSource) -> Result<String, StartError> {
    let (secret, name) = match source {
        SecretSource::Variable(name) => {
            (read_secret_variable(name, "client-secret-env")?, format!("client-secret-env {name}"))
        }
        SecretSource::File(path) => {
            let name = format!("client-secret-file {}", path.display());
            let secret = String::from_utf8(read_secret_file(app, path, "client-secret-file")?);
            (secret.map_err(|_| StartError::Settings(format!("{name}: the secret is not UTF-8")))?, name)
        }
    };
    if secret.is_empty() {
        return Err(StartError::Settings(format!("{name}: the secret is empty")));
    }
    Ok(secret)
}

fn secret_keys(secret: Vec<u8>, name: &str) -> Result<KeySet, StartError> {
    if secret.len() < MIN_SECRET_BYTES {
        return Err(StartError::Settings(format!(
            "{name}: the secret has {} bytes; it needs at least {MIN_SECRET_BYTES}",
            secret.len()
        )));
    }
    Ok(KeySet::of_secret(secret))
}

fn known_credential(credential: &PresentedCredential) -> KnownCredential<'_> {
    match credential {
        PresentedCredential::ApiKey(text) => KnownCredential::ApiKey(text),
        PresentedCredential::Session(text) => KnownCredential::Session(text),
        PresentedCredential::Token { text, header } => {
            KnownCredential::Token { text, header: header.as_ref().map(HeaderName::as_str) }
        }
    }
}

fn failure(refusal: CredentialRefusal) -> IdentityFailure {
    match refusal {
        CredentialRefusal::Bad(reason) => {
            tracing::debug!(reason, "a credential is refused");
            IdentityFailure::Bad
        }
        CredentialRefusal::NotYet { retry_after } => IdentityFailure::NotYet { retry_after },
        CredentialRefusal::Failed(error) => IdentityFailure::Failed(error),
    }
}

impl ClientAuthenticator for ServerAuthenticator {
    fn is_protected(&self) -> bool {
        self.current.load().verifier.is_some()
    }

    fn token_headers(&self) -> Arc<[HeaderName]> {
        self.current.load().token_headers.clone()
    }

    fn realm(&self) -> String {
        self.current.load().realm.clone()
    }

    fn takes_plain_http(&self) -> bool {
        self.current.load().takes_plain_http
    }

    fn has_accounts(&self) -> bool {
        self.current.load().has_accounts
    }

    fn identify(
        &self,
        credential: PresentedCredential,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>> {
        Box::pin(async move {
            let current = self.current.load_full();
            let Some(verifier) = &current.verifier else { return Err(IdentityFailure::Bad) };
            verifier.identify(known_credential(&credential), address, used_for).await.map_err(failure)
        })
    }

    fn presume(
        &self,
        credential: PresentedCredential,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> BoxFuture<'_, Result<PresumedIdentity, IdentityFailure>> {
        Box::pin(async move {
            let current = self.current.load_full();
            let Some(verifier) = &current.verifier else { return Err(IdentityFailure::Bad) };
            verifier.presume(known_credential(&credential), address, used_for).await.map_err(failure)
        })
    }

    fn last_known_change(&self) -> i64 {
        self.current.load().verifier.as_ref().map_or(-1, |verifier| verifier.log().known_head())
    }

    fn is_unchanged<'a>(
        &'a self,
        identity: &'a ActorIdentity,
        since: i64,
        until: i64,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let current = self.current.load_full();
            match &current.verifier {
                Some(verifier) => verifier.log().is_unchanged(identity, since, until).await,
                None => false,
            }
        })
    }

    fn known_unchanged(&self, identity: &ActorIdentity, since: i64) -> Option<i64> {
        self.current.load().verifier.as_ref()?.log().known_unchanged(identity, since)
    }
}
