//! The accepted input of each scalar and its stored form, as strict as GraphQL.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp, civil};

use crate::values::decimal::{self, DecimalError};
use crate::values::json_text;
use crate::values::rule_checks::{EMAIL_HELP, is_email};
use crate::{Scalar, StoredValue, Value};

/// The reason why a value is wrong; the message continues after the field's label.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScalarError {
    pub code: &'static str,
    pub message: Cow<'static, str>,
}

pub(crate) fn coerce_scalar(scalar: Scalar, value: &Value) -> Result<StoredValue, ScalarError> {
    match scalar {
        Scalar::String => expect_text(value).map(StoredValue::Text),
        Scalar::Id => match value {
            Value::Int(number) => Ok(StoredValue::Text(number.to_string())),
            Value::Number(digits) => match decimal::to_i64(digits) {
                Some(number) => Ok(StoredValue::Text(number.to_string())),
                None => Err(type_error("an id: text or a whole number", value)),
            },
            Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => {
                expect_text(value).map(StoredValue::Text)
            }
        },
        Scalar::Int => whole_number(value)
            .and_then(|number| i32::try_from(number).ok())
            .map(|number| StoredValue::Int(number.into()))
            .ok_or_else(|| type_error("a whole number between -2147483648 and 2147483647", value)),
        Scalar::Long => value.as_i64().map(StoredValue::Int).ok_or_else(|| type_error(LONG_RANGE, value)),
        Scalar::Float => {
            finite_float(value).map(StoredValue::Real).ok_or_else(|| type_error("a finite number", value))
        }
        Scalar::Boolean => value
            .as_bool()
            .map(|flag| StoredValue::Int(flag.into()))
            .ok_or_else(|| type_error("true or false", value)),
        Scalar::Decimal => parse_decimal(value).map(StoredValue::Text),
        Scalar::Date => {
            parse_text_as(value, "DATE", DATE_HELP, |text| parse_date(text).map(|date| date.to_string()))
        }
        Scalar::DateTime => parse_text_as(value, "DATE_TIME", DATE_TIME_HELP, |text| {
            parse_date_time(text).map(format_date_time)
        }),
        Scalar::Uuid => parse_text_as(value, "UUID", UUID_HELP, |text| {
            uuid::Uuid::try_parse(text).ok().map(|uuid| uuid.hyphenated().to_string())
        }),
        Scalar::Url => parse_text_as(value, "URL", URL_HELP, |text| is_url(text).then(|| text.to_owned())),
        Scalar::Email => {
            parse_text_as(value, "EMAIL", EMAIL_HELP, |text| is_email(text).then(|| text.to_owned()))
        }
        Scalar::Json => to_json_text(value).map(StoredValue::Text),
    }
}

const LONG_RANGE: &str = "a whole number between -9223372036854775808 and 9223372036854775807";
const DATE_HELP: &str = "must be a date such as 2026-01-31";
const DATE_TIME_HELP: &str =
    "must be a time with its zone, to the microsecond at most, such as 2026-01-31T09:30:00Z";
const UUID_HELP: &str = "must be a UUID such as 123e4567-e89b-12d3-a456-426614174000";
const URL_HELP: &str = "must be a whole URL such as https://example.com/";

fn type_error(expected: &str, value: &Value) -> ScalarError {
    let found = match value {
        // A number of the wrong sort: the expected type says enough.
        Value::Int(_) | Value::Number(_) if expected.contains("number") => String::new(),
        // Long numbers are sent as text.
        Value::String(_) if expected == LONG_RANGE => String::new(),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_)
        | Value::Object(_) => format!(", not {}", value.type_noun()),
    };
    ScalarError { code: "TYPE", message: format!("must be {expected}{found}").into() }
}

fn expect_text(value: &Value) -> Result<String, ScalarError> {
    match value.as_str() {
        Some(text) if text.contains('\0') => Err(NUL_ERROR),
        Some(text) => Ok(text.to_owned()),
        None => Err(type_error("text", value)),
    }
}

const NUL_ERROR: ScalarError =
    ScalarError { code: "NUL", message: Cow::Borrowed("must not contain the character U+0000") };

fn parse_text_as(
    value: &Value,
    code: &'static str,
    help: &'static str,
    parse: impl FnOnce(&str) -> Option<String>,
) -> Result<StoredValue, ScalarError> {
    let text = expect_text(value)?;
    parse(&text).map(StoredValue::Text).ok_or(ScalarError { code, message: help.into() })
}

/// Parses digits of a 64-bit integer with an optional minus, and nothing else.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Number(digits) => decimal::to_i64(digits),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn finite_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Number(digits) => digits.parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn parse_decimal(value: &Value) -> Result<String, ScalarError> {
    let digits = match value {
        Value::Int(number) => return Ok(number.to_string()),
        Value::Number(number) => number.as_str(),
        Value::String(digits) => digits,
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            return Err(type_error("a decimal number", value));
        }
    };
    decimal::normalise(digits).map_err(|reason| match reason {
        DecimalError::Malformed => {
            ScalarError { code: "DECIMAL", message: "must be a decimal number such as 12.50".into() }
        }
        DecimalError::TooLong => ScalarError {
            code: "DECIMAL",
            message: format!("must have at most {} digits", decimal::MAX_DIGITS).into(),
        },
    })
}

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
    let (clock, rest) = text.split_at_checked(19)?;
    if !matches_shape(clock, b"0000-00-00T00:00:00") {
        return None;
    }
    let (micros, zone) = parse_fraction(rest)?;
    let number = |range: std::ops::Range<usize>| clock[range].parse::<i8>().ok();
    let time = civil::Time::new(number(11..13)?, number(14..16)?, number(17..19)?, micros * 1000).ok()?;
    let utc = parse_date(&clock[..10])?.to_datetime(time).checked_sub(parse_zone_offset(zone)?).ok()?;
    (utc.year() >= 1).then_some(utc)
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

/// True for an absolute URL without the characters that browsers silently drop.
fn is_url(text: &str) -> bool {
    !text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) && url::Url::parse(text).is_ok()
}

/// Any value as compact JSON.
fn to_json_text(value: &Value) -> Result<String, ScalarError> {
    let mut text = Vec::new();
    write_json(&mut text, value)?;
    Ok(String::from_utf8(text).expect("JSON made of text is text"))
}

fn write_json(out: &mut Vec<u8>, value: &Value) -> Result<(), ScalarError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Int(number) => json_text::write_int(out, *number),
        Value::Number(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::String(text) if text.contains('\0') => return Err(NUL_ERROR),
        Value::String(text) => json_text::write_text(out, text),
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push(if i == 0 { b'[' } else { b',' });
                write_json(out, item)?;
            }
            out.extend_from_slice(if items.is_empty() { b"[]" } else { b"]" });
        }
        Value::Object(fields) => {
            for (i, (name, field)) in fields.iter().enumerate() {
                out.push(if i == 0 { b'{' } else { b',' });
                if name.contains('\0') {
                    return Err(NUL_ERROR);
                }
                json_text::write_text(out, name);
                out.push(b':');
                write_json(out, field)?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
    }
    Ok(())
}
