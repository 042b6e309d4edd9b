//! Text forms of counts, sizes, durations and rates.

use std::time::Duration;

use crate::RateLimit;
use crate::setting_syntax::SettingSyntax;

/// A count of at least one.
pub struct CountSyntax;

impl SettingSyntax for CountSyntax {
    type Value = usize;
    const HINT: &'static str = "N";

    fn read(text: &str) -> Result<usize, String> {
        let wrong = || format!("{text:?} is not a whole number of at least 1");
        text.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)
    }

    fn show(value: &usize) -> String {
        value.to_string()
    }
}

/// A count that may be zero.
pub struct CountOrZeroSyntax;

impl SettingSyntax for CountOrZeroSyntax {
    type Value = u64;
    const HINT: &'static str = "N";

    fn read(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("{text:?} is not a whole number of at least 0"))
    }

    fn show(value: &u64) -> String {
        value.to_string()
    }
}

/// The fewest characters of a password.
pub struct PasswordLengthSyntax;

impl SettingSyntax for PasswordLengthSyntax {
    type Value = usize;
    const HINT: &'static str = CountSyntax::HINT;

    fn read(text: &str) -> Result<usize, String> {
        let wrong = || format!("{text:?} is not a whole number from 8 to 64");
        text.parse().ok().filter(|n| (8..=64).contains(n)).ok_or_else(wrong)
    }

    fn show(value: &usize) -> String {
        value.to_string()
    }
}

/// Rounds of hashing.
pub struct HashRoundsSyntax;

impl SettingSyntax for HashRoundsSyntax {
    type Value = u32;
    const HINT: &'static str = CountSyntax::HINT;

    fn read(text: &str) -> Result<u32, String> {
        let wrong = || format!("{text:?} is not a whole number from 1 to 100");
        text.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(wrong)
    }

    fn show(value: &u32) -> String {
        value.to_string()
    }
}

/// Memory of hashing, in whole kibibytes.
pub struct HashMemorySyntax;

impl SettingSyntax for HashMemorySyntax {
    type Value = usize;
    const HINT: &'static str = SizeSyntax::HINT;

    fn read(text: &str) -> Result<usize, String> {
        let wrong = || format!("{text:?} is not a size from 64 KiB to 4 GiB in whole KiB");
        let bytes = SizeSyntax::read(text)?;
        let is_possible = ((64 << 10)..=(4 << 30)).contains(&bytes) && bytes.is_multiple_of(1 << 10);
        is_possible.then_some(bytes).ok_or_else(wrong)
    }

    fn show(value: &usize) -> String {
        SizeSyntax::show(value)
    }
}

/// A number of bytes, at least one.
pub struct SizeSyntax;

