//! Case-insensitive text search with the same result on both databases.
//!
//! Databases fold case by tables and locales of their own, which differ beyond ASCII. They only fold ASCII here; a text
//! with other letters becomes a pattern that lists each letter in all its cases. The pattern is valid as SQLite GLOB
//! and as PostgreSQL regular expression, except for `^`, which the dialect corrects.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// Longer texts are pasted, not typed: beyond ASCII they are matched case-sensitively.
pub const MAX_PATTERN_LETTERS: usize = 200;

/// A pattern for the text in any case, `None` if ASCII case folding is enough.
pub fn any_case_pattern(text: &str) -> Option<String> {
    let is_short = text.chars().nth(MAX_PATTERN_LETTERS).is_none();
    let is_cased = |letter: char| !letter.is_ascii() && letter_cases(letter).chars().nth(1).is_some();
    (is_short && text.chars().any(is_cased))
        .then(|| text.chars().map(|letter| letter_class(letter, letter_cases(letter))).collect())
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

/// The letter in all its cases; for an ASCII letter the two that the databases know.
fn letter_cases(letter: char) -> String {
    if letter.is_ascii() {
        let (upper, lower) = (letter.to_ascii_uppercase(), letter.to_ascii_lowercase());
        return if upper == lower { letter.to_string() } else { String::from_iter([upper, lower]) };
    }
    folded_cases(letter)
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
    fn patterns_list_all_cases() {
        for (text, expected) in [
            ("É1", "[Éé]1"),
            ("Σk", "[Σςσ][Kk]"),
            ("𐐀李", "[𐐀𐐨]李"),
            ("é*?[]\\.^ ", "[Éé][*][?][[][]][\\][.]^ "),
        ] {
            assert_eq!(any_case_pattern(text).as_deref(), Some(expected), "{text}");
        }
        for plain in ["", "Walnut [a-z]*", "李小龙", &"é".repeat(MAX_PATTERN_LETTERS + 1)] {
            assert_eq!(any_case_pattern(plain), None, "{plain}");
        }
        assert!(any_case_pattern(&"é".repeat(MAX_PATTERN_LETTERS)).is_some());
    }
}
