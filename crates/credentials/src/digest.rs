//! SHA-256, as bytes and as text.

use ring::digest;

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
