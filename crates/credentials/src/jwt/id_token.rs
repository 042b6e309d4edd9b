//! What an ID token must be beyond a good token of its issuer: the answer to the sign-in that asked for it.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::digest;
use serde_json::Value as Json;

use crate::jwt::claims::TokenClaims;
use crate::jwt::signature::SigningAlgorithm;
use crate::jwt::token_parts::TokenParts;
use crate::jwt::token_refusal::TokenRefusal;
use crate::jwt::token_verifier::TrustedIssuer;

/// The longest subject that OpenID allows.
const MAX_SUBJECT: usize = 255;

/// What the sign-in was begun with, and what came with its token.
#[derive(Debug, Clone, Copy)]
pub struct IdTokenExpectation<'e> {
    pub client_id: &'e str,
    pub nonce: &'e str,
    pub access_token: Option<&'e str>,
}

/// Verifies an ID token as tokens of this issuer are verified, and that it answers this sign-in: its subject and claims.
pub async fn verify_id_token(
    issuer: &TrustedIssuer,
    token: &str,
    expected: IdTokenExpectation<'_>,
    now: Timestamp,
) -> Result<(String, TokenClaims), TokenRefusal> {
    let parts = TokenParts::parse(token)?;
    issuer.verify(&parts, now).await?;
    check_answer(&parts.claims, parts.algorithm, expected)?;
    let subject = parts.claims.get("sub").and_then(Json::as_str).unwrap_or_default().to_owned();
    if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.chars().any(char::is_control) {
        return Err(TokenRefusal::Subject);
    }
    Ok((subject, parts.claims))
}

fn check_answer(
    claims: &TokenClaims,
    algorithm: SigningAlgorithm,
    expected: IdTokenExpectation<'_>,
) -> Result<(), TokenRefusal> {
    if claims.get("nonce").and_then(Json::as_str) != Some(expected.nonce) {
        return Err(TokenRefusal::Nonce);
    }
    let has_several = claims.get("aud").and_then(Json::as_array).is_some_and(|listed| listed.len() > 1);
    match claims.get("azp") {
        None if !has_several => {}
        Some(Json::String(party)) if party == expected.client_id => {}
        None | Some(_) => return Err(TokenRefusal::Audience),
    }
    match (claims.get("at_hash"), expected.access_token) {
        (None, _) => Ok(()),
        (Some(Json::String(hash)), Some(token)) if *hash == half_hash(algorithm, token) => Ok(()),
        (Some(_), _) => Err(TokenRefusal::AccessToken),
    }
}

fn half_hash(algorithm: SigningAlgorithm, token: &str) -> String {
    let digest = digest::digest(algorithm.hash(), token.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(&digest.as_ref()[..digest.as_ref().len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_answer_to_the_sign_in_is_taken() {
        let expected = IdTokenExpectation { client_id: "shop", nonce: "n", access_token: Some("a token") };
        let check = |claims: Json| {
            let Json::Object(claims) = claims else { panic!("claims are an object") };
            check_answer(&claims, SigningAlgorithm::Es256, expected)
        };
        let hash = half_hash(SigningAlgorithm::Es256, "a token");
        assert_eq!(hash.len(), 22);
        for (claims, answer) in [
            (json!({"nonce": "n"}), Ok(())),
            (json!({"nonce": "n", "aud": ["shop"]}), Ok(())),
            (json!({"nonce": "n", "aud": ["shop", "api"], "azp": "shop"}), Ok(())),
            (json!({"nonce": "n", "at_hash": hash}), Ok(())),
            (json!({}), Err(TokenRefusal::Nonce)),
            (json!({"nonce": "m"}), Err(TokenRefusal::Nonce)),
            (json!({"nonce": ["n"]}), Err(TokenRefusal::Nonce)),
            (json!({"nonce": "n", "aud": ["shop", "api"]}), Err(TokenRefusal::Audience)),
            (json!({"nonce": "n", "aud": "shop", "azp": "api"}), Err(TokenRefusal::Audience)),
            (json!({"nonce": "n", "azp": null}), Err(TokenRefusal::Audience)),
            (json!({"nonce": "n", "at_hash": &hash[..21]}), Err(TokenRefusal::AccessToken)),
            (
                json!({"nonce": "n", "at_hash": half_hash(SigningAlgorithm::Es384, "a token")}),
                Err(TokenRefusal::AccessToken),
            ),
            (json!({"nonce": "n", "at_hash": null}), Err(TokenRefusal::AccessToken)),
        ] {
            assert_eq!(check(claims.clone()), answer, "{claims}");
        }
        let Json::Object(claims) = json!({"nonce": "n", "at_hash": hash}) else { panic!("an object") };
        let without = IdTokenExpectation { access_token: None, ..expected };
        assert_eq!(check_answer(&claims, SigningAlgorithm::Es256, without), Err(TokenRefusal::AccessToken));
    }
}
