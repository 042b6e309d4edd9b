//! The thread that reads the sources of an import into batches, a little ahead of the store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;

use crate::ResourceCatalog;
use crate::import_source::ImportSource;
use crate::row_parser;
use crate::row_parser::{ParsedRow, ReadError};

/// A batch has at most so many rows …
pub const MAX_BATCH_ROWS: usize = 1024;
/// … and about so many bytes.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// So many batches wait at most.
const MAX_WAITING_BATCHES: usize = 2;

/// What was read, with the number of its source.
pub enum SourceBatch {
    /// Rows of one resource.
    Rows(usize, Vec<ParsedRow>),
    /// Nothing comes after this.
    Failed(usize, ReadError),
}

/// Begins to read; ends by itself when nobody takes the parts any more. Bytes that were read are added up in `read`.
pub fn start_reading(
    inventory: &ResourceCatalog,
    sources: &Arc<Vec<ImportSource>>,
    longest: usize,
    read: &Arc<AtomicU64>,
) -> mpsc::Receiver<SourceBatch> {
    let (send, parts) = mpsc::channel(MAX_WAITING_BATCHES);
    let (inventory, sources, read) = (inventory.clone(), sources.clone(), read.clone());
    tokio::task::spawn_blocking(move || {
        for (number, source) in sources.iter().enumerate() {
            if !read_source(&inventory, number, source, longest, &read, &send) {
                return;
            }
        }
    });
    parts
}

/// Reads one source into batches; says whether anyone wants more.
fn read_source(
    inventory: &ResourceCatalog,
    number: usize,
    source: &ImportSource,
    longest: usize,
    read: &Arc<AtomicU64>,
    send: &mpsc::Sender<SourceBatch>,
) -> bool {
    let input = match source.open(read) {
        Ok(input) => input,
        Err(error) => {
            let stop = ReadError { line: 0, message: error.to_string() };
            let _ = send.blocking_send(SourceBatch::Failed(number, stop));
            return false;
        }
    };
    let (mut batch, mut weight): (Vec<ParsedRow>, usize) = (Vec::new(), 0);
    let mut give = |entry: ParsedRow| {
        let is_full = batch.len() >= MAX_BATCH_ROWS || weight >= MAX_BATCH_BYTES;
        if is_full || batch.first().is_some_and(|first| first.resource != entry.resource) {
            weight = 0;
            if send.blocking_send(SourceBatch::Rows(number, std::mem::take(&mut batch))).is_err() {
                return false;
            }
        }
        weight += entry.byte_len;
        batch.push(entry);
        true
    };
    let end = row_parser::read_rows(
        inventory,
        (source.resource.as_ref(), source.format),
        input,
        longest,
        &mut give,
    );
    let rest = batch.is_empty() || send.blocking_send(SourceBatch::Rows(number, batch)).is_ok();
    match end {
        Ok(()) => rest,
        Err(stop) => {
            let _ = send.blocking_send(SourceBatch::Failed(number, stop));
            false
        }
    }
}
