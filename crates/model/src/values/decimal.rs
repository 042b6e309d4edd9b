//! Exact decimals as text: a canonical form, and a comparison that never rounds.

use std::cmp::Ordering;

/// Maximum number of digits, so that an exponent cannot produce a huge text.
pub const MAX_DIGITS: usize = 1000;

/// The reason why a text is not a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalError {
    Malformed,
    TooLong,
}

/// The canonical form of `-007.50`, `7.5e1` and the like: no leading zeros, no exponent, no `-0`. Trailing zeros of
/// the fraction stay.
pub fn normalise(text: &str) -> Result<String, DecimalError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
        Some(_) => return Err(DecimalError::Malformed),
        None => (mantissa, ""),
    };
    if !is_digits(whole) {
        return Err(DecimalError::Malformed);
    }
    let plain = shift_point(whole, fraction, exponent)?;
    let negative = negative && plain.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0');
    Ok(if negative { format!("-{plain}") } else { plain })
}

/// The value if it is whole and fits in 64 bits: `3`, `3.0` and `3e2` are, `3.5` is not.
pub fn to_i64(text: &str) -> Option<i64> {
    let plain = normalise(text).ok()?;
    match plain.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.parse().ok(),
        Some(_) => None,
        None => plain.parse().ok(),
    }
}

/// Parses digits of a 64-bit integer with an optional minus, and nothing else.
pub fn parse_integer(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Compares two canonical decimals by value; `1.50` equals `1.5`.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (a.strip_prefix('-'), b.strip_prefix('-')) {
        (Some(a), Some(b)) => compare_magnitude(b, a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => compare_magnitude(a, b),
    }
}

/// True if the text is in the form that [`normalise`] returns.
pub fn is_canonical(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    is_digits(whole) && is_digits(fraction) && (whole.len() == 1 || !whole.starts_with('0'))
}

fn compare_magnitude(a: &str, b: &str) -> Ordering {
    let (a_whole, a_fraction) = a.split_once('.').unwrap_or((a, ""));
    let (b_whole, b_fraction) = b.split_once('.').unwrap_or((b, ""));
    a_whole
        .len()
        .cmp(&b_whole.len())
        .then_with(|| a_whole.cmp(b_whole))
        .then_with(|| a_fraction.trim_end_matches('0').cmp(b_fraction.trim_end_matches('0')))
}

fn parse_exponent(text: &str) -> Result<i64, DecimalError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !is_digits(digits) {
        return Err(DecimalError::Malformed);
    }
    let digits = digits.trim_start_matches('0');
    // 32 bits, so that adding a length cannot overflow.
    let exponent: i32 =
        if digits.is_empty() { 0 } else { digits.parse().map_err(|_| DecimalError::TooLong)? };
    Ok(i64::from(if text.starts_with('-') { -exponent } else { exponent }))
}

/// Moves the point by `exponent` places.
fn shift_point(whole: &str, fraction: &str, exponent: i64) -> Result<String, DecimalError> {
    let point = whole.len() as i64 + exponent;
    let digits = whole.len() + fraction.len();
    let width = digits as i64 + (1 - point).max(0) + (point - digits as i64).max(0);
    if width > MAX_DIGITS as i64 {
        return Err(DecimalError::TooLong);
    }
    let mut all = "0".repeat((1 - point).max(0) as usize);
    let point = point.max(1) as usize;
    all.push_str(whole);
    all.push_str(fraction);
    if all.len() < point {
        all.push_str(&"0".repeat(point - all.len()));
    }
    let (whole, fraction) = all.split_at(point);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Ok(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn canonical_forms() {
        for (input, expected) in [
            ("12.50", "12.50"),
            ("-007.5", "-7.5"),
            ("0", "0"),
            ("-0", "0"),
            ("-0.00", "0.00"),
            ("-0.01", "-0.01"),
            ("1e3", "1000"),
            ("1.5E+3", "1500"),
            ("1.50e1", "15.0"),
            ("1e-3", "0.001"),
            ("120e-1", "12.0"),
            ("0e5", "0"),
            ("1e0000", "1"),
            ("9223372036854775808", "9223372036854775808"),
        ] {
            assert_eq!(normalise(input).as_deref(), Ok(expected), "{input}");
            assert!(is_canonical(expected), "{expected}");
        }
        for input in ["", "-", ".5", "5.", "+1", "1,5", " 1", "1e", "1e+", "NaN", "0x10", "1.2.3", "--1", "١"]
        {
            assert_eq!(normalise(input), Err(DecimalError::Malformed), "{input}");
        }
        for input in [
            "1e1000",
            "1e-1000",
            "1e2147483647",
            "1e9223372036854775807",
            "1e-9223372036854775807",
            "1e99999999999999999999",
            &"1".repeat(1001),
        ] {
            assert_eq!(normalise(input), Err(DecimalError::TooLong), "{input}");
        }
        assert_eq!(normalise(&"9".repeat(1000)), Ok("9".repeat(1000)));
        for text in ["007", "+1", "1e5", "", "-", "1.", ".1"] {
            assert!(!is_canonical(text), "{text}");
        }
    }

    #[test]
    fn conversion_to_integers() {
        assert_eq!(to_i64("3.0"), Some(3));
        assert_eq!(to_i64("-3e2"), Some(-300));
        assert_eq!(to_i64("3.5"), None);
        assert_eq!(to_i64("9223372036854775807"), Some(i64::MAX));
        assert_eq!(to_i64("9223372036854775808"), None);
    }

    proptest! {
        #[test]
        fn comparison_follows_the_value(a in -100_000i64..100_000, b in -100_000i64..100_000, zeros in 0usize..4) {
            let text = |n: i64| format!("{}{}.{:03}", if n < 0 { "-" } else { "" }, n.abs() / 1000, n.abs() % 1000);
            let (left, right) = (text(a), text(b) + &"0".repeat(zeros));
            prop_assert_eq!(compare(&normalise(&left).expect("a decimal"), &normalise(&right).expect("a decimal")), a.cmp(&b));
        }

        #[test]
        fn normalising_keeps_the_value(n in any::<i64>(), places in 0i32..30) {
            let once = normalise(&format!("{n}e-{places}")).expect("a decimal");
            prop_assert!(is_canonical(&once));
            prop_assert_eq!(normalise(&once).expect("a decimal"), once.clone());
            prop_assert_eq!(normalise(&format!("{once}e{places}")).ok().and_then(|t| to_i64(&t)), Some(n));
        }
    }
}
