//! Parsed documents and parse errors by document text, bounded in bytes.

use std::sync::Arc;

use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::document::parse::ParsedDocument;
use crate::plan::roots::OperationPlan;
use crate::response_error::{ResponseError, is_estimate};

/// Longer documents are not cached.
const MAX_CACHED_LENGTH: usize = 64 << 10;

/// The most parts that are locked by themselves. A small cache has fewer.
const SHARDS: usize = 16;

/// Estimated memory per document, per byte of its text, and per field of each of its plans. Measured with
/// `examples/document_memory.rs`: usual documents take 50 bytes per byte of text, the densest (`{a{b b b …}}`) 90.
const BYTES_PER_DOCUMENT: usize = 2 << 10;
const BYTES_PER_BYTE: usize = 90;
const BYTES_PER_FIELD: usize = 512;

/// The estimate for a usual document with its plan.
const USUAL_DOCUMENT_BYTES: usize = 16 << 10;

pub type DocumentResult = Result<ParsedDocument, Vec<ResponseError>>;

/// The document cache of one schema. A hit takes a shared lock only.
pub struct DocumentCache {
    documents: Cache<Box<str>, CachedDocument, DocumentWeigher>,
    /// Held while the plans of a document are counted, so that none is missed.
    counting: Mutex<()>,
}

#[derive(Clone)]
struct CachedDocument {
    result: Arc<DocumentResult>,
    bytes: usize,
}

#[derive(Clone)]
struct DocumentWeigher;

impl Weighter<Box<str>, CachedDocument> for DocumentWeigher {
    fn weight(&self, _text: &Box<str>, document: &CachedDocument) -> u64 {
        document.bytes as u64
    }
}

impl DocumentCache {
    pub fn new(bytes: usize) -> DocumentCache {
        let mut options = OptionsBuilder::new();
        // A multiple, because the limit of each shard is rounded up.
        options.shards(SHARDS).weight_capacity((bytes - bytes % SHARDS) as u64);
        options.estimated_items_capacity(bytes / USUAL_DOCUMENT_BYTES);
        let options = options.build().expect("both capacities are set");
        let documents = Cache::with_options(
            options,
            DocumentWeigher,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        DocumentCache { documents, counting: Mutex::default() }
    }

    pub fn get_or_parse(&self, text: &str, make: impl FnOnce() -> DocumentResult) -> Arc<DocumentResult> {
        if let Some(cached) = self.documents.get(text) {
            return cached.result;
        }
        let result = Arc::new(make());
        // An estimate changes with the data.
        let is_final = result.as_ref().as_ref().err().is_none_or(|errors| !is_estimate(errors));
        if is_final && text.len() <= MAX_CACHED_LENGTH {
            let bytes = estimate_bytes(text, &result);
            self.documents.insert(text.into(), CachedDocument { result: result.clone(), bytes });
        }
        result
    }

    /// Counts the memory of a plan that was added to a cached document.
    pub fn record_plan(&self, text: &str, plan: &OperationPlan) {
        let _counting = self.counting.lock();
        if let Some(mut document) = self.documents.peek(text) {
            document.bytes += plan.field_count * BYTES_PER_FIELD;
            // Refused if the document is now too large or was evicted meanwhile; it is not cached then.
            let _ = self.documents.replace(text.into(), document, true);
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
            assert!(cache.documents.weight() <= 256 << 10, "{} bytes", cache.documents.weight());
        }
    }

    #[test]
    fn plans_count_towards_the_size() {
        let cache = DocumentCache::new(256 << 10);
        let plan = OperationPlan {
            kind: OperationType::Query,
            atomic: false,
            roots: Vec::new(),
            single_use: false,
            uses_resolvers: false,
            cacheable: false,
            selection_error: None,
            field_count: 3,
            last_response_bytes: Default::default(),
        };
        cache.get_or_parse("kept", || rejected("kept"));
        let before = cache.documents.weight();
        cache.record_plan("kept", &plan);
        cache.record_plan("unknown", &plan);
        assert_eq!(cache.documents.weight(), before + 3 * BYTES_PER_FIELD as u64);
        for _ in 0..1_000 {
            cache.record_plan("kept", &plan);
            assert!(cache.documents.weight() <= 256 << 10, "{} bytes", cache.documents.weight());
        }
    }

    #[test]
    fn long_documents_are_not_cached() {
        let cache = DocumentCache::new(64 << 20);
        let text = "#".repeat(MAX_CACHED_LENGTH + 1);
        cache.get_or_parse(&text, || rejected("first"));
        assert_eq!(message(&cache.get_or_parse(&text, || rejected("second"))), "second");
        assert_eq!(cache.documents.weight(), 0);
    }
}
