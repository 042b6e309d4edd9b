//! [`ClientAuthenticator`]: what decides whose a credential is, and credentials as they are sent.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};

use trefoil_engine::{ActorIdentity, CredentialUse, PresumedIdentity};
use trefoil_model::error::Error;

use crate::errors::problem::Problem;
use crate::protected_mode;

/// What API keys begin with.
const KEY_PREFIX: &str = "tfk_";

/// What the tokens of sessions begin with.
const SESSION_PREFIX: &str = "tfs_";

/// Decides whose a credential is.
pub trait ClientAuthenticator: Send + Sync {
    /// False for an open application, which looks at no credential.
    fn is_protected(&self) -> bool;

    /// The headers beside `Authorization` that tokens come in.
    fn token_headers(&self) -> Arc<[HeaderName]>;

    /// The name of the application.
    fn realm(&self) -> String;

    /// Whether passwords and the cookies of sessions are taken over plain HTTP from other machines.
    fn takes_plain_http(&self) -> bool {
        false
    }

    /// Whether people can sign in at this server.
    fn has_accounts(&self) -> bool {
        false
    }

    fn identify(
        &self,
        credential: PresentedCredential,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>>;

    /// Whom a credential proved before, if that is known, with a check that tells whether it still does.
    fn presume(
        &self,
        credential: PresentedCredential,
        address: Option<IpAddr>,
        used_for: CredentialUse,
    ) -> BoxFuture<'_, Result<PresumedIdentity, IdentityFailure>> {
        Box::pin(async move {
            let identity = self.identify(credential, address, used_for).await?;
            Ok(PresumedIdentity { identity, check: None, data_version: None })
        })
    }

    /// The number of the last change that this node knows of; a negative one if it does not follow changes yet.
    fn last_known_change(&self) -> i64;

    /// Whether no change after `since` and up to `until`, which is known, may have ended the credential of an identity or
    /// changed its rights.
    fn is_unchanged<'a>(&'a self, identity: &'a ActorIdentity, since: i64, until: i64)
    -> BoxFuture<'a, bool>;

    /// The last change that this node knows of, if it is known without reading anything that none after `since` may have done
    /// so; in doubt `None`.
    fn known_unchanged(&self, identity: &ActorIdentity, since: i64) -> Option<i64>;
}

/// A credential as it was sent. Its form is right; nothing else is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentedCredential {
    ApiKey(Arc<str>),
    /// In a header or in the session's cookie.
    Session(Arc<str>),
    Token {
        text: Arc<str>,
        /// `None` for `Authorization`.
        header: Option<HeaderName>,
    },
}

impl PresentedCredential {
    /// Reads `Bearer …`, or `Basic …` with an API key as the password.
    pub(super) fn parse(text: &str) -> Option<PresentedCredential> {
        let (scheme, rest) = text.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            if rest.starts_with(KEY_PREFIX) {
                return Some(PresentedCredential::ApiKey(rest.into()));
            }
            if rest.starts_with(SESSION_PREFIX) {
                return Some(PresentedCredential::Session(rest.into()));
            }
            return is_token(rest).then(|| PresentedCredential::Token { text: rest.into(), header: None });
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded = String::from_utf8(BASE64_STANDARD.decode(rest).ok()?).ok()?;
            let (_, password) = decoded.split_once(':')?;
            return password.starts_with(KEY_PREFIX).then(|| PresentedCredential::ApiKey(password.into()));
        }
        None
    }
}

/// Why nobody is identified.
pub enum IdentityFailure {
    /// The credential is not good.
    Bad,
    /// Whether it is good cannot be told yet.
    NotYet {
        retry_after: Duration,
    },
    Failed(Error),
}

/// The authenticator of the service, shared with those that take credentials by other ways than headers.
#[derive(Clone)]
pub struct SharedAuthenticator(pub Arc<dyn ClientAuthenticator>);

/// The authenticator of an open application.
pub struct OpenAuthenticator;

impl ClientAuthenticator for OpenAuthenticator {
    fn is_protected(&self) -> bool {
        false
    }

    fn token_headers(&self) -> Arc<[HeaderName]> {
        Arc::from([])
    }

    fn realm(&self) -> String {
        String::new()
    }

    fn identify(
        &self,
        _: PresentedCredential,
        _: Option<IpAddr>,
        _: CredentialUse,
    ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>> {
        Box::pin(async { Err(IdentityFailure::Bad) })
    }

    fn last_known_change(&self) -> i64 {
        -1
    }

    fn is_unchanged<'a>(&'a self, _: &'a ActorIdentity, _: i64, _: i64) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }

    fn known_unchanged(&self, _: &ActorIdentity, since: i64) -> Option<i64> {
        Some(since)
    }
}

impl SharedAuthenticator {
    /// The authenticator that the service gave to an upgrade, if the application is protected.
    pub fn of_upgrade(parts: &Parts) -> Option<SharedAuthenticator> {
        parts.extensions.get::<SharedAuthenticator>().cloned()
    }

    /// The answer to a request that nobody is identified for.
    pub(super) fn problem(&self, failure: IdentityFailure) -> Problem {
        match failure {
            IdentityFailure::Bad => {
                let detail = "the credential is not good: it is unknown, expired, revoked or not for this server; send an API key or a token as `Authorization: Bearer …`";
                let detail = match self.0.has_accounts() {
                    true => format!("{detail}, or sign in at /_/sign-in"),
                    false => detail.to_owned(),
                };
                let problem = Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", detail);
                problem.with_header(WWW_AUTHENTICATE, self.bad_challenge())
            }
            IdentityFailure::NotYet { retry_after } => Problem::unavailable(
                "the keys of the token's issuer have not been fetched yet; try again soon",
                retry_after,
            ),
            IdentityFailure::Failed(error) => error.into(),
        }
    }

    /// The value of `WWW-Authenticate` for a credential that is not good.
    fn bad_challenge(&self) -> HeaderValue {
        let challenge = protected_mode::challenge(&self.0.realm());
        let text = [challenge.as_bytes(), b", error=\"invalid_token\""].concat();
        HeaderValue::try_from(text).expect("visible ASCII")
    }
}

/// Whether a text has the form of a token.
pub(super) fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() | matches!(byte, b'-' | b'_' | b'.');
    // To the end in any case, so that many bytes are looked at together: tokens are long.
    text.bytes().fold(true, |all, byte| all & is_letter(byte))
        && text.bytes().filter(|byte| *byte == b'.').count() == 2
}
