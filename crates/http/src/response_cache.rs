//! The response cache: responses that are still exact, stored with the version of the data they were made from.
//!
//! A reader takes [`ResponseCache::data_version`] before it starts and marks its response with it
//! ([`CacheableAt::mark_response`]). If the version is unchanged after the read, the response is stored under
//! everything that determined it. If it is unchanged at a later request, no reader can see a difference, whichever
//! process writes. Invariant: a stored response depends only on the data, the schema and its [`CacheKey`].

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::IF_MATCH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use quick_cache::unsync::Cache;
use quick_cache::{Equivalent, Weighter};

use trefoil_engine::{DataVersion, Engine};

use crate::monitoring::metrics::Metrics;
use crate::{etags, protected_mode};

/// Longer requests are not cached.
const MAX_KEY_BYTES: usize = 16 << 10;

/// A response takes at most this fraction of the cache.
const MAX_ENTRY_DIVISOR: usize = 4;

/// Estimated memory of an entry beside its bytes, and of a header beside its name and value.
const ENTRY_OVERHEAD_BYTES: usize = 256;
const HEADER_OVERHEAD_BYTES: usize = 128;

/// The size of a usual entry. The cache remembers the keys of half as many evicted entries as it expects to hold.
const USUAL_ENTRY_BYTES: usize = 4 << 10;

/// Everything that determines a response beside the data and the schema: the interface and the relevant parts of the
/// request.
#[derive(Hash)]
pub struct CacheKey<'a> {
    /// See [`Engine::access_class`].
    class: Option<u128>,
    parts: Vec<&'a [u8]>,
}

/// A [`CacheKey`] in the cache, with the same hash.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OwnedKey {
    class: Option<u128>,
    parts: Box<[Box<[u8]>]>,
}

impl<'a> CacheKey<'a> {
    /// A key of the class of the actor, of `request_parts` and of the values of these headers, or `None` if the request
    /// cannot be cached.
    pub fn new(
        class: Option<u128>,
        request_parts: &[&'a [u8]],
        headers: &'a HeaderMap,
        names: &[HeaderName],
    ) -> Option<Self> {
        let is_long = request_parts.iter().map(|part| part.len()).sum::<usize>() > MAX_KEY_BYTES;
        if is_long || headers.contains_key(IF_MATCH) {
            return None;
        }
        let mut parts = Vec::with_capacity(request_parts.len() + names.len());
        parts.extend_from_slice(request_parts);
        for name in names {
            let mut lines = headers.get_all(name).iter();
            parts.push(lines.next().map_or(&b""[..], HeaderValue::as_bytes));
            if lines.next().is_some() {
                return None;
            }
        }
        Some(CacheKey { class, parts })
    }

    fn to_owned_key(&self) -> OwnedKey {
        OwnedKey { class: self.class, parts: self.parts.iter().map(|part| Box::from(*part)).collect() }
    }

    fn byte_size(&self) -> usize {
        self.parts.iter().map(|part| part.len() + 16).sum()
    }
}

impl Equivalent<OwnedKey> for CacheKey<'_> {
    fn equivalent(&self, owned: &OwnedKey) -> bool {
        self.class == owned.class && self.parts.iter().copied().eq(owned.parts.iter().map(|part| &**part))
    }
}

/// Marks a response as cacheable: it was read after the data had this version.
#[derive(Debug, Clone, Copy)]
pub struct CacheableAt(DataVersion);

impl CacheableAt {
    /// Marks a complete response; without a version it is returned unchanged.
    pub fn mark_response(before: Option<DataVersion>, mut response: Response) -> Response {
        if let Some(version) = before {
            response.extensions_mut().insert(CacheableAt(version));
        }
        response
    }
}

/// A complete response.
#[derive(Debug, Clone)]
struct CachedResponse {
    headers: Arc<HeaderMap>,
    body: Bytes,
}

impl CachedResponse {
    /// Copies the body, because the buffer it was written into may be many times as large.
    fn new(prepared: HeaderMap, body: &[u8]) -> CachedResponse {
        CachedResponse { headers: Arc::new(prepared), body: Bytes::copy_from_slice(body) }
    }

