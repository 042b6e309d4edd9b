//! The thread that reads the sources of an import into batches, a little ahead of the store.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;

use crate::ResourceCatalog;
use crate::import_source::ImportSource;
use crate::row_parser::{self, ParsedRow, ReadError};

/// The limit of rows in a batch.
pub const MAX_BATCH_ROWS: usize = 1024;
/// The approximate limit of bytes in a batch.
const MAX_BATCH_BYTES: usize = 1 << 20;
/// The limit of batches waiting to be imported.
const MAX_WAITING_BATCHES: usize = 2;

/// A batch, with the index of its source.
pub enum SourceBatch {
    /// Rows of one resource.
    Rows(usize, Vec<ParsedRow>),
    /// The last message: the source cannot be read further.
    Failed(usize, ReadError),
}

/// Starts the thread; it ends when the receiver is dropped. Bytes read are added to `bytes_read`.
pub fn start_reading(
    catalog: &ResourceCatalog,
    sources: &Arc<Vec<ImportSource>>,
    max_row_bytes: usize,
    bytes_read: &Arc<AtomicU64>,
) -> mpsc::Receiver<SourceBatch> {
    let (sender, batches) = mpsc::channel(MAX_WAITING_BATCHES);
    let (catalog, sources, bytes_read) = (catalog.clone(), sources.clone(), bytes_read.clone());
    tokio::task::spawn_blocking(move || {
        for (number, source) in sources.iter().enumerate() {
            if !read_source(&catalog, number, source, max_row_bytes, &bytes_read, &sender) {
                return;
            }
        }
    });
    batches
}

/// Reads one source into batches; returns whether to continue.
fn read_source(
    catalog: &ResourceCatalog,
    number: usize,
    source: &ImportSource,
    max_row_bytes: usize,
    bytes_read: &Arc<AtomicU64>,
    sender: &mpsc::Sender<SourceBatch>,
) -> bool {
    let input = match source.open(bytes_read) {
        Ok(input) => input,
        Err(error) => {
            let error = ReadError { line: 0, message: error.to_string() };
            let _ = sender.blocking_send(SourceBatch::Failed(number, error));
            return false;
        }
    };
    let (mut batch, mut byte_count): (Vec<ParsedRow>, usize) = (Vec::new(), 0);
    let mut on_row = |row: ParsedRow| {
        let is_full = batch.len() >= MAX_BATCH_ROWS || byte_count >= MAX_BATCH_BYTES;
        if is_full || batch.first().is_some_and(|first| first.resource != row.resource) {
            byte_count = 0;
            if sender.blocking_send(SourceBatch::Rows(number, std::mem::take(&mut batch))).is_err() {
                return false;
            }
        }
        byte_count += row.byte_len;
        batch.push(row);
        true
    };
    let result = row_parser::read_rows(
        catalog,
        (source.resource.as_ref(), source.format),
        input,
        max_row_bytes,
        &mut on_row,
    );
    let is_sent = batch.is_empty() || sender.blocking_send(SourceBatch::Rows(number, batch)).is_ok();
    match result {
        Ok(()) => is_sent,
        Err(error) => {
            let _ = sender.blocking_send(SourceBatch::Failed(number, error));
            false
        }
    }
}
