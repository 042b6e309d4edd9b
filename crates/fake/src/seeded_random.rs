//! Random numbers that are the same for the same seed.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A deterministic source of random numbers, derived from names and numbers.
#[derive(Debug, Clone, Copy)]
pub struct SeededRandom(pub u64);

impl SeededRandom {
    pub fn derive(&self, label: &str) -> SeededRandom {
        SeededRandom(xxh3_64_with_seed(label.as_bytes(), self.0))
    }

    pub fn derive_number(&self, number: u64) -> SeededRandom {
        SeededRandom(xxh3_64_with_seed(&number.to_le_bytes(), self.0))
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&self, limit: u64) -> u64 {
        xxh3_64_with_seed(b"below", self.0) % limit
    }

    pub fn pick<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
