//! [`KeySet`]: the keys of an issuer, read from a JSON Web Key Set.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value as Json};

use crate::jwt::signature::{SigningAlgorithm, VerifyingKey};

/// The most bytes of a set of keys.
pub const MAX_SET_BYTES: usize = 256 * 1024;
/// The most keys in a set.
const MAX_KEYS: usize = 64;
const MIN_RSA_BITS: usize = 2048;

/// The keys of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet(Vec<SetKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct SetKey {
    id: Option<String>,
    /// If the set says so, the only algorithm that it is for.
    algorithm: Option<String>,
    key: VerifyingKey,
}

impl KeySet {
    /// The one secret that issuer and server share.
    pub fn of_secret(secret: Vec<u8>) -> KeySet {
        KeySet(vec![SetKey { id: None, algorithm: None, key: VerifyingKey::Secret(secret) }])
    }

    /// Reads a set of public keys. Keys of other kinds and uses are left out; an error if none is left.
    pub fn parse(text: &[u8]) -> Result<KeySet, String> {
        if text.len() > MAX_SET_BYTES {
            return Err(format!("longer than {} KiB", MAX_SET_BYTES / 1024));
        }
        let json: Json = serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
        let listed = json.get("keys").and_then(Json::as_array).ok_or("no list `keys`")?;
        if listed.len() > MAX_KEYS {
            return Err(format!("more than {MAX_KEYS} keys"));
        }
        let keys: Vec<SetKey> = listed.iter().filter_map(Json::as_object).filter_map(read_key).collect();
        if keys.is_empty() {
            return Err("no key for RS256, PS256, ES256, ES384 or EdDSA in it".to_owned());
        }
        Ok(KeySet(keys))
    }

    /// The keys that a token may be signed with. A token without `kid` needs a set with only one key of its kind, so that
    /// nobody makes the server try many.
    pub fn candidates(&self, algorithm: SigningAlgorithm, id: Option<&str>) -> Vec<&VerifyingKey> {
        let fits = |found: &&SetKey| {
            found.key.fits(algorithm)
                && found.algorithm.as_deref().is_none_or(|only| only == algorithm.name())
        };
        let fitting = self.0.iter().filter(fits);
        // A secret has no name in a set; what the token calls it does not matter.
        let is_named =
            |found: &&SetKey| algorithm.is_symmetric() || id.is_none_or(|id| found.id.as_deref() == Some(id));
        let found: Vec<&VerifyingKey> = fitting.filter(is_named).map(|found| &found.key).collect();
        if id.is_none() && found.len() > 1 { Vec::new() } else { found }
    }
}

/// A key that verifies signatures; `None` for any other.
fn read_key(json: &Map<String, Json>) -> Option<SetKey> {
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    let is_for_signatures = text("use").is_none_or(|purpose| purpose == "sig");
    let operations = json.get("key_ops").and_then(Json::as_array);
    let verifies = operations.is_none_or(|operations| operations.iter().any(|name| name == "verify"));
    if !is_for_signatures || !verifies {
        return None;
    }
    let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
    let point = |size: usize| {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == size && y.len() == size).then(|| [vec![4], x, y].concat())
    };
    let key = match (text("kty")?, text("crv")) {
        ("RSA", _) => {
            let modulus = without_zeros(bytes("n")?);
            if bit_length(&modulus) < MIN_RSA_BITS {
                return None;
            }
            VerifyingKey::Rsa { modulus, exponent: without_zeros(bytes("e")?) }
        }
        ("EC", Some("P-256")) => VerifyingKey::P256(point(32)?),
        ("EC", Some("P-384")) => VerifyingKey::P384(point(48)?),
        ("OKP", Some("Ed25519")) => VerifyingKey::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
        // `oct` is a secret: one that is published is none.
        _ => return None,
    };
    let owned = |name: &str| text(name).map(str::to_owned);
    Some(SetKey { id: owned("kid"), algorithm: owned("alg"), key })
}

fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// Of a number without leading zero bytes.
fn bit_length(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}
