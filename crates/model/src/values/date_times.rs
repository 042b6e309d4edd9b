//! Dates and times: RFC 3339 to the stored form, in UTC with six digits. Times without a zone are stored as if it were UTC.

use jiff::{SignedDuration, Timestamp, civil};

/// Parses `YYYY-MM-DD`, years 0001 to 9999.
pub(crate) fn parse_date(text: &str) -> Option<civil::Date> {
    if !matches_shape(text, b"0000-00-00") {
        return None;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<i16>().ok();
    let date = civil::Date::new(number(0..4)?, number(5..7)? as i8, number(8..10)? as i8).ok()?;
    (date.year() >= 1).then_some(date)
}

/// Parses RFC 3339 with its offset, as UTC; digits beyond the microsecond must be zeros. Not a `Timestamp`, whose
/// range ends a day before the year 9999 does.
pub(crate) fn parse_date_time(text: &str) -> Option<civil::DateTime> {
    let (local, zone) = parse_clock(text)?;
    let utc = local.checked_sub(parse_zone_offset(zone)?).ok()?;
    (utc.year() >= 1).then_some(utc)
}

/// Parses a time without a zone, such as `2026-01-31T09:30:00`. Java leaves seconds out where there are none. The `Z`
/// that JavaScript writes after every time is ignored.
pub(crate) fn parse_local_date_time(text: &str) -> Option<civil::DateTime> {
    if text.len() == 16 {
        return parse_local_date_time(&format!("{text}:00"));
    }
    parse_clock(text).filter(|(_, zone)| matches!(*zone, "" | "Z")).map(|(local, _)| local)
}

/// The time that clocks show, and the zone after it.
fn parse_clock(text: &str) -> Option<(civil::DateTime, &str)> {
    let (clock, rest) = text.split_at_checked(19)?;
    if !matches_shape(clock, b"0000-00-00T00:00:00") {
        return None;
    }
    let (micros, zone) = parse_fraction(rest)?;
    let number = |range: std::ops::Range<usize>| clock[range].parse::<i8>().ok();
    let time = civil::Time::new(number(11..13)?, number(14..16)?, number(17..19)?, micros * 1000).ok()?;
    Some((parse_date(&clock[..10])?.to_datetime(time), zone))
}

/// The microseconds of `.5Z` and the zone after them.
fn parse_fraction(text: &str) -> Option<(i32, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, zone) = rest.split_at(length);
    let (micros, excess) = digits.split_at(length.min(6));
    if micros.is_empty() || excess.bytes().any(|digit| digit != b'0') {
        return None;
    }
    Some((format!("{micros:0<6}").parse().ok()?, zone))
}

/// Offset from UTC of a zone such as `+02:00` or `Z`.
fn parse_zone_offset(zone: &str) -> Option<SignedDuration> {
    if matches!(zone, "Z" | "z") {
        return Some(SignedDuration::ZERO);
    }
    if !matches_shape(zone, b"+00:00") && !matches_shape(zone, b"-00:00") {
        return None;
    }
    let (hours, minutes): (i64, i64) = (zone[1..3].parse().ok()?, zone[4..6].parse().ok()?);
    let offset = SignedDuration::from_mins(hours * 60 + minutes);
    let is_valid = hours < 24 && minutes < 60;
    is_valid.then_some(if zone.starts_with('-') { -offset } else { offset })
}

/// A timestamp in the stored form.
pub fn format_timestamp(timestamp: Timestamp) -> String {
    format_date_time(jiff::tz::Offset::UTC.to_datetime(timestamp))
}

/// The stored form of a time: UTC with all six digits, so that text order is time order.
pub(crate) fn format_date_time(time: civil::DateTime) -> String {
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.subsec_nanosecond() / 1000
    )
}

/// The stored form of a time that may lack digits, in UTC or without a zone: `2026-01-31T09:30:00Z`.
pub fn stored_form(text: &str) -> Option<String> {
    parse_clock(text).filter(|(_, zone)| matches!(*zone, "" | "Z")).map(|(time, _)| format_date_time(time))
}

/// True if the text is in the form of [`format_date_time`]; allocates nothing.
pub(crate) fn is_canonical_date_time(text: &str) -> bool {
    matches_shape(text, b"0000-00-00T00:00:00.000000Z")
        && text.is_ascii()
        && parse_date(&text[..10]).is_some()
        && &text[11..13] < "24"
        && &text[14..16] < "60"
        && &text[17..19] < "60"
        && text.as_bytes()[10] == b'T'
        && text.ends_with('Z')
}

/// Compares a text with a shape: `0` stands for any digit, everything else for itself, ignoring case.
fn matches_shape(text: &str, shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape).all(|(byte, expected)| match expected {
            b'0' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(expected),
        })
}
