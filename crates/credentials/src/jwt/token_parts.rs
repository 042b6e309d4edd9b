//! The parts of a token: header, claims and signature, decoded and not yet believed.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value as Json};

use crate::jwt::signature::SigningAlgorithm;
use crate::jwt::token_refusal::TokenRefusal;

/// The longest token that is read.
pub const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// A token with a header that is acceptable. Nothing in it is proven.
pub struct TokenParts<'t> {
    pub algorithm: SigningAlgorithm,
    pub key_id: Option<String>,
    pub claims: Map<String, Json>,
    /// Header and claims as they were signed.
    pub signed: &'t str,
    pub signature: Vec<u8>,
}

impl<'t> TokenParts<'t> {
    /// Whether a credential looks like a token: `x.y.z`. Five parts are an encrypted one.
    pub fn is_token(text: &str) -> bool {
        matches!(text.split('.').count(), 3 | 5)
    }

    /// Decodes a token. Keys that its header offers (`jku`, `x5u`, `jwk`, `x5c`) are never looked at.
    pub fn parse(token: &'t str) -> Result<TokenParts<'t>, TokenRefusal> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenRefusal::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefusal::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenRefusal::Malformed)?;
        if claims.contains('.') {
            return Err(TokenRefusal::Malformed);
        }
        let header = decode_object(header)?;
        // What it lists must be understood, and nothing is.
        if header.contains_key("crit") {
            return Err(TokenRefusal::Critical);
        }
        let is_known_type =
            |kind: &str| kind.eq_ignore_ascii_case("JWT") || kind.eq_ignore_ascii_case("at+jwt");
        match header.get("typ") {
            None => {}
            Some(Json::String(kind)) if is_known_type(kind) => {}
            Some(_) => return Err(TokenRefusal::Type),
        }
        let algorithm = header.get("alg").and_then(Json::as_str).and_then(SigningAlgorithm::from_name);
        let algorithm = algorithm.ok_or(TokenRefusal::Algorithm)?;
        let key_id = match header.get("kid") {
            None => None,
            Some(Json::String(id)) => Some(id.clone()),
            Some(_) => return Err(TokenRefusal::Malformed),
        };
        Ok(TokenParts {
            algorithm,
            key_id,
            claims: decode_object(claims)?,
            signed,
            signature: decode(signature)?,
        })
    }

    /// The issuer that the token names.
    pub fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Json::as_str)
    }
}

fn decode(text: &str) -> Result<Vec<u8>, TokenRefusal> {
    BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenRefusal::Malformed)
}

fn decode_object(text: &str) -> Result<Map<String, Json>, TokenRefusal> {
    match serde_json::from_slice(&decode(text)?) {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) | Err(_) => Err(TokenRefusal::Malformed),
    }
}
