//! The `Idempotency-Key` header: the key and the fingerprint of its request.

use http::{HeaderMap, HeaderName};
use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::IdempotencyKey;

use crate::errors::problem::Problem;

pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const MAX_KEY_LENGTH: usize = 255;

/// The key of a request, if it has one; `target` is its method and path.
pub fn idempotency_key(
    headers: &HeaderMap,
    target: &str,
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().map(unquote_key).filter(|key| (1..=MAX_KEY_LENGTH).contains(&key.len()));
    let (Some(key), None) = (key, values.next()) else {
        let detail = format!(
            "Idempotency-Key must be a single value of 1 to {MAX_KEY_LENGTH} visible ASCII characters"
        );
        return Err(Problem::bad_request("IDEMPOTENCY_KEY_MALFORMED", detail));
    };
    let mut hash = Xxh3::new();
    hash.update(target.as_bytes());
    hash.update(b"\n");
    hash.update(body);
    Ok(Some(IdempotencyKey { key: key.to_owned(), fingerprint: hash.digest128() }))
}

/// The draft standard quotes the key; many clients do not. Both spellings are the same key.
fn unquote_key(key: &str) -> &str {
    key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str], body: &str) -> Result<Option<IdempotencyKey>, ()> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("idempotency-key", value.parse().unwrap());
        }
        idempotency_key(&headers, "POST /graphql", body.as_bytes()).map_err(|_| ())
    }

    #[test]
    fn quotes_are_not_part_of_the_key() {
        assert_eq!(read(&["\"k\""], "a"), read(&["k"], "a"));
        assert_ne!(read(&["k"], "a"), read(&["k"], "b"));
        assert_eq!(read(&[], "a"), Ok(None));
    }

    #[test]
    fn invalid_keys_are_refused() {
        for wrong in [&[""][..], &["\"\""], &["a", "b"], &["x".repeat(256).as_str()]] {
            assert_eq!(read(wrong, "a"), Err(()), "{wrong:?}");
        }
    }
}
