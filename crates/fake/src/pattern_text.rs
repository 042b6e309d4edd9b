//! Generates a text that matches a regular expression, by walking through the expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::seeded_random::SeededRandom;

/// Maximum number of repetitions beyond the required ones.
const MAX_EXTRA_REPETITIONS: u32 = 4;
/// Approximate maximum length; an expression may ask for more than anyone reads.
const MAX_TEXT_BYTES: usize = 10_000;

/// A matching text, or `None` if the expression is invalid or its text too long.
pub fn text_matching(source: &str, random: SeededRandom) -> Option<String> {
    let expression = regex_syntax::parse(source).ok()?;
    let mut text = String::new();
    append_match(&expression, random, &mut text)?;
    Some(text)
}

fn append_match(part: &Hir, random: SeededRandom, out: &mut String) -> Option<()> {
    if out.len() > MAX_TEXT_BYTES {
        return None;
    }
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(pick_char(class, random)?),
        HirKind::Repetition(repetition) => {
            let max = repetition.max.unwrap_or(repetition.min.saturating_add(MAX_EXTRA_REPETITIONS));
            let extra = max.saturating_sub(repetition.min).min(MAX_EXTRA_REPETITIONS);
            let times = repetition.min + random.derive("times").below(u64::from(extra) + 1) as u32;
            for position in 0..times {
                append_match(&repetition.sub, random.derive_number(position.into()), out)?;
            }
        }
        HirKind::Capture(capture) => append_match(&capture.sub, random, out)?,
        HirKind::Concat(parts) => {
            for (position, part) in parts.iter().enumerate() {
                append_match(part, random.derive_number(position as u64), out)?;
            }
        }
        HirKind::Alternation(parts) => append_match(random.pick(parts), random.derive("branch"), out)?,
    }
    Some(())
}

/// A character of the class, ASCII if possible, so that people can read it.
fn pick_char(class: &Class, random: SeededRandom) -> Option<char> {
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
        return Some(*random.pick(&plain));
    }
    let range = ranges.get(random.below(ranges.len().max(1) as u64) as usize)?;
    let width = u64::from(range.end() as u32 - range.start() as u32) + 1;
    char::from_u32(range.start() as u32 + random.derive("char").below(width) as u32).or(Some(range.start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_text_matches_the_pattern() {
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
    fn too_long_patterns_give_none() {
        assert_eq!(text_matching("((a{100}){100}){100}", SeededRandom(1)), None);
    }
}
