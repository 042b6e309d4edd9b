//! What proves who asks: API keys, sessions and JSON Web Tokens; and how people get a session.
//!
//! The server takes credentials from requests and asks here whether they are good. This crate knows no HTTP and no SQL: what
//! is made here is in the store behind the engine, and the keys of issuers are fetched by the server.

// Secrets made here.
mod digest;
mod passwords;
mod secret_token;

// Tokens made elsewhere.
pub mod jwt;

// From a credential to an actor.
mod account_reader;
mod credential_lookup;
mod credential_refusal;
mod credential_verifier;
mod identity_versions;
mod known_key;
mod known_session;

// People who sign in.
mod accounts;

pub use crate::account_reader::{AccountFinding, AccountKey, AccountReader, UsableAccount};
pub use crate::accounts::{
    AccountRefusal, AccountService, BegunSignIn, GoodLink, ListedSession, NewAccountMaker, OpenedSession,
    PENDING_SECONDS, ProvenPerson, ProviderRefusal, ReturnedSignIn, SignInOrigin, SignInState,
};
pub use crate::credential_refusal::CredentialRefusal;
pub use crate::credential_verifier::{CredentialVerifier, PresentedCredential};
pub use crate::known_key::key_identity;
pub use crate::known_session::SessionUses;
pub use crate::passwords::PasswordMistake;
pub use crate::secret_token::{SecretToken, TokenKind};
