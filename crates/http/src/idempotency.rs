//! The `Idempotency-Key` header: which key, and what makes two requests the same one.

use http::{HeaderMap, HeaderName};
use xxhash_rust::xxh3::Xxh3;

use crate::errors::problem::Problem;
use trefoil_engine::Key;

/// Where it stands.
pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

const LONGEST: usize = 255;

/// The key that a request came with; `target` is its method and path.
pub fn key(headers: &HeaderMap, target: &str, body: &[u8]) -> Result<Option<Key>, Problem> {
    let mut given = headers.get_all(HEADER).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let key = value.to_str().ok().map(bare).filter(|key| (1..=LONGEST).contains(&key.len()));
    let (Some(key), None) = (key, given.next()) else {
        let detail = format!("Idempotency-Key must be one value of 1 to {LONGEST} visible ASCII characters");
        return Err(Problem::bad_request("IDEMPOTENCY_KEY_MALFORMED", detail));
    };
    let mut hash = Xxh3::new();
    hash.update(target.as_bytes());
    hash.update(b"\n");
    hash.update(body);
    Ok(Some(Key { key: key.to_owned(), fingerprint: hash.digest128() }))
}

/// The draft standard quotes the key; many clients do not. Both spell the same key.
fn bare(key: &str) -> &str {
    key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str], body: &str) -> Result<Option<Key>, ()> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("idempotency-key", value.parse().unwrap());
        }
        key(&headers, "POST /graphql", body.as_bytes()).map_err(|_| ())
    }

    #[test]
    fn quotes_are_no_part_of_a_key() {
        assert_eq!(read(&["\"k\""], "a"), read(&["k"], "a"));
        assert_ne!(read(&["k"], "a"), read(&["k"], "b"));
        assert_eq!(read(&[], "a"), Ok(None));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for wrong in [&[""][..], &["\"\""], &["a", "b"], &["x".repeat(256).as_str()]] {
            assert_eq!(read(wrong, "a"), Err(()), "{wrong:?}");
        }
    }
}
