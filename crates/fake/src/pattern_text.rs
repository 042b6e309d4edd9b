//! A text that a regular expression matches, made by walking through the expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::SeededRandom;

/// How often something is repeated beyond what must be, at most.
const MAX_EXTRA_REPETITIONS: u32 = 4;
/// Characters of a made-up text, about; an expression may ask for more than anybody wants to read.
const MAX_TEXT_BYTES: usize = 10_000;

/// None where the expression is one that cannot be walked through to an end.
pub fn text_matching(source: &str, chance: SeededRandom) -> Option<String> {
    let expression = regex_syntax::parse(source).ok()?;
    let mut text = String::new();
    append_match(&expression, chance, &mut text)?;
    Some(text)
}

fn append_match(part: &Hir, chance: SeededRandom, out: &mut String) -> Option<()> {
    if out.len() > MAX_TEXT_BYTES {
        return None;
    }
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(pick_char(class, chance)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min.saturating_add(MAX_EXTRA_REPETITIONS));
            let room = most.saturating_sub(repetition.min).min(MAX_EXTRA_REPETITIONS);
            let times = repetition.min + chance.derive("times").below(u64::from(room) + 1) as u32;
            for number in 0..times {
                append_match(&repetition.sub, chance.derive_number(number.into()), out)?;
            }
        }
        HirKind::Capture(capture) => append_match(&capture.sub, chance, out)?,
        HirKind::Concat(parts) => {
            for (number, part) in parts.iter().enumerate() {
                append_match(part, chance.derive_number(number as u64), out)?;
            }
        }
        HirKind::Alternation(parts) => append_match(chance.pick(parts), chance.derive("branch"), out)?,
    }
    Some(())
}

/// A plain character where the class has one, so that people can read it.
fn pick_char(class: &Class, chance: SeededRandom) -> Option<char> {
    let Class::Unicode(class) = class else {
        let Class::Bytes(class) = class else { return None };
        let range = class.ranges().iter().find(|range| range.start().is_ascii())?;
        return Some(range.start() as char);
    };
    let ranges = class.ranges();
    let plain: Vec<char> = ('!'..='~')
        .filter(|c| c.is_ascii_alphanumeric() || ranges.len() < 4)
        .filter(|c| ranges.iter().any(|range| (range.start()..=range.end()).contains(c)))
        .collect();
    if !plain.is_empty() {
        return Some(*chance.pick(&plain));
    }
    let range = ranges.get(chance.below(ranges.len().max(1) as u64) as usize)?;
    let width = u64::from(range.end() as u32 - range.start() as u32) + 1;
    char::from_u32(range.start() as u32 + chance.derive("char").below(width) as u32).or(Some(range.start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_matches() {
        for source in [
            "[A-Z]{3}-[0-9]{4}",
            r"\+?\d{6,12}",
            "(red|green|blue)",
            "^a+b*c?$",
            r"\w+@\w+\.org",
            "[^x]",
            r"\p{Greek}{2}",
        ] {
            let whole = regex::Regex::new(&format!(r"\A(?:{source})\z")).unwrap();
            for number in 0..50 {
                let text = text_matching(source, SeededRandom(number)).unwrap();
                assert!(whole.is_match(&text), "{source}: {text}");
            }
        }
    }

    #[test]
    fn what_asks_for_too_much_is_given_up() {
        assert_eq!(text_matching("((a{100}){100}){100}", SeededRandom(1)), None);
    }
}
