//! [`OpenIdProvider`]: one `[[auth.oidc]]` of `trefoil.toml`, a provider that people sign in with.

use std::path::PathBuf;

use crate::token_issuer::{AccountClaim, IssuerKeySource, PUBLIC_KEY_ALGORITHMS, TokenIssuer};

/// An OpenID provider that signs people in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIdProvider {
    /// The words of its button.
    pub name: String,
    /// Exactly the claim `iss`; its address, too.
    pub issuer: String,
    /// What the provider calls this application.
    pub client_id: String,
    /// Without one the application is a public client.
    pub client_secret: Option<SecretSource>,
    pub scopes: Vec<String>,
    /// Whose account it is the first time.
    pub account: Option<AccountClaim>,
    /// The fields of a new account, and the claims that fill them.
    pub fields: Vec<AccountClaim>,
    /// As of a [`TokenIssuer`].
    pub roles: Option<String>,
    pub role_map: Option<Vec<(String, String)>>,
}

/// Where a secret is that is never in `trefoil.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    Variable(String),
    /// Relative to the application's folder.
    File(PathBuf),
}

impl OpenIdProvider {
    /// The provider as an issuer of tokens for this application alone: its ID tokens are verified like all others.
    pub fn token_issuer(&self) -> TokenIssuer {
        TokenIssuer {
            issuer: self.issuer.clone(),
            audiences: vec![self.client_id.clone()],
            keys: IssuerKeySource::Discovery,
            algorithms: PUBLIC_KEY_ALGORITHMS.map(str::to_owned).to_vec(),
            roles: self.roles.clone(),
            role_map: self.role_map.clone(),
            account: self.account.clone(),
            header: None,
        }
    }
}
