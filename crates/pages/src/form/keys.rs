//! The keys of forms: a button that is pressed twice is one write.

use std::time::Duration;

use http::request::Parts;
use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::plain_list::ExpectedVersions;
use trefoil_engine::{Engine, IdempotencyKey, Operation, PlainListAction};
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{Error, Result};
use trefoil_resources::form_input::ENTER_CONTROL;
use trefoil_resources::plain_list::{ConfirmedWrite, PlainListResource};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::CompletedWrite;

const MAX_KEY_LENGTH: usize = 64;

/// How long the second press waits for the first one's answer, and how often it asks.
const MAX_ATTEMPTS: u32 = 200;
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub fn new_key() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The header's key, or one of the form's own and all that it says: what was changed and is sent again is another form.
pub fn form_key(
    named: Option<IdempotencyKey>,
    head: &Parts,
    own: Option<&str>,
    pairs: &FormPairs,
) -> Option<IdempotencyKey> {
    if named.is_some() {
        return named;
    }
    let own = own.filter(|own| {
        (1..=MAX_KEY_LENGTH).contains(&own.len()) && own.bytes().all(|b| b.is_ascii_graphic())
    })?;
    let mut hash = Xxh3::new();
    hash.update(format!("{} {}", head.method, head.uri.path()).as_bytes());
    // By the return key or by the button: it is the same form.
    for (name, text) in pairs.iter().filter(|(name, _)| name != ENTER_CONTROL) {
        hash.update(format!("\n{} {} {name}={text}", name.len(), text.len()).as_bytes());
    }
    let fingerprint = hash.digest128();
    Some(IdempotencyKey { key: format!("form {own} {fingerprint:032x}"), fingerprint })
}

/// A browser that sends a form twice shows the answer to the second one, so that one waits for the first.
pub async fn write_once(
    request: &ResourceRequest<'_>,
    operation: Operation,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    for _ in 0..MAX_ATTEMPTS {
        match request.execute_write(operation.clone(), key.clone()).await {
            Err(Error::KeyInUse) => tokio::time::sleep(RETRY_PAUSE).await,
            done => return done,
        }
    }
    Err(Error::KeyInUse)
}

/// The same for a plain list.
pub async fn append_once(
    engine: &Engine,
    list: &PlainListResource,
    value: &str,
    expected: ExpectedVersions,
    key: Option<IdempotencyKey>,
) -> Result<ConfirmedWrite> {
    for _ in 0..MAX_ATTEMPTS {
        let act = PlainListAction::Append { value: value.to_owned(), expected: expected.clone() };
        match list.write(engine, act, String::new(), key.clone()).await {
            Err(Error::KeyInUse) => tokio::time::sleep(RETRY_PAUSE).await,
            done => return done,
        }
    }
    Err(Error::KeyInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_form_has_the_same_key() {
        let (head, ()) = http::Request::post("/users").body(()).expect("a request").into_parts();
        let of = |own: &str, pairs: &[(&str, &str)]| {
            let pairs: FormPairs = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            form_key(None, &head, Some(own), &pairs)
        };
        assert_eq!(of("k", &[("a", "b")]), of("k", &[("a", "b")]));
        assert_eq!(of("k", &[("a", "b")]), of("k", &[("-enter", ""), ("a", "b")]));
        assert_ne!(of("k", &[("a", "b")]), of("k", &[("a", "c")]));
        assert_ne!(of("k", &[("a", "b")]), of("l", &[("a", "b")]));
        assert_ne!(of("k", &[("a", "b\n1 1 c=d")]), of("k", &[("a", "b"), ("c", "d")]));
        for odd in ["", " ", "ü", &"x".repeat(65)] {
            assert_eq!(of(odd, &[]), None, "{odd}");
        }
    }
}