const SIZE_UNITS: [(&str, usize); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl SettingSyntax for SizeSyntax {
    type Value = usize;
    const HINT: &'static str = "SIZE";

    fn read(text: &str) -> Result<usize, String> {
        let wrong =
            || format!("{text:?} is not a size: use a form such as \"1 MiB\", \"16KiB\" or \"65536\"");
        let (number, unit) = split_unit(text);
        let unit = if unit.is_empty() { "B" } else { unit };
        let (_, bytes) =
            SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
        let number: usize = number.parse().map_err(|_| wrong())?;
        number.checked_mul(*bytes).filter(|n| *n > 0).ok_or_else(wrong)
    }

    fn show(value: &usize) -> String {
        let (name, bytes) = SIZE_UNITS
            .iter()
            .find(|(_, bytes)| value.is_multiple_of(*bytes))
            .expect("every size is whole bytes");
        format!("{} {name}", value / bytes)
    }
}

/// A number of bytes that may be zero.
pub struct SizeOrZeroSyntax;

impl SettingSyntax for SizeOrZeroSyntax {
    type Value = usize;
    const HINT: &'static str = SizeSyntax::HINT;

    fn read(text: &str) -> Result<usize, String> {
        if text.trim() == "0" { Ok(0) } else { SizeSyntax::read(text) }
    }

    fn show(value: &usize) -> String {
        if *value == 0 { "0".to_owned() } else { SizeSyntax::show(value) }
    }
}

/// A duration that is not zero.
pub struct DurationSyntax;

const DURATION_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl SettingSyntax for DurationSyntax {
    type Value = Duration;
    const HINT: &'static str = "TIME";

    fn read(text: &str) -> Result<Duration, String> {
        let wrong = || {
            format!(
                "{text:?} is not a duration: use a form such as \"500ms\", \"10s\", \"5m\", \"24h\" or \"7d\""
            )
        };
        let (number, unit) = split_unit(text);
        let (_, millis) = DURATION_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(*millis).filter(|n| *n > 0).map(Duration::from_millis).ok_or_else(wrong)
    }

    fn show(value: &Duration) -> String {
        let total = value.as_millis() as u64;
        // Hours read better than 120 minutes, but limits are usually thought of in seconds, so minutes are not
        // shown.
        let units = DURATION_UNITS.iter().filter(|(name, _)| *name != "m");
        let (name, millis) = units
            .into_iter()
            .find(|(_, millis)| total.is_multiple_of(*millis))
            .expect("read from whole milliseconds");
        format!("{}{name}", total / millis)
    }
}

/// A duration, or `off` for none.
pub struct DurationOrOffSyntax;

impl SettingSyntax for DurationOrOffSyntax {
    type Value = Duration;
    const HINT: &'static str = "TIME";

    fn read(text: &str) -> Result<Duration, String> {
        if text == "off" { Ok(Duration::ZERO) } else { DurationSyntax::read(text) }
    }

    fn show(value: &Duration) -> String {
        if value.is_zero() { "off".to_owned() } else { DurationSyntax::show(value) }
    }
}

pub struct RateLimitSyntax;

impl SettingSyntax for RateLimitSyntax {
    type Value = Option<RateLimit>;
    const HINT: &'static str = "RATE";

    fn read(text: &str) -> Result<Option<RateLimit>, String> {
        if text == "off" {
            return Ok(None);
        }
        let wrong = || format!("{text:?} is not a rate: use a form such as \"100/60s\", or off");
        let (requests, period) = text.split_once('/').ok_or_else(wrong)?;
        let requests = requests.trim().parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
        let period = DurationSyntax::read(period.trim()).map_err(|_| wrong())?;
        Ok(Some(RateLimit { requests, period }))
    }

    fn show(value: &Option<RateLimit>) -> String {
        match value {
            Some(rate) => format!("{}/{}", rate.requests, DurationSyntax::show(&rate.period)),
            None => "off".into(),
        }
    }
}

/// Splits a text into its leading digits and the unit.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting_syntax::tests::{assert_reads, assert_refuses};

    #[test]
    fn counts() {
        assert_refuses::<CountSyntax>("0", "at least 1");
        assert_reads::<CountOrZeroSyntax>("0", "0");
    }

    #[test]
    fn sizes() {
        assert_reads::<SizeSyntax>("1 MiB", "1 MiB");
        assert_reads::<SizeSyntax>("16KiB", "16 KiB");
        assert_reads::<SizeSyntax>("65536", "64 KiB");
        assert_reads::<SizeSyntax>("1000", "1000 B");
        assert_reads::<SizeSyntax>("2gib", "2 GiB");
        for wrong in
            ["", "0", "MiB", "-1", "1.5 MiB", "1 MB", "99999999999999999999", "18446744073709551615 KiB"]
        {
            assert_refuses::<SizeSyntax>(wrong, "is not a size");
        }
    }

    #[test]
    fn durations() {
        assert_reads::<DurationSyntax>("10s", "10s");
        assert_reads::<DurationSyntax>("500ms", "500ms");
        assert_reads::<DurationSyntax>("7d", "7d");
        assert_reads::<DurationSyntax>("24 h", "1d");
        assert_reads::<DurationSyntax>("90m", "5400s");
        for wrong in ["", "10", "0s", "-1s", "1.5s", "10 sec", "s"] {
            assert_refuses::<DurationSyntax>(wrong, "is not a duration");
        }
    }

    #[test]
    fn rates() {
        assert_reads::<RateLimitSyntax>("100/60s", "100/60s");
        assert_reads::<RateLimitSyntax>("off", "off");
        for wrong in ["", "100", "0/60s", "100/0s", "x/1s", "100/s"] {
            assert_refuses::<RateLimitSyntax>(wrong, "is not a rate");
        }
    }
}
