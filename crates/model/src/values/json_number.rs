//! Numbers in JSON syntax, checked by construction.

use std::fmt;
use std::ops::Deref;

/// The text of a JSON number with all its digits. It can be copied into JSON as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonNumber(String);

impl JsonNumber {
    /// `None` if the text is not a JSON number. Exponents get one form: `1E5` becomes `1e+5`.
    pub fn parse(text: &str) -> Option<JsonNumber> {
        let rest = text.strip_prefix('-').unwrap_or(text);
        let (whole, rest) = digits(rest);
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let rest = match rest.strip_prefix('.').map(digits) {
            Some(("", _)) => return None,
            Some((_, rest)) => rest,
            None => rest,
        };
        if rest.is_empty() {
            return Some(JsonNumber(text.to_owned()));
        }
        let exponent = rest.strip_prefix(['e', 'E'])?;
        let (sign, places) = match exponent.strip_prefix('-') {
            Some(places) => ('-', places),
            None => ('+', exponent.strip_prefix('+').unwrap_or(exponent)),
        };
        let (exponent_digits, rest) = digits(places);
        let mantissa = &text[..text.len() - exponent.len() - 1];
        (rest.is_empty() && !exponent_digits.is_empty())
            .then(|| JsonNumber(format!("{mantissa}e{sign}{places}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_json(&self) -> serde_json::Value {
        // The grammar was checked by `parse`.
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

/// Splits a text after its leading digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

impl Deref for JsonNumber {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JsonNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn parse_accepts_only_json_numbers() {
        let cases = ["0.5", "-0.50", "12.", "1e5", "1E5", "1.5e-07", "-0e0", "99999999999999999999"];
        let expected = ["0.5", "-0.50", "", "1e+5", "1e+5", "1.5e-07", "-0e+0", "99999999999999999999"];
        for (text, expected) in cases.iter().zip(expected) {
            let found = JsonNumber::parse(text);
            assert_eq!(found.as_deref().unwrap_or_default(), expected, "{text}");
        }
        let wrong = [
            "", "-", "+1", "01", "-01", ".5", "1.", "1.e5", "1e", "1e+", "1e+-5", "1e5x", "1 ", " 1", "1\0",
            "NaN", "Infinity", "0x1", "1,5", "1_000", "[1]", "\"1\"", "any text", "٣",
        ];
        for text in wrong {
            assert_eq!(JsonNumber::parse(text), None, "{text:?}");
            assert_eq!(Value::number(text), None, "{text:?}");
        }
    }

    #[test]
    fn parse_agrees_with_serde_json() {
        let parts = ["-", "0", "1", "12", ".", "5", "e", "E", "+"];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            texts = texts.iter().flat_map(|text| parts.map(|part| format!("{text}{part}"))).collect();
            for text in &texts {
                let expected = serde_json::from_str::<serde_json::Number>(text).ok();
                let parsed = JsonNumber::parse(text);
                assert_eq!(parsed.as_deref(), expected.map(|number| number.to_string()).as_deref(), "{text}");
            }
        }
    }

    #[test]
    fn integers_need_64_bits() {
        assert_eq!(Value::number("-9223372036854775808"), Some(Value::Int(i64::MIN)));
        assert_eq!(Value::number("-0"), Some(Value::Int(0)));
        let Some(Value::Number(number)) = Value::number("9223372036854775808") else {
            panic!("too great for 64 bits")
        };
        assert_eq!(number.to_json().to_string(), "9223372036854775808");
    }
}
