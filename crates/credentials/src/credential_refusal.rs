//! [`CredentialRefusal`]: why a credential proves nothing.

use std::time::Duration;

use trefoil_model::error::Error;

use crate::jwt::TokenRefusal;

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
            | TokenRefusal::Account
            | TokenRefusal::Nonce
            | TokenRefusal::AccessToken
            | TokenRefusal::Subject => CredentialRefusal::Bad(format!("a token is refused: {refusal}")),
        }
    }
}
