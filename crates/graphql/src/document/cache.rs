//! Documents seen before, by their text, accepted and rejected alike; bounded in bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::document::parse::Document;
use crate::plan::roots::Plan;
use crate::response_error::Failure;

/// Longer documents are not kept: whoever sends them pays for them.
const LONGEST: usize = 64 << 10;

const SHARDS: usize = 16;

/// Memory of a document for itself, for each byte of its text, and for each field of each of its plans. Measured with
/// `examples/document_memory.rs`: usual documents take 50 bytes for each byte of text, the densest (`{a{b b b …}}`) 90.
const BYTES_EACH: usize = 2 << 10;
const BYTES_PER_BYTE: usize = 90;
const BYTES_PER_FIELD: usize = 512;

pub type Verdict = Result<Document, Vec<Failure>>;

/// A cache for one schema; dropped with it. A hit takes shared locks only.
pub struct Cache {
    shards: [RwLock<Shard>; SHARDS],
    /// Of one shard, in bytes.
    capacity: usize,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<u64, Entry>,
    bytes: usize,
}

struct Entry {
    text: String,
    verdict: Arc<Verdict>,
    bytes: usize,
    /// Looked up since the last time that room was made.
    used: AtomicBool,
}

impl Cache {
    pub fn new(bytes: usize) -> Cache {
        Cache { shards: Default::default(), capacity: bytes / SHARDS }
    }

    pub fn get(&self, text: &str, make: impl FnOnce() -> Verdict) -> Arc<Verdict> {
        let hash = xxh3_64(text.as_bytes());
        let shard = &self.shards[hash as usize % SHARDS];
        let known = shard.read().unwrap_or_else(|broken| broken.into_inner());
        if let Some(entry) = known.entries.get(&hash)
            && entry.text == text
        {
            entry.used.store(true, Ordering::Relaxed);
            return entry.verdict.clone();
        }
        drop(known);
        let verdict = Arc::new(make());
        if text.len() <= LONGEST {
            let mut shard = shard.write().unwrap_or_else(|broken| broken.into_inner());
            shard.insert(hash, text, verdict.clone(), self.capacity);
        }
        verdict
    }

    /// A kept document was planned in one more way, which is kept with it.
    pub fn planned(&self, text: &str, plan: &Plan) {
        let hash = xxh3_64(text.as_bytes());
        let mut shard =
            self.shards[hash as usize % SHARDS].write().unwrap_or_else(|broken| broken.into_inner());
        if let Some(entry) = shard.entries.get_mut(&hash)
            && entry.text == text
        {
            let bytes = plan.fields * BYTES_PER_FIELD;
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

impl Shard {
    fn insert(&mut self, hash: u64, text: &str, verdict: Arc<Verdict>, capacity: usize) {
        let bytes = size(text, &verdict);
        if bytes > capacity {
            return;
        }
        self.make_room(capacity - bytes);
        let entry = Entry { text: text.to_owned(), verdict, bytes, used: AtomicBool::new(false) };
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
                let used = entry.used.swap(false, Ordering::Relaxed);
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

fn size(text: &str, verdict: &Verdict) -> usize {
    match verdict {
        Ok(_) => BYTES_EACH + text.len() * (BYTES_PER_BYTE + 1),
        Err(failures) => {
            let words = failures.iter().map(|failure| failure.message.len() + size_of::<Failure>() + 64);
            text.len() + words.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(message: &str) -> Verdict {
        Err(vec![Failure::new("X", message)])
    }

    fn message(verdict: &Verdict) -> &str {
        verdict.as_ref().err().map_or("", |failures| failures[0].message.as_str())
    }

    #[test]
    fn a_text_is_judged_once() {
        let cache = Cache::new(1 << 20);
        let first = cache.get("{ a }", || rejected("first"));
        let second = cache.get("{ a }", || rejected("second"));
        assert_eq!((message(&first), message(&second)), ("first", "first"));
        assert_eq!(message(&cache.get("{ b }", || rejected("other"))), "other");
    }

    #[test]
    fn it_never_outgrows_its_bytes_and_keeps_what_is_used() {
        let cache = Cache::new(256 << 10);
        cache.get("hot", || rejected("hot"));
        for number in 0..20_000 {
            cache.get(&format!("cold {number}"), || rejected("cold"));
            let again = cache.get("hot", || rejected("lost"));
            assert_eq!(message(&again), "hot", "after {number}");
            assert!(cache.bytes() <= 256 << 10, "{} bytes", cache.bytes());
        }
    }

    #[test]
    fn what_is_planned_counts_too() {
        let cache = Cache::new(256 << 10);
        let plan = Plan {
            kind: apollo_compiler::executable::OperationType::Query,
            roots: Vec::new(),
            once: false,
            live: false,
            repeats: false,
            broken: None,
            fields: 3,
            size: Default::default(),
        };
        cache.get("kept", || rejected("kept"));
        let before = cache.bytes();
        cache.planned("kept", &plan);
        cache.planned("unknown", &plan);
        assert_eq!(cache.bytes(), before + 3 * BYTES_PER_FIELD);
        for _ in 0..100 {
            cache.planned("kept", &plan);
            assert!(cache.bytes() <= 256 << 10, "{} bytes", cache.bytes());
        }
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let cache = Cache::new(64 << 20);
        let text = "#".repeat(LONGEST + 1);
        cache.get(&text, || rejected("first"));
        assert_eq!(message(&cache.get(&text, || rejected("second"))), "second");
        assert_eq!(cache.bytes(), 0);
    }
}
