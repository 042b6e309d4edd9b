//! Decimal numbers as schoolbooks write them: digits and the number of those after the point.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, Sign};

#[derive(Clone, Debug)]
pub struct ExactNumber {
    pub digits: BigInt,
    pub places: usize,
}

impl ExactNumber {
    pub fn parse(text: &str) -> ExactNumber {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        ExactNumber { digits: format!("{whole}{fraction}").parse().unwrap(), places: fraction.len() }
    }

    pub fn with_places(&self, places: usize) -> ExactNumber {
        let more = places.saturating_sub(self.places);
        ExactNumber { digits: &self.digits * BigInt::from(10).pow(more as u32), places: self.places + more }
    }

    pub fn without_zeros(&self) -> ExactNumber {
        let mut shorter = self.clone();
        while shorter.places > 0 && &shorter.digits % 10 == BigInt::ZERO {
            shorter = ExactNumber { digits: shorter.digits / 10, places: shorter.places - 1 };
        }
        shorter
    }

    pub fn sum<'n>(numbers: impl Iterator<Item = &'n ExactNumber> + Clone) -> ExactNumber {
        let places = numbers.clone().map(|number| number.places).max().unwrap_or(0);
        ExactNumber { digits: numbers.map(|number| number.with_places(places).digits).sum(), places }
    }

    /// The order of `self` / `own_count` and `other` / `other_count`.
    pub fn compare_means(&self, own_count: usize, other: &ExactNumber, other_count: usize) -> Ordering {
        let places = self.places.max(other.places);
        let (left, right) = (self.with_places(places).digits, other.with_places(places).digits);
        (left * other_count).cmp(&(right * own_count))
    }

    /// `self` / `count` with at most 20 digits, half to even: the places after the point are tried one by one.
    pub fn mean(&self, count: usize) -> ExactNumber {
        let limit = BigInt::from(10).pow(20);
        let divisor = BigInt::from(count) * BigInt::from(10).pow(self.places as u32);
        let magnitude = BigInt::from_biguint(Sign::Plus, self.digits.magnitude().clone());
        let mut best = ExactNumber { digits: BigInt::ZERO, places: 0 };
        // Before the point: as many zeros as are needed for 20 digits to be enough.
        let zeros = (0..).find(|zeros| {
            let unit = &divisor * BigInt::from(10).pow(*zeros);
            half_even(&magnitude, &unit) < limit
        });
        let zeros = zeros.unwrap();
        if zeros > 0 {
            let unit = &divisor * BigInt::from(10).pow(zeros);
            best.digits = half_even(&magnitude, &unit) * BigInt::from(10).pow(zeros);
        } else {
            for places in 0..2000 {
                let digits = half_even(&(&magnitude * BigInt::from(10).pow(places as u32)), &divisor);
                if digits >= limit {
                    break;
                }
                best = ExactNumber { digits, places };
                if magnitude == BigInt::ZERO {
                    break;
                }
            }
        }
        if self.digits.sign() == Sign::Minus {
            best.digits = -best.digits;
        }
        best.without_zeros()
    }
}

fn half_even(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let (quotient, rest) = (dividend / divisor, dividend % divisor);
    let twice: BigInt = rest * 2;
    match twice.cmp(divisor) {
        Ordering::Less => quotient,
        Ordering::Equal if !quotient.bit(0) => quotient,
        Ordering::Equal | Ordering::Greater => quotient + 1,
    }
}

impl PartialEq for ExactNumber {
    fn eq(&self, other: &ExactNumber) -> bool {
        self.compare_means(1, other, 1) == Ordering::Equal
    }
}

impl fmt::Display for ExactNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>width$}", self.digits.magnitude().to_string(), width = self.places + 1);
        let sign = if self.digits.sign() == Sign::Minus { "-" } else { "" };
        let (whole, fraction) = digits.split_at(digits.len() - self.places);
        write!(out, "{sign}{whole}{}{fraction}", if fraction.is_empty() { "" } else { "." })
    }
}
