//! Regular expressions of the document, in the syntax that ECMAScript, Python and Rust share.

/// A 64-bit integer as text. The last few that 64 bits hold have no short expression and are left out.
pub const ID: &str = "^-?[0-8]?[0-9]{1,18}$";

pub const NOT_NEGATIVE_ID: &str = "^[0-8]?[0-9]{1,18}$";

/// How one is shown: here the last few count too.
pub const SHOWN_ID: &str = "^-?[0-9]{1,19}$";

pub const NO_NUL: &str = r"^[^\u0000]*$";

/// Of what stands between commas.
pub const NO_COMMA: &str = r"^[^\u0000,]*$";

/// Some letter that is no white space, as Unicode has it: `\s` is another set in each language.
pub const NOT_BLANK: &str = concat!(
    r"^[^\u0000]*[^\u0000\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]",
    r"[^\u0000]*$"
);

/// As the HTML Standard has it for `<input type=email>`.
pub const EMAIL: &str = concat!(
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?",
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
);

/// How a decimal is shown.
pub const PLAIN_DECIMAL: &str = r"-?[0-9]+(\.[0-9]+)?";

/// How one may be given.
pub const DECIMAL: &str = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?";

/// What an `Idempotency-Key` may be.
pub const KEY: &str = r"^[!-~]([\u0009 -~]{0,253}[!-~])?$";

pub fn whole(expression: &str) -> String {
    format!("^{expression}$")
}

pub fn unsigned(expression: &str) -> &str {
    expression.strip_prefix("-?").unwrap_or(expression)
}

/// The expression of a `@pattern` for others to use, unless it has what only Rust's syntax knows.
pub fn portable(source: &str) -> Option<String> {
    const OURS: [&str; 9] = ["(?i", "(?s", "(?m", "(?x", "(?P", r"\p", r"\A", r"\z", "[["];
    let is_ours = OURS.iter().any(|piece| source.contains(piece)) || source.contains("&&");
    (!is_ours).then(|| format!("^(?:{source})$"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn blank_is_what_the_rule_calls_blank() {
        for c in (0..=0x3100).filter_map(char::from_u32) {
            let text = c.to_string();
            let passes = !text.trim().is_empty() && c != '\0';
            assert_eq!(matches(NOT_BLANK, &text), passes, "{c:?}");
            assert_eq!(matches(NO_NUL, &text), c != '\0', "{c:?}");
        }
    }

    #[test]
    fn ids_are_64_bit_integers() {
        for good in ["0", "-1", "17", "8999999999999999999"] {
            assert!(matches(ID, good) && good.parse::<i64>().is_ok(), "{good}");
        }
        for shown in [i64::MIN, -1, 0, i64::MAX] {
            assert!(matches(SHOWN_ID, &shown.to_string()), "{shown}");
        }
        assert!(matches(NOT_NEGATIVE_ID, "17") && !matches(NOT_NEGATIVE_ID, "-17"));
        for bad in ["", "-", "1.0", "9999999999999999999", "+1", "1 ", "x"] {
            assert!(!matches(ID, bad), "{bad}");
        }
    }

    #[test]
    fn only_what_others_can_read_is_passed_on() {
        assert_eq!(portable("[A-Z]{2}").as_deref(), Some("^(?:[A-Z]{2})$"));
        assert_eq!(portable(r"\p{Lu}+"), None);
        assert_eq!(portable("(?i)abc"), None);
    }
}
