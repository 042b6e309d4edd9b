//! Documents seen before, by their text, accepted and rejected alike; bounded in bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::document::parse::ParsedDocument;
use crate::plan::roots::OperationPlan;
use crate::response_error::ResponseError;

/// Longer documents are not kept: whoever sends them pays for them.
const MAX_CACHED_LENGTH: usize = 64 << 10;

const SHARDS: usize = 16;

/// Memory of a document for itself, for each byte of its text, and for each field of each of its plans. Measured with
/// `examples/document_memory.rs`: usual documents take 50 bytes for each byte of text, the densest (`{a{b b b …}}`) 90.
const BYTES_PER_DOCUMENT: usize = 2 << 10;
const BYTES_PER_BYTE: usize = 90;
const BYTES_PER_FIELD: usize = 512;

pub type DocumentResult = Result<ParsedDocument, Vec<ResponseError>>;

/// A cache for one schema; dropped with it. A hit takes shared locks only.
pub struct DocumentCache {
    shards: [RwLock<CacheShard>; SHARDS],
    /// Of one shard, in bytes.
    capacity: usize,
}

#[derive(Default)]
struct CacheShard {
    entries: HashMap<u64, CachedDocument>,
    bytes: usize,
}

struct CachedDocument {
    text: String,
    result: Arc<DocumentResult>,
    bytes: usize,
    /// Looked up since the last time that room was made.
    recently_used: AtomicBool,
}

impl DocumentCache {
    pub fn new(bytes: usize) -> DocumentCache {
        DocumentCache { shards: Default::default(), capacity: bytes / SHARDS }
    }

    pub fn get_or_parse(&self, text: &str, make: impl FnOnce() -> DocumentResult) -> Arc<DocumentResult> {
        let hash = xxh3_64(text.as_bytes());
        let shard = &self.shards[hash as usize % SHARDS];
        let known = shard.read().unwrap_or_else(|broken| broken.into_inner());
        if let Some(entry) = known.entries.get(&hash)
            && entry.text == text
        {
            entry.recently_used.store(true, Ordering::Relaxed);
            return entry.result.clone();
        }
        drop(known);
        let verdict = Arc::new(make());
        if text.len() <= MAX_CACHED_LENGTH {
            let mut shard = shard.write().unwrap_or_else(|broken| broken.into_inner());
            shard.insert(hash, text, verdict.clone(), self.capacity);
        }
        verdict
    }

    /// A kept document was planned in one more way, which is kept with it.
    pub fn record_plan(&self, text: &str, plan: &OperationPlan) {
        let hash = xxh3_64(text.as_bytes());
        let mut shard =
            self.shards[hash as usize % SHARDS].write().unwrap_or_else(|broken| broken.into_inner());
        if let Some(entry) = shard.entries.get_mut(&hash)
            && entry.text == text
        {
            let bytes = plan.field_count * BYTES_PER_FIELD;
            entry.bytes += bytes;
            shard.bytes += bytes;
            shard.make_room(self.capacity);
        }
    }

    /// Bytes in use, by estimate.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.read().unwrap_or_else(|broken| broken.into_inner()).bytes).sum()
    }
}

impl CacheShard {
    fn insert(&mut self, hash: u64, text: &str, verdict: Arc<DocumentResult>, capacity: usize) {
        let bytes = estimate_bytes(text, &verdict);
        if bytes > capacity {
            return;
        }
        self.make_room(capacity - bytes);
        let entry = CachedDocument {
            text: text.to_owned(),
            result: verdict,
            bytes,
            recently_used: AtomicBool::new(false),
        };
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(hash, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// What was looked up since the last time stays, if that is enough; then anything goes.
    fn make_room(&mut self, capacity: usize) {
        for spare in [true, false] {
            if self.bytes <= capacity {
                return;
            }
            let (mut bytes, target) = (self.bytes, capacity / 2);
            self.entries.retain(|_, entry| {
                let used = entry.recently_used.swap(false, Ordering::Relaxed);
                let stays = bytes <= target || (spare && used);
                if !stays {
                    bytes -= entry.bytes;
                }
                stays
            });
            self.bytes = bytes;
        }
    }
}

fn estimate_bytes(text: &str, verdict: &DocumentResult) -> usize {
    match verdict {
        Ok(_) => BYTES_PER_DOCUMENT + text.len() * (BYTES_PER_BYTE + 1),
        Err(failures) => {
            let words =
                failures.iter().map(|failure| failure.message.len() + size_of::<ResponseError>() + 64);
            text.len() + words.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(message: &str) -> DocumentResult {
        Err(vec![ResponseError::new("X", message)])
    }

    fn message(verdict: &DocumentResult) -> &str {
        verdict.as_ref().err().map_or("", |failures| failures[0].message.as_str())
    }

    #[test]
    fn a_text_is_judged_once() {
        let cache = DocumentCache::new(1 << 20);
        let first = cache.get_or_parse("{ a }", || rejected("first"));
        let second = cache.get_or_parse("{ a }", || rejected("second"));
        assert_eq!((message(&first), message(&second)), ("first", "first"));
        assert_eq!(message(&cache.get_or_parse("{ b }", || rejected("other"))), "other");
    }

    #[test]
    fn it_never_outgrows_its_bytes_and_keeps_what_is_used() {
        let cache = DocumentCache::new(256 << 10);
        cache.get_or_parse("hot", || rejected("hot"));
        for number in 0..20_000 {
            cache.get_or_parse(&format!("cold {number}"), || rejected("cold"));
            let again = cache.get_or_parse("hot", || rejected("lost"));
            assert_eq!(message(&again), "hot", "after {number}");
            assert!(cache.bytes() <= 256 << 10, "{} bytes", cache.bytes());
        }
    }

    #[test]
    fn what_is_planned_counts_too() {
        let cache = DocumentCache::new(256 << 10);
        let plan = OperationPlan {
            kind: apollo_compiler::executable::OperationType::Query,
            roots: Vec::new(),
            single_use: false,
            uses_resolvers: false,
            cacheable: false,
            selection_error: None,
            field_count: 3,
            last_response_bytes: Default::default(),
        };
        cache.get_or_parse("kept", || rejected("kept"));
        let before = cache.bytes();
        cache.record_plan("kept", &plan);
        cache.record_plan("unknown", &plan);
        assert_eq!(cache.bytes(), before + 3 * BYTES_PER_FIELD);
        for _ in 0..100 {
            cache.record_plan("kept", &plan);
            assert!(cache.bytes() <= 256 << 10, "{} bytes", cache.bytes());
        }
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let cache = DocumentCache::new(64 << 20);
        let text = "#".repeat(MAX_CACHED_LENGTH + 1);
        cache.get_or_parse(&text, || rejected("first"));
        assert_eq!(message(&cache.get_or_parse(&text, || rejected("second"))), "second");
        assert_eq!(cache.bytes(), 0);
    }
}
