//! Exact sums and means of decimals.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};

/// The digits of a mean; the last one is rounded, half to even.
pub const MEAN_DIGITS: usize = 20;

/// An exact sum of decimals. It has as many decimal places as the value with most.
#[derive(Debug, Clone, Default)]
pub struct DecimalSum {
    places: usize,
    digits: SumDigits,
}

/// The sum without its point.
#[derive(Debug, Clone)]
enum SumDigits {
    Small(i128),
    Large(BigInt),
}

impl Default for SumDigits {
    fn default() -> Self {
        SumDigits::Small(0)
    }
}

impl SumDigits {
    fn parse(digits: &str) -> Option<SumDigits> {
        match digits.parse() {
            Ok(number) => Some(SumDigits::Small(number)),
            Err(_) => digits.parse().ok().map(SumDigits::Large),
        }
    }

    fn into_large(self) -> BigInt {
        match self {
            SumDigits::Small(number) => number.into(),
            SumDigits::Large(number) => number,
        }
    }

    fn plus(self, other: SumDigits) -> SumDigits {
        if let (SumDigits::Small(left), SumDigits::Small(right)) = (&self, &other)
            && let Some(sum) = left.checked_add(*right)
        {
            return SumDigits::Small(sum);
        }
        SumDigits::Large(self.into_large() + other.into_large())
    }

    /// The same number with more decimal places.
    fn with_places(self, more: usize) -> SumDigits {
        if more == 0 {
            return self;
        }
        if let SumDigits::Small(number) = self
            && let Some(shifted) =
                10_i128.checked_pow(more as u32).and_then(|factor| number.checked_mul(factor))
        {
            return SumDigits::Small(shifted);
        }
        SumDigits::Large(self.into_large() * power_of_ten(more))
    }
}

impl DecimalSum {
    /// Adds a canonical decimal; false if the text is none.
    pub fn add(&mut self, text: &str) -> bool {
        let Some((digits, places)) = split_decimal(text) else { return false };
        let places_after = self.places.max(places);
        let own = std::mem::take(&mut self.digits).with_places(places_after - self.places);
        self.digits = own.plus(digits.with_places(places_after - places));
        self.places = places_after;
        true
    }

    /// Adds an integer.
    pub fn add_integer(&mut self, number: i64) -> bool {
        let digits = SumDigits::Small(number.into()).with_places(self.places);
        self.digits = std::mem::take(&mut self.digits).plus(digits);
        true
    }

    pub fn to_text(&self) -> String {
        let digits = match &self.digits {
            SumDigits::Small(number) => number.to_string(),
            SumDigits::Large(number) => number.to_string(),
        };
        with_point(&digits, self.places)
    }

    /// The sum divided by a number, rounded to so many significant digits; without trailing zeros.
    pub fn divided_by(&self, count: u64, significant: usize) -> Option<String> {
        let (sign, dividend) = self.digits.clone().into_large().into_parts();
        if count == 0 {
            return None;
        }
        if sign == Sign::NoSign {
            return Some("0".to_owned());
        }
        let divisor = BigUint::from(count) * power_of_ten(self.places).magnitude();
        // The first estimate is one digit too long at most.
        let length = |number: &BigUint| number.to_string().len() as i64;
        let mut places = significant as i64 - (length(&dividend) - length(&divisor));
        let mut quotient = rounded_quotient(&dividend, &divisor, places);
        if length(&quotient) > significant as i64 {
            places -= 1;
            quotient = rounded_quotient(&dividend, &divisor, places);
        }
        let digits = BigInt::from_biguint(sign, quotient);
        Some(match usize::try_from(places) {
            Ok(places) => without_trailing_zeros(&with_point(&digits.to_string(), places)).to_owned(),
            Err(_) => (digits * power_of_ten(places.unsigned_abs() as usize)).to_string(),
        })
    }
}

/// The mean of values, from their sum and their number.
pub fn mean(sum: &str, count: u64) -> Option<String> {
    let mut exact = DecimalSum::default();
    exact.add(sum).then_some(())?;
    exact.divided_by(count, MEAN_DIGITS)
}

