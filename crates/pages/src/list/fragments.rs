//! Parts of list pages that were made before, each under all that it was made from: rows, and the frames around them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use trefoil_engine::OwnedRow;
use trefoil_model::StoredValue;

use crate::multi_read::FoundRows;

/// Parts by what they are made from, so that none is ever out of date: a record that changed is another key.
pub struct FragmentCache {
    /// How many bytes are kept; then all are forgotten and those in use come back by themselves.
    max_bytes: usize,
    fragments: Mutex<CachedFragments>,
}

#[derive(Default)]
struct CachedFragments {
    bytes: usize,
    /// By a hash of what they are made from, which is asked for every row of every page; two that share one replace
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

/// What a part takes up beside its bytes, about.
const FRAGMENT_OVERHEAD: usize = 96;

impl FragmentCache {
    pub fn new(most: usize) -> FragmentCache {
        FragmentCache { max_bytes: most, fragments: Mutex::default() }
    }

    /// The part that is made from this; `make` makes it where it is not there.
    pub fn get_or_render<E>(
        &self,
        from: &FragmentKey,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        let kept = || self.fragments.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = xxh3_64(&from.0);
        if let Some(part) = kept().by_hash.get(&hash).filter(|part| part.key == *from) {
            return Ok(part.html.clone());
        }
        let html: Arc<str> = make()?.into();
        kept().insert(self.max_bytes, hash, CachedFragment { key: from.clone(), html: html.clone() });
        Ok(html)
    }
}

impl CachedFragments {
    fn insert(&mut self, most: usize, hash: u64, part: CachedFragment) {
        let bytes = part.byte_size();
        if bytes > most {
            return;
        }
        if self.bytes + bytes > most {
            *self = CachedFragments::default();
        }
        self.bytes += bytes;
        if let Some(replaced) = self.by_hash.insert(hash, part) {
            self.bytes -= replaced.byte_size();
        }
    }
}

/// Spelled as bytes, so that two parts that are made from equal bytes are equal.
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

    /// All that an operation found.
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

    /// Goes back to where it was so long.
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

    fn from(number: usize) -> FragmentKey {
        let mut from = FragmentKey::default();
        from.add_number(number);
        from
    }

    #[test]
    fn a_part_is_made_once_and_never_more_is_kept_than_may_be() {
        let parts = FragmentCache::new(10_000);
        let made = std::cell::Cell::new(0);
        let part = |number: usize, length: usize| {
            let make = || {
                made.set(made.get() + 1);
                Ok::<_, ()>(format!("{number}{}", "x".repeat(length)))
            };
            let part = parts.get_or_render(&from(number), make).expect("made");
            let kept = parts.fragments.lock().expect("nobody panicked");
            let sum: usize = kept.by_hash.values().map(CachedFragment::byte_size).sum();
            assert!(kept.bytes == sum && sum <= 10_000, "{sum}");
            assert!(part.starts_with(&number.to_string()) && part.len() > length);
        };
        (0..500).for_each(|number| part(number % 5, 100));
        assert_eq!(made.get(), 5);
        (10..500).for_each(|number| part(number, 300));
        assert_eq!(made.get(), 5 + 490);
        let before = made.get();
        part(1_000, 20_000);
        part(1_000, 20_000);
        assert_eq!(made.get(), before + 2, "what is too large is made each time");
    }

    #[test]
    fn of_two_that_share_a_hash_each_is_its_own() {
        let parts = FragmentCache::new(10_000);
        let make = |number: usize| {
            parts.get_or_render(&from(number), || Ok::<_, ()>(number.to_string())).expect("made")
        };
        make(1);
        let mut kept = parts.fragments.lock().expect("nobody panicked");
        let one = kept.by_hash.remove(&xxh3_64(&from(1).0)).expect("kept");
        kept.by_hash.insert(xxh3_64(&from(2).0), one);
        drop(kept);
        assert_eq!((&*make(2), &*make(2), &*make(1)), ("2", "2", "1"));
        let kept = parts.fragments.lock().expect("nobody panicked");
        assert_eq!(kept.bytes, kept.by_hash.values().map(CachedFragment::byte_size).sum::<usize>());
    }

    #[test]
    fn cells_are_told_apart() {
        let of = |cells: &[StoredValue]| FragmentKey::default().add_cells(cells).clone();
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
        for (at, one) in table.iter().enumerate() {
            for (other, two) in table.iter().enumerate() {
                assert_eq!(of(one) == of(two), at == other, "{one:?} {two:?}");
            }
        }
    }
}
