//! Idempotency keys of forms, which make a double submit one write.

use std::time::Duration;

use http::request::Parts;
use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::plain_list::ExpectedVersions;
use trefoil_engine::{Engine, IdempotencyKey, Operation, PlainListAction};
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{Error, Result};
use trefoil_resources::forms::form_input::ENTER_CONTROL;
use trefoil_resources::plain_list::{ConfirmedWrite, PlainListResource};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::CompletedWrite;

const MAX_KEY_LENGTH: usize = 64;

/// How often and at which interval a second submit asks for the result of the first.
const MAX_ATTEMPTS: u32 = 200;
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub fn new_key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The key of the header, or one made of the form's own key and its content: a form that was changed and sent again is
/// another write.
pub fn form_key(
    header_key: Option<IdempotencyKey>,
    head: &Parts,
    form_key: Option<&str>,
    pairs: &FormPairs,
) -> Option<IdempotencyKey> {
    if header_key.is_some() {
        return header_key;
    }
    let form_key = form_key.filter(|key| {
        (1..=MAX_KEY_LENGTH).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
    })?;
    let mut hash = Xxh3::new();
    hash.update(format!("{} {}", head.method, head.uri.path()).as_bytes());
    // Submitting by the return key or by the button makes no difference.
    for (name, text) in pairs.iter().filter(|(name, _)| name != ENTER_CONTROL) {
        hash.update(format!("\n{} {} {name}={text}", name.len(), text.len()).as_bytes());
    }
    let fingerprint = hash.digest128();
    Some(IdempotencyKey { key: format!("form {form_key} {fingerprint:032x}"), fingerprint })
}

/// Runs the write, waiting while another request with the same key runs: after a double submit the browser shows the
/// response to the second request, which must be the result of the first.
pub async fn write_once(
    request: &ResourceRequest<'_>,
    operation: Operation,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    for _ in 0..MAX_ATTEMPTS {
        match request.execute_write(operation.clone(), key.clone()).await {
            Err(Error::KeyInUse) => tokio::time::sleep(RETRY_PAUSE).await,
            result => return result,
        }
    }
    Err(Error::KeyInUse)
}

/// The same for a value appended to a plain list.
pub async fn append_once(
    engine: &Engine,
    list: &PlainListResource,
    value: &str,
    expected: ExpectedVersions,
    key: Option<IdempotencyKey>,
) -> Result<ConfirmedWrite> {
    for _ in 0..MAX_ATTEMPTS {
        let action = PlainListAction::Append { value: value.to_owned(), expected: expected.clone() };
        match list.write(engine, action, String::new(), key.clone()).await {
            Err(Error::KeyInUse) => tokio::time::sleep(RETRY_PAUSE).await,
            result => return result,
        }
    }
    Err(Error::KeyInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_key_depends_on_content() {
        let (head, ()) = http::Request::post("/users").body(()).expect("a request").into_parts();
        let key_of = |key: &str, pairs: &[(&str, &str)]| {
            let pairs: FormPairs = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            form_key(None, &head, Some(key), &pairs)
        };
        assert_eq!(key_of("k", &[("a", "b")]), key_of("k", &[("a", "b")]));
        assert_eq!(key_of("k", &[("a", "b")]), key_of("k", &[("-enter", ""), ("a", "b")]));
        assert_ne!(key_of("k", &[("a", "b")]), key_of("k", &[("a", "c")]));
        assert_ne!(key_of("k", &[("a", "b")]), key_of("l", &[("a", "b")]));
        assert_ne!(key_of("k", &[("a", "b\n1 1 c=d")]), key_of("k", &[("a", "b"), ("c", "d")]));
        for odd in ["", " ", "ü", &"x".repeat(65)] {
            assert_eq!(key_of(odd, &[]), None, "{odd}");
        }
    }
}
