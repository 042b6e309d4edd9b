//! Formats long numbers with thousands separators.

/// `1,234,567`
pub fn group_thousands(number: u64) -> String {
    group_digits(&number.to_string())
}

/// The same of a number as text.
pub fn group_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_group_digits() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(group_thousands(number), text);
        }
    }
}
