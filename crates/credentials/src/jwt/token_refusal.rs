//! [`TokenRefusal`]: why a token is not accepted.

use std::fmt;
use std::time::Duration;

/// Why a token is not accepted; for logs and tests. Clients only learn that it is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    TooLong,
    Malformed,
    Critical,
    Type,
    Algorithm,
    /// No issuer of the application has this name.
    Issuer,
    Audience,
    /// No key of the issuer fits.
    Key,
    Signature,
    /// `exp` is missing or no number.
    Expiry,
    Expired,
    NotYet,
    /// Its account cannot be used.
    Account,
    /// It answers another sign-in.
    Nonce,
    /// It came with another access token.
    AccessToken,
    /// It names nobody, or in a way that no provider does.
    Subject,
    /// The keys of the issuer have not been fetched yet: a later attempt may succeed.
    NoKeysYet {
        retry_after: Duration,
    },
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TokenRefusal::TooLong => "longer than 8 KiB",
            TokenRefusal::Malformed => "not a signed JSON Web Token",
            TokenRefusal::Critical => "its header has `crit`",
            TokenRefusal::Type => "its `typ` is neither JWT nor at+jwt",
            TokenRefusal::Algorithm => "its algorithm is not accepted",
            TokenRefusal::Issuer => "its issuer is not in trefoil.toml",
            TokenRefusal::Audience => "it is for another audience",
            TokenRefusal::Key => "its key is not among those of the issuer",
            TokenRefusal::Signature => "its signature is wrong",
            TokenRefusal::Expiry => "it has no valid `exp`",
            TokenRefusal::Expired => "it has expired",
            TokenRefusal::NotYet => "it is not valid yet",
            TokenRefusal::Account => "its account cannot be used",
            TokenRefusal::Nonce => "its nonce is not that of the sign-in",
            TokenRefusal::AccessToken => "its at_hash is not that of the access token",
            TokenRefusal::Subject => "its subject is missing or too long",
            TokenRefusal::NoKeysYet { .. } => "the keys of its issuer have not been fetched yet",
        })
    }
}
