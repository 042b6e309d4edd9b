//! The checks of a token's claims, and what is read from them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value as Json};

use crate::jwt::token_refusal::TokenRefusal;

/// How far the clocks of issuer and server may differ.
const LEEWAY: SignedDuration = SignedDuration::from_secs(30);

pub type TokenClaims = Map<String, Json>;

/// Checks for whom and when a token is good; returns when it ends.
pub fn check_claims(
    claims: &TokenClaims,
    issuer: &str,
    audiences: &[String],
    now: Timestamp,
) -> Result<Timestamp, TokenRefusal> {
    if claims.get("iss").and_then(Json::as_str) != Some(issuer) {
        return Err(TokenRefusal::Issuer);
    }
    let is_ours =
        |audience: &Json| audience.as_str().is_some_and(|name| audiences.iter().any(|ours| ours == name));
    let is_for_us = match claims.get("aud") {
        Some(Json::Array(listed)) => listed.iter().all(Json::is_string) && listed.iter().any(is_ours),
        Some(single) => is_ours(single),
        None => false,
    };
    if !is_for_us {
        return Err(TokenRefusal::Audience);
    }
    let expires = claims.get("exp").and_then(numeric_date).ok_or(TokenRefusal::Expiry)?;
    if is_over(expires, now) {
        return Err(TokenRefusal::Expired);
    }
    match claims.get("nbf") {
        None => {}
        Some(begins) => match numeric_date(begins) {
            Some(begins) if begins.duration_since(now) <= LEEWAY => {}
            Some(_) => return Err(TokenRefusal::NotYet),
            None => return Err(TokenRefusal::Expiry),
        },
    }
    Ok(expires)
}

/// Whether a token that expires then is no longer good.
pub fn is_over(expires: Timestamp, now: Timestamp) -> bool {
    now.duration_since(expires) >= LEEWAY
}

/// Seconds since 1970, which may have a fraction. A text is none.
fn numeric_date(json: &Json) -> Option<Timestamp> {
    let Json::Number(number) = json else { return None };
    let seconds = number.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    let since = SignedDuration::try_from(since).ok()?;
    // What never ends, ends with the calendar.
    Some(Timestamp::from_duration(since).unwrap_or(Timestamp::MAX))
}

/// The claim at a path. Names may have dots themselves: `https://shop.example/roles`.
pub fn find_claim<'c>(claims: &'c TokenClaims, path: &str) -> Option<&'c Json> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let inner = claims.get(&path[..dot])?.as_object()?;
        find_claim(inner, &path[dot + 1..])
    })
}

/// The names in a claim: a text, words in a text, or a list of texts.
pub fn names_in(claim: &Json) -> Vec<&str> {
    match claim {
        Json::String(text) => text.split_whitespace().collect(),
        Json::Array(items) => items.iter().filter_map(Json::as_str).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: i64 = 1_800_000_000;

    fn check(claims: Json) -> Result<Timestamp, TokenRefusal> {
        let Json::Object(claims) = claims else { panic!("claims are an object") };
        let now = Timestamp::from_second(NOW).unwrap();
        check_claims(&claims, "https://a.example", &["shop".to_owned(), "api".to_owned()], now)
    }

    #[test]
    fn good_claims_pass() {
        for claims in [
            json!({"iss": "https://a.example", "aud": "shop", "exp": NOW + 1}),
            json!({"iss": "https://a.example", "aud": ["other", "api"], "exp": NOW + 1}),
            // Within the leeway.
            json!({"iss": "https://a.example", "aud": "shop", "exp": NOW - 29, "nbf": NOW + 30}),
            json!({"iss": "https://a.example", "aud": "shop", "exp": 1_800_000_000.5, "nbf": 0}),
            // When it was issued does not matter.
            json!({"iss": "https://a.example", "aud": "shop", "exp": NOW + 1, "iat": "later"}),
            json!({"iss": "https://a.example", "aud": "shop", "exp": 1e15}),
        ] {
            assert!(check(claims.clone()).is_ok(), "{claims}");
        }
        let expires = check(json!({"iss": "https://a.example", "aud": "shop", "exp": NOW + 7})).unwrap();
        assert_eq!(expires.as_second(), NOW + 7);
    }

    #[test]
    fn every_wrong_claim_is_refused() {
        let good = json!({"iss": "https://a.example", "aud": "shop", "exp": NOW + 60});
        let with = |name: &str, value: Json| {
            let mut claims = good.clone();
            claims[name] = value;
            claims
        };
        let without = |name: &str| {
            let mut claims = good.clone();
            claims.as_object_mut().unwrap().remove(name);
            claims
        };
        for (claims, refusal) in [
            (without("iss"), TokenRefusal::Issuer),
            (with("iss", json!("https://a.example/")), TokenRefusal::Issuer),
            (with("iss", json!(["https://a.example"])), TokenRefusal::Issuer),
            (without("aud"), TokenRefusal::Audience),
            (with("aud", json!("Shop")), TokenRefusal::Audience),
            (with("aud", json!([])), TokenRefusal::Audience),
            (with("aud", json!(null)), TokenRefusal::Audience),
            (with("aud", json!(["shop", 7])), TokenRefusal::Audience),
            (without("exp"), TokenRefusal::Expiry),
            (with("exp", json!((NOW + 60).to_string())), TokenRefusal::Expiry),
            (with("exp", json!(null)), TokenRefusal::Expiry),
            (with("exp", json!(-1)), TokenRefusal::Expiry),
            (with("exp", json!([NOW + 60])), TokenRefusal::Expiry),
            (with("exp", json!(NOW - 30)), TokenRefusal::Expired),
            (with("exp", json!(0)), TokenRefusal::Expired),
            (with("nbf", json!(NOW + 31)), TokenRefusal::NotYet),
            (with("nbf", json!("0")), TokenRefusal::Expiry),
            (with("nbf", json!(null)), TokenRefusal::Expiry),
        ] {
            assert_eq!(check(claims.clone()), Err(refusal), "{claims}");
        }
    }

    #[test]
    fn claims_are_found_by_path() {
        let Json::Object(claims) = json!({
            "realm_access": {"roles": ["a", "b", 7]},
            "https://shop.example/roles": "x  y",
            "a.b": {"c.d": {"e": 1}},
            "list": [{"a": 1}],
        }) else {
            panic!("claims are an object")
        };
        let found = |path: &str| find_claim(&claims, path);
        assert_eq!(names_in(found("realm_access.roles").unwrap()), ["a", "b"]);
        assert_eq!(names_in(found("https://shop.example/roles").unwrap()), ["x", "y"]);
        assert_eq!(found("a.b.c.d.e"), Some(&json!(1)));
        for path in ["", ".", "realm_access.", "realm_access.nobody", "list.0", "roles"] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
