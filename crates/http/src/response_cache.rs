//! Answers that were given before and are still exact, each kept with the state of the data that it was made under.
//!
//! Whoever reads asks [`Answers::state`] before it begins and marks its response with what it got ([`Made::mark`]). When
//! the state is still the same after the reading, the response is kept under everything that decided it; when it is
//! the same at a later request, nothing that a reader could see has changed in between, whoever writes.
//! Invariant: nothing is kept that depends on more than the data, the schema and what [`Asked`] names.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::IF_MATCH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use prometheus_client::metrics::counter::Counter;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::etags;
use crate::monitoring::metrics::Metrics;
use crate::response_headers;
use trefoil_engine::{DataVersion, Engine};

/// Longer requests are answered anew.
const MAX_KEY_BYTES: usize = 16 << 10;

/// No answer takes more than this part of the shelf.
const MAX_ENTRY_DIVISOR: usize = 4;

/// Memory of an answer beside its bytes, and of a header beside its name and value.
const ENTRY_OVERHEAD_BYTES: usize = 256;
const HEADER_OVERHEAD_BYTES: usize = 128;

/// What decides an answer, beside the data and the schema: which face, and what the request says to it.
pub struct CacheKey<'a> {
    parts: Vec<&'a [u8]>,
    hash: u64,
}

impl<'a> CacheKey<'a> {
    /// Which face, what else, and these headers; or nothing where the answer is neither kept nor looked for.
    pub fn new(said: &[&'a [u8]], headers: &'a HeaderMap, names: &[HeaderName]) -> Option<Self> {
        let is_long = said.iter().map(|part| part.len()).sum::<usize>() > MAX_KEY_BYTES;
        if is_long || headers.contains_key(IF_MATCH) {
            return None;
        }
        let mut parts = Vec::with_capacity(said.len() + names.len());
        parts.extend_from_slice(said);
        for name in names {
            let mut lines = headers.get_all(name).iter();
            parts.push(lines.next().map_or(&b""[..], HeaderValue::as_bytes));
            if lines.next().is_some() {
                return None;
            }
        }
        let hash = parts.iter().fold(0, |seed, part| xxh3_64_with_seed(part, seed));
        Some(CacheKey { parts, hash })
    }

    fn to_owned_parts(&self) -> Box<[Box<[u8]>]> {
        self.parts.iter().map(|part| Box::from(*part)).collect()
    }

    fn matches_parts(&self, owned: &[Box<[u8]>]) -> bool {
        self.parts.len() == owned.len() && self.parts.iter().zip(owned).all(|(part, own)| **part == **own)
    }

    fn byte_size(&self) -> usize {
        self.parts.iter().map(|part| part.len() + 16).sum()
    }
}

/// The mark of a response that may be kept: it was read after the data were in this state.
#[derive(Debug, Clone, Copy)]
pub struct CacheableAt(DataVersion);

impl CacheableAt {
    /// Marks a whole answer; where there is no state, it stays as it is.
    pub fn mark_response(before: Option<DataVersion>, mut response: Response) -> Response {
        if let Some(state) = before {
            response.extensions_mut().insert(CacheableAt(state));
        }
        response
    }
}

/// An answer that needs nothing more than to be sent.
#[derive(Debug, Clone)]
struct CachedResponse {
    headers: Arc<HeaderMap>,
    body: Bytes,
}

impl CachedResponse {
    /// The body is copied: what it was written into may be many times as large.
    fn new(headers: &HeaderMap, body: &[u8]) -> CachedResponse {
        let headers = Arc::new(response_headers::with_defaults(headers.clone()));
        CachedResponse { headers, body: Bytes::copy_from_slice(body) }
    }

    /// The answer, or nothing but the news that the client has it.
    fn to_response(self, asking: &HeaderMap) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.headers_mut() = HeaderMap::clone(&self.headers);
        etags::not_modified_if_known(asking, response)
    }

    fn byte_size(&self) -> usize {
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES
        };
        self.body.len() + self.headers.iter().map(header).sum::<usize>() + ENTRY_OVERHEAD_BYTES
    }
}

