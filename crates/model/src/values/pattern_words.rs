//! A simple regular expression in words, for people who see it in a message.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// An expression with more parts is no help in words.
const MAX_PARTS: usize = 6;

/// "a capital letter, then 9 digits" of `[A-Z][0-9]{9}`; `None` if there are no simple words for it.
pub(crate) fn pattern_words(pattern: &str) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let parts: Vec<&Hir> = match hir.kind() {
        HirKind::Concat(parts) => {
            parts.iter().filter(|part| !matches!(part.kind(), HirKind::Look(_))).collect()
        }
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Capture(_)
        | HirKind::Alternation(_) => vec![&hir],
    };
    if parts.is_empty() || parts.len() > MAX_PARTS {
        return None;
    }
    let words: Vec<String> = parts.into_iter().map(part_words).collect::<Option<_>>()?;
    Some(words.join(", then "))
}

/// `\d`: the digits of all scripts.
static ALL_DIGITS: LazyLock<Option<HirKind>> =
    LazyLock::new(|| regex_syntax::parse(r"\d").ok().map(Hir::into_kind));

fn part_words(part: &Hir) -> Option<String> {
    match part.kind() {
        HirKind::Literal(literal) => {
            Some(format!("\u{201c}{}\u{201d}", std::str::from_utf8(&literal.0).ok()?))
        }
        HirKind::Class(class) => Some(format!("a {}", class_noun(class)?)),
        HirKind::Capture(capture) => part_words(&capture.sub),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let HirKind::Class(class) = sub.kind() else { return None };
            repeated(class_noun(class)?, *min, *max)
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Concat(_) | HirKind::Alternation(_) => None,
    }
}

fn repeated(noun: &str, min: u32, max: Option<u32>) -> Option<String> {
    let words = match (min, max) {
        (1, Some(1)) => format!("a {noun}"),
        (min, Some(max)) if min == max => format!("{min} {noun}s"),
        (0, Some(1)) => format!("perhaps a {noun}"),
        (0, Some(max)) => format!("up to {max} {noun}s"),
        (min, Some(max)) => format!("{min} to {max} {noun}s"),
        (0, None) => format!("any number of {noun}s"),
        (1, None) => format!("one or more {noun}s"),
        (min, None) => format!("at least {min} {noun}s"),
    };
    Some(words)
}

/// The letters that a class is known for.
fn class_noun(class: &Class) -> Option<&'static str> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let [digits, capitals, small] =
        [('0', '9'), ('A', 'Z'), ('a', 'z')].map(|(first, last)| (first.into(), last.into()));
    match ranges.as_slice() {
        [range] if *range == digits => Some("digit"),
        [range] if *range == capitals => Some("capital letter"),
        [range] if *range == small => Some("small letter"),
        [first, second] if (*first, *second) == (capitals, small) => Some("letter"),
        [first, second] if (*first, *second) == (digits, capitals) => Some("digit or capital letter"),
        _ => (*ALL_DIGITS == Some(HirKind::Class(class.clone()))).then_some("digit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_patterns_have_words() {
        for (pattern, words) in [
            ("[A-Z][0-9]{9}", Some("a capital letter, then 9 digits")),
            ("[0-9]{4,5}", Some("4 to 5 digits")),
            ("[A-Z]{3}-[0-9]+", Some("3 capital letters, then \u{201c}-\u{201d}, then one or more digits")),
            (r"^\d{2}$", Some("2 digits")),
            (r"\d", Some("a digit")),
            (r"\w+", None),
            (r"[\d\p{L}]", None),
            ("[A-Za-z]?([a-z]*)", Some("perhaps a letter, then any number of small letters")),
            ("a|b+", None),
            ("(ab)+", None),
            ("[^a]", None),
            ("", None),
        ] {
            assert_eq!(pattern_words(pattern).as_deref(), words, "{pattern}");
        }
    }
}
