//! The words of a text as full-text indexes have them, the same on both databases: what is between separators, in lower
//! case, and without the accents of Latin letters.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use crate::plan::search::letters::{IGNORED_MARKS, LETTERS, SEPARATORS};

/// A word counts up to this length: PostgreSQL refuses longer ones.
pub const MAX_TOKEN_LETTERS: usize = 500;

/// The fields of a record are indexed up to this length, which they share: PostgreSQL limits the size of all words.
pub const MAX_INDEXED_LETTERS: usize = 200_000;

static FOLDED: LazyLock<HashMap<char, char>> =
    LazyLock::new(|| LETTERS[0].chars().zip(LETTERS[1].chars()).collect());

/// The words of a text, each once.
pub(in crate::plan) fn index_words(text: &str) -> BTreeSet<String> {
    words_of(text).into_iter().map(|word| word.chars().take(MAX_TOKEN_LETTERS).collect()).collect()
}

/// The number of words of a text that begin with one of these; a word counts for each of them.
pub fn word_count(text: &str, beginnings: &[String]) -> usize {
    let count = |word: &String| beginnings.iter().filter(|beginning| word.starts_with(*beginning)).count();
    words_of(text).iter().map(count).sum()
}

fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if !is_separator(letter) {
            word.extend(fold_letter(letter));
        } else if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
    }
    words
}

fn is_separator(letter: char) -> bool {
    let code = u32::from(letter);
    let range = SEPARATORS.partition_point(|(_, last)| *last < code);
    code == 0 || SEPARATORS.get(range).is_some_and(|(first, _)| *first <= code)
}

/// `None` for a mark that is ignored.
fn fold_letter(letter: char) -> Option<char> {
    match letter {
        _ if letter.is_ascii() => Some(letter.to_ascii_lowercase()),
        _ if IGNORED_MARKS.contains(letter) => None,
        _ => Some(FOLDED.get(&letter).copied().unwrap_or(letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_between_separators() {
        for (text, expected) in [
            ("Müller, MU\u{308}LLER!", &["muller"][..]),
            ("a OR b* NEAR(\"c d\")", &["a", "b", "c", "d", "near", "or"]),
            ("Straße 李小龙 it's 1.5 x_y", &["1", "5", "it", "s", "straße", "x", "y", "李小龙"]),
            ("\u{301} * 😀", &[]),
            ("", &[]),
        ] {
            assert_eq!(index_words(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
        assert_eq!(index_words(&"é".repeat(900)).first().map(|word| word.len()), Some(MAX_TOKEN_LETTERS));
    }
}