/// The answers for one schema, bounded in bytes; dropped with it.
pub struct ResponseCache {
    engine: Engine,
    capacity: usize,
    hits: Counter,
    generation: RwLock<CacheGeneration>,
    version_probe: VersionProbe,
}

/// Requests that come together are content with one look at the state, if it was begun after they came.
#[derive(Default)]
struct VersionProbe {
    started: AtomicU64,
    last: Mutex<(u64, Option<DataVersion>)>,
}

/// What was made under one state. Under another all of it is worth nothing.
#[derive(Default)]
struct CacheGeneration {
    data_version: Option<DataVersion>,
    entries: HashMap<u64, CacheEntry>,
    bytes: usize,
}

struct CacheEntry {
    key_parts: Box<[Box<[u8]>]>,
    response: CachedResponse,
    bytes: usize,
    /// Sent since the last time that room was made.
    used: AtomicBool,
}

impl ResponseCache {
    /// At most `capacity` bytes; what is given again is counted.
    pub fn new(engine: Engine, capacity: usize, metrics: &Metrics) -> ResponseCache {
        ResponseCache {
            engine,
            capacity,
            hits: metrics.repeated_responses.clone(),
            generation: RwLock::default(),
            version_probe: VersionProbe::default(),
        }
    }

    /// The state of the data now, if answers are kept at all.
    pub fn data_version(&self) -> Option<DataVersion> {
        if self.capacity == 0 { None } else { self.engine.data_version() }
    }

    async fn shared_data_version(&self) -> Option<DataVersion> {
        let before = self.version_probe.started.load(Ordering::SeqCst);
        tokio::task::yield_now().await;
        let mut last = self.version_probe.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 <= before {
            let number = self.version_probe.started.fetch_add(1, Ordering::SeqCst) + 1;
            *last = (number, self.data_version());
        }
        last.1
    }

    /// The answer to the same request, if nothing has changed since it was made.
    pub async fn find(&self, asked: &CacheKey<'_>, asking: &HeaderMap) -> Option<Response> {
        let (kept, made) = self.generation.read().unwrap_or_else(PoisonError::into_inner).get(asked)?;
        if self.shared_data_version().await != Some(made) {
            return None;
        }
        self.hits.inc();
        Some(kept.to_response(asking))
    }

    /// Keeps what is marked and was not overtaken by a change.
    pub async fn store(&self, asked: &CacheKey<'_>, mut response: Response) -> Response {
        let Some(CacheableAt(before)) = response.extensions_mut().remove() else { return response };
        if response.status() != StatusCode::OK || self.data_version() != Some(before) {
            return response;
        }
        let (head, body) = response.into_parts();
        let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        // One answer must not push all others out, nor be copied for nothing.
        if body.len() > self.capacity / MAX_ENTRY_DIVISOR {
            return Response::from_parts(head, Body::from(body));
        }
        let kept = CachedResponse::new(&head.headers, &body);
        let mut shelf = self.generation.write().unwrap_or_else(PoisonError::into_inner);
        let outdated = shelf.insert(asked, kept, before, self.capacity);
        // To free many answers takes a while, and others wait for the shelf.
        drop(shelf);
        drop(outdated);
        Response::from_parts(head, Body::from(body))
    }
}

impl CacheGeneration {
    fn get(&self, asked: &CacheKey<'_>) -> Option<(CachedResponse, DataVersion)> {
        let entry = self.entries.get(&asked.hash).filter(|entry| asked.matches_parts(&entry.key_parts))?;
        entry.used.store(true, Ordering::Relaxed);
        Some((entry.response.clone(), self.data_version?))
    }

    /// Gives back what is worth nothing any more.
    fn insert(
        &mut self,
        asked: &CacheKey<'_>,
        kept: CachedResponse,
        state: DataVersion,
        capacity: usize,
    ) -> Option<CacheGeneration> {
        let anew = || CacheGeneration { data_version: Some(state), ..CacheGeneration::default() };
        let outdated = (self.data_version != Some(state)).then(|| std::mem::replace(self, anew()));
        self.insert_entry(asked, kept, capacity);
        outdated
    }

