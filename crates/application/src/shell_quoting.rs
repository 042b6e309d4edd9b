//! Quoting of arguments in commands that are shown to the user.

use std::borrow::Cow;

/// `text` as one word of a shell command.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:@+,%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_if_needed() {
        for (text, expected) in
            [("my-app", "my-app"), ("../a.b", "../a.b"), ("my app", "'my app'"), ("", "''")]
        {
            assert_eq!(word(text), expected);
        }
        assert_eq!(word("it's"), r"'it'\''s'");
    }
}