/// `1.5` for `1.500`.
pub fn without_trailing_zeros(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// The number of digits after the point.
pub fn decimal_places(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// The same number with at least so many digits after the point.
pub fn with_decimal_places(text: &str, places: usize) -> String {
    let missing = places.saturating_sub(decimal_places(text));
    let point = if missing > 0 && !text.contains('.') { "." } else { "" };
    format!("{text}{point}{}", "0".repeat(missing))
}

/// `dividend` × 10^`places` / `divisor`, half to even.
fn rounded_quotient(dividend: &BigUint, divisor: &BigUint, places: i64) -> BigUint {
    let factor = power_of_ten(places.unsigned_abs() as usize).into_parts().1;
    let (dividend, divisor) =
        if places < 0 { (dividend.clone(), divisor * factor) } else { (dividend * factor, divisor.clone()) };
    let quotient = &dividend / &divisor;
    let rest = dividend - &quotient * &divisor;
    let is_up = match (rest * 2_u8).cmp(&divisor) {
        Ordering::Less => false,
        Ordering::Equal => quotient.bit(0),
        Ordering::Greater => true,
    };
    quotient + u8::from(is_up)
}

fn power_of_ten(exponent: usize) -> BigInt {
    BigInt::from(10).pow(exponent as u32)
}

/// The digits without the point, and how many follow it.
fn split_decimal(text: &str) -> Option<(SumDigits, usize)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain || digits.is_empty() {
        return None;
    }
    match text.split_once('.') {
        None => Some((SumDigits::parse(text)?, 0)),
        Some((whole, fraction)) => {
            let places = fraction.len();
            Some((SumDigits::parse(&format!("{whole}{fraction}"))?, places))
        }
    }
}

/// The digits of an integer with a point before the last `places` of them.
fn with_point(digits: &str, places: usize) -> String {
    if places == 0 {
        return digits.to_owned();
    }
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[&str]) -> DecimalSum {
        let mut sum = DecimalSum::default();
        values.iter().for_each(|value| assert!(sum.add(value), "{value}"));
        sum
    }

    #[test]
    fn sums_are_exact() {
        for (values, expected) in [
            (&["0.1", "0.2"][..], "0.3"),
            (&["1.50", "2"], "3.50"),
            (&["-0.05", "0.05"], "0.00"),
            (&["-1.5"], "-1.5"),
            (&[], "0"),
            (&["170141183460469231731687303715884105727", "1"], "170141183460469231731687303715884105728"),
            (
                &["99999999999999999999999999999999999999999", "0.01"],
                "99999999999999999999999999999999999999999.01",
            ),
        ] {
            assert_eq!(sum(values).to_text(), expected, "{values:?}");
        }
        assert!(!sum(&[]).clone().add("abc") && !sum(&[]).clone().add("") && !sum(&[]).clone().add("1e3"));
    }

    #[test]
    fn means_have_twenty_digits_half_to_even() {
        for (values, expected) in [
            (&["1", "2"][..], "1.5"),
            (&["10", "0", "0"], "3.3333333333333333333"),
            (&["-20", "0", "0"], "-6.6666666666666666667"),
            (&["0.00", "0.00"], "0"),
            (&["1", "0.0000000000000000001"], "0.50000000000000000005"),
            (&["2", "0.0000000000000000001"], "1"),
            (&["2", "0.0000000000000000003"], "1.0000000000000000002"),
            (&["123456789012345678905", "123456789012345678905"], "123456789012345678900"),
            (&["123456789012345678915", "123456789012345678915"], "123456789012345678920"),
            (&["99999999999999999999.9"], "100000000000000000000"),
            (&["0.001", "0.002"], "0.0015"),
        ] {
            let mean = sum(values).divided_by(values.len() as u64, MEAN_DIGITS);
            assert_eq!(mean.as_deref(), Some(expected), "{values:?}");
        }
        assert_eq!(mean("7.50", 3).as_deref(), Some("2.5"));
        assert_eq!(mean("1", 0), None);
    }

    #[test]
    fn places_are_added_and_removed() {
        assert_eq!(with_decimal_places("7", 2), "7.00");
        assert_eq!(with_decimal_places("7.5", 2), "7.50");
        assert_eq!(with_decimal_places("7.125", 2), "7.125");
        for (text, expected) in [("1.50", "1.5"), ("100", "100"), ("0.00", "0"), ("10.0", "10")] {
            assert_eq!(without_trailing_zeros(text), expected);
        }
    }

    proptest! {
        #[test]
        fn sums_of_integers(values in proptest::collection::vec(any::<i64>(), 0..20)) {
            let texts: Vec<String> = values.iter().map(i64::to_string).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let expected: i128 = values.iter().map(|value| i128::from(*value)).sum();
            prop_assert_eq!(sum(&texts).to_text(), expected.to_string());
        }
    }
}