    fn insert_entry(&mut self, asked: &CacheKey<'_>, kept: CachedResponse, capacity: usize) {
        let bytes = kept.byte_size() + asked.byte_size();
        if bytes > capacity / MAX_ENTRY_DIVISOR {
            return;
        }
        self.make_room(capacity - bytes);
        let entry = CacheEntry {
            key_parts: asked.to_owned_parts(),
            response: kept,
            bytes,
            used: AtomicBool::new(false),
        };
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(asked.hash, entry) {
            self.bytes -= old.bytes;
        }
    }

    /// What was sent since the last time stays, if that is enough; then anything goes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(text: &'a str, headers: &'a HeaderMap) -> Option<CacheKey<'a>> {
        CacheKey::new(&[b"test", text.as_bytes()], headers, &[http::header::ACCEPT])
    }

    fn put(shelf: &mut CacheGeneration, text: &str, bytes: usize, state: i64) {
        let headers = HeaderMap::new();
        let kept = CachedResponse::new(&headers, &vec![b'x'; bytes]);
        shelf.insert(&asked(text, &headers).expect("short"), kept, DataVersion([1, state]), 64 << 10);
    }

    fn has(shelf: &CacheGeneration, text: &str) -> bool {
        let headers = HeaderMap::new();
        shelf.get(&asked(text, &headers).expect("short")).is_some()
    }

    #[test]
    fn it_never_outgrows_its_bytes_and_keeps_what_is_used() {
        let mut shelf = CacheGeneration::default();
        put(&mut shelf, "hot", 1_000, 1);
        for number in 0..5_000 {
            put(&mut shelf, &format!("cold {number}"), number % 9_000, 1);
            assert!(has(&shelf, "hot"), "after {number}");
            assert!(shelf.bytes <= 64 << 10, "{} bytes", shelf.bytes);
            let sum: usize = shelf.entries.values().map(|entry| entry.bytes).sum();
            assert_eq!(shelf.bytes, sum);
        }
        put(&mut shelf, "large", 20 << 10, 1);
        assert!(!has(&shelf, "large"), "one answer takes no more than a quarter");
    }

    #[test]
    fn an_answer_takes_no_more_than_it_is_counted_for() {
        let mut roomy = Vec::with_capacity(1 << 20);
        roomy.extend_from_slice(b"short");
        let body = Bytes::from(roomy);
        let kept = CachedResponse::new(&HeaderMap::new(), &body);
        drop(body);
        let links = HeaderMap::from_iter([(http::header::LINK, HeaderValue::from_static("</users>"))]);
        let more = CachedResponse::new(&links, b"short").byte_size() - kept.byte_size();
        assert_eq!(more, "link".len() + "</users>".len() + HEADER_OVERHEAD_BYTES);
        assert!(Vec::from(kept.body).capacity() < ENTRY_OVERHEAD_BYTES);
    }

    #[test]
    fn another_state_is_another_shelf() {
        let mut shelf = CacheGeneration::default();
        put(&mut shelf, "a", 10, 1);
        put(&mut shelf, "b", 10, 2);
        assert!(!has(&shelf, "a") && has(&shelf, "b"));
        assert_eq!(shelf.data_version, Some(DataVersion([1, 2])));
    }

    #[test]
    fn what_else_was_said_counts() {
        let plain = HeaderMap::new();
        let accepting =
            |value| HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static(value))]);
        let (json, html) = (accepting("application/json"), accepting("text/html"));
        let hashes = [("a", &plain), ("b", &plain), ("a", &json), ("a", &html)]
            .map(|(text, headers)| asked(text, headers).expect("short").hash);
        let different: std::collections::HashSet<u64> = hashes.into_iter().collect();
        assert_eq!(different.len(), 4);
        let mut twice = accepting("text/html");
        twice.append(http::header::ACCEPT, HeaderValue::from_static("text/plain"));
        assert!(asked("a", &twice).is_none() && asked(&"a".repeat(MAX_KEY_BYTES), &plain).is_none());
    }
}
