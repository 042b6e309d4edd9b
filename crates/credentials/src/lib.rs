//! What proves who asks: API keys and JSON Web Tokens.
//!
//! The server takes credentials from requests and asks here whether they are good. This crate knows no HTTP and no SQL: keys
//! are in the store behind the engine, and the keys of issuers are fetched by the server.

// Secrets made here.
mod api_key;
mod digest;

// Tokens made elsewhere.
pub mod jwt;

// From a credential to an actor.
mod account_reader;
mod credential_lookup;
mod credential_refusal;
mod credential_verifier;
mod identity_versions;

pub use crate::account_reader::{AccountFinding, AccountKey, AccountReader, UsableAccount};
pub use crate::api_key::{ApiKey, KEY_PREFIX};
pub use crate::credential_refusal::CredentialRefusal;
pub use crate::credential_verifier::{CredentialVerifier, PresentedCredential, key_identity};
