//! A word of a command that is shown to a person, quoted so that a shell takes it as it is meant.

use std::borrow::Cow;

/// As a shell takes it for one word.
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
    fn what_a_shell_would_take_apart_is_quoted() {
        for (text, shown) in [("my-app", "my-app"), ("../a.b", "../a.b"), ("my app", "'my app'"), ("", "''")]
        {
            assert_eq!(word(text), shown);
        }
        assert_eq!(word("it's"), r"'it'\''s'");
    }
}
