//! SHA-256, as bytes and as text.

use quick_cache::sync::Cache;
use ring::digest;

/// The most digests that are remembered.
const REMEMBERED_DIGESTS: usize = 4_096;

/// Longer texts are not remembered.
const MAX_REMEMBERED_LENGTH: usize = 2_048;

/// The digests of texts that come again and again: to hash one takes longer than to look it up.
pub struct KnownDigests(Cache<Box<str>, [u8; 32]>);

impl Default for KnownDigests {
    fn default() -> KnownDigests {
        KnownDigests(Cache::new(REMEMBERED_DIGESTS))
    }
}

impl KnownDigests {
    /// The SHA-256 of a text.
    pub fn sha256(&self, text: &str) -> [u8; 32] {
        self.0.get(text).unwrap_or_else(|| sha256(text))
    }

    /// Remembers the digest of a text that is expected again.
    pub fn keep(&self, text: &str, digest: [u8; 32]) {
        if text.len() <= MAX_REMEMBERED_LENGTH {
            self.0.insert(text.into(), digest);
        }
    }
}

/// The SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    bytes
}

/// Bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_digests_are_those_of_their_texts() {
        let digests = KnownDigests::default();
        let long = "a".repeat(MAX_REMEMBERED_LENGTH + 1);
        for text in ["a.b.c", "a.b.d", &long] {
            assert_eq!(digests.sha256(text), sha256(text));
            digests.keep(text, sha256(text));
            assert_eq!(digests.sha256(text), sha256(text));
        }
        assert_eq!(digests.0.len(), 2);
    }
}