    /// The response, or 304 if the client already has it.
    fn into_response(self, request_headers: &HeaderMap) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.headers_mut() = HeaderMap::clone(&self.headers);
        etags::not_modified_if_known(request_headers, response)
    }

    fn byte_size(&self) -> usize {
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES
        };
        self.body.len() + self.headers.iter().map(header).sum::<usize>() + ENTRY_OVERHEAD_BYTES
    }
}

/// The responses of one schema, bounded in bytes; dropped with the schema.
pub struct ResponseCache {
    engine: Engine,
    capacity: usize,
    hits: Counter,
    generation: RwLock<CacheGeneration>,
}

/// The responses of one data version; worthless once the version changes.
struct CacheGeneration {
    data_version: Option<DataVersion>,
    entries: Cache<OwnedKey, CacheEntry, EntryWeigher>,
}

struct CacheEntry {
    response: CachedResponse,
    bytes: usize,
}

struct EntryWeigher;

impl Weighter<OwnedKey, CacheEntry> for EntryWeigher {
    fn weight(&self, _key: &OwnedKey, entry: &CacheEntry) -> u64 {
        entry.bytes as u64
    }
}

impl ResponseCache {
    /// At most `capacity` bytes; hits are counted in `metrics`.
    pub fn new(engine: Engine, capacity: usize, metrics: &Metrics) -> ResponseCache {
        ResponseCache {
            engine,
            capacity,
            hits: metrics.repeated_responses.clone(),
            generation: RwLock::new(CacheGeneration::new(capacity, None)),
        }
    }

    /// The current version of the data, or `None` if the cache is off.
    pub fn data_version(&self) -> Option<DataVersion> {
        if self.capacity == 0 { None } else { self.engine.data_version() }
    }

    /// The stored response to the same request, if the data has not changed since. `known` is the version of the data at
    /// some time since the request arrived, if that was read already.
    pub async fn find(
        &self,
        key: &CacheKey<'_>,
        request_headers: &HeaderMap,
        known: Option<DataVersion>,
    ) -> Option<Response> {
        let (cached, version) = self.generation.read().get(key)?;
        let current = match known {
            Some(known) => Some(known),
            None => self.engine.shared_data_version().await,
        };
        if current != Some(version) {
            return None;
        }
        self.hits.inc();
        Some(cached.into_response(request_headers))
    }

    /// Stores a response that is marked, if the data has not changed since.
    pub async fn store(&self, key: &CacheKey<'_>, mut response: Response) -> Response {
        let Some(CacheableAt(before)) = response.extensions_mut().remove() else { return response };
        if response.status() != StatusCode::OK || self.data_version() != Some(before) {
            return response;
        }
        let (head, body) = response.into_parts();
        let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        // A response that is too large is not even copied.
        if body.len() > self.capacity / MAX_ENTRY_DIVISOR {
            return Response::from_parts(head, Body::from(body));
        }
        let headers = protected_mode::defaults_for(&self.engine, head.headers.clone());
        let cached = CachedResponse::new(headers, &body);
        let mut generation = self.generation.write();
        let outdated = generation.insert(key, cached, before);
        // Dropping many responses takes a while, so the lock is released first.
        drop(generation);
        drop(outdated);
        Response::from_parts(head, Body::from(body))
    }
}

impl CacheGeneration {
    fn new(capacity: usize, data_version: Option<DataVersion>) -> CacheGeneration {
        let entries = Cache::with_weighter(capacity / USUAL_ENTRY_BYTES, capacity as u64, EntryWeigher);
        CacheGeneration { data_version, entries }
    }

    fn capacity(&self) -> usize {
        self.entries.capacity() as usize
    }

    fn get(&self, key: &CacheKey<'_>) -> Option<(CachedResponse, DataVersion)> {
        let entry = self.entries.get(key)?;
        Some((entry.response.clone(), self.data_version?))
    }

