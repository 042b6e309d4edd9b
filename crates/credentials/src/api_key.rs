//! [`ApiKey`]: a secret that a program presents, made here and recognised by its checksum.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::digest::{hexadecimal, sha256};

/// What every key begins with, so that scanners for secrets find it.
pub const KEY_PREFIX: &str = "tfk_";
/// 256 bits in base64.
const RANDOM_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;

/// A key that has the form of one; only the store knows whether it is good.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A new key of 256 random bits.
    pub fn generate() -> Result<ApiKey, String> {
        let mut random = [0; 32];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| "the system has no random numbers".to_owned())?;
        let body = format!("{KEY_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
        let checksum = checksum_of(&body);
        Ok(ApiKey(body + &checksum))
    }

    /// The key that a client sent; `None` if it cannot be one, so that a slip of the pen is refused without the store.
    pub fn parse(text: &str) -> Option<ApiKey> {
        let length = KEY_PREFIX.len() + RANDOM_LENGTH;
        if text.len() != length + CHECKSUM_LENGTH || !text.starts_with(KEY_PREFIX) {
            return None;
        }
        let (body, checksum) = text.split_at_checked(length)?;
        (checksum_of(body) == checksum).then(|| ApiKey(text.to_owned()))
    }

    /// The whole key, for the one time that it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps: SHA-256 in hexadecimal digits. A random key needs no slow hash.
    pub fn hash(&self) -> String {
        hexadecimal(&sha256(&self.0))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

fn checksum_of(body: &str) -> String {
    let mut text = BASE64_URL_SAFE_NO_PAD.encode(&sha256(body)[..5]);
    text.truncate(CHECKSUM_LENGTH);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognised() {
        let key = ApiKey::generate().unwrap();
        assert_eq!(key.reveal().len(), 53);
        assert_eq!(ApiKey::parse(key.reveal()), Some(key.clone()));
        assert_ne!(ApiKey::generate().unwrap(), key);
        assert_eq!(format!("{key:?}"), "ApiKey(***)");
        assert_eq!(key.hash().len(), 64);
        assert!(!key.reveal().contains(&key.hash()));
    }

    #[test]
    fn every_slip_is_refused() {
        let key = ApiKey::generate().unwrap();
        let text = key.reveal();
        for position in 0..text.len() {
            let mut wrong = text.as_bytes().to_vec();
            wrong[position] = if wrong[position] == b'A' { b'B' } else { b'A' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert_eq!(ApiKey::parse(&wrong), None, "position {position} of {text}");
        }
        for wrong in
            ["", "tfk_", &text[..52], &format!("{text}A"), &text.replacen("tfk_", "tfs_", 1), &"é".repeat(27)]
        {
            assert_eq!(ApiKey::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_form_of_keys_never_changes() {
        let body = format!("tfk_{}", BASE64_URL_SAFE_NO_PAD.encode([7; 32]));
        let text = format!("{body}{}", checksum_of(&body));
        assert_eq!(text, "tfk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcnSq-8M");
        let key = ApiKey::parse(&text).unwrap();
        assert_eq!(key.hash(), "c78561dff89377123c6acd2121c006b623373479e1d6e21c69a0c22d9c9f687b");
    }
}
