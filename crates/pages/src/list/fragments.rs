//! `FragmentCache`: rendered rows and frames of list pages, keyed by everything they were rendered from.

use std::sync::Arc;

use parking_lot::RwLock;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;

use trefoil_engine::OwnedRow;
use trefoil_model::StoredValue;

use crate::snapshot_reads::FoundRows;

/// Rendered fragments by their input, so that none is ever stale: a changed record has another key.
pub struct FragmentCache {
    fragments: RwLock<Cache<FragmentKey, Arc<str>, FragmentWeigher>>,
}

struct FragmentWeigher;

impl Weighter<FragmentKey, Arc<str>> for FragmentWeigher {
    fn weight(&self, key: &FragmentKey, html: &Arc<str>) -> u64 {
        (key.byte_length() + html.len() + FRAGMENT_OVERHEAD) as u64
    }
}

/// Approximate memory of a fragment besides its bytes.
const FRAGMENT_OVERHEAD: usize = 96;

/// The size of a usual row. The cache remembers the keys of half as many evicted fragments as it expects to hold.
const USUAL_FRAGMENT_BYTES: usize = 2 << 10;

impl FragmentCache {
    pub fn new(max_bytes: usize) -> FragmentCache {
        let fragments =
            Cache::with_weighter(max_bytes / USUAL_FRAGMENT_BYTES, max_bytes as u64, FragmentWeigher);
        FragmentCache { fragments: RwLock::new(fragments) }
    }

    /// The fragment with this key; `render` makes it if it is not cached.
    pub fn get_or_render<E>(
        &self,
        key: &FragmentKey,
        render: impl FnOnce() -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        if let Some(html) = self.fragments.read().get(key) {
            return Ok(html.clone());
        }
        let html: Arc<str> = render()?.into();
        self.fragments.write().insert(key.clone(), html.clone());
        Ok(html)
    }
}

/// The input of a fragment, encoded as bytes: equal keys mean equal fragments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FragmentKey(Vec<u8>);

impl FragmentKey {
    /// The beginning of a key of fragments for actors of a class.
    pub fn of_class(class: Option<u128>) -> FragmentKey {
        FragmentKey(class.map(|class| class.to_le_bytes().to_vec()).unwrap_or_default())
    }

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
            let cached = cache.fragments.read();
            let sum: u64 = cached.iter().map(|(key, html)| FragmentWeigher.weight(key, html)).sum();
            assert!(cached.weight() == sum && sum <= 10_000, "{sum}");
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
