//! Text search in any case and without accents, with the same result on both databases.
//!
//! Databases fold case by tables and locales of their own, which differ beyond ASCII. So a text becomes a pattern that
//! lists each letter in all its cases. The pattern is valid as SQLite GLOB and as PostgreSQL regular expression, except
//! for `^`, which the dialect corrects.

use std::borrow::Cow;
use std::collections::BTreeSet;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use trefoil_model::{Model, RecordType, SearchedText};
use unicode_normalization::UnicodeNormalization;

use crate::operation::{ReferencePath, ValuePath};

/// Longer texts are pasted, not typed.
pub const MAX_PATTERN_LETTERS: usize = 200;

/// Marks that a search ignores: accents, the points of Hebrew and the signs of Arabic vowels.
pub const MARK_RANGES: [(char, char); 12] = [
    ('\u{300}', '\u{36F}'),
    ('\u{591}', '\u{5BD}'),
    ('\u{5BF}', '\u{5BF}'),
    ('\u{5C1}', '\u{5C2}'),
    ('\u{5C4}', '\u{5C5}'),
    ('\u{5C7}', '\u{5C7}'),
    ('\u{64B}', '\u{65F}'),
    ('\u{670}', '\u{670}'),
    ('\u{1AB0}', '\u{1AFF}'),
    ('\u{1DC0}', '\u{1DFF}'),
    ('\u{20D0}', '\u{20FF}'),
    ('\u{FE20}', '\u{FE2F}'),
];

/// The text in canonical decomposition, without marks: `Müller` and `Muller` become the same.
pub fn without_marks(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let is_mark = |letter: &char| MARK_RANGES.iter().any(|(first, last)| (first..=last).contains(&letter));
    Cow::Owned(text.nfd().filter(|letter| !is_mark(letter)).collect())
}

/// A pattern for each word of a text, in any case and without marks.
pub fn word_patterns(text: &str) -> Vec<String> {
    let text = without_marks(text);
    let pattern = |word: &str| {
        word.chars().map(|letter| letter_class(letter, folded_cases(letter))).collect::<String>()
    };
    let patterns: BTreeSet<String> = text.split_whitespace().map(pattern).collect();
    patterns.into_iter().collect()
}

/// The number of times that these patterns match a text without its marks; matches of one do not overlap.
pub fn pattern_count(text: &str, patterns: &[String]) -> usize {
    let text: Vec<char> = without_marks(text).chars().collect();
    let count = |pattern: &String| {
        let classes = pattern_classes(pattern);
        let (mut count, mut rest) = (0, text.as_slice());
        while rest.len() >= classes.len() && !classes.is_empty() {
            let is_match = classes.iter().zip(rest).all(|(class, letter)| class.contains(letter));
            count += usize::from(is_match);
            rest = &rest[if is_match { classes.len() } else { 1 }..];
        }
        count
    };
    patterns.iter().map(count).sum()
}

/// The letters that each place of a pattern takes.
fn pattern_classes(pattern: &str) -> Vec<Vec<char>> {
    let mut classes = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // The first letter of a class may be its end sign.
            '[' => {
                let first = letters.next();
                classes.push(
                    first.into_iter().chain(letters.by_ref().take_while(|letter| *letter != ']')).collect(),
                );
            }
            _ => classes.push(vec![letter]),
        }
    }
    classes
}

/// The texts that a search looks into.
pub fn searched_texts(model: &Model, record: &RecordType) -> Vec<ReferencePath> {
    let path = |text: SearchedText| ReferencePath {
        references: text.reference.into_iter().collect(),
        value: ValuePath { field: text.field, members: text.members },
    };
    model.searched_texts(record).into_iter().map(path).collect()
}

/// A pattern for the text in any case, by the simple folding of Unicode for all letters.
pub fn folded_pattern(text: &str) -> Result<String, String> {
    if text.chars().nth(MAX_PATTERN_LETTERS).is_some() {
        return Err(format!("a text in any case must have at most {MAX_PATTERN_LETTERS} letters"));
    }
    Ok(text.chars().map(|letter| letter_class(letter, folded_cases(letter))).collect())
}

/// The letter in the given cases, as part of a pattern.
fn letter_class(letter: char, cases: String) -> String {
    let is_special = letter.is_ascii_punctuation() && letter != '^';
    if is_special || cases.chars().nth(1).is_some() { format!("[{cases}]") } else { cases }
}

/// The letter in all its cases.
fn folded_cases(letter: char) -> String {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
    class.case_fold_simple();
    class.iter().flat_map(|range| range.start()..=range.end()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_patterns_list_cases_of_ascii_letters() {
        assert_eq!(folded_pattern("Ks1é").as_deref(), Ok("[Kk\u{212A}][Ss\u{17F}]1[Éé]"));
        assert!(folded_pattern(&"a".repeat(MAX_PATTERN_LETTERS + 1)).is_err());
    }

    #[test]
    fn words_lose_their_marks() {
        for (text, expected) in [
            ("É1", &["[Ee]1"][..]),
            ("  b\u{2003}a\nb ", &["[Aa]", "[Bb]"]),
            ("Σ 𐐀李", &["[Σςσ]", "[𐐀𐐨]李"]),
            ("*?[]\\.^", &["[*][?][[][]][\\][.]^"]),
            ("o\u{308} ö", &["[Oo]"]),
            ("ßẞ", &["[ßẞ][ßẞ]"]),
            ("", &[]),
        ] {
            assert_eq!(word_patterns(text), expected, "{text}");
        }
        let count = |text: &str, words: &str| pattern_count(text, &word_patterns(words));
        assert_eq!(count("Aaäb aaa ]^[ ]", "aa ] ^"), 2 + 2 + 1);
        assert_eq!((count("", "a"), count("a", ""), count("ß ẞ ss", "ß")), (0, 0, 2));
        assert_eq!(without_marks("Müller 한 が שָׁ"), "Muller \u{1112}\u{1161}\u{11AB} か\u{3099} ש");
    }
}
