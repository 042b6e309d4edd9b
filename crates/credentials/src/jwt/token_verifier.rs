//! [`TokenVerifier`]: decides whether a token is good, and what it proves.

use std::sync::Arc;

use jiff::Timestamp;
use quick_cache::sync::Cache;
use serde_json::Value as Json;

use trefoil_config::TokenIssuer;
use trefoil_model::Value;

use crate::jwt::claims::{self, TokenClaims};
use crate::jwt::issuer_keys::{IssuerKeys, KEYS_RETRY};
use crate::jwt::key_set::KeySet;
use crate::jwt::signature::SigningAlgorithm;
use crate::jwt::token_parts::TokenParts;
use crate::jwt::token_refusal::TokenRefusal;

/// How many verified tokens are remembered.
const REMEMBERED_TOKENS: usize = 10_000;

/// A token whose signature and claims are good.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedToken {
    /// The position of its issuer in `trefoil.toml`.
    pub issuer: usize,
    pub subject: Option<String>,
    pub roles: Vec<String>,
    /// All claims: an object.
    pub claims: Value,
    pub expires: Timestamp,
    /// The value of the claim that says whose token it is.
    pub account: Option<String>,
}

/// An issuer with its keys.
pub struct TrustedIssuer {
    settings: TokenIssuer,
    algorithms: Vec<SigningAlgorithm>,
    keys: Arc<IssuerKeys>,
}

/// Verifies tokens of the application's issuers.
pub struct TokenVerifier {
    issuers: Vec<TrustedIssuer>,
    /// The roles that the schema knows.
    roles: Vec<String>,
    /// Verified tokens by their SHA-256, with the keys that they were verified with.
    remembered: Cache<[u8; 32], (Arc<VerifiedToken>, Arc<KeySet>)>,
}

impl TrustedIssuer {
    pub fn new(settings: TokenIssuer, keys: Arc<IssuerKeys>) -> TrustedIssuer {
        let is_symmetric = settings.keys.is_secret();
        let known = settings.algorithms.iter().filter_map(|name| SigningAlgorithm::from_name(name));
        // A key of one kind never verifies the algorithms of the other.
        let algorithms = known.filter(|algorithm| algorithm.is_symmetric() == is_symmetric).collect();
        TrustedIssuer { settings, algorithms, keys }
    }

    pub fn settings(&self) -> &TokenIssuer {
        &self.settings
    }

    /// Checks a token that names this issuer; tells when it expires, and the keys that it was verified with.
    pub async fn verify(
        &self,
        parts: &TokenParts<'_>,
        now: Timestamp,
    ) -> Result<(Timestamp, Arc<KeySet>), TokenRefusal> {
        if !self.algorithms.contains(&parts.algorithm) {
            return Err(TokenRefusal::Algorithm);
        }
        // Cheap checks before keys are fetched for it.
        let TokenIssuer { issuer, audiences, .. } = &self.settings;
        let expires = claims::check_claims(&parts.claims, issuer, audiences, now)?;
        let keys = self.current_keys()?;
        let key_id = parts.key_id.as_deref();
        let keys = if keys.candidates(parts.algorithm, key_id).is_empty() && key_id.is_some() {
            self.keys.refresh_for_missing_key().await;
            self.current_keys()?
        } else {
            keys
        };
        let candidates = keys.candidates(parts.algorithm, key_id);
        if candidates.is_empty() {
            return Err(TokenRefusal::Key);
        }
        let message = parts.signed.as_bytes();
        if !candidates.iter().any(|key| key.verifies(parts.algorithm, message, &parts.signature)) {
            return Err(TokenRefusal::Signature);
        }
        Ok((expires, keys))
    }

    fn current_keys(&self) -> Result<Arc<KeySet>, TokenRefusal> {
        self.keys.current().ok_or(TokenRefusal::NoKeysYet { retry_after: KEYS_RETRY })
    }

    /// The roles in claims, of those that the schema knows; names that mean none are ignored.
    pub fn roles_in(&self, claims: &TokenClaims, known: &[String]) -> Vec<String> {
        let claim = self.settings.roles.as_ref().and_then(|path| claims::find_claim(claims, path));
        let named = claim.map(claims::names_in).unwrap_or_default();
        let mut roles: Vec<String> = match &self.settings.role_map {
            Some(map) => {
                let mapped =
                    |name: &&str| map.iter().find(|(from, _)| from == name).map(|(_, role)| role.clone());
                named.iter().filter_map(mapped).collect()
            }
            None => named.iter().map(|name| (*name).to_owned()).collect(),
        };
        roles.retain(|role| known.contains(role));
        roles.sort();
        roles.dedup();
        roles
    }

    /// The value that finds the account. An address proves nothing until its issuer has verified it.
    pub fn account_in(&self, claims: &TokenClaims) -> Option<String> {
        let account = self.settings.account.as_ref()?;
        if account.claim == "email" && claims.get("email_verified") != Some(&Json::Bool(true)) {
            return None;
        }
        match claims::find_claim(claims, &account.claim)? {
            Json::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Json::Number(number) => Some(number.to_string()),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

impl TokenVerifier {
    pub fn new(issuers: Vec<TrustedIssuer>, roles: Vec<String>) -> TokenVerifier {
        TokenVerifier { issuers, roles, remembered: Cache::new(REMEMBERED_TOKENS) }
    }

    pub fn issuers(&self) -> &[TrustedIssuer] {
        &self.issuers
    }

    /// Verifies a token that came in `Authorization`, or in the header of this name. `digest` is its SHA-256.
    pub async fn verify(
        &self,
        token: &str,
        digest: &[u8; 32],
        header: Option<&str>,
        now: Timestamp,
    ) -> Result<Arc<VerifiedToken>, TokenRefusal> {
        if let Some((verified, keys)) = self.remembered.get(digest) {
            let issuer = &self.issuers[verified.issuer];
            let has_keys = issuer.keys.current().is_some_and(|current| Arc::ptr_eq(&current, &keys));
            if has_keys
                && !claims::is_over(verified.expires, now)
                && issuer.settings.header.as_deref() == header
            {
                return Ok(verified);
            }
        }
        let parts = TokenParts::parse(token)?;
        let mut refusal = TokenRefusal::Issuer;
        for (position, issuer) in self.issuers.iter().enumerate() {
            let is_named = parts.issuer() == Some(issuer.settings.issuer.as_str());
            if !is_named || issuer.settings.header.as_deref() != header {
                continue;
            }
            match self.verify_of(position, issuer, &parts, now).await {
                Ok((verified, keys)) => {
                    let verified = Arc::new(verified);
                    self.remembered.insert(*digest, (verified.clone(), keys));
                    return Ok(verified);
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    async fn verify_of(
        &self,
        position: usize,
        issuer: &TrustedIssuer,
        parts: &TokenParts<'_>,
        now: Timestamp,
    ) -> Result<(VerifiedToken, Arc<KeySet>), TokenRefusal> {
        let (expires, keys) = issuer.verify(parts, now).await?;
        let text = |name: &str| parts.claims.get(name).and_then(Json::as_str).map(str::to_owned);
        let verified = VerifiedToken {
            issuer: position,
            subject: text("sub"),
            roles: issuer.roles_in(&parts.claims, &self.roles),
            claims: Value::from(Json::Object(parts.claims.clone())),
            expires,
            account: issuer.account_in(&parts.claims),
        };
        Ok((verified, keys))
    }
}