    /// Returns the previous generation if its data version is outdated.
    fn insert(
        &mut self,
        key: &CacheKey<'_>,
        response: CachedResponse,
        version: DataVersion,
    ) -> Option<CacheGeneration> {
        let next = |capacity| CacheGeneration::new(capacity, Some(version));
        let outdated =
            (self.data_version != Some(version)).then(|| std::mem::replace(self, next(self.capacity())));
        let bytes = response.byte_size() + key.byte_size();
        if bytes <= self.capacity() / MAX_ENTRY_DIVISOR {
            self.entries.insert(key.to_owned_key(), CacheEntry { response, bytes });
        }
        outdated
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;
    use crate::response_headers;

    fn cache_key<'a>(text: &'a str, headers: &'a HeaderMap) -> Option<CacheKey<'a>> {
        CacheKey::new(None, &[b"test", text.as_bytes()], headers, &[http::header::ACCEPT])
    }

    fn put(generation: &mut CacheGeneration, text: &str, bytes: usize, version: i64) {
        let headers = HeaderMap::new();
        let cached =
            CachedResponse::new(response_headers::with_defaults(headers.clone()), &vec![b'x'; bytes]);
        generation.insert(&cache_key(text, &headers).expect("short"), cached, DataVersion([1, version]));
    }

    fn has(generation: &CacheGeneration, text: &str) -> bool {
        let headers = HeaderMap::new();
        generation.get(&cache_key(text, &headers).expect("short")).is_some()
    }

    #[test]
    fn cache_stays_within_capacity_and_keeps_used_entries() {
        let mut generation = CacheGeneration::new(64 << 10, None);
        put(&mut generation, "hot", 1_000, 1);
        for number in 0..5_000 {
            put(&mut generation, &format!("cold {number}"), number % 9_000, 1);
            assert!(has(&generation, "hot"), "after {number}");
            let sum: usize = generation.entries.iter().map(|(_, entry)| entry.bytes).sum();
            assert!(sum <= 64 << 10, "{sum} bytes");
        }
        put(&mut generation, "large", 20 << 10, 1);
        assert!(!has(&generation, "large"), "one answer takes no more than a quarter");
    }

    #[test]
    fn counted_size_covers_the_entry() {
        let mut roomy = Vec::with_capacity(1 << 20);
        roomy.extend_from_slice(b"short");
        let body = Bytes::from(roomy);
        let prepared = response_headers::with_defaults;
        let cached = CachedResponse::new(prepared(HeaderMap::new()), &body);
        drop(body);
        let links = HeaderMap::from_iter([(http::header::LINK, HeaderValue::from_static("</users>"))]);
        let more = CachedResponse::new(prepared(links), b"short").byte_size() - cached.byte_size();
        assert_eq!(more, "link".len() + "</users>".len() + HEADER_OVERHEAD_BYTES);
        assert!(Vec::from(cached.body).capacity() < ENTRY_OVERHEAD_BYTES);
    }

    #[test]
    fn new_data_version_replaces_generation() {
        let mut generation = CacheGeneration::new(64 << 10, None);
        put(&mut generation, "a", 10, 1);
        put(&mut generation, "b", 10, 2);
        assert!(!has(&generation, "a") && has(&generation, "b"));
        assert_eq!(generation.data_version, Some(DataVersion([1, 2])));
    }

    #[test]
    fn key_includes_parts_and_headers() {
        let plain = HeaderMap::new();
        let accepting =
            |value| HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static(value))]);
        let (json, html) = (accepting("application/json"), accepting("text/html"));
        let keys = [("a", &plain), ("b", &plain), ("a", &json), ("a", &html)]
            .map(|(text, headers)| cache_key(text, headers).expect("short"));
        let of_class = |class| CacheKey { class, ..cache_key("a", &plain).expect("short") };
        let keys: Vec<CacheKey<'_>> =
            keys.into_iter().chain([of_class(Some(1)), of_class(Some(2))]).collect();
        for (place, key) in keys.iter().enumerate() {
            let owned = key.to_owned_key();
            assert!(keys.iter().enumerate().all(|(at, key)| key.equivalent(&owned) == (at == place)));
            let hasher = std::hash::RandomState::new();
            assert_eq!(hasher.hash_one(key), hasher.hash_one(&owned));
        }
        let mut twice = accepting("text/html");
        twice.append(http::header::ACCEPT, HeaderValue::from_static("text/plain"));
        assert!(cache_key("a", &twice).is_none() && cache_key(&"a".repeat(MAX_KEY_BYTES), &plain).is_none());
    }
}
