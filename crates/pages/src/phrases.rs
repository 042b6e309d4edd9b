//! Numbers and texts in sentences: grouped digits, plurals, shortened texts.

pub use trefoil_model::values::digit_grouping::group_thousands;

/// Records are counted up to this number; a longer list has "more than 1,000".
pub const MAX_COUNT: u32 = 1_000;

/// "1 user", "2 users".
pub fn counted_noun(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_thousands(number), if number == 1 { one } else { many })
}

/// A count that stopped after [`MAX_COUNT`]: "12", "more than 1,000".
pub fn bounded_count(total: u64) -> String {
    let max = u64::from(MAX_COUNT);
    if total > max { format!("more than {}", group_thousands(max)) } else { group_thousands(total) }
}

/// A text is cut at the end of a word if one ends within this distance.
const WORD_END_DISTANCE: usize = 15;

/// The first `max` characters or a little less; `None` if the text is not longer.
pub fn cut_text(text: &str, max: usize) -> Option<&str> {
    let (end, next) = text.char_indices().nth(max)?;
    let start = &text[..end];
    let word_end = start.char_indices().rev().take(WORD_END_DISTANCE).find(|(_, c)| c.is_whitespace());
    let end = word_end.filter(|_| !next.is_whitespace()).map_or(end, |(at, _)| at);
    let whole_words = start[..end].trim_end();
    Some(if whole_words.is_empty() { start } else { whole_words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_bounded() {
        assert_eq!(counted_noun(1, "user", "users"), "1 user");
        assert_eq!(counted_noun(1_001, "user", "users"), "1,001 users");
        assert_eq!(
            (bounded_count(1_000).as_str(), bounded_count(1_001).as_str()),
            ("1,000", "more than 1,000")
        );
    }

    #[test]
    fn cut_text_prefers_word_ends() {
        assert_eq!(cut_text("Grüße", 5), None);
        assert_eq!(cut_text("Grüße", 3), Some("Grü"));
        assert_eq!(cut_text("ab cd", 3), Some("ab"));
        assert_eq!(cut_text("ab cd ef", 5), Some("ab cd"));
        assert_eq!(cut_text("ab cd ef", 7), Some("ab cd"));
        assert_eq!(cut_text("     abc", 6), Some("     a"));
        assert_eq!(cut_text("a bcdefghijklmnopqrstuvw", 20), Some("a bcdefghijklmnopqrs"));
    }
}
