//! Parts of list pages that were made before, each under all that it was made from: rows, and the frames around them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use crate::multi_read::Found;
use trefoil_engine::OwnedRow;
use trefoil_model::Stored;

/// Parts by what they are made from, so that none is ever out of date: a record that changed is another key.
pub struct Parts {
    /// How many bytes are kept; then all are forgotten and those in use come back by themselves.
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    /// By a hash of what they are made from, which is asked for every row of every page; two that share one replace
    /// each other.
    parts: HashMap<u64, Part>,
}

struct Part {
    from: MadeFrom,
    html: Arc<str>,
}

impl Part {
    fn bytes(&self) -> usize {
        self.from.length() + self.html.len() + OVERHEAD
    }
}

/// What a part takes up beside its bytes, about.
const OVERHEAD: usize = 96;

impl Parts {
    pub fn new(most: usize) -> Parts {
        Parts { most, kept: Mutex::default() }
    }

    /// The part that is made from this; `make` makes it where it is not there.
    pub fn part<E>(&self, from: &MadeFrom, make: impl FnOnce() -> Result<String, E>) -> Result<Arc<str>, E> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = xxh3_64(&from.0);
        if let Some(part) = kept().parts.get(&hash).filter(|part| part.from == *from) {
            return Ok(part.html.clone());
        }
        let html: Arc<str> = make()?.into();
        kept().put(self.most, hash, Part { from: from.clone(), html: html.clone() });
        Ok(html)
    }
}

impl Kept {
    fn put(&mut self, most: usize, hash: u64, part: Part) {
        let bytes = part.bytes();
        if bytes > most {
            return;
        }
        if self.bytes + bytes > most {
            *self = Kept::default();
        }
        self.bytes += bytes;
        if let Some(replaced) = self.parts.insert(hash, part) {
            self.bytes -= replaced.bytes();
        }
    }
}

/// Spelled as bytes, so that two parts that are made from equal bytes are equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadeFrom(Vec<u8>);

impl MadeFrom {
    pub fn number(&mut self, number: usize) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len()).bytes(text.as_bytes())
    }

    pub fn row(&mut self, row: &OwnedRow) -> &mut Self {
        self.cells(&row.cells).children(row)
    }

    pub fn children(&mut self, row: &OwnedRow) -> &mut Self {
        for children in &row.children {
            self.number(children.len());
            for row in children {
                self.row(row);
            }
        }
        self
    }

    pub fn cells(&mut self, cells: &[Stored]) -> &mut Self {
        for cell in cells {
            match cell {
                Stored::Null => self.bytes(b"n"),
                Stored::Int(number) => self.bytes(b"i").bytes(&number.to_le_bytes()),
                Stored::Real(number) => self.bytes(b"r").bytes(&number.to_le_bytes()),
                Stored::Text(text) => self.bytes(b"t").text(text),
            };
        }
        self
    }

    /// All that an operation found.
    pub fn found(&mut self, found: &Found) -> &mut Self {
        self.number(found.rows.len());
        for row in &found.rows {
            self.row(row);
        }
        self.text(&format!("{:?}", found.outcome))
    }

    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Goes back to where it was so long.
    pub fn cut(&mut self, length: usize) -> &mut Self {
        self.0.truncate(length);
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(number: usize) -> MadeFrom {
        let mut from = MadeFrom::default();
        from.number(number);
        from
    }

    #[test]
    fn a_part_is_made_once_and_never_more_is_kept_than_may_be() {
        let parts = Parts::new(10_000);
        let made = std::cell::Cell::new(0);
        let part = |number: usize, length: usize| {
            let make = || {
                made.set(made.get() + 1);
                Ok::<_, ()>(format!("{number}{}", "x".repeat(length)))
            };
            let part = parts.part(&from(number), make).expect("made");
            let kept = parts.kept.lock().expect("nobody panicked");
            let sum: usize = kept.parts.values().map(Part::bytes).sum();
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
        let parts = Parts::new(10_000);
        let make =
            |number: usize| parts.part(&from(number), || Ok::<_, ()>(number.to_string())).expect("made");
        make(1);
        let mut kept = parts.kept.lock().expect("nobody panicked");
        let one = kept.parts.remove(&xxh3_64(&from(1).0)).expect("kept");
        kept.parts.insert(xxh3_64(&from(2).0), one);
        drop(kept);
        assert_eq!((&*make(2), &*make(2), &*make(1)), ("2", "2", "1"));
        let kept = parts.kept.lock().expect("nobody panicked");
        assert_eq!(kept.bytes, kept.parts.values().map(Part::bytes).sum::<usize>());
    }

    #[test]
    fn cells_are_told_apart() {
        let of = |cells: &[Stored]| MadeFrom::default().cells(cells).clone();
        let text = |text: &str| Stored::Text(text.to_owned());
        let table = [
            vec![Stored::Null, Stored::Null],
            vec![Stored::Int(0), Stored::Null],
            vec![Stored::Real(0.0), Stored::Null],
            vec![Stored::Real(-0.0), Stored::Null],
            vec![text(""), Stored::Null],
            vec![text("a"), text("bc")],
            vec![text("ab"), text("c")],
            vec![text("n"), Stored::Null],
        ];
        for (at, one) in table.iter().enumerate() {
            for (other, two) in table.iter().enumerate() {
                assert_eq!(of(one) == of(two), at == other, "{one:?} {two:?}");
            }
        }
    }
}
