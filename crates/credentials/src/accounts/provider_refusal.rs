//! [`ProviderRefusal`]: why a provider signs nobody in.

use std::fmt;
use std::time::Duration;

use trefoil_model::error::Error;

use crate::accounts::account_service::AccountRefusal;
use crate::jwt::TokenRefusal;

/// Why nobody is signed in by a provider. What is in it is for the log: people are told the kind alone.
#[derive(Debug)]
pub enum ProviderRefusal {
    /// It was not begun by this browser, or too long ago, or it was used.
    Stale(&'static str),
    /// The person or the provider did not want to.
    Denied,
    /// The provider does not answer.
    Unreachable(String),
    /// What the provider says is not good.
    Rejected(String),
    /// No account may sign in with it.
    NoAccount(String),
    /// Too many tries.
    Later {
        retry_after: Duration,
    },
    Failed(Error),
}

impl fmt::Display for ProviderRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderRefusal::Stale(reason) => f.write_str(reason),
            ProviderRefusal::Denied => f.write_str("it was denied at the provider"),
            ProviderRefusal::Unreachable(reason)
            | ProviderRefusal::Rejected(reason)
            | ProviderRefusal::NoAccount(reason) => f.write_str(reason),
            ProviderRefusal::Later { .. } => f.write_str("too many tries from its network"),
            ProviderRefusal::Failed(error) => error.fmt(f),
        }
    }
}

impl From<Error> for ProviderRefusal {
    fn from(error: Error) -> ProviderRefusal {
        ProviderRefusal::Failed(error)
    }
}

impl From<TokenRefusal> for ProviderRefusal {
    fn from(refusal: TokenRefusal) -> ProviderRefusal {
        let reason = format!("its ID token: {refusal}");
        match refusal {
            TokenRefusal::NoKeysYet { .. } => ProviderRefusal::Unreachable(reason),
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
            | TokenRefusal::Subject => ProviderRefusal::Rejected(reason),
        }
    }
}

impl From<AccountRefusal> for ProviderRefusal {
    fn from(refusal: AccountRefusal) -> ProviderRefusal {
        match refusal {
            AccountRefusal::Wrong | AccountRefusal::Mistake(_) => {
                ProviderRefusal::NoAccount("the account cannot be used".to_owned())
            }
            AccountRefusal::Later { retry_after } | AccountRefusal::Busy { retry_after } => {
                ProviderRefusal::Later { retry_after }
            }
            AccountRefusal::Failed(error) => ProviderRefusal::Failed(error),
        }
    }
}
