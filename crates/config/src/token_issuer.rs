//! [`TokenIssuer`]: one `[[auth.jwt]]` of `trefoil.toml`, whose tokens say who asks.

use std::path::PathBuf;

/// Algorithms of tokens whose issuer publishes keys.
pub const PUBLIC_KEY_ALGORITHMS: [&str; 5] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];
/// Algorithms of tokens whose issuer shares a secret with the server.
pub const SECRET_ALGORITHMS: [&str; 3] = ["HS256", "HS384", "HS512"];

/// An issuer of JSON Web Tokens that the application trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenIssuer {
    /// Exactly the claim `iss`.
    pub issuer: String,
    /// One of them must be in `aud`.
    pub audiences: Vec<String>,
    pub keys: IssuerKeySource,
    /// Those that are accepted; all of them fit the kind of key.
    pub algorithms: Vec<String>,
    /// The path of the claim with roles.
    pub roles: Option<String>,
    /// Names in that claim and the roles that they stand for. If there is none, names are roles.
    pub role_map: Option<Vec<(String, String)>>,
    /// Which account a token is of.
    pub account: Option<AccountClaim>,
    /// The header that tokens come in instead of `Authorization`, in lower case.
    pub header: Option<String>,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerKeySource {
    /// The address of a set of keys.
    Address(String),
    /// The address is in `/.well-known/openid-configuration` of the issuer.
    Discovery,
    /// A set of keys in a file.
    File(PathBuf),
    /// A secret in an environment variable.
    SecretVariable(String),
    SecretFile(PathBuf),
}

/// The account with the value of a claim in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountClaim {
    pub claim: String,
    pub field: String,
}

impl IssuerKeySource {
    /// Whether issuer and server share a secret.
    pub fn is_secret(&self) -> bool {
        match self {
            IssuerKeySource::SecretVariable(_) | IssuerKeySource::SecretFile(_) => true,
            IssuerKeySource::Address(_) | IssuerKeySource::Discovery | IssuerKeySource::File(_) => false,
        }
    }
}
