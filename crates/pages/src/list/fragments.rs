//! `FragmentCache`: rendered rows and frames of list pages, keyed by everything they were rendered from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use trefoil_engine::OwnedRow;
use trefoil_model::StoredValue;

use crate::multi_read::FoundRows;

/// Rendered fragments by their input, so that none is ever stale: a changed record has another key.
pub struct FragmentCache {
    /// At this size the cache is emptied; fragments in use return by themselves.
    max_bytes: usize,
    fragments: Mutex<CachedFragments>,
}

#[derive(Default)]
struct CachedFragments {
    bytes: usize,
    /// By a hash of the key, which is fast to look up for every row of every page. Two keys with the same hash replace
    /// each other.
    by_hash: HashMap<u64, CachedFragment>,
}

struct CachedFragment {
    key: FragmentKey,
    html: Arc<str>,
}

impl CachedFragment {
    fn byte_size(&self) -> usize {
        self.key.byte_length() + self.html.len() + FRAGMENT_OVERHEAD
    }
}

/// Approximate memory of a fragment besides its bytes.
const FRAGMENT_OVERHEAD: usize = 96;

impl FragmentCache {
    pub fn new(max_bytes: usize) -> FragmentCache {
        FragmentCache { max_bytes, fragments: Mutex::default() }
    }

    /// The fragment with this key; `render` makes it if it is not cached.
    pub fn get_or_render<E>(
        &self,
        key: &FragmentKey,
        render: impl FnOnce() -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        let lock = || self.fragments.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = xxh3_64(&key.0);
        if let Some(fragment) = lock().by_hash.get(&hash).filter(|fragment| fragment.key == *key) {
            return Ok(fragment.html.clone());
        }
        let html: Arc<str> = render()?.into();
        lock().insert(self.max_bytes, hash, CachedFragment { key: key.clone(), html: html.clone() });
        Ok(html)
    }
}

impl CachedFragments {
    fn insert(&mut self, max_bytes: usize, hash: u64, fragment: CachedFragment) {
        let bytes = fragment.byte_size();
        if bytes > max_bytes {
            return;
        }
        if self.bytes + bytes > max_bytes {
            *self = CachedFragments::default();
        }
        self.bytes += bytes;
        if let Some(replaced) = self.by_hash.insert(hash, fragment) {
            self.bytes -= replaced.byte_size();
        }
    }
}

/// The input of a fragment, encoded as bytes: equal keys mean equal fragments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FragmentKey(Vec<u8>);

impl FragmentKey {
    pub fn add_number(&mut self, number: usize) -> &mut Self {
        self.add_bytes(&number.to_le_bytes())
    }

    pub fn add_text(&mut self, text: &str) -> &mut Self {
        self.add_number(text.len()).add_bytes(text.as_bytes())
    }

    pub fn add_row(&mut self, row: &OwnedRow) -> &mut Self {
        self.add_cells(&row.cells).add_children(row)
    }

    pub fn add_children(&mut self, row: &OwnedRow) -> &mut Self {
        for children in &row.children {
            self.add_number(children.len());
            for row in children {
                self.add_row(row);
            }
        }
        self
    }

    pub fn add_cells(&mut self, cells: &[StoredValue]) -> &mut Self {
        for cell in cells {
            match cell {
                StoredValue::Null => self.add_bytes(b"n"),
                StoredValue::Int(number) => self.add_bytes(b"i").add_bytes(&number.to_le_bytes()),
                StoredValue::Real(number) => self.add_bytes(b"r").add_bytes(&number.to_le_bytes()),
                StoredValue::Text(text) => self.add_bytes(b"t").add_text(text),
            };
        }
        self
    }

    /// Rows and outcome of an operation.
    pub fn add_found_rows(&mut self, found: &FoundRows) -> &mut Self {
        self.add_number(found.rows.len());
        for row in &found.rows {
            self.add_row(row);
        }
        self.add_text(&format!("{:?}", found.outcome))
    }

    pub fn byte_length(&self) -> usize {
        self.0.len()
    }

    /// Shortens the key to this length.
    pub fn truncate(&mut self, length: usize) -> &mut Self {
        self.0.truncate(length);
        self
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> FragmentKey {
        let mut key = FragmentKey::default();
        key.add_number(number);
        key
    }

    #[test]
    fn fragments_are_rendered_once_within_size_limit() {
        let cache = FragmentCache::new(10_000);
        let render_count = std::cell::Cell::new(0);
        let fragment = |number: usize, length: usize| {
            let render = || {
                render_count.set(render_count.get() + 1);
                Ok::<_, ()>(format!("{number}{}", "x".repeat(length)))
            };
            let fragment = cache.get_or_render(&key(number), render).expect("made");
            let cached = cache.fragments.lock().expect("nobody panicked");
            let sum: usize = cached.by_hash.values().map(CachedFragment::byte_size).sum();
            assert!(cached.bytes == sum && sum <= 10_000, "{sum}");
            assert!(fragment.starts_with(&number.to_string()) && fragment.len() > length);
        };
        (0..500).for_each(|number| fragment(number % 5, 100));
        assert_eq!(render_count.get(), 5);
        (10..500).for_each(|number| fragment(number, 300));
        assert_eq!(render_count.get(), 5 + 490);
        let before = render_count.get();
        fragment(1_000, 20_000);
        fragment(1_000, 20_000);
        assert_eq!(render_count.get(), before + 2, "what is too large is made each time");
    }

    #[test]
    fn hash_collision_returns_right_fragment() {
        let cache = FragmentCache::new(10_000);
        let render = |number: usize| {
            cache.get_or_render(&key(number), || Ok::<_, ()>(number.to_string())).expect("made")
        };
        render(1);
        let mut cached = cache.fragments.lock().expect("nobody panicked");
        let one = cached.by_hash.remove(&xxh3_64(&key(1).0)).expect("kept");
        cached.by_hash.insert(xxh3_64(&key(2).0), one);
        drop(cached);
        assert_eq!((&*render(2), &*render(2), &*render(1)), ("2", "2", "1"));
        let cached = cache.fragments.lock().expect("nobody panicked");
        assert_eq!(cached.bytes, cached.by_hash.values().map(CachedFragment::byte_size).sum::<usize>());
    }

    #[test]
    fn different_cells_have_different_keys() {
        let key_of = |cells: &[StoredValue]| FragmentKey::default().add_cells(cells).clone();
        let text = |text: &str| StoredValue::Text(text.to_owned());
        let table = [
            vec![StoredValue::Null, StoredValue::Null],
            vec![StoredValue::Int(0), StoredValue::Null],
            vec![StoredValue::Real(0.0), StoredValue::Null],
            vec![StoredValue::Real(-0.0), StoredValue::Null],
            vec![text(""), StoredValue::Null],
            vec![text("a"), text("bc")],
            vec![text("ab"), text("c")],
            vec![text("n"), StoredValue::Null],
        ];
        for (first, one) in table.iter().enumerate() {
            for (second, two) in table.iter().enumerate() {
                assert_eq!(key_of(one) == key_of(two), first == second, "{one:?} {two:?}");
            }
        }
    }
}
