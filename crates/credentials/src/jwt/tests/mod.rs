//! Tests of whole tokens: each check refuses what only it would refuse.

mod vectors;

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::KeyPair as _;
use ring::{hmac, signature as ring_signature};
use serde_json::{Value as Json, json};

use trefoil_config::{AccountClaim, IssuerKeySource, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS, TokenIssuer};

use crate::digest::sha256;
use crate::jwt::issuer_keys::IssuerKeys;
use crate::jwt::key_set::KeySet;
use crate::jwt::signature::{SigningAlgorithm, VerifyingKey};
use crate::jwt::{TokenRefusal, TokenVerifier, TrustedIssuer, VerifiedToken};

const NOW: i64 = 1_800_000_000;
const SECRET: &[u8] = b"a secret of at least thirty-two bytes";
const ISSUER: &str = "https://login.example.org";

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn issuer(keys: IssuerKeySource) -> TokenIssuer {
    let algorithms: &[&str] = if keys.is_secret() { &SECRET_ALGORITHMS } else { &PUBLIC_KEY_ALGORITHMS };
    TokenIssuer {
        issuer: ISSUER.to_owned(),
        audiences: vec!["shop-api".to_owned()],
        algorithms: algorithms.iter().map(|name| (*name).to_owned()).collect(),
        keys,
        roles: Some("roles".to_owned()),
        role_map: None,
        account: None,
        header: None,
    }
}

fn verifier(settings: TokenIssuer, keys: KeySet) -> TokenVerifier {
    let issuer = TrustedIssuer::new(settings, Arc::new(IssuerKeys::fixed(keys)));
    TokenVerifier::new(vec![issuer], vec!["ADMIN".to_owned(), "EDITOR".to_owned()])
}

fn secret_verifier() -> TokenVerifier {
    verifier(issuer(IssuerKeySource::SecretVariable("S".to_owned())), KeySet::of_secret(SECRET.to_vec()))
}

fn public_verifier(keys: &Json) -> TokenVerifier {
    let keys = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    verifier(issuer(IssuerKeySource::Discovery), keys)
}

async fn verify(verifier: &TokenVerifier, token: &str) -> Result<Arc<VerifiedToken>, TokenRefusal> {
    verifier.verify(token, &sha256(token), None, now()).await
}

fn encode(json: &Json) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(json.to_string())
}

fn claims() -> Json {
    json!({"iss": ISSUER, "aud": "shop-api", "sub": "ada", "exp": NOW + 600, "roles": ["ADMIN"]})
}

