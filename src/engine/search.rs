//! A text that is looked for, as a pattern that names every letter in each of its cases.
//!
//! The databases fold letters by tables and locales of their own, which differ; a pattern that leaves nothing to them
//! finds the same in both. It is SQLite's GLOB and PostgreSQL's regular expression alike, but for `^`, which the dialect
//! mends.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::plan::{Test, holds_text};
use crate::error::Violation;
use crate::model::{RecordType, Stored};

/// Longer texts are pasted, not typed: they are looked for as they are written, which costs no pattern.
const LONGEST: usize = 200;

/// Whether any text of a record contains this one.
pub fn test(record: &RecordType, text: &str) -> Result<Test, Violation> {
    if text.contains('\0') {
        return Err(Violation::new("q", "NUL", "`q` must not contain the character U+0000"));
    }
    let any = record.fields.iter().any(|field| field.is_stored() && holds_text(&field.kind));
    Ok(match pattern(text) {
        _ if !any => Test::Nothing,
        Some(pattern) => Test::SearchAnyCase { pattern: Stored::Text(pattern) },
        None => Test::Search { text: Stored::Text(text.to_owned()) },
    })
}

/// What fits the text in any case; nothing where it is too long for that.
fn pattern(text: &str) -> Option<String> {
    let is_short = text.chars().nth(LONGEST).is_none();
    is_short.then(|| text.chars().map(any_case).collect())
}

fn any_case(letter: char) -> String {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
    class.case_fold_simple();
    let cases: String = class.iter().flat_map(|range| range.start()..=range.end()).collect();
    let is_sign = letter.is_ascii_punctuation() && letter != '^';
    if is_sign || cases.chars().nth(1).is_some() { format!("[{cases}]") } else { cases }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_named_and_every_sign_is_itself() {
        for (text, expected) in [
            ("a1", "[Aa]1"),
            ("kſ", "[Kk\u{212a}][Ssſ]"),
            ("ΣÉ", "[Σςσ][Éé]"),
            ("𐐀李", "[𐐀𐐨]李"),
            ("*?[]\\.^ ", "[*][?][[][]][\\][.]^ "),
            ("", ""),
        ] {
            assert_eq!(pattern(text).as_deref(), Some(expected), "{text}");
        }
        assert!(pattern(&"é".repeat(LONGEST)).is_some());
        assert_eq!(pattern(&"é".repeat(LONGEST + 1)), None);
    }
}
