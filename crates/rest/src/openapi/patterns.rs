//! Regular expressions of the OpenAPI document, in the syntax that ECMAScript, Python and Rust share.

/// Integers from 0 to `i64::MAX`, digit by digit.
macro_rules! up_to_i64_max {
    () => {
        concat!(
            "[0-8]?[0-9]{1,18}|9[0-1][0-9]{17}|92[0-1][0-9]{16}|922[0-2][0-9]{15}|9223[0-2][0-9]{14}",
            "|92233[0-6][0-9]{13}|922337[0-1][0-9]{12}|92233720[0-2][0-9]{10}|922337203[0-5][0-9]{9}",
            "|9223372036[0-7][0-9]{8}|92233720368[0-4][0-9]{7}|922337203685[0-3][0-9]{6}",
            "|9223372036854[0-6][0-9]{5}|92233720368547[0-6][0-9]{4}|922337203685477[0-4][0-9]{3}",
            "|9223372036854775[0-7][0-9]{2}|922337203685477580[0-7]"
        )
    };
}

/// A 64-bit integer as text. The negative range has one more number.
pub const ID_PATTERN: &str = concat!("^(-?(", up_to_i64_max!(), ")|-9223372036854775808)$");

pub const NOT_NEGATIVE_ID: &str = concat!("^(", up_to_i64_max!(), ")$");

/// A 64-bit integer in a response. It need not exclude the numbers above the maximum, which the server never sends.
pub const SHOWN_ID: &str = "^-?[0-9]{1,19}$";

/// What a text key may begin and end with: neither white space nor what it must not contain at all.
macro_rules! key_edge {
    () => {
        r"[^\u0000-\u0020/\u007F-\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]"
    };
}

/// A text key. The reserved words are refused too, which a portable expression cannot say.
pub const TEXT_KEY: &str = concat!("^", key_edge!(), r"([^\u0000-\u001F/\u007F-\u009F]*", key_edge!(), ")?$");

/// A date and time without a zone; seconds are optional in requests.
pub const LOCAL_DATE_TIME: &str = concat!(
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    r"T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
);

pub const NO_NUL: &str = r"^[^\u0000]*$";

/// The names of relations, such as `lines.product`.
pub const RELATION_PATH: &str = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}$";

/// Conditions in parentheses.
pub const GROUP: &str = r"^\([^\u0000]*\)$";

/// An element of a list separated by commas.
pub const NO_COMMA: &str = r"^[^\u0000,]*$";

/// At least one character that is not Unicode white space. Spelled out, because `\s` differs between languages.
pub const NOT_BLANK: &str = concat!(
    r"^[^\u0000]*[^\u0000\u0009-\u000D\u0020\u0085\u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]",
    r"[^\u0000]*$"
);

/// An email address as the HTML Standard defines it for `<input type=email>`.
pub const EMAIL: &str = concat!(
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?",
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
);

/// A decimal in a response.
pub const PLAIN_DECIMAL: &str = r"-?[0-9]+(\.[0-9]+)?";

/// A decimal in a request.
pub const DECIMAL: &str = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?";

/// A valid `Idempotency-Key`.
pub const IDEMPOTENCY_KEY: &str = r"^[!-~]([\u0009 -~]{0,253}[!-~])?$";

pub fn anchored(expression: &str) -> String {
    format!("^{expression}$")
}

pub fn unsigned(expression: &str) -> &str {
    expression.strip_prefix("-?").unwrap_or(expression)
}

/// The anchored expression of a `@pattern`, unless it uses syntax that only Rust knows.
pub fn portable_pattern(source: &str) -> Option<String> {
    const RUST_ONLY: [&str; 9] = ["(?i", "(?s", "(?m", "(?x", "(?P", r"\p", r"\A", r"\z", "[["];
    let is_rust_only = RUST_ONLY.iter().any(|syntax| source.contains(syntax)) || source.contains("&&");
    (!is_rust_only).then(|| format!("^(?:{source})$"))
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use trefoil_model::{KeyForm, RecordId};

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Regex::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn not_blank_matches_unicode_white_space() {
        for c in (0..=0x3100).filter_map(char::from_u32) {
            let text = c.to_string();
            let passes = !text.trim().is_empty() && c != '\0';
            assert_eq!(matches(NOT_BLANK, &text), passes, "{c:?}");
            assert_eq!(matches(NO_NUL, &text), c != '\0', "{c:?}");
        }
    }

    #[test]
    fn text_key_pattern_matches_keys() {
        let pattern = Regex::new(TEXT_KEY).unwrap();
        for c in (0..=0x3100).filter_map(char::from_u32) {
            for text in [c.to_string(), format!("a{c}"), format!("{c}a"), format!("a{c}a")] {
                // The pattern cannot say which words are reserved.
                let is_key = RecordId::from_text(KeyForm::Text, &text).is_ok() || matches!(&*text, "-" | ".");
                assert_eq!(pattern.is_match(&text), is_key, "{text:?}");
            }
        }
    }

    #[test]
    fn id_pattern_matches_64_bit_integers() {
        let steps = || (0..19).map(|power| 10_i128.pow(power));
        let last = i128::from(i64::MAX);
        for good in steps().map(|step| last - step).chain([last, 0, -1, 17, -last, -last - 1]) {
            assert!(matches(ID_PATTERN, &good.to_string()), "{good}");
        }
        for bad in steps().map(|step| last + step) {
            assert!(!matches(ID_PATTERN, &bad.to_string()), "{bad}");
        }
        for shown in [i64::MIN, -1, 0, i64::MAX] {
            assert!(matches(SHOWN_ID, &shown.to_string()), "{shown}");
        }
        assert!(matches(NOT_NEGATIVE_ID, "17") && !matches(NOT_NEGATIVE_ID, "-17"));
        for bad in ["", "-", "1.0", "9999999999999999999", "+1", "1 ", "x"] {
            assert!(!matches(ID_PATTERN, bad), "{bad}");
        }
    }

    #[test]
    fn rust_only_patterns_are_not_portable() {
        assert_eq!(portable_pattern("[A-Z]{2}").as_deref(), Some("^(?:[A-Z]{2})$"));
        assert_eq!(portable_pattern(r"\p{Lu}+"), None);
        assert_eq!(portable_pattern("(?i)abc"), None);
    }
}