fn signed(header: &Json, claims: &Json, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn hmac_signed(header: &Json, claims: &Json, secret: &[u8]) -> String {
    let hash = match header["alg"].as_str() {
        Some("HS384") => hmac::HMAC_SHA384,
        Some("HS512") => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    let key = hmac::Key::new(hash, secret);
    signed(header, claims, |message| hmac::sign(&key, message).as_ref().to_vec())
}

fn rsa_key(id: &str, modulus: &str) -> Json {
    json!({"kty": "RSA", "kid": id, "use": "sig", "n": modulus, "e": "AQAB"})
}

#[tokio::test]
async fn good_tokens_of_every_algorithm_are_accepted() {
    for name in SECRET_ALGORITHMS {
        let token = hmac_signed(&json!({"alg": name, "typ": "JWT"}), &claims(), SECRET);
        let verified = verify(&secret_verifier(), &token).await.unwrap();
        assert_eq!(verified.subject.as_deref(), Some("ada"));
        assert_eq!((verified.issuer, verified.expires.as_second()), (0, NOW + 600));
        assert_eq!(verified.roles, ["ADMIN"]);
    }
    let rsa = public_verifier(&json!([rsa_key("r2048", vectors::RSA_MODULUS)]));
    for token in [vectors::RS256_TOKEN, vectors::PS256_TOKEN] {
        assert_eq!(verify(&rsa, token).await.unwrap().roles, ["ADMIN"], "{token}");
    }
    let random = SystemRandom::new();
    for (name, curve, algorithm) in [
        ("ES256", "P-256", &ring_signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", "P-384", &ring_signature::ECDSA_P384_SHA384_FIXED_SIGNING),
    ] {
        let document = ring_signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = ring_signature::EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let (x, y) = pair.public_key().as_ref()[1..].split_at(if name == "ES256" { 32 } else { 48 });
        let [x, y] = [x, y].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let set = public_verifier(&json!([{"kty": "EC", "crv": curve, "x": x, "y": y}]));
        let token = signed(&json!({"alg": name, "typ": "at+jwt"}), &claims(), |message| {
            pair.sign(&random, message).unwrap().as_ref().to_vec()
        });
        assert!(verify(&set, &token).await.is_ok(), "{name}");
    }
    let pair = ring_signature::Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let set = public_verifier(&json!([{"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": x}]));
    let header = json!({"alg": "EdDSA", "kid": "e"});
    let token = signed(&header, &claims(), |message| pair.sign(message).as_ref().to_vec());
    assert!(verify(&set, &token).await.is_ok());
}

#[test]
fn signatures_of_the_standards_are_verified() {
    let [x, y] = vectors::RFC_P256.map(|part| BASE64_URL_SAFE_NO_PAD.decode(part).unwrap());
    let bytes = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
    for (token, algorithm, key) in [
        (vectors::RFC_HS256, SigningAlgorithm::Hs256, VerifyingKey::Secret(bytes(vectors::RFC_SECRET))),
        (vectors::RFC_ES256, SigningAlgorithm::Es256, VerifyingKey::P256([vec![4], x, y].concat())),
        (vectors::RFC_EDDSA, SigningAlgorithm::EdDsa, VerifyingKey::Ed25519(bytes(vectors::RFC_ED25519))),
    ] {
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut signature = bytes(signature);
        assert!(key.verifies(algorithm, message.as_bytes(), &signature), "{token}");
        signature[0] ^= 1;
        assert!(!key.verifies(algorithm, message.as_bytes(), &signature), "{token}");
    }
}

#[tokio::test]
async fn wrong_headers_are_refused() {
    let verifier = secret_verifier();
    for (header, refusal) in [
        (json!({"alg": "none"}), TokenRefusal::Algorithm),
        (json!({"alg": "None"}), TokenRefusal::Algorithm),
        (json!({"alg": "hs256"}), TokenRefusal::Algorithm),
        (json!({"alg": null}), TokenRefusal::Algorithm),
        (json!({}), TokenRefusal::Algorithm),
        (json!({"alg": "RS256"}), TokenRefusal::Algorithm),
        (json!({"alg": "HS256", "typ": "JWE"}), TokenRefusal::Type),
        (json!({"alg": "HS256", "typ": ""}), TokenRefusal::Type),
        (json!({"alg": "HS256", "typ": ["JWT"]}), TokenRefusal::Type),
        (json!({"alg": "HS256", "crit": ["exp"]}), TokenRefusal::Critical),
        (json!({"alg": "HS256", "crit": []}), TokenRefusal::Critical),
        (json!({"alg": "HS256", "kid": 7}), TokenRefusal::Malformed),
        (json!(["HS256"]), TokenRefusal::Malformed),
    ] {
        let token = hmac_signed(&header, &claims(), SECRET);
        assert_eq!(verify(&verifier, &token).await, Err(refusal), "{header}");
    }
    // Keys that a token brings along are not looked at, nor what it calls the secret.
    let header = json!({
        "alg": "HS256", "typ": "jwt", "kid": "../../dev/null", "jku": "https://evil.example",
        "jwk": {"kty": "oct", "k": "AA"}, "x5u": 7, "x5c": ["x"],
    });
    assert!(verify(&verifier, &hmac_signed(&header, &claims(), SECRET)).await.is_ok());
    assert_eq!(verify(&verifier, &hmac_signed(&header, &claims(), &[0])).await, Err(TokenRefusal::Signature));
}

#[tokio::test]
async fn a_public_key_is_never_a_secret() {
    let mut settings = issuer(IssuerKeySource::Discovery);
    // Even if the settings were wrong.
    settings.algorithms.push("HS256".to_owned());
    let set = json!({"keys": [rsa_key("r2048", vectors::RSA_MODULUS)]}).to_string();
    let verifier = verifier(settings, KeySet::parse(set.as_bytes()).unwrap());
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(vectors::RSA_MODULUS).unwrap();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        BASE64_STANDARD.encode(&modulus)
    );
    for secret in [modulus.as_slice(), pem.as_bytes(), vectors::RSA_MODULUS.as_bytes(), b""] {
        let token = hmac_signed(&json!({"alg": "HS256", "kid": "r2048"}), &claims(), secret);
        assert_eq!(verify(&verifier, &token).await, Err(TokenRefusal::Algorithm));
    }
    let point = VerifyingKey::P256(modulus);
    assert!(!point.verifies(SigningAlgorithm::Hs256, b"", b""));
}

#[tokio::test]
async fn wrong_forms_are_refused() {
    let verifier = secret_verifier();
    let good = hmac_signed(&json!({"alg": "HS256"}), &claims(), SECRET);
    let (message, signature) = good.rsplit_once('.').unwrap();
    let padded = format!("{good}=");
    let five = format!("{good}.a.b");
    for wrong in ["", "..", "a.b", message, &five, &padded, &format!("{good} "), &format!(".{good}")] {
        assert_eq!(verify(&verifier, wrong).await, Err(TokenRefusal::Malformed), "{wrong}");
    }
    for changed in [format!("{message}."), format!("{message}.{}", &signature[4..])] {
        assert_eq!(verify(&verifier, &changed).await, Err(TokenRefusal::Signature), "{changed}");
    }
    let other = hmac_signed(&json!({"alg": "HS256"}), &claims(), b"another secret of thirty-two bytes or so");
    assert_eq!(verify(&verifier, &other).await, Err(TokenRefusal::Signature));
    let mut long = claims();
    long["filler"] = json!("x".repeat(8_000));
    let long = hmac_signed(&json!({"alg": "HS256"}), &long, SECRET);
    assert_eq!(verify(&verifier, &long).await, Err(TokenRefusal::TooLong));
}

#[tokio::test]
async fn keys_are_found_by_their_id() {
    let other = vectors::RSA_MODULUS.replacen('A', "B", 1);
    let both = public_verifier(&json!([rsa_key("r2048", vectors::RSA_MODULUS), rsa_key("other", &other)]));
    assert!(verify(&both, vectors::RS256_TOKEN).await.is_ok());
    let renamed = public_verifier(&json!([rsa_key("other", vectors::RSA_MODULUS)]));
    assert_eq!(verify(&renamed, vectors::RS256_TOKEN).await, Err(TokenRefusal::Key));
    let swapped = public_verifier(&json!([rsa_key("r2048", &other)]));
    assert_eq!(verify(&swapped, vectors::RS256_TOKEN).await, Err(TokenRefusal::Signature));
    // A key may be for one algorithm alone.
    let mut only = rsa_key("r2048", vectors::RSA_MODULUS);
    only["alg"] = json!("PS256");
    let only = public_verifier(&json!([only]));
    assert_eq!(verify(&only, vectors::RS256_TOKEN).await, Err(TokenRefusal::Key));
    assert!(verify(&only, vectors::PS256_TOKEN).await.is_ok());
    // Without an id, the set must leave no choice.
    let nameless = signed(&json!({"alg": "RS256"}), &claims(), |_| vec![0; 256]);
    assert_eq!(verify(&both, &nameless).await, Err(TokenRefusal::Key));
    assert_eq!(verify(&swapped, &nameless).await, Err(TokenRefusal::Signature));
}

#[test]
fn sets_keep_the_keys_that_verify() {
    let weak = rsa_key("r1024", vectors::WEAK_MODULUS);
    let mut encryption = rsa_key("e", vectors::RSA_MODULUS);
    encryption["use"] = json!("enc");
    let mut signing = rsa_key("s", vectors::RSA_MODULUS);
    signing["key_ops"] = json!(["sign"]);
    let secret = json!({"kty": "oct", "k": BASE64_URL_SAFE_NO_PAD.encode(SECRET), "alg": "HS256"});
    let short = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"});
    for key in [weak, encryption, signing, secret, short, json!({"kty": "?"}), json!(7)] {
        let set = json!({ "keys": [key] }).to_string();
        assert!(KeySet::parse(set.as_bytes()).is_err(), "{set}");
    }
    let many = vec![rsa_key("r", vectors::RSA_MODULUS); 65];
    assert!(KeySet::parse(json!({ "keys": many }).to_string().as_bytes()).unwrap_err().contains("64"));
    assert!(KeySet::parse(json!({ "keys": many[..64] }).to_string().as_bytes()).is_ok());
    assert!(KeySet::parse(&vec![b' '; 256 * 1024 + 1]).unwrap_err().contains("256 KiB"));
    for wrong in ["", "{}", "[]", "{\"keys\": {}}", "{\"keys\": []}"] {
        assert!(KeySet::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
    // Whoever gets it past the set does not get it past the signature.
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(vectors::WEAK_MODULUS).unwrap();
    let (message, signature) = vectors::WEAK_TOKEN.rsplit_once('.').unwrap();
    let key = VerifyingKey::Rsa { modulus, exponent: vec![1, 0, 1] };
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert!(!key.verifies(SigningAlgorithm::Rs256, message.as_bytes(), &signature));
}

#[tokio::test]
async fn algorithms_can_be_narrowed() {
    let mut settings = issuer(IssuerKeySource::Discovery);
    settings.algorithms = vec!["PS256".to_owned()];
    let set = json!({"keys": [rsa_key("r2048", vectors::RSA_MODULUS)]}).to_string();
    let verifier = verifier(settings, KeySet::parse(set.as_bytes()).unwrap());
    assert_eq!(verify(&verifier, vectors::RS256_TOKEN).await, Err(TokenRefusal::Algorithm));
    assert!(verify(&verifier, vectors::PS256_TOKEN).await.is_ok());
}

#[tokio::test]
async fn remembered_tokens_still_end() {
    let verifier = secret_verifier();
    let token = hmac_signed(&json!({"alg": "HS256"}), &claims(), SECRET);
    let first = verify(&verifier, &token).await.unwrap();
    assert!(Arc::ptr_eq(&first, &verify(&verifier, &token).await.unwrap()));
    let later = Timestamp::from_second(NOW + 630).unwrap();
    assert_eq!(verifier.verify(&token, &sha256(&token), None, later).await, Err(TokenRefusal::Expired));
    // What was accepted in one header is not good in another.
    assert_eq!(
        verifier.verify(&token, &sha256(&token), Some("x-token"), now()).await,
        Err(TokenRefusal::Issuer)
    );
}

#[tokio::test]
async fn roles_are_mapped_and_unknown_ones_ignored() {
    let roles = async |map: Option<&[(&str, &str)]>, found: Json| {
        let mut settings = issuer(IssuerKeySource::SecretVariable("S".to_owned()));
        settings.role_map =
            map.map(|map| map.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect());
        let verifier = verifier(settings, KeySet::of_secret(SECRET.to_vec()));
        let mut claims = claims();
        claims["roles"] = found;
        let token = hmac_signed(&json!({"alg": "HS256"}), &claims, SECRET);
        verify(&verifier, &token).await.unwrap().roles.join(" ")
    };
    assert_eq!(roles(None, json!(["EDITOR", "ADMIN", "OWNER", 7])).await, "ADMIN EDITOR");
    assert_eq!(roles(None, json!("openid EDITOR")).await, "EDITOR");
    assert_eq!(roles(None, json!(null)).await, "");
    let map: &[(&str, &str)] = &[("shop-admins", "ADMIN"), ("shop-boss", "ADMIN"), ("x", "OWNER")];
    // With a map, names are roles no more.
    assert_eq!(roles(Some(map), json!(["shop-admins", "shop-boss", "EDITOR", "x"])).await, "ADMIN");
}

#[tokio::test]
async fn only_verified_addresses_find_accounts() {
    let account = async |claim: &str, change: Json| {
        let mut settings = issuer(IssuerKeySource::SecretVariable("S".to_owned()));
        settings.account = Some(AccountClaim { claim: claim.to_owned(), field: "email".to_owned() });
        let verifier = verifier(settings, KeySet::of_secret(SECRET.to_vec()));
        let mut claims = claims();
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = hmac_signed(&json!({"alg": "HS256"}), &claims, SECRET);
        verify(&verifier, &token).await.unwrap().account.clone()
    };
    let email = json!("ada@example.org");
    let found = Some("ada@example.org".to_owned());
    assert_eq!(account("email", json!({"email": email, "email_verified": true})).await, found);
    for verified in [json!(false), json!("true"), json!(null), json!(1)] {
        assert_eq!(account("email", json!({"email": email, "email_verified": verified})).await, None);
    }
    assert_eq!(account("email", json!({ "email": email })).await, None);
    assert_eq!(account("sub", json!({})).await, Some("ada".to_owned()));
    assert_eq!(account("id", json!({"id": 7})).await, Some("7".to_owned()));
    assert_eq!(account("id", json!({"id": ["7"]})).await, None);
}
