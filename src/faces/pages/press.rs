//! The keys of forms: a button that is pressed twice is one write.

use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::engine::{Key, Operation};
use crate::error::{Error, Result};
use crate::faces::problem::Problem;
use crate::faces::resources::ask::Ask;
use crate::faces::resources::pairs::Pairs;
use crate::faces::resources::write::Finished;

const LONGEST: usize = 64;

/// How long the second press waits for the first one's answer, and how often it asks.
const PATIENCE: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

pub fn fresh() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The header's key, or one of the form's own and all that it says: what was changed and is sent again is another form.
pub fn key(ask: &Ask<'_>, own: Option<&str>, pairs: &Pairs, bytes: &[u8]) -> Result<Option<Key>, Problem> {
    if let Some(key) = ask.key(bytes)? {
        return Ok(Some(key));
    }
    let own =
        own.filter(|own| (1..=LONGEST).contains(&own.len()) && own.bytes().all(|b| b.is_ascii_graphic()));
    let Some(own) = own else { return Ok(None) };
    let mut hash = Xxh3::new();
    hash.update(format!("{} {}", ask.head.method, ask.head.uri.path()).as_bytes());
    for (name, text) in pairs {
        hash.update(format!("\n{} {} {name}={text}", name.len(), text.len()).as_bytes());
    }
    let fingerprint = hash.digest128();
    Ok(Some(Key { key: format!("form {own} {fingerprint:032x}"), fingerprint }))
}

/// A browser that sends a form twice shows the answer to the second one, so that one waits for the first.
pub async fn write(ask: &Ask<'_>, operation: Operation, key: Option<Key>) -> Result<Finished> {
    for _ in 0..PATIENCE {
        match ask.carry_out(operation.clone(), key.clone()).await {
            Err(Error::KeyInUse) => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
    Err(Error::KeyInUse)
}
