//! The thread that reads the sources of an import into batches, a little ahead of the store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;

use crate::Inventory;
use crate::import_source::Source;
use crate::row_parser;
use crate::row_parser::{Entry, Stop};

/// A batch has at most so many rows …
pub const ROWS: usize = 1024;
/// … and about so many bytes.
const BYTES: usize = 1 << 20;
/// So many batches wait at most.
const AHEAD: usize = 2;

/// What was read, with the number of its source.
pub enum Part {
    /// Rows of one resource.
    Rows(usize, Vec<Entry>),
    /// Nothing comes after this.
    Stop(usize, Stop),
}

/// Begins to read; ends by itself when nobody takes the parts any more. Bytes that were read are added up in `read`.
pub fn start(
    inventory: &Inventory,
    sources: &Arc<Vec<Source>>,
    longest: usize,
    read: &Arc<AtomicU64>,
) -> mpsc::Receiver<Part> {
    let (send, parts) = mpsc::channel(AHEAD);
    let (inventory, sources, read) = (inventory.clone(), sources.clone(), read.clone());
    tokio::task::spawn_blocking(move || {
        for (number, source) in sources.iter().enumerate() {
            if !read_one(&inventory, number, source, longest, &read, &send) {
                return;
            }
        }
    });
    parts
}

/// Reads one source into batches; says whether anyone wants more.
fn read_one(
    inventory: &Inventory,
    number: usize,
    source: &Source,
    longest: usize,
    read: &Arc<AtomicU64>,
    send: &mpsc::Sender<Part>,
) -> bool {
    let input = match source.open(read) {
        Ok(input) => input,
        Err(error) => {
            let stop = Stop { line: 0, why: error.to_string() };
            let _ = send.blocking_send(Part::Stop(number, stop));
            return false;
        }
    };
    let (mut batch, mut weight): (Vec<Entry>, usize) = (Vec::new(), 0);
    let mut give = |entry: Entry| {
        let is_full = batch.len() >= ROWS || weight >= BYTES;
        if is_full || batch.first().is_some_and(|first| first.resource != entry.resource) {
            weight = 0;
            if send.blocking_send(Part::Rows(number, std::mem::take(&mut batch))).is_err() {
                return false;
            }
        }
        weight += entry.weight;
        batch.push(entry);
        true
    };
    let end =
        row_parser::read(inventory, (source.resource.as_ref(), source.format), input, longest, &mut give);
    let rest = batch.is_empty() || send.blocking_send(Part::Rows(number, batch)).is_ok();
    match end {
        Ok(()) => rest,
        Err(stop) => {
            let _ = send.blocking_send(Part::Stop(number, stop));
            false
        }
    }
}
