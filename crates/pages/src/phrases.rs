//! Numbers and texts as sentences of pages have them: grouped digits, plurals, long texts cut.

pub use trefoil_model::values::thousands::group_thousands;

/// Counts go no further than this: beyond it a list is "more than" so many, whatever its length.
pub const MAX_COUNT: u32 = 1_000;

/// "1 user", "2 users".
pub fn counted_noun(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_thousands(number), if number == 1 { one } else { many })
}

/// A count that went no further than [`MOST_COUNTED`]: "12", "more than 1,000".
pub fn bounded_count(total: u64) -> String {
    let most = u64::from(MAX_COUNT);
    if total > most { format!("more than {}", group_thousands(most)) } else { group_thousands(total) }
}

/// A text is cut at the end of a word, if one ends no further than this before.
const WORD_END_DISTANCE: usize = 15;

/// About the first so many characters, where there are more.
pub fn cut_text(text: &str, most: usize) -> Option<&str> {
    let (end, next) = text.char_indices().nth(most)?;
    let start = &text[..end];
    let near = start.char_indices().rev().take(WORD_END_DISTANCE).find(|(_, letter)| letter.is_whitespace());
    let end = near.filter(|_| !next.is_whitespace()).map_or(end, |(at, _)| at);
    let whole_words = start[..end].trim_end();
    Some(if whole_words.is_empty() { start } else { whole_words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(counted_noun(1, "user", "users"), "1 user");
        assert_eq!(counted_noun(1_001, "user", "users"), "1,001 users");
        assert_eq!(
            (bounded_count(1_000).as_str(), bounded_count(1_001).as_str()),
            ("1,000", "more than 1,000")
        );
    }

    #[test]
    fn texts_are_cut_between_words_or_characters() {
        assert_eq!(cut_text("Grüße", 5), None);
        assert_eq!(cut_text("Grüße", 3), Some("Grü"));
        assert_eq!(cut_text("ab cd", 3), Some("ab"));
        assert_eq!(cut_text("ab cd ef", 5), Some("ab cd"));
        assert_eq!(cut_text("ab cd ef", 7), Some("ab cd"));
        assert_eq!(cut_text("     abc", 6), Some("     a"));
        assert_eq!(cut_text("a bcdefghijklmnopqrstuvw", 20), Some("a bcdefghijklmnopqrs"));
    }
}
