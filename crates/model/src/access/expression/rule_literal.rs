//! Where a part of a rule's text is in its file: rules are written in strings, which may have escapes or be blocks.

use std::ops::Range;

/// The bytes of a file that a part of the content of a string literal comes from. `literal` is the literal with its quotes,
/// which begins at `start`.
pub(crate) fn source_range(literal: &str, start: usize, part: Range<usize>) -> Range<usize> {
    let positions =
        if literal.starts_with("\"\"\"") { block_positions(literal) } else { string_positions(literal) };
    let position = |offset: usize| positions.get(offset).or(positions.last()).copied().unwrap_or_default();
    let (from, to) = (position(part.start), position(part.end));
    start + from..start + to.max(from)
}

/// For each byte of the content, and for its end, the position in the literal.
fn string_positions(literal: &str) -> Vec<usize> {
    let (mut positions, mut at) = (Vec::new(), 1);
    let end = literal.len().saturating_sub(1);
    while at < end {
        let rest = &literal[at..end];
        let letter = rest.chars().next().map_or(1, char::len_utf8);
        let (length, content) = match rest.strip_prefix('\\').and_then(|escape| escape.chars().next()) {
            Some('u') => {
                let length = if rest[2..].starts_with('{') {
                    rest.find('}').map_or(rest.len(), |end| end + 1)
                } else {
                    6
                };
                let digits = rest.get(2..length).unwrap_or_default().trim_matches(['{', '}']);
                let letter = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                (length.min(rest.len()), letter.map_or(1, char::len_utf8))
            }
            Some(_) => (2.min(rest.len()), 1),
            None => (letter, letter),
        };
        positions.extend((0..content).map(|byte| at + byte.min(length - 1)));
        at += length;
    }
    positions.push(end);
    positions
}

/// The same for a block string, whose lines lose their common indentation and whose first and last blank lines go.
fn block_positions(literal: &str) -> Vec<usize> {
    let end = literal.len().saturating_sub(3).max(3);
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut at = 3;
    for line in literal.get(3..end).unwrap_or_default().split('\n') {
        lines.push((at, line.strip_suffix('\r').unwrap_or(line)));
        at += line.len() + 1;
    }
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let indented = lines.iter().skip(1).filter(|(_, line)| indentation(line) < line.len());
    let common = indented.map(|(_, line)| indentation(line)).min().unwrap_or_default();
    for (at, line) in lines.iter_mut().skip(1) {
        let removed = common.min(line.len());
        (*at, *line) = (*at + removed, &line[removed..]);
    }
    let is_blank = |line: &(usize, &str)| indentation(line.1) == line.1.len();
    let first = lines.iter().position(|line| !is_blank(line)).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| !is_blank(line)).map_or(first, |last| last + 1);
    let mut positions = Vec::new();
    for (at, line) in &lines[first..last] {
        // The line break after it, too.
        positions.extend(*at..=at + line.len());
    }
    if positions.is_empty() {
        positions.push(3);
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_their_file() {
        for (literal, content, part) in [
            (r#""owner == me""#, "owner == me", "me"),
            (r#""name == \"x\" && owner == me""#, "name == \"x\" && owner == me", "owner"),
            (r#""name == 'é' && owner""#, "name == 'é' && owner", "owner"),
            (
                "\"\"\"\n    team == me.team\n    && owner == me\n  \"\"\"",
                "team == me.team\n&& owner == me",
                "owner",
            ),
        ] {
            let at = content.rfind(part).unwrap();
            let range = source_range(literal, 0, at..at + part.len());
            assert_eq!(&literal[range], part, "{literal}");
        }
    }
}
