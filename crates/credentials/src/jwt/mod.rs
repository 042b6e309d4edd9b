//! JSON Web Tokens of other issuers: decoded, verified and read.

mod claims;
mod id_token;
mod issuer_keys;
mod key_set;
mod signature;
#[cfg(test)]
mod tests;
mod token_parts;
mod token_refusal;
mod token_verifier;

pub use crate::jwt::claims::{TokenClaims, find_claim};
pub use crate::jwt::id_token::{IdTokenExpectation, verify_id_token};
pub use crate::jwt::issuer_keys::{FetchedKeys, IssuerKeys, KeyFetcher};
pub use crate::jwt::key_set::{KeySet, MAX_SET_BYTES};
pub use crate::jwt::token_parts::TokenParts;
pub use crate::jwt::token_refusal::TokenRefusal;
pub use crate::jwt::token_verifier::{TokenVerifier, TrustedIssuer, VerifiedToken};
