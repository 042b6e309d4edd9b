//! [`SecretToken`]: a secret that proves something, made here and recognised by its checksum: API keys, sessions and links.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};

use crate::digest::{hexadecimal, sha256};

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    ApiKey,
    Session,
    /// For a first or a new password.
    Link,
}

/// 256 bits in base64.
const RANDOM_LENGTH: usize = 43;
const CHECKSUM_LENGTH: usize = 6;

/// A secret that has the form of one; only the store knows whether it is good.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretToken(String);

impl TokenKind {
    /// What every secret of the kind begins with, so that scanners find it.
    pub fn prefix(self) -> &'static str {
        match self {
            TokenKind::ApiKey => "tfk_",
            TokenKind::Session => "tfs_",
            TokenKind::Link => "tfl_",
        }
    }
}

impl SecretToken {
    /// A new secret of 256 random bits.
    pub fn generate(kind: TokenKind) -> Result<SecretToken, String> {
        let mut random = [0; 32];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| "the system has no random numbers".to_owned())?;
        let body = format!("{}{}", kind.prefix(), BASE64_URL_SAFE_NO_PAD.encode(random));
        let checksum = checksum_of(&body);
        Ok(SecretToken(body + &checksum))
    }

    /// The secret that a client sent; `None` if it cannot be one, so that a slip of the pen is refused without the store.
    pub fn parse(kind: TokenKind, text: &str) -> Option<SecretToken> {
        let length = kind.prefix().len() + RANDOM_LENGTH;
        if text.len() != length + CHECKSUM_LENGTH || !text.starts_with(kind.prefix()) {
            return None;
        }
        let (body, checksum) = text.split_at_checked(length)?;
        (checksum_of(body) == checksum).then(|| SecretToken(text.to_owned()))
    }

    /// The whole secret, for the one time that it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store keeps: SHA-256 in hexadecimal digits. A random secret needs no slow hash.
    pub fn hash(&self) -> String {
        hexadecimal(&sha256(&self.0))
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretToken(***)")
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
        let key = SecretToken::generate(TokenKind::ApiKey).unwrap();
        assert_eq!(key.reveal().len(), 53);
        assert_eq!(SecretToken::parse(TokenKind::ApiKey, key.reveal()), Some(key.clone()));
        assert_ne!(SecretToken::generate(TokenKind::ApiKey).unwrap(), key);
        assert_eq!(format!("{key:?}"), "SecretToken(***)");
        assert_eq!(key.hash().len(), 64);
        assert!(!key.reveal().contains(&key.hash()));
        assert_eq!(SecretToken::parse(TokenKind::Session, key.reveal()), None);
    }

    #[test]
    fn every_slip_is_refused() {
        let key = SecretToken::generate(TokenKind::ApiKey).unwrap();
        let text = key.reveal();
        for position in 0..text.len() {
            let mut wrong = text.as_bytes().to_vec();
            wrong[position] = if wrong[position] == b'A' { b'B' } else { b'A' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert_eq!(SecretToken::parse(TokenKind::ApiKey, &wrong), None, "position {position} of {text}");
        }
        for wrong in
            ["", "tfk_", &text[..52], &format!("{text}A"), &text.replacen("tfk_", "tfs_", 1), &"é".repeat(27)]
        {
            assert_eq!(SecretToken::parse(TokenKind::ApiKey, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_form_of_keys_never_changes() {
        let body = format!("tfk_{}", BASE64_URL_SAFE_NO_PAD.encode([7; 32]));
        let text = format!("{body}{}", checksum_of(&body));
        assert_eq!(text, "tfk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcnSq-8M");
        let key = SecretToken::parse(TokenKind::ApiKey, &text).unwrap();
        assert_eq!(key.hash(), "c78561dff89377123c6acd2121c006b623373479e1d6e21c69a0c22d9c9f687b");
    }
}
