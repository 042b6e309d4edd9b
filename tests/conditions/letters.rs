//! The letters of generated texts, and which of them are the same in any case.

use crate::power::chance::Chance;

/// Letters that Unicode's simple folding makes one, as CaseFolding.txt lists them (status C and S).
const SAME: [&str; 14] =
    ["aA", "bB", "kK\u{212A}", "sSſ", "iI", "éÉ", "åÅ\u{212B}", "ßẞ", "σςΣ", "µμΜ", "üÜ", "дДᲁ", "ǆǅǄ", "𐐨𐐀"];

/// Letters that are the same as no other: `İ` and `ı` are no `i`, a mark is no part of its letter.
const ALONE: [char; 24] = [
    'İ', 'ı', '\u{301}', '1', '0', ' ', '%', '_', '*', '?', '[', ']', '^', '\\', ',', '(', ')', '"', '\'',
    '.', '$', '\n', '日', '😀',
];

const WORDS: [&str; 16] = [
    "",
    "a",
    "A",
    "ab",
    "aB",
    "Straße",
    "STRASSE",
    "k",
    "K",
    "null",
    "true",
    "0",
    "a,b",
    "[a-b]",
    "\u{10FFFF}",
    "\u{FFFF}z",
];

/// The letter that stands for all that are the same.
pub fn folded(letter: char) -> char {
    let group = SAME.iter().find(|group| group.contains(letter));
    group.and_then(|group| group.chars().next()).unwrap_or_else(|| letter.to_ascii_lowercase())
}

pub fn text(chance: &mut Chance) -> String {
    if chance.percent(40) {
        return (*chance.pick(&WORDS).unwrap()).to_owned();
    }
    (0..1 + chance.below(4)).map(|_| letter(chance)).collect()
}

fn letter(chance: &mut Chance) -> char {
    if chance.percent(65) {
        let group: Vec<char> = chance.pick(&SAME).unwrap().chars().collect();
        return *chance.pick(&group).unwrap();
    }
    *chance.pick(&ALONE).unwrap()
}
