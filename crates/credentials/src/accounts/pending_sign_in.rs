//! [`PendingSignIn`]: a sign-in that was begun at a provider, as the browser that began it brings it back.
//!
//! The browser has it in a cookie. State, nonce and PKCE verifier are derived from it with a key that all who use the store
//! share, so that any node can go on with it, and nothing is written before somebody comes back. Who presents the state proves
//! that the cookie was made here: nobody else can compute one from the other.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::digest::{hexadecimal, sha256};

/// How long it is good.
pub const PENDING_SECONDS: i64 = 10 * 60;

/// The secret that all who use the store share.
pub struct SignInKey(hmac::Key);

/// A sign-in that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSignIn {
    /// When it ends, a random part, and where to go afterwards.
    cookie: String,
    issuer: String,
    pub expires: Timestamp,
    pub next: String,
}

impl SignInKey {
    /// A new key, as it is stored.
    pub fn generate() -> Result<String, String> {
        Ok(BASE64_URL_SAFE_NO_PAD.encode(random_bytes()?))
    }

    /// The stored key; `None` if it is none.
    pub fn parse(text: &str) -> Option<SignInKey> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| bytes.len() == 32)?;
        Some(SignInKey(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    fn derive(&self, purpose: &str, pending: &PendingSignIn) -> String {
        let tag = hmac::sign(&self.0, pending.message(purpose).as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref())
    }
}

impl PendingSignIn {
    pub fn begin(issuer: &str, next: &str, now: Timestamp) -> Result<PendingSignIn, String> {
        let expires = now.as_second().saturating_add(PENDING_SECONDS);
        let [random, path] =
            [&random_bytes()?[..], next.as_bytes()].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let cookie = format!("{expires}.{random}.{path}");
        PendingSignIn::parse(issuer, &cookie).ok_or_else(|| "a sign-in cannot be begun".to_owned())
    }

    /// What a cookie says, which proves nothing without its state.
    pub fn parse(issuer: &str, cookie: &str) -> Option<PendingSignIn> {
        let mut parts = cookie.split('.');
        let (expires, _, next) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let expires = Timestamp::from_second(expires.parse().ok()?).ok()?;
        let next = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(next).ok()?).ok()?;
        Some(PendingSignIn { cookie: cookie.to_owned(), issuer: issuer.to_owned(), expires, next })
    }

    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    pub fn state(&self, key: &SignInKey) -> String {
        key.derive("state", self)
    }

    /// Whether this state is that of the sign-in. Compared in constant time.
    pub fn has_state(&self, key: &SignInKey, state: &str) -> bool {
        let Ok(tag) = BASE64_URL_SAFE_NO_PAD.decode(state) else { return false };
        hmac::verify(&key.0, self.message("state").as_bytes(), &tag).is_ok()
    }

    pub fn nonce(&self, key: &SignInKey) -> String {
        key.derive("nonce", self)
    }

    /// The verifier of PKCE.
    pub fn verifier(&self, key: &SignInKey) -> String {
        key.derive("verifier", self)
    }

    /// What the provider gets of the verifier: S256.
    pub fn challenge(&self, key: &SignInKey) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(sha256(&self.verifier(key)))
    }

    /// By which it is known once it was used.
    pub fn hash(&self) -> String {
        hexadecimal(&sha256(&self.cookie))
    }

    /// A line each, so that no two have the same: neither an issuer nor a cookie has a line break.
    fn message(&self, purpose: &str) -> String {
        format!("{purpose}\n{}\n{}", self.issuer, self.cookie)
    }
}

fn random_bytes() -> Result<[u8; 32], String> {
    let mut random = [0; 32];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map(|()| random).map_err(|_| "the system has no random numbers".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://login.example.org";

    fn key() -> SignInKey {
        SignInKey::parse(&SignInKey::generate().unwrap()).unwrap()
    }

    #[test]
    fn only_the_state_of_a_cookie_goes_with_it() {
        let (key, now) = (key(), Timestamp::from_second(1_800_000_000).unwrap());
        let begun = PendingSignIn::begin(ISSUER, "/posts?q=ä", now).unwrap();
        let state = begun.state(&key);
        assert!(begun.cookie().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
        let back = PendingSignIn::parse(ISSUER, begun.cookie()).unwrap();
        assert_eq!((&back, back.next.as_str()), (&begun, "/posts?q=ä"));
        assert_eq!(back.expires.as_second(), 1_800_000_600);
        assert!(back.has_state(&key, &state));
        assert_eq!((back.nonce(&key), back.verifier(&key)), (begun.nonce(&key), begun.verifier(&key)));
        // Another one, another issuer, another key, another end, another way to go on.
        let other = PendingSignIn::begin(ISSUER, "/posts?q=ä", now).unwrap();
        assert!(other != begun && !other.has_state(&key, &state));
        assert!(!PendingSignIn::parse("https://b.example", begun.cookie()).unwrap().has_state(&key, &state));
        assert!(!begun.has_state(&self::key(), &state));
        for (from, to) in [("1800000600", "1900000600"), (".L3Bv", ".L3Bw")] {
            let forged = begun.cookie().replacen(from, to, 1);
            assert_ne!(forged, begun.cookie());
            let forged = PendingSignIn::parse(ISSUER, &forged).unwrap();
            assert!(!forged.has_state(&key, &state));
        }
        for wrong in ["", "x", &state[1..], &begun.nonce(&key), &begun.verifier(&key)] {
            assert!(!begun.has_state(&key, wrong), "{wrong}");
        }
        assert_ne!(begun.nonce(&key), begun.verifier(&key));
        assert_eq!((begun.verifier(&key).len(), begun.challenge(&key).len()), (43, 43));
    }

    #[test]
    fn what_is_no_cookie_of_a_sign_in_is_none() {
        for wrong in ["", ".", "1.a", "1.a.L3Bv.x", "x.a.L3Bv", "1.a.*", "99999999999999999.a.L3Bv", "1.a._w"]
        {
            assert_eq!(PendingSignIn::parse(ISSUER, wrong), None, "{wrong}");
        }
        for wrong in ["", "abc", "A", &"A".repeat(44)] {
            assert!(SignInKey::parse(wrong).is_none(), "{wrong}");
        }
    }
}
