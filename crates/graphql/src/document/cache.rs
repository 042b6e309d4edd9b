//! Parsed documents and parse errors by document text, bounded in bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::document::parse::ParsedDocument;
use crate::plan::roots::OperationPlan;
use crate::response_error::ResponseError;

/// Longer documents are not cached.
const MAX_CACHED_LENGTH: usize = 64 << 10;

const SHARDS: usize = 16;

/// Estimated memory per document, per byte of its text, and per field of each of its plans. Measured with
/// `examples/document_memory.rs`: usual documents take 50 bytes per byte of text, the densest (`{a{b b b …}}`) 90.
const BYTES_PER_DOCUMENT: usize = 2 << 10;
const BYTES_PER_BYTE: usize = 90;
const BYTES_PER_FIELD: usize = 512;

pub type DocumentResult = Result<ParsedDocument, Vec<ResponseError>>;

/// The document cache of one schema. A hit takes a shared lock only.
pub struct DocumentCache {
    shards: [RwLock<CacheShard>; SHARDS],
    /// Maximum bytes per shard.
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
    /// Looked up since the last eviction.
    recently_used: AtomicBool,
}

impl DocumentCache {
    pub fn new(bytes: usize) -> DocumentCache {
        DocumentCache { shards: Default::default(), capacity: bytes / SHARDS }
    }

    pub fn get_or_parse(&self, text: &str, make: impl FnOnce() -> DocumentResult) -> Arc<DocumentResult> {
        let hash = xxh3_64(text.as_bytes());
        let shard = &self.shards[hash as usize % SHARDS];
        let cached = shard.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = cached.entries.get(&hash)
            && entry.text == text
        {
            entry.recently_used.store(true, Ordering::Relaxed);
            return entry.result.clone();
        }
        drop(cached);
        let result = Arc::new(make());
        if text.len() <= MAX_CACHED_LENGTH {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            shard.insert(hash, text, result.clone(), self.capacity);
        }
        result
    }

    /// Counts the memory of a plan that was added to a cached document.
    pub fn record_plan(&self, text: &str, plan: &OperationPlan) {
        let hash = xxh3_64(text.as_bytes());
        let mut shard = self.shards[hash as usize % SHARDS].write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = shard.entries.get_mut(&hash)
            && entry.text == text
        {
            let bytes = plan.field_count * BYTES_PER_FIELD;
            entry.bytes += bytes;
            shard.bytes += bytes;
            shard.make_room(self.capacity);
        }
    }

    /// Estimated bytes in use.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).bytes).sum()
    }
}

impl CacheShard {
    fn insert(&mut self, hash: u64, text: &str, result: Arc<DocumentResult>, capacity: usize) {
        let bytes = estimate_bytes(text, &result);
        if bytes > capacity {
            return;
        }
        self.make_room(capacity - bytes);
        let entry =
            CachedDocument { text: text.to_owned(), result, bytes, recently_used: AtomicBool::new(false) };
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(hash, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// Evicts down to half the capacity: first entries not used since the last eviction, then any.
    fn make_room(&mut self, capacity: usize) {
        for keep_used in [true, false] {
            if self.bytes <= capacity {
                return;
            }
            let (mut bytes, target) = (self.bytes, capacity / 2);
            self.entries.retain(|_, entry| {
                let used = entry.recently_used.swap(false, Ordering::Relaxed);
                let keep = bytes <= target || (keep_used && used);
                if !keep {
                    bytes -= entry.bytes;
                }
                keep
            });
            self.bytes = bytes;
        }
    }
}

fn estimate_bytes(text: &str, result: &DocumentResult) -> usize {
    match result {
        Ok(_) => BYTES_PER_DOCUMENT + text.len() * (BYTES_PER_BYTE + 1),
        Err(failures) => {
            let sizes =
                failures.iter().map(|failure| failure.message.len() + size_of::<ResponseError>() + 64);
            text.len() + sizes.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use apollo_compiler::executable::OperationType;

    use super::*;

    fn rejected(message: &str) -> DocumentResult {
        Err(vec![ResponseError::new("X", message)])
    }

    fn message(result: &DocumentResult) -> &str {
        result.as_ref().err().map_or("", |failures| failures[0].message.as_str())
    }

    #[test]
    fn document_is_parsed_once() {
        let cache = DocumentCache::new(1 << 20);
        let first = cache.get_or_parse("{ a }", || rejected("first"));
        let second = cache.get_or_parse("{ a }", || rejected("second"));
        assert_eq!((message(&first), message(&second)), ("first", "first"));
        assert_eq!(message(&cache.get_or_parse("{ b }", || rejected("other"))), "other");
    }

    #[test]
    fn size_is_bounded_and_used_entries_stay() {
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
    fn plans_count_towards_the_size() {
        let cache = DocumentCache::new(256 << 10);
        let plan = OperationPlan {
            kind: OperationType::Query,
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
    fn long_documents_are_not_cached() {
        let cache = DocumentCache::new(64 << 20);
        let text = "#".repeat(MAX_CACHED_LENGTH + 1);
        cache.get_or_parse(&text, || rejected("first"));
        assert_eq!(message(&cache.get_or_parse(&text, || rejected("second"))), "second");
        assert_eq!(cache.bytes(), 0);
    }
}
