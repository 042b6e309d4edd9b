//! A text that a regular expression matches, made by walking through the expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::Chance;

/// How often something is repeated beyond what must be, at most.
const MORE: u32 = 4;
/// Characters of a made-up text, about; an expression may ask for more than anybody wants to read.
const LONGEST: usize = 10_000;

/// None where the expression is one that cannot be walked through to an end.
pub fn matching(source: &str, chance: Chance) -> Option<String> {
    let expression = regex_syntax::parse(source).ok()?;
    let mut text = String::new();
    walk(&expression, chance, &mut text)?;
    Some(text)
}

fn walk(part: &Hir, chance: Chance, out: &mut String) -> Option<()> {
    if out.len() > LONGEST {
        return None;
    }
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(one_of(class, chance)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min.saturating_add(MORE));
            let room = most.saturating_sub(repetition.min).min(MORE);
            let times = repetition.min + chance.of("times").below(u64::from(room) + 1) as u32;
            for number in 0..times {
                walk(&repetition.sub, chance.try_number(number.into()), out)?;
            }
        }
        HirKind::Capture(capture) => walk(&capture.sub, chance, out)?,
        HirKind::Concat(parts) => {
            for (number, part) in parts.iter().enumerate() {
                walk(part, chance.try_number(number as u64), out)?;
            }
        }
        HirKind::Alternation(parts) => walk(chance.pick(parts), chance.of("branch"), out)?,
    }
    Some(())
}

/// A plain character where the class has one, so that people can read it.
fn one_of(class: &Class, chance: Chance) -> Option<char> {
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
    char::from_u32(range.start() as u32 + chance.of("char").below(width) as u32).or(Some(range.start()))
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
                let text = matching(source, Chance(number)).unwrap();
                assert!(whole.is_match(&text), "{source}: {text}");
            }
        }
    }

    #[test]
    fn what_asks_for_too_much_is_given_up() {
        assert_eq!(matching("((a{100}){100}){100}", Chance(1)), None);
    }
}
