//! Encodes a decimal as a key: comparing two keys byte by byte compares the numbers exactly.

/// First byte of a key, in sort order; text that is not a decimal sorts after every number.
const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;
const NOT_DECIMAL: u8 = 255;

/// With the number as 0.d₁d₂d₃… × 10ᵉ and d₁ ≠ 0, the key is the sign, then `e`, then the digits in pairs without
/// trailing zeros. For a negative number every byte after the sign is inverted and a 255 is appended, so that the
/// larger magnitude sorts first, even if one key is a prefix of the other.
pub fn encode_decimal(text: &str) -> Vec<u8> {
    let Some((negative, whole, fraction)) = split_digits(text) else {
        return [&[NOT_DECIMAL], text.as_bytes()].concat();
    };
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
    let Some(first) = digits.iter().position(|&digit| digit != 0) else { return vec![ZERO] };
    let last = digits.iter().rposition(|&digit| digit != 0).map_or(first, |at| at + 1);
    let exponent = whole.len() as i64 - first as i64;

    let mut key = Vec::with_capacity(10 + (last - first) / 2);
    key.push(if negative { NEGATIVE } else { POSITIVE });
    key.extend(((exponent as u64) ^ (1 << 63)).to_be_bytes());
    // 1 to 100, so that no pair is 0 (255 when inverted), which would look like the end.
    key.extend(digits[first..last].chunks(2).map(|pair| pair[0] * 10 + pair.get(1).unwrap_or(&0) + 1));
    if negative {
        key[1..].iter_mut().for_each(|byte| *byte = !*byte);
        key.push(255);
    }
    key
}

/// The sign, the digits before and the digits after the point.
fn split_digits(text: &str) -> Option<(bool, &str, &str)> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(whole) && is_digits(fraction)).then_some((negative, whole, fraction))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::encode_decimal;

    /// Exact comparison by aligning the digits.
    fn compare(a: &str, b: &str) -> Ordering {
        fn aligned(text: &str) -> (bool, String) {
            let magnitude = text.trim_start_matches('-');
            let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
            let digits = format!("{whole:0>60}{fraction:0<60}");
            (text.starts_with('-') && digits.bytes().any(|byte| byte != b'0'), digits)
        }
        match (aligned(a), aligned(b)) {
            ((false, a), (false, b)) => a.cmp(&b),
            ((true, a), (true, b)) => b.cmp(&a),
            ((true, _), (false, _)) => Ordering::Less,
            ((false, _), (true, _)) => Ordering::Greater,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn keys_compare_like_numbers(
            a in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?",
            b in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?",
        ) {
            prop_assert_eq!(encode_decimal(&a).cmp(&encode_decimal(&b)), compare(&a, &b), "{} and {}", a, b);
        }

        #[test]
        fn keys_of_close_numbers_differ(
            a in "-?(0|1|10|9|99)(\\.0{0,3}[0-9]{1,3})?",
            b in "-?(0|1|10|9|99)(\\.0{0,3}[0-9]{1,3})?",
        ) {
            prop_assert_eq!(encode_decimal(&a).cmp(&encode_decimal(&b)), compare(&a, &b), "{} and {}", a, b);
        }
    }

    #[test]
    fn non_decimals_sort_last() {
        let mut texts = ["abc", "1e3", "", "99999999999999999999", "-5", "0", "-0.00", "0.1"];
        texts.sort_by_key(|text| encode_decimal(text));
        assert_eq!(texts[..5], ["-5", "0", "-0.00", "0.1", "99999999999999999999"]);
    }
}
